"""Which runs of a study have maps of their loss, and what stands against that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from depthscope.core.errors import unknown_name
from depthscope.study.cells import Cell
from depthscope.study.claims import judged_at
from depthscope.study.landscape import MapSpec
from depthscope.study.run import RunSpec
from depthscope.study.study import StudySpec

MAPPED = "landscape_"
"""How the names of metrics begin that are figures of a run's maps."""

OF_EIGENVALUES = ("landscape_nonconvex_share", "landscape_curvature_ratio")
"""Those of them that want the Hessian's eigenvalues at points of the map."""

WEIGHTS = "weights"
"""The measure that keeps what a map is made from."""


def is_mapped(study: StudySpec, part: str) -> bool:
    """Whether the runs of a part have maps."""
    return study.landscape is not None and (not study.landscape.parts or part in study.landscape.parts)


def planned_maps(study: StudySpec, cells: Sequence[Cell]) -> dict[str, tuple[MapSpec, ...]]:
    """run_id -> its maps, a plane each, of all runs that have some, in the study's order."""
    if study.landscape is None:
        return {}
    specs = study.landscape.specs()
    return {cell.run_id: specs for cell in cells if cell.run_id and is_mapped(study, cell.part)}


def map_faults(study: StudySpec, cells: Sequence[Cell], runs: Mapping[str, RunSpec]) -> Iterator[tuple[str, str]]:
    """(path, message) of a `[landscape]` whose maps cannot be made, and of claims about maps that are not asked for.

    Args:
        study: whose it is.
        cells: of the study; those of a faulty run, which has no id, are passed over.
        runs: run_id -> spec, with the measures of all its cells.
    """
    for index, claim in enumerate(study.claims):
        asked = claim.metric.startswith(MAPPED) and claim.part in study.parts and judged_at(claim, study.size)
        if asked and not is_mapped(study, claim.part):
            how = "give the study a [landscape]" if study.landscape is None else "name the part in landscape.parts"
            yield f"claims.{index}.metric", f"the runs of part {claim.part!r} have no maps; {how}."
        elif asked and claim.metric in OF_EIGENVALUES and study.landscape and not study.landscape.hessian_points:
            yield f"claims.{index}.metric", "no eigenvalues are asked for; give landscape.hessian_points, 3 or more."
    if study.landscape is None:
        return
    for index, name in enumerate(study.landscape.parts):
        if name not in study.parts:
            yield f"landscape.parts.{index}", unknown_name("part", name, study.parts)
        elif name in study.landscape.parts[:index]:
            yield f"landscape.parts.{index}", f"{name!r} is there twice."
    told: dict[str, list[str]] = {}
    for cell in cells:
        why = _why_not(study, runs[cell.run_id]) if cell.run_id and is_mapped(study, cell.part) else None
        if why is not None and cell.part not in told.setdefault(why, []):
            told[why].append(cell.part)
    for why, parts in told.items():
        which = f"part {parts[0]!r}" if len(parts) == 1 else f"parts {', '.join(map(repr, parts))}"
        yield "landscape", f"{which}: {why}"


def _why_not(study: StudySpec, spec: RunSpec) -> str | None:
    assert study.landscape is not None
    if spec.backend != "torch":
        return "the laboratory's runs have no maps; choose backend torch, or name the other parts in landscape.parts."
    if WEIGHTS not in spec.measures:
        return f"a map is made from the weights that a run keeps; put {WEIGHTS!r} among the measures of its runs."
    if study.landscape.directions == "trajectory" and spec.steps is not None and spec.steps < 2:
        # Of more steps it depends on the data's size how many weights are kept.
        run = "a run of 1 step" if spec.steps == 1 else f"a run of {spec.steps} steps"
        return f"{run} has no path that spans a plane; choose random directions, or more steps."
    return None
