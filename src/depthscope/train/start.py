"""A task, started on the engine that its spec names."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from depthscope.core.errors import UserError
from depthscope.record.events import Ended, Event, SafePoint, State
from depthscope.record.schema import Outcome
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.train.build import Context
from depthscope.train.shallow import is_constructed
from depthscope.train.state import StaleStateError, Standing
from depthscope.train.usercode import asked_to_end, kept_cwd, raised_in, told, user_targets

_NONE: Mapping[str, State] = MappingProxyType({})


def portions(task: Task, states: Mapping[str, State] = _NONE) -> tuple[Task, ...]:
    """What is trained side by side: one run at a time in torch, in NumPy the runs that stand at the same step."""
    if task.specs[0].backend == "torch":
        return task.split()
    at_step: dict[int | None, list[RunSpec]] = {}
    for spec in task.specs:
        state = states.get(spec.run_id)
        at_step.setdefault(state.step if state else None, []).append(spec)
    return tuple(replace(task, specs=tuple(specs)) for specs in at_step.values())


def run_task(task: Task, context: Context, states: Mapping[str, State] = _NONE) -> Iterator[Event | SafePoint]:
    """The events of all runs of a task; every run ends with exactly one `Ended`.

    Between updates come `SafePoint`s, at which who listens may take the states of the runs that go on. A run
    started again from such a state yields what it would have yielded after that point, and ends in the
    same bits (on the same device, with the same versions), alone or beside others.

    An error in the code of a run is an outcome (`failed`), not the end of the study, whatever it raises: SystemExit
    too, and a UserError from code of the user's. Bad input (a UserError of ours before the first event, such as
    data that cannot be read) is raised: it concerns the person, not the run.

    Args:
        task: the runs.
        context: device, data and threads.
        states: run_id -> the state that the run goes on from. A run without one begins at the beginning.

    Raises:
        UserError: see above.
        StaleStateError: code or data of a run have changed since its state was taken; before its first event.
    """
    for portion in portions(task, states):
        yield from _guarded(portion.specs, context, states)


def _guarded(specs: Sequence[RunSpec], context: Context, states: Mapping[str, State]) -> Iterator[Event | SafePoint]:
    left = [spec.run_id for spec in specs]
    standing = Standing(step=max((states[run_id].step for run_id in left if run_id in states), default=0))
    begun = False
    with kept_cwd(), contextlib.closing(_engine(specs, context, states, standing)) as engine:
        while True:
            # What this generator is closed with (GeneratorExit) lands at its `yield`, outside of the `try`.
            try:
                event = next(engine, None)
            except StaleStateError:
                raise
            except BaseException as error:
                if asked_to_end(error) or (isinstance(error, UserError) and not begun and not _is_own(error, specs)):
                    raise
                reason = told(error)
                break
            if event is None:
                return
            begun = True
            if isinstance(event, Ended):
                left.remove(event.run_id)
            yield event
    remedy = "mend what the reason names; the same command does this run again"
    outcome = Outcome(status="failed", step=standing.step, reason=reason, remedy=remedy)
    yield from (Ended(run_id=run_id, outcome=outcome) for run_id in left)


def _is_own(error: UserError, specs: Sequence[RunSpec]) -> bool:
    """Whether code of the user's raised it."""
    return raised_in(error, user_targets(specs[0]))


def _engine(
    specs: Sequence[RunSpec], context: Context, states: Mapping[str, State], standing: Standing
) -> Generator[Event | SafePoint]:
    if specs[0].backend == "numpy":
        from depthscope.train import numpy_loop

        yield from numpy_loop.run(specs, context, states, standing)
    else:
        from depthscope.train import constructed, torch_loop  # torch is loaded here, and only for a run that needs it

        engine = constructed if is_constructed(specs[0]) else torch_loop
        yield from engine.run(specs, context, states, standing)
