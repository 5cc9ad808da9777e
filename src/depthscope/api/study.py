"""The verbs that do a study and watch it: run, status. The command line mirrors them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from depthscope.api.planning import plan
from depthscope.core.errors import UserError, shown
from depthscope.execute.driver import drive, remaining
from depthscope.execute.executors import available_cores
from depthscope.record.events import News
from depthscope.record.folder import check_folder, default_folder, read_study, recorded_runs, write_study
from depthscope.record.reader import Damage
from depthscope.study.expand import Plan, expand
from depthscope.study.study import StudySpec
from depthscope.train.build import Context, check_precision, choose_device
from depthscope.train.check import check_runs

if TYPE_CHECKING:
    from depthscope.api.reports import Report


@dataclass(frozen=True, kw_only=True)
class Status:
    """Where a folder stands.

    Attributes:
        study: what it holds.
        counts: number of runs by status: completed, diverged, failed, damaged, missing.
        damaged: the records that cannot be trusted, with the reason.
    """

    study: StudySpec
    counts: dict[str, int]
    damaged: tuple[Damage, ...]

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do."""
        return not any(self.counts[status] for status in ("failed", "damaged", "missing"))


@dataclass(frozen=True, kw_only=True)
class Watcher:
    """Who hears of a study's progress.

    Attributes:
        on_plan: called once, with the plan, the run_ids of what is to do, and the number of workers.
        on_event: called for all that happens to a run: it starts or resumes, moves on, ends, is handed out again.
        on_note: called with a line that the person should read (a warning, a damaged record).
        on_download: called with the bytes downloaded so far, and how many there will be.
    """

    on_plan: Callable[[Plan, Collection[str], int], None] = lambda plan, left, workers: None
    on_event: Callable[[News], None] = lambda event: None
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
    lang: str = "en",
    figures: bool = False,
    watcher: Watcher | None = None,
) -> Report:
    """Do what is missing of a study, then judge its claims and write its page.

    Called again with the same folder it does only what is left, also after an interruption.

    Args:
        study: a bundled name, the path of a TOML file, or the study itself.
        out: the study's folder; made where it does not exist. None takes `default_folder`.
        size: see `plan`.
        seeds: see `plan`.
        data: folder that holds the real data; None looks at DEPTHSCOPE_DATA, then at the cache, then downloads.
        device: auto, cpu, cuda or mps; the laboratory's runs always use the CPU.
        workers: processes; None takes the number of cores on a CPU and 1 on a GPU.
        lang: language of the page, en or zh.
        figures: also write each figure as SVG and PNG into figures/.
        watcher: hears of the progress.

    Returns:
        The findings and where the page is.

    Raises:
        UserError: bad input; nothing has been written.
        KeyboardInterrupt: interrupted; what is recorded stays, and the same call continues.
    """
    from depthscope.api.reports import check_lang, make_report
    from depthscope.report.citations import bibtex

    watcher = watcher or Watcher()
    planned = plan(study, size=size, seeds=seeds)
    folder = Path(out).expanduser() if out is not None else default_folder(planned.study)
    check_lang(lang)
    bibtex(planned.study.sources)  # an unknown source is told now, and not when all the runs are done
    check_folder(folder, planned.study)
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise UserError(f"workers: wanted a whole number of 1 or more, got {shown(workers)}.")
    needs_torch = any(spec.backend == "torch" for spec in planned.runs.values())
    chosen = choose_device(device) if needs_torch or device not in ("auto", "cpu") else "cpu"
    root = Path(data) if data is not None else None
    left, _, damaged = remaining(planned, folder)
    strangers = set(recorded_runs(folder)) - set(planned.runs)
    if strangers:
        watcher.on_note(
            f"{folder} holds {len(strangers)} runs of an earlier form of this study (other fields, or more seeds). "
            "They stay there, and are not shown."
        )
    for damage in damaged:
        watcher.on_note(f"run {damage.run_id}: {damage.reason}; it is done again.")
    warning = check_precision(planned.runs.values(), chosen)
    if warning:
        watcher.on_note(warning)
    if left:
        first = [task.specs[0] for task in left]
        check_runs(first, root, watcher.on_download, among=planned.runs.values(), claims=planned.study.claims)
    else:
        watcher.on_note(f"All {len(planned.runs)} runs are done already; they are judged and shown again.")
    write_study(folder, planned.study)
    if left:
        number = workers or (available_cores() if chosen == "cpu" else 1)
        watcher.on_plan(planned, [spec.run_id for task in left for spec in task.specs], number)
        # One thread a worker: the bits of a run must not depend on the number of cores, and two OpenMP threads on a
        # busy machine were seen to be twenty times slower than one.
        context = Context(device=chosen, data_root=root, threads=1)
        claims = planned.study.claims_digest
        drive(left, folder, context, workers=number, on_event=watcher.on_event, claims_digest=claims)
    return make_report(folder, lang=lang, figures=figures)


def status(folder: str | Path) -> Status:
    """Where a study's folder stands; also while another process is filling it.

    Raises:
        UserError: the folder holds no study.
    """
    study = read_study(Path(folder))
    planned = expand(study)
    _, records, damaged = remaining(planned, Path(folder))
    counts = dict.fromkeys(("completed", "diverged", "failed", "damaged", "missing"), 0)
    for record in records.values():
        counts[record.outcome.status] += 1
    counts["damaged"] = len(damaged)
    counts["missing"] = len(planned.runs) - sum(counts.values())
    return Status(study=study, counts=counts, damaged=damaged)
