"""The verbs that ask before anything starts: studies, plan, costs. The command line mirrors them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from depthscope.core.errors import MissingDependencyError, UserError, shown
from depthscope.study.expand import Plan, expand
from depthscope.study.study import StudySpec, with_seeds
from depthscope.study.toml import bundled, load, read_source, sizes_of
from depthscope.train.cost import Cost, cost


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
        UserError: an unknown name, or faults in the file (all at once).
    """
    spec = study if isinstance(study, StudySpec) else load(study, size)
    if seeds is not None:
        try:
            spec = with_seeds(spec, seeds if isinstance(seeds, int) else sorted(set(seeds)))
        except ValidationError as error:
            raise UserError(
                f"seeds: wanted a number of 1 to 10,000, or up to 10,000 seeds of 0 or more; got {shown(seeds)}."
            ) from error
    return expand(spec, source=None if isinstance(study, StudySpec) else str(study))


def costs(planned: Plan, *, data: str | Path | None = None) -> dict[str, Cost] | None:
    """run_id -> parameters, FLOPs and memory of each run, counted on the networks themselves.

    Args:
        planned: from `plan`.
        data: folder that holds the real data, for data sets of the user's own, which are loaded for their shapes.

    Returns:
        None where a run needs torch and it is not installed: the counts need it.

    Raises:
        UserError: user code that cannot be found or does not fit.
    """
    found: dict[str, Cost] = {}
    try:
        for task in planned.tasks:
            counted = cost(task.specs[0], Path(data) if data is not None else None, group=len(task.specs))
            found.update({spec.run_id: counted for spec in task.specs})
    except MissingDependencyError:
        return None
    return found
