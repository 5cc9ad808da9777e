"""From a study to its plan: every run it asks for, once, and the tasks that will do them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from depthscope.core.errors import FaultsError, unknown_name
from depthscope.core.hashing import digest
from depthscope.study.absent import absent_faults
from depthscope.study.catalog import CATALOG, defaults
from depthscope.study.cells import Cell as Cell
from depthscope.study.cells import matching as matching
from depthscope.study.check import ALL_FIELDS, MAX_RUNS, RUN_FIELDS, claim_faults, part_faults
from depthscope.study.faults import found_in, in_order
from depthscope.study.landscape import MapSpec
from depthscope.study.maps import map_faults, planned_maps
from depthscope.study.overlay import Origins, layered, merge, origin
from depthscope.study.resources import DEFAULT, Resources
from depthscope.study.run import OPTION_FIELDS, RunSpec, incoherences
from depthscope.study.selection import tuned_faults, tuning_faults
from depthscope.study.study import Part, StudySpec
from depthscope.study.values import Overrides


@dataclass(frozen=True)
class Task:
    """Runs that differ only in their seed. A task yields one record for each of its runs.

    Attributes:
        specs: the runs.
        resources: what each of them needs of a machine; they are trained side by side or one after another.
    """

    specs: tuple[RunSpec, ...]
    resources: Resources = DEFAULT

    def __post_init__(self) -> None:
        assert self.specs
        assert len({group_key(spec) for spec in self.specs}) == 1

    def split(self) -> tuple[Task, ...]:
        """The same runs as one task each."""
        return tuple(replace(self, specs=(spec,)) for spec in self.specs)

    def only(self, run_ids: set[str]) -> Task | None:
        """The task of those runs alone; None where none is left."""
        kept = tuple(spec for spec in self.specs if spec.run_id in run_ids)
        return replace(self, specs=kept) if kept else None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All the runs of a study.

    Attributes:
        study: what was asked.
        cells: every place in the study's table, in the study's order.
        runs: run_id -> spec, each run once, with the measures of all its cells.
        tasks: the runs, grouped by all but their seed.
    """

    study: StudySpec
    cells: tuple[Cell, ...]
    runs: Mapping[str, RunSpec]
    tasks: tuple[Task, ...]

    @cached_property
    def maps(self) -> Mapping[str, tuple[MapSpec, ...]]:
        """run_id -> the maps that are made of it, once it is done."""
        return planned_maps(self.study, self.cells)


def group_key(spec: RunSpec) -> str:
    """Equal for runs that differ only in their seed."""
    return digest(spec.model_dump(mode="json", exclude={"seed"}))


def expand(study: StudySpec, *, source: str | None = None) -> Plan:
    """The plan of a study.

    Raises:
        FaultsError: faults in the parts, the runs and the claims' selections, all at once, each with
            the path in the study (at its size) that it comes from.
    """
    cells, runs, found = _runs(study)
    found += [*claim_faults(study, cells), *absent_faults(study, cells, runs), *map_faults(study, cells, runs)]
    if found:
        where = source or study.name
        raise FaultsError(f"{where} at size {study.size!r}" if study.size else where, in_order(found))
    return Plan(study=study, cells=tuple(cells), runs=runs, tasks=_tasks(study, cells, runs))


def _tasks(study: StudySpec, cells: Sequence[Cell], runs: Mapping[str, RunSpec]) -> tuple[Task, ...]:
    needs: dict[str, Resources] = {}
    for cell in cells:
        wanted = study.resources_of(study.parts[cell.part])
        needs[cell.run_id] = wanted.larger(needs.get(cell.run_id, wanted))
    groups: dict[tuple[str, Resources], list[RunSpec]] = {}
    for run_id, spec in runs.items():
        groups.setdefault((group_key(spec), needs[run_id]), []).append(spec)
    return tuple(Task(tuple(group), resources) for (_, resources), group in groups.items())


def faults_of(study: StudySpec) -> list[tuple[str, str]]:
    """(path, message) of the faults in a study's parts, runs and claims."""
    cells, runs, found = _runs(study)
    beside = (claim_faults(study, cells), absent_faults(study, cells, runs), map_faults(study, cells, runs))
    return [*found, *(each for faults in beside for each in faults)]


def _runs(study: StudySpec) -> tuple[list[Cell], dict[str, RunSpec], list[tuple[str, str]]]:
    """(cells, runs by id, faults). A faulty run has its cells, with no id, so that claims can still be looked at."""
    found = [*part_faults(study), *tuning_faults(study)]
    cells: list[Cell] = []
    runs: dict[str, RunSpec] = {}
    for name, part in study.parts.items():
        before = len(cells)
        for arm, axes, seeds, values, origins in _combinations(study, name, part):
            spec: RunSpec | None = None
            try:
                spec = RunSpec.model_validate(values)
            except ValidationError as error:
                found += _located(error, values, origins)
            for seed in seeds:
                run_id = _keep(runs, spec.model_copy(update={"seed": seed})) if spec else ""
                cells.append(Cell(part=name, arm=arm, axes=axes, seed=seed, run_id=run_id))
        if len(cells) == before and not found:
            found.append((f"parts.{name}.exclude", "leaves no run in this part."))
    found += tuned_faults(study, cells)
    return cells, runs, found


def _keep(runs: dict[str, RunSpec], spec: RunSpec) -> str:
    """Add a run, or its measures to those of the same run that is there."""
    run_id = spec.run_id
    runs[run_id] = spec.measured_as(*([runs[run_id]] if run_id in runs else []))
    return run_id


def _combinations(
    study: StudySpec, name: str, part: Part
) -> Iterator[tuple[str, dict[str, Any], list[int], dict[str, Any], Origins]]:
    """(arm, values of the axes, seeds, fields of the run without its seed, where they come from)."""
    seeds = study.seeds_of(part)
    if len(part.arms) * len(seeds) * math.prod(map(len, part.axes.values())) > MAX_RUNS:
        return  # told by part_faults
    for index, arm in enumerate(part.arms):
        below = [(study.base, "base"), (part.base, f"parts.{name}.base")]
        everywhere = layered(*below, (arm.set, f"parts.{name}.arms.{index}.set"))
        for point in itertools.product(*part.axes.values()):
            axes = dict(zip(part.axes, point, strict=True))
            own = [(fields, f"parts.{name}.arms.{index}.{path}") for fields, path in arm.sets(axes)]
            values, origins = everywhere if len(own) == 1 else layered(*below, *own)
            values.pop("seed", None)
            here, where = layered((axes, f"parts.{name}.axes"))
            here.pop("seed", None)
            merged = merge(values, here)
            left = [seed for seed in seeds if not any(_agrees(merged, arm.name, seed, rule) for rule in part.exclude)]
            if left:
                yield arm.name, axes, left, merged, {**origins, **where}


def _agrees(values: Mapping[str, Any], arm: str, seed: int, rule: Overrides) -> bool:
    """Whether a run has all the values of a rule, those included that it has by default."""

    def value_of(key: str) -> Any:
        head, dot, tail = key.partition(".")
        if head in ("arm", "seed"):
            return arm if head == "arm" else seed
        field = RunSpec.model_fields.get(head)
        default = field.get_default(call_default_factory=True) if field and not field.is_required() else None
        found = values.get(head, default)
        if not dot:
            return found
        kind = OPTION_FIELDS.get(head)
        entry = CATALOG[kind].get(str(values.get(kind, RunSpec.model_fields[kind].default))) if kind else None
        given = found if isinstance(found, dict) else {}
        return {**(defaults(entry, given) if entry else {}), **given}.get(tail)

    # An empty rule is a fault of its own, and must not hide those of the runs.
    return bool(rule) and all(value_of(key) == wanted for key, wanted in rule.items())


def _located(error: ValidationError, values: Mapping[str, Any], origins: Origins) -> Iterator[tuple[str, str]]:
    faulty: set[str] = set()
    for fault in found_in(error):
        field = ".".join(fault.path)
        faulty.add(fault.path[0])
        if fault.kind == "missing":
            yield f"base.{field}", "missing; every run needs it."
        elif fault.kind == "extra_forbidden":
            yield origin(field, origins), unknown_name("field of a run", field, RUN_FIELDS, all_in=ALL_FIELDS)
        else:
            yield origin(field, origins), fault.message
    # Rules over several fields were not reached where one field is at fault: the valid ones are held to them here.
    valid = {field: values[field] for field in RUN_FIELDS if field in values and field not in faulty}
    defaults = {
        name: field.get_default(call_default_factory=True)
        for name, field in RunSpec.model_fields.items()
        if not field.is_required() and name not in faulty
    }
    for field, message in incoherences({**defaults, **valid}):
        if field.partition(".")[0] not in faulty:
            yield origin(field, origins), message
