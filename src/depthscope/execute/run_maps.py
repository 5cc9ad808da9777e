"""The maps of a study's runs: what is missing of them, one after the other, spread over the workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from depthscope.core.errors import UserError
from depthscope.execute.executor import TaskExecutor
from depthscope.execute.mapping import MapFault, MapJob, MapProgress, map_points
from depthscope.execute.points import prepare, release
from depthscope.record.events import MapNews
from depthscope.record.landscape import MapHead
from depthscope.record.map_writer import open_map
from depthscope.record.reader import read_record
from depthscope.record.run_maps import MADE_OF, RunMap, clear, delete_map, made_of, map_folder, write_fault
from depthscope.record.schema import RunRecord
from depthscope.study.expand import Plan
from depthscope.study.landscape import MapSpec
from depthscope.study.resources import DEFAULT, Resources
from depthscope.train.build import Context
from depthscope.train.mapped_run import OfRun
from depthscope.train.usercode import told


def make_maps(
    left: Sequence[RunMap],
    plan: Plan,
    folder: Path,
    context: Context,
    executor: TaskExecutor,
    *,
    names: Mapping[str, str],
    resources: Mapping[str, Resources] = MappingProxyType({}),
    on_news: Callable[[MapNews], None] = lambda news: None,
    on_note: Callable[[str], None] = lambda line: None,
) -> None:
    """Make what is missing of these maps. One that cannot be made is told and kept as such; the others go on.

    Args:
        left: of `record.run_maps.standing`.
        plan: whose runs they are of.
        folder: the study's.
        context: device, data and threads of each worker.
        executor: where the points are found; it stays open, save where this raises.
        names: run_id -> name for people.
        resources: run_id -> what a worker needs for it.
        on_news: hears of each map, in this thread.
        on_note: hears lines that the person should read.

    Raises:
        KeyboardInterrupt: passed on after the workers were stopped. The points that are written stay.
        UserError: the folder cannot be written.
    """
    for number, each in enumerate(left, 1):
        record = read_record(folder, each.run_id)
        if not isinstance(record, RunRecord):  # it was taken away meanwhile
            continue
        news = MapNews(run_id=each.run_id, plane=each.spec.seed, number=number, of=len(left))
        clear(folder, record, each.spec)
        try:
            source = OfRun(spec=plan.runs[each.run_id], folder=folder, context=context, name=names.get(each.run_id, ""))
            job = _job(source, record, each.spec, resources.get(each.run_id, DEFAULT), on_note)
        except UserError as error:
            fault: str | None = str(error)
        except (Exception, SystemExit) as error:  # of the network's code, in this process
            fault = f"{names.get(each.run_id, each.run_id)}: {told(error)}"
        else:
            fault = _made(job, executor, news, on_news, on_note)
        if fault is not None:
            write_fault(folder, record, each.spec, fault)
        on_news(replace(news, ended=True, fault=fault))
    release()


def _job(
    source: OfRun, record: RunRecord, spec: MapSpec, resources: Resources, on_note: Callable[[str], None]
) -> MapJob:
    head, _ = prepare(source, spec, source.context.threads)
    head = head.model_copy(update={"facts": {**head.facts, MADE_OF: made_of(record, spec)}})
    at = map_folder(source.folder, record.run_id, spec.map_id)
    try:
        opened: MapHead = open_map(at, head)
    except UserError:  # half of it was made by other code, or on another device: it would be a map of neither
        on_note(f"{source.name}: its map that was begun does not go with what it gives now, and is made anew.")
        delete_map(source.folder, record.run_id, spec)
        opened = open_map(at, head)
    return MapJob(source=source, head=opened, folder=at, resources=resources)


def _made(
    job: MapJob,
    executor: TaskExecutor,
    news: MapNews,
    on_news: Callable[[MapNews], None],
    on_note: Callable[[str], None],
) -> str | None:
    """Why a map could not be made; None where it was."""

    def tell(progress: MapProgress) -> None:
        on_news(replace(news, done=progress.done, points=progress.total))

    (found,) = map_points([job], executor, on_progress=tell, on_note=on_note)
    return found.reason if isinstance(found, MapFault) else None
