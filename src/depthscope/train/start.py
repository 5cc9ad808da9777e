"""A task, started on the engine that its spec names."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

from depthscope.core.errors import UserError
from depthscope.record.events import Ended, Event, Started
from depthscope.record.schema import Outcome
from depthscope.study.expand import Task
from depthscope.train.build import Context


def run_task(task: Task, context: Context) -> Iterator[Event]:
    """The events of all runs of a task; every run ends with exactly one `Ended`.

    An error in the code of a run is an outcome (`failed`), not the end of the study. Bad input (a
    UserError, such as data that cannot be read) is raised: it concerns the person, not the run.
    """
    open_runs = {spec.run_id: 0 for spec in task.specs}
    try:
        for event in _engine(task, context):
            if isinstance(event, Ended):
                open_runs.pop(event.run_id)
            elif isinstance(event, Started):
                open_runs[event.run_id] = 0
            yield event
    except UserError:
        raise
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        for run_id in open_runs:
            outcome = Outcome(status="failed", step=0, reason=reason, remedy="see the reason; run again once mended")
            yield Ended(run_id=run_id, outcome=outcome)


def _engine(task: Task, context: Context) -> Iterator[Event]:
    if task.specs[0].backend == "numpy":
        from depthscope.train import numpy_loop

        return numpy_loop.run(task.specs, context)
    from depthscope.train import torch_loop  # torch is loaded here, and only for a run that needs it

    return torch_loop.run(task.specs, context)
