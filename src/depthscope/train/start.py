"""A task, started on the engine that its spec names."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence

from depthscope.core.errors import UserError
from depthscope.record.events import Ended, Event, Progress
from depthscope.record.schema import Outcome
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.train.build import Context


def portions(task: Task) -> tuple[Task, ...]:
    """What is trained side by side: the whole group in NumPy, one run at a time in torch."""
    return task.split() if task.specs[0].backend == "torch" else (task,)


def run_task(task: Task, context: Context) -> Iterator[Event]:
    """The events of all runs of a task; every run ends with exactly one `Ended`.

    An error in the code of a run is an outcome (`failed`), not the end of the study. Bad input (a
    UserError, such as data that cannot be read) is raised: it concerns the person, not the run.
    """
    for portion in portions(task):
        yield from _guarded(portion.specs, context)


def _guarded(specs: Sequence[RunSpec], context: Context) -> Iterator[Event]:
    step_of = {spec.run_id: 0 for spec in specs}
    try:
        for event in _engine(specs, context):
            if isinstance(event, Progress):
                step_of[event.run_id] = event.step
            elif isinstance(event, Ended):
                del step_of[event.run_id]
            yield event
    except UserError:
        raise
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        for run_id, step in step_of.items():
            remedy = "mend what the reason names; the same command does this run again"
            yield Ended(run_id=run_id, outcome=Outcome(status="failed", step=step, reason=reason, remedy=remedy))


def _engine(specs: Sequence[RunSpec], context: Context) -> Iterator[Event]:
    if specs[0].backend == "numpy":
        from depthscope.train import numpy_loop

        return numpy_loop.run(specs, context)
    from depthscope.train import torch_loop  # torch is loaded here, and only for a run that needs it

    return torch_loop.run(specs, context)
