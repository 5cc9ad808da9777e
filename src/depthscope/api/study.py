"""The verb that does a study: run. The command line mirrors it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from depthscope.api.mapping import map_runs, maps_left
from depthscope.api.planning import plan
from depthscope.api.status import is_held
from depthscope.core.errors import UserError, shown, unknown_name
from depthscope.execute.driver import drive
from depthscope.execute.executors import available_cores, check_executor, make_executor
from depthscope.execute.order import Settings
from depthscope.execute.remaining import remaining
from depthscope.record.event_file import export_missing
from depthscope.record.events import MapNews, News
from depthscope.record.folder import check_folder, default_folder, recorded_runs, write_study
from depthscope.record.holder import LEASE_S
from depthscope.record.sinks import check_logs
from depthscope.study.expand import Plan, Task
from depthscope.study.halves import half_repairs
from depthscope.study.selection import is_selection
from depthscope.study.study import StudySpec
from depthscope.train.build import DEVICES, Context, check_precision, choose_device
from depthscope.train.check import check_runs
from depthscope.train.usercode import changed_code

if TYPE_CHECKING:
    from depthscope.api.reports import Report


@dataclass(frozen=True, kw_only=True)
class Watcher:
    """Who hears of a study's progress.

    Attributes:
        on_plan: called once, with the plan, the run_ids of what is to do, and the number of workers.
        on_event: called for all that happens to a run: it starts or resumes, moves on, ends, is handed out again.
        on_map: called for all that happens to a map of a run.
        on_note: called with a line that the person should read (a warning, a damaged record).
        on_download: called with the bytes downloaded so far, and how many there will be.
    """

    on_plan: Callable[[Plan, Collection[str], int], None] = lambda plan, left, workers: None
    on_event: Callable[[News], None] = lambda event: None
    on_map: Callable[[MapNews], None] = lambda news: None
    on_note: Callable[[str], None] = lambda line: None
    on_download: Callable[[int, int | None], None] = lambda done, total: None


def run(
    study: str | Path | StudySpec,
    *,
    out: str | Path | None = None,
    size: str | None = None,
    seeds: int | Sequence[int] | None = None,
    data: str | Path | None = None,
    device: str = "auto",
    workers: int | None = None,
    executor: str = "processes",
    address: str | None = None,
    checkpoint_minutes: float = 5.0,
    lease_s: float = LEASE_S,
    logs: Collection[str] = (),
    lang: str = "en",
    figures: bool = False,
    watcher: Watcher | None = None,
) -> Report:
    """Do what is missing of a study, its runs and then the maps of those, judge its claims and write its page.

    Called again with the same folder it does only what is left, also after an interruption.

    Args:
        study: a bundled name, the path of a TOML file, or the study itself.
        out: the study's folder; made where it does not exist. None takes `default_folder`.
        size: see `plan`.
        seeds: see `plan`.
        data: folder that holds the real data; None looks at DEPTHSCOPE_DATA, then at the cache, then downloads.
        device: auto, cpu, cuda or mps; the laboratory's runs always use the CPU.
        workers: processes; None takes the number of cores on a CPU and 1 on a GPU.
        executor: serial (in this process), processes (on this machine; with 1 worker, in this process), or ray.
            Ray gives each run what the study's `resources` ask for, and takes the device where the run works:
            with device auto, a GPU for runs that ask for one. Workers on other machines need the folder
            and the data at the same paths.
        address: of a running Ray, HOST:PORT, or auto for the one on this machine; None starts one here.
        checkpoint_minutes: a run is saved at the end of an epoch, and within an epoch after so many minutes.
        lease_s: seconds without a sign of life after which another driver may take over a run; more for a shared
            folder that is slow. All drivers of a folder should say the same.
        logs: beside each run's log.txt: tensorboard.
        lang: language of the page, en or zh.
        figures: also write each figure as SVG and PNG into figures/.
        watcher: hears of the progress.

    Returns:
        The findings and where the page is.

    Raises:
        UserError: bad input; nothing has been written.
        KeyboardInterrupt: interrupted; what is recorded stays, and the same call continues.
    """
    from depthscope.api.reports import check_lang, joined, make_report, report_of
    from depthscope.report.citations import bibtex

    watcher = watcher or Watcher()
    planned = plan(study, size=size, seeds=seeds)
    # Absolute at once: code of the user's may change the working directory.
    named = Path(out).expanduser() if out is not None else default_folder(planned.study)
    folder = named.absolute()
    if named.is_absolute() and named.is_relative_to(Path.cwd()):
        named = named.relative_to(Path.cwd())
    chosen_lang = check_lang(lang)
    bibtex(planned.study.sources)  # an unknown source is told now, and not when all the runs are done
    check_folder(folder, planned.study)
    check_executor(executor, workers, address)
    check_logs(logs)
    for name, value in (("checkpoint_minutes", checkpoint_minutes), ("lease_s", lease_s)):
        if not 0 < value < math.inf:
            raise UserError(f"{name}: wanted a number above 0, got {shown(value)}.")
    settings = Settings(
        claims_digest=planned.study.claims_digest,
        study=(planned.study.name, planned.study.size),
        lease_s=lease_s,
        checkpoint_s=60 * checkpoint_minutes,
        logs=tuple(logs),
    )
    chosen = _device(device, planned, remote=executor == "ray")
    root = Path(data).absolute() if data is not None else None
    left, records, damaged = remaining(planned, folder)
    strangers = set(recorded_runs(folder)) - set(planned.runs)
    if strangers:
        watcher.on_note(
            f"{folder} holds {len(strangers)} runs of an earlier form of this study (other fields, or more seeds). "
            "They stay there, and are not shown."
        )
    for damage in damaged:
        watcher.on_note(f"run {damage.run_id}: {damage.reason}; it is done again.")
    for line in changed_code(record.digests.code for record in records.values()):
        watcher.on_note(line)
    maps = () if left else maps_left(planned, folder)
    warning = check_precision(planned.runs.values(), chosen)
    if warning:
        watcher.on_note(warning)
    if left:
        first = [task.specs[0] for task in left]
        check_runs(first, root, watcher.on_download, among=planned.runs.values(), claims=planned.study.claims)
    elif maps:
        some = "1 map of them is" if len(maps) == 1 else f"{len(maps)} maps of them are"
        watcher.on_note(f"All {len(planned.runs)} runs are done already; {some} left.")
    else:
        watcher.on_note(f"All {len(planned.runs)} runs are done already; they are judged and shown again.")
    if planned.study.tuning and not is_selection(planned.study):
        watcher.on_note(_untuned(planned.study, study))
    halves = half_repairs(planned)
    if halves and not planned.study.tuned:  # of a study that was tuned, the selection has told it
        watcher.on_note(halves)
    if not left and not maps:
        write_study(folder, planned.study)
        _export(planned, folder, logs, watcher)
        found = joined(planned, folder, records)
        return report_of(found, folder, lang=chosen_lang, figures=figures, named=named)
    elsewhere = sum(is_held(folder, spec.run_id) for task in left for spec in task.specs)
    if elsewhere:
        others = "1 of these runs" if elsewhere == 1 else f"{elsewhere} of these runs"
        watcher.on_note(f"Another driver is at work on {others}; this one does others beside it.")
    tasks = list(planned.tasks)
    if executor == "ray" and chosen == "cuda":
        left, tasks = [_with_gpu(task) for task in left], [_with_gpu(task) for task in tasks]
    number = workers or (1 if chosen in ("cuda", "mps") and executor != "ray" else available_cores())
    with make_executor(executor, number, address) as pool:
        pool.check({task.resources for task in left or tasks})
        write_study(folder, planned.study)
        watcher.on_plan(planned, [spec.run_id for task in left for spec in task.specs], pool.slots)
        # One thread a worker: the bits of a run must not depend on the number of cores, and two OpenMP threads on a
        # busy machine were seen to be twenty times slower than one.
        context = Context(device=chosen, data_root=root, threads=1)
        drive(
            left,
            folder,
            context,
            executor=pool,
            on_event=watcher.on_event,
            on_note=watcher.on_note,
            settings=settings,
        )
        needs = {spec.run_id: task.resources for task in tasks for spec in task.specs}
        map_runs(planned, folder, context, pool, needs, on_map=watcher.on_map, on_note=watcher.on_note)
    _export(planned, folder, logs, watcher)
    return make_report(folder, lang=lang, figures=figures, named=named)


def _untuned(study: StudySpec, source: str | Path | StudySpec) -> str:
    """That a study asks for a choice and is run without it."""
    assert study.tuning is not None
    told = f"{study.tuning.field} is not tuned: the runs have what the study file says."
    if isinstance(source, StudySpec):
        return told
    size = f" --size {study.size}" if study.size else ""
    return f"{told} To choose it first: depthscope tune {shlex.quote(str(source))}{size} --run"


def _export(planned: Plan, folder: Path, logs: Collection[str], watcher: Watcher) -> None:
    """Event files of the runs that were done before they were asked for, or by another driver."""
    if "tensorboard" in logs:
        recorded = [planned.runs[run_id] for run_id in recorded_runs(folder) if run_id in planned.runs]
        try:
            export_missing(folder, recorded)
        except (OSError, UserError) as error:
            watcher.on_note(f"not all event files for TensorBoard could be written: {error}")


def _device(asked: str, planned: Plan, *, remote: bool) -> str:
    """The device of all runs here; where they work on other machines, what was asked: each worker chooses there."""
    if asked not in DEVICES:
        raise UserError(unknown_name("device", asked, DEVICES))
    needs_torch = any(spec.backend == "torch" for spec in planned.runs.values())
    if remote:
        return asked if needs_torch else "cpu"
    return choose_device(asked) if needs_torch or asked not in ("auto", "cpu") else "cpu"


def _with_gpu(task: Task) -> Task:
    """A cluster shows a GPU only to those who ask for one: with device cuda, every run in torch does."""
    if task.resources.gpus or task.specs[0].backend != "torch":
        return task
    return replace(task, resources=replace(task.resources, gpus=1.0))
