"""One order in a worker: its runs taken, trained and recorded."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import replace

from threadpoolctl import threadpool_limits

from depthscope.core.errors import UserError
from depthscope.execute.held import HeldLeases
from depthscope.execute.order import Done, Order
from depthscope.execute.pages import keep_pages
from depthscope.execute.portion import Portion, now
from depthscope.execute.tell import Note, tell
from depthscope.execute.work import Work
from depthscope.record.checkpoint import Checkpoint
from depthscope.record.events import Ended
from depthscope.record.folder import STUDY_FILE
from depthscope.record.provenance import provenance
from depthscope.record.schema import Timings
from depthscope.record.writer import RunWriter
from depthscope.study.expand import Task
from depthscope.train.build import choose_device
from depthscope.train.start import portions
from depthscope.train.state import StaleStateError


def do_task(order: Order) -> list[Done]:
    """Do the runs of an order that nobody else holds or has done, and write their records.

    Returns:
        What became of each run, in the order in which it was known.

    Raises:
        UserError: bad input, or a folder that cannot be written. Other records and checkpoints stand.
    """
    _check_folder(order)
    keep_pages()
    context = order.context
    if context.device == "auto" or order.settings.study is not None:
        # On another machine than the driver's. `auto` is a GPU for runs that ask for one: a cluster gives them theirs.
        torch, gpus = order.task.specs[0].backend == "torch", order.task.resources.gpus
        wanted = "cpu" if context.device == "auto" and not gpus else context.device
        context = replace(context, device=choose_device(wanted) if torch else "cpu")
    work = Work(order, context)
    with threadpool_limits(limits=context.threads, user_api="blas"), work.take() as held:
        found = {spec.run_id: each for spec in work.specs if (each := work.checkpoint(spec)) is not None}
        if work.specs:
            _train(work, held, replace(order.task, specs=work.specs), found)
    return work.done


def _train(work: Work, held: HeldLeases, task: Task, checkpoints: dict[str, Checkpoint]) -> None:
    for portion in portions(task, {run_id: each.state for run_id, each in checkpoints.items()}):
        # Handed over, and not held here: a state is as large as the model and its optimiser.
        own = {spec.run_id: checkpoints.pop(spec.run_id) for spec in portion.specs if spec.run_id in checkpoints}
        try:
            Portion(work, held, portion, own).do()
        except StaleStateError as error:
            # Told before anything was trained: half a run of the old code and half of the new would be neither.
            tell(Note(f"{error}; it starts anew."))
            _train(work, held, portion, {})


def write_failure(order: Order, ended: Sequence[Ended]) -> list[Done]:
    """Records of runs that no worker could end. Called by the driver, with the leases of the dead in `order.dead`."""
    work = Work(order, order.context)
    facts = provenance(device="cpu", threads=order.context.threads)
    none = Timings(wall_s=0.0, cpu_s=0.0, started=now())
    by_run = {each.run_id: each for each in ended}
    with work.take() as held:
        for spec in work.specs:
            writer = RunWriter(order.folder, spec, facts, order.settings.claims_digest)
            work.record(held, spec, writer, by_run[spec.run_id], none)
    return work.done


def _check_folder(order: Order) -> None:
    if order.settings.study is None:
        return
    try:
        held = tomllib.loads((order.folder / STUDY_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        held = {}
    if (held.get("name"), held.get("size", "")) != order.settings.study:
        raise UserError(
            f"a worker does not see the study's folder {order.folder}. Workers on several machines need a folder that "
            "all of them share, at the same path: choose one with --out."
        )
