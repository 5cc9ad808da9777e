"""From a study to its plan: every run it asks for, once, and the tasks that will do them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from depthscope.core.errors import FaultsError, unknown_name
from depthscope.core.hashing import digest
from depthscope.study.claims import Claim, Select, judged_at, selects
from depthscope.study.run import RunSpec
from depthscope.study.study import Overrides, Part, StudySpec
from depthscope.study.toml import merge


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One place in a study's table: an arm of a part, at values of the axes, with one seed.

    Two cells may be the same run (`run_id`); it is then done once.
    """

    part: str
    arm: str
    axes: Mapping[str, Any]
    seed: int
    run_id: str


@dataclass(frozen=True)
class Task:
    """Runs that differ only in their seed. A task yields one record for each of its runs."""

    specs: tuple[RunSpec, ...]

    def __post_init__(self) -> None:
        assert self.specs
        assert len({group_key(spec) for spec in self.specs}) == 1

    def split(self) -> tuple[Task, ...]:
        """The same runs as one task each."""
        return tuple(Task((spec,)) for spec in self.specs)

    def only(self, run_ids: set[str]) -> Task | None:
        """The task of those runs alone; None where none is left."""
        kept = tuple(spec for spec in self.specs if spec.run_id in run_ids)
        return Task(kept) if kept else None


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


def group_key(spec: RunSpec) -> str:
    """Equal for runs that differ only in their seed."""
    return digest(spec.model_dump(mode="json", exclude={"seed"}))


def expand(study: StudySpec, *, source: str | None = None) -> Plan:
    """The plan of a study.

    Raises:
        FaultsError: faults in the runs or in the claims' selections, all at once, each with the
            path in the study file that it comes from.
    """
    found: dict[tuple[str, str], None] = {}
    cells: list[Cell] = []
    runs: dict[str, RunSpec] = {}
    for name, part in study.parts.items():
        for arm, axes, seed, values, origins in _combinations(study, name, part):
            try:
                spec = RunSpec.model_validate({**values, "seed": seed})
            except ValidationError as error:
                found.update(dict.fromkeys(_located(error, origins)))
                continue
            run_id = spec.run_id
            known = runs.get(run_id)
            measures = tuple(sorted({*spec.measures, *(known.measures if known else ())}))
            runs[run_id] = spec.model_copy(update={"measures": measures})
            cells.append(Cell(part=name, arm=arm, axes=axes, seed=seed, run_id=run_id))
    if not found:
        found.update(dict.fromkeys(_claim_faults(study, cells)))
    if found:
        raise FaultsError(source or study.name, sorted(found))
    groups: dict[str, list[RunSpec]] = {}
    for spec in runs.values():
        groups.setdefault(group_key(spec), []).append(spec)
    return Plan(
        study=study, cells=tuple(cells), runs=runs, tasks=tuple(Task(tuple(group)) for group in groups.values())
    )


_Origins = dict[str, str]


def _combinations(
    study: StudySpec, name: str, part: Part
) -> Iterator[tuple[str, dict[str, Any], int, dict[str, Any], _Origins]]:
    for index, arm in enumerate(part.arms):
        values, origins = _layered(
            (study.base, "base"), (part.base, f"parts.{name}.base"), (arm.set, f"parts.{name}.arms.{index}.set")
        )
        for point in itertools.product(*part.axes.values()):
            axes = dict(zip(part.axes, point, strict=True))
            here, where = _layered((axes, f"parts.{name}.axes"))
            merged, origin = merge(values, here), {**origins, **where}
            for seed in study.seeds_of(part):
                full = {**merged, "seed": seed}
                if any(_agrees(full, arm.name, rule) for rule in part.exclude):
                    continue
                yield arm.name, axes, seed, merged, origin


def _layered(*layers: tuple[Overrides, str]) -> tuple[dict[str, Any], _Origins]:
    """Later layers over earlier ones, with the path in the study file that each value comes from."""
    values: dict[str, Any] = {}
    origins: _Origins = {}
    for overrides, path in layers:
        for key, value in overrides.items():
            head, dot, tail = key.partition(".")
            values = merge(values, {head: {tail: value}} if dot else {head: value})
            origins[key] = origins[head] = f"{path}.{key}"
            if isinstance(value, dict):
                origins.update({f"{key}.{inner}": f"{path}.{key}.{inner}" for inner in value})
    return values, origins


def _agrees(values: Mapping[str, Any], arm: str, rule: Overrides) -> bool:
    def value_of(key: str) -> Any:
        head, dot, tail = key.partition(".")
        found = arm if key == "arm" else values.get(head)
        return found.get(tail) if dot and isinstance(found, dict) else found

    return all(value_of(key) == wanted for key, wanted in rule.items())


def _located(error: ValidationError, origins: _Origins) -> Iterator[tuple[str, str]]:
    for fault in error.errors(include_url=False):
        field = ".".join(str(part) for part in fault["loc"])
        message = str(fault["msg"]).removeprefix("Value error, ")
        if not field:  # a rule over several fields begins its message with the field to mend
            field, _, message = message.partition(": ")
        if fault["type"] == "extra_forbidden":
            message = unknown_name("field of a run", field, [each for each in RunSpec.model_fields if each != "seed"])
        elif fault["type"] == "missing":
            yield f"base.{field}", "missing; every run needs it."
            continue
        elif fault["type"] != "value_error":
            message = f"{message}; got {fault.get('input')!r}."
        yield _origin(field, origins), message


def _origin(field: str, origins: _Origins) -> str:
    parts = field.split(".")
    for length in range(len(parts), 0, -1):
        head = ".".join(parts[:length])
        if head in origins:
            return ".".join([origins[head], *parts[length:]])
    return f"base.{field}"


def _claim_faults(study: StudySpec, cells: list[Cell]) -> Iterator[tuple[str, str]]:
    names = [claim.name for claim in study.claims]
    for index, claim in enumerate(study.claims):
        path = f"claims.{index}"
        if names.count(claim.name) > 1:
            yield f"{path}.name", f"{claim.name!r} is used twice; each claim needs its own name."
        if claim.part not in study.parts:
            yield f"{path}.part", unknown_name("part", claim.part, study.parts)
        elif judged_at(claim, study.size):
            for select in selects(claim):
                yield from _select_faults(study, claim, select, cells, path)


def _select_faults(
    study: StudySpec, claim: Claim, select: Select, cells: list[Cell], path: str
) -> Iterator[tuple[str, str]]:
    part = study.parts[claim.part]
    arms = [arm.name for arm in part.arms]
    if select.arm not in arms:
        yield path, unknown_name("arm", select.arm, arms)
        return
    for key in select.where:
        if key not in part.axes:
            yield path, unknown_name(f"axis of part {claim.part}", key, part.axes)
            return
    if not matching(cells, claim.part, select):
        asked = ", ".join(f"{key}={value}" for key, value in select.where.items())
        yield path, f"no run has arm {select.arm!r} with {asked}; the part's axes hold {dict(part.axes)}."


def matching(cells: list[Cell] | tuple[Cell, ...], part: str, select: Select) -> list[Cell]:
    """The cells that a claim's selection means, with `"min"` and `"max"` resolved among the arm's own."""
    mine = [cell for cell in cells if cell.part == part and cell.arm == select.arm]
    for key, wanted in select.where.items():
        present: set[Any] = {cell.axes.get(key) for cell in mine}
        value = {"min": min, "max": max}[wanted](present) if wanted in ("min", "max") and present else wanted
        mine = [cell for cell in mine if cell.axes.get(key) == value]
    return mine
