"""The second half of `run`: the maps of the runs that are done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from depthscope.api.places import run_names
from depthscope.execute.executor import TaskExecutor
from depthscope.record.events import MapNews
from depthscope.record.reader import read_records
from depthscope.record.run_maps import RunMap, standing
from depthscope.study.expand import Plan
from depthscope.study.resources import Resources
from depthscope.train.build import Context


def maps_left(planned: Plan, folder: Path) -> tuple[RunMap, ...]:
    """The maps of completed runs that are not whole."""
    if not planned.maps:
        return ()
    records, _ = read_records(folder, list(planned.maps))
    return tuple(each for each in standing(planned, folder, records) if not each.complete)


def map_runs(
    planned: Plan,
    folder: Path,
    context: Context,
    pool: TaskExecutor,
    needs: Mapping[str, Resources],
    *,
    on_map: Callable[[MapNews], None],
    on_note: Callable[[str], None],
) -> None:
    """Make what is missing of the maps of the runs that completed.

    Args:
        planned: the study.
        folder: its results.
        context: device, data and threads.
        pool: where the points are found.
        needs: run_id -> what a worker needs.
        on_map: hears of each map.
        on_note: hears lines that the person should read.

    Raises:
        KeyboardInterrupt: what is written stays.
        UserError: the folder cannot be written.
    """
    left = maps_left(planned, folder)
    if not left:
        return
    from depthscope.execute.run_maps import make_maps  # torch is loaded here, and only for a study that has maps

    if context.device == "auto":  # on a cluster, whose machines may differ: all points of a map on one kind
        context = Context(device="cpu", data_root=context.data_root, threads=context.threads)
    make_maps(
        left,
        planned,
        folder,
        context,
        pool,
        names=run_names(planned),
        resources=needs,
        on_news=on_map,
        on_note=on_note,
    )
