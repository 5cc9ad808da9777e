"""A task, started on the engine that its spec names."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from depthscope.core.errors import UserError
from depthscope.record.events import Ended, Event, Progress, SafePoint, State
from depthscope.record.schema import Outcome
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.train.build import Context
from depthscope.train.state import StaleStateError

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

    An error in the code of a run is an outcome (`failed`), not the end of the study. Bad input (a
    UserError, such as data that cannot be read) is raised: it concerns the person, not the run.

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
    step_of = {spec.run_id: states[spec.run_id].step if spec.run_id in states else 0 for spec in specs}
    try:
        for event in _engine(specs, context, states):
            if isinstance(event, Progress):
                step_of[event.run_id] = event.step
            elif isinstance(event, Ended):
                del step_of[event.run_id]
            yield event
    except (UserError, StaleStateError):
        raise
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        for run_id, step in step_of.items():
            remedy = "mend what the reason names; the same command does this run again"
            yield Ended(run_id=run_id, outcome=Outcome(status="failed", step=step, reason=reason, remedy=remedy))


def _engine(specs: Sequence[RunSpec], context: Context, states: Mapping[str, State]) -> Iterator[Event | SafePoint]:
    if specs[0].backend == "numpy":
        from depthscope.train import numpy_loop

        return numpy_loop.run(specs, context, states)
    from depthscope.train import torch_loop  # torch is loaded here, and only for a run that needs it

    return torch_loop.run(specs, context, states)
