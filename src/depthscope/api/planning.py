"""The verbs that ask before anything starts: studies, plan, costs. The command line mirrors them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from threadpoolctl import threadpool_limits

from depthscope.core.errors import MissingDependencyError, UserError, shown
from depthscope.execute.executors import available_cores
from depthscope.study.expand import Plan, expand
from depthscope.study.seeds import repeated
from depthscope.study.study import StudySpec, with_seeds
from depthscope.study.toml import bundled, load, read_source, sizes_of
from depthscope.train.build import Context, choose_device
from depthscope.train.calibrate import Estimate
from depthscope.train.calibrate import calibrate as estimate
from depthscope.train.check import check_runs
from depthscope.train.cost import Cost, cost
from depthscope.train.usercode import user_targets


@dataclass(frozen=True, kw_only=True)
class StudyInfo:
    """A bundled study: its name, title and question by language, and its sizes."""

    name: str
    title: dict[str, str]
    question: dict[str, str]
    sizes: tuple[str, ...]


def studies() -> tuple[StudyInfo, ...]:
    """The studies that come with Depthscope."""
    found = []
    for name in bundled():
        study = load(name)
        sizes = sizes_of(read_source(name)[1])
        found.append(
            StudyInfo(name=name, title=dict(study.title), question=dict(study.question or {}), sizes=sizes)  # type: ignore[arg-type]
        )
    return tuple(found)


def plan(study: str | Path | StudySpec, *, size: str | None = None, seeds: int | Sequence[int] | None = None) -> Plan:
    """What a study would run, before anything starts.

    Args:
        study: a bundled name, the path of a TOML file, or the study itself, at its size.
        size: one of the study's sizes; None takes `quick` where there is one.
        seeds: a number of seeds, or the seeds themselves, instead of the study's own, in all parts.

    Raises:
        UserError: an unknown name, faults in the file (all at once), or seeds that are none or come twice.
    """
    spec = study if isinstance(study, StudySpec) else load(study, size)
    if seeds is not None:
        twice = None if isinstance(seeds, int) else repeated(seeds)
        if twice is not None:
            raise UserError(f"seeds: {twice} is given more than once; the same seed is the same run. Give each once.")
        try:
            spec = with_seeds(spec, seeds if isinstance(seeds, int) else sorted(seeds))
        except ValidationError as error:
            raise UserError(
                f"seeds: wanted a number of 1 to 10,000, or up to 10,000 seeds of 0 or more; got {shown(seeds)}."
            ) from error
    return expand(spec, source=None if isinstance(study, StudySpec) else str(study))


def calibrate(
    planned: Plan,
    *,
    data: str | Path | None = None,
    device: str = "auto",
    workers: int | None = None,
    on_kind: Callable[[int, int], None] = lambda done, total: None,
    on_download: Callable[[int, int | None], None] = lambda done, total: None,
) -> Estimate:
    """An estimate of a study's time, from a few real steps of each kind of run, here and on this device.

    The runs that are timed use this process alone. Workers that share a machine slow each other down a little.

    Args:
        planned: from `plan`.
        data: as for `run`.
        device: as for `run`.
        workers: as for `run`.
        on_kind: hears how many kinds of run are timed, and of how many.
        on_download: hears of a download.

    Raises:
        UserError: bad input, as `run` would tell it.
    """
    needs_torch = any(spec.backend == "torch" for spec in planned.runs.values())
    chosen = choose_device(device) if needs_torch or device not in ("auto", "cpu") else "cpu"
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise UserError(f"workers: wanted a whole number of 1 or more, got {shown(workers)}.")
    root = Path(data).absolute() if data is not None else None
    first = [task.specs[0] for task in planned.tasks]
    check_runs(first, root, on_download, among=planned.runs.values(), claims=planned.study.claims)
    number = workers or (available_cores() if chosen == "cpu" else 1)
    context = Context(device=chosen, data_root=root, threads=1)
    with threadpool_limits(limits=context.threads, user_api="blas"):
        return estimate(planned.tasks, context, workers=number, on_kind=on_kind)


def costs(planned: Plan, *, data: str | Path | None = None) -> dict[str, Cost] | None:
    """run_id -> parameters, FLOPs and memory of each run, counted on the networks themselves.

    Code of the user's is tried as `run` tries it, where that needs no CIFAR-10.

    Args:
        planned: from `plan`.
        data: folder that holds the real data, for data sets of the user's own, which are loaded for their shapes.

    Returns:
        None where a run needs torch and it is not installed: the counts need it.

    Raises:
        UserError: user code that cannot be found or does not fit.
    """
    found: dict[str, Cost] = {}
    root = Path(data).absolute() if data is not None else None
    first = [task.specs[0] for task in planned.tasks if user_targets(task.specs[0])]
    try:
        check_runs(first, root, among=planned.runs.values(), claims=planned.study.claims, fetch=False)
        for task in planned.tasks:
            counted = cost(task.specs[0], root, group=len(task.specs))
            found.update({spec.run_id: counted for spec in task.specs})
    except MissingDependencyError:
        return None
    return found
