"""What a study must keep beyond its structure: arms, axes and claims that mean something."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from depthscope.core.errors import shown, unknown_name
from depthscope.study.cells import Cell, matching, same
from depthscope.study.claims import (
    Claim,
    DifferenceClaim,
    DifferenceInDifferencesClaim,
    MonotoneClaim,
    NoDegradationClaim,
    Select,
    SomeDifferenceClaim,
    judged_at,
    located_selects,
)
from depthscope.study.overlay import overlap
from depthscope.study.run import RunSpec
from depthscope.study.study import Arm, Part, StudySpec
from depthscope.study.values import Overrides

RUN_FIELDS = tuple(field for field in RunSpec.model_fields if field != "seed")
ALL_FIELDS = "`depthscope schema`"
"""What lists the fields of a run."""

MAX_RUNS = 100_000
"""Most runs of one part; more is a slip of the pen in an axis, and would fill the memory before it ran."""

LEAST_RANKED = 3
"""Arms that make a ranking; the difference of two is a claim."""

_SEED = "seeds have a key of their own: `seeds`, in the part or at the top."


def part_faults(study: StudySpec) -> Iterator[tuple[str, str]]:
    """(path, message) of what the parts of a study get wrong, whatever their runs are."""
    yield from _seed_faults(study.base, "base")
    for name, part in study.parts.items():
        path = f"parts.{name}"
        arms = [arm.name for arm in part.arms]
        yield from _seed_faults(part.base, f"{path}.base")
        for index, arm in enumerate(part.arms):
            yield from _seed_faults(arm.set, f"{path}.arms.{index}.set")
            if arm.name in arms[:index]:
                yield f"{path}.arms.{index}.name", f"{arm.name!r} is used twice; each arm needs its own name."
            yield from _case_faults(part, name, arm, f"{path}.arms.{index}.at")
        if part.baseline is not None and part.baseline not in arms and _all_known(arms):
            yield f"{path}.baseline", unknown_name("arm", part.baseline, arms)
        if part.ranked is not None and len(arms) < LEAST_RANKED:
            yield f"{path}.ranked", f"wanted {LEAST_RANKED} arms or more to rank; the part has {len(arms)}."
        yield from _axis_faults(part, path)
        for index, rule in enumerate(part.exclude):
            yield from _rule_faults(rule, arms, f"{path}.exclude.{index}")
        count = len(arms) * math.prod(map(len, part.axes.values())) * len(study.seeds_of(part))
        if count > MAX_RUNS:
            yield path, f"{count:,} runs; wanted {MAX_RUNS:,} or less. Shorten its axes or seeds."


def _all_known(arms: Sequence[str]) -> bool:
    """Whether the arms have names of their own; where two share one, the missing name may be the other's."""
    return len(set(arms)) == len(arms)


def _seed_faults(overrides: Overrides, path: str) -> Iterator[tuple[str, str]]:
    if "seed" in overrides:
        yield f"{path}.seed", _SEED


def _axis_faults(part: Part, path: str) -> Iterator[tuple[str, str]]:
    for key, values in part.axes.items():
        if key == "seed":
            yield f"{path}.axes.seed", _SEED
        twice = [value for index, value in enumerate(values) if value in values[:index]]
        if twice:
            yield f"{path}.axes.{key}", f"holds {shown(twice[0])} twice."
        for arm in part.arms:
            if any(overlap(key, each) for each in keys_of(arm.set)):
                yield f"{path}.axes.{key}", f"arm {arm.name!r} sets {key} too, and only one of them can decide it."


def keys_of(fields: Overrides) -> Iterator[str]:
    """The fields that are set, those within tables with dots."""
    for key, value in fields.items():
        if isinstance(value, dict):
            yield from (f"{key}.{inner}" for inner in value)
        else:
            yield key


def _case_faults(part: Part, name: str, arm: Arm, path: str) -> Iterator[tuple[str, str]]:
    for index, case in enumerate(arm.at):
        yield from place_faults(part, name, case.where, f"{path}.{index}.where")
        yield from _seed_faults(case.set, f"{path}.{index}.set")
        for key in keys_of(case.set):
            if any(overlap(key, axis) for axis in part.axes):
                yield f"{path}.{index}.set.{key}", "is an axis of the part, and only one of them can decide it."
            for other, before in enumerate(arm.at[:index]):
                meet = all(same(case.where[axis], value) for axis, value in before.where.items() if axis in case.where)
                if meet and any(overlap(key, each) for each in keys_of(before.set)):
                    yield (
                        f"{path}.{index}.set.{key}",
                        f"is set by entry {other} too, at a place that both mean, and only one of them can decide it.",
                    )


def place_faults(part: Part, name: str, where: Mapping[str, object], path: str) -> Iterator[tuple[str, str]]:
    """Of values by axis: axes that the part does not have, and values that they do not hold."""
    for key, value in where.items():
        if key not in part.axes:
            yield f"{path}.{key}", unknown_name(f"axis of part {name!r}", key, part.axes)
        elif not any(same(value, each) for each in part.axes[key]):
            yield f"{path}.{key}", f"wanted a value of the axis, {shown(part.axes[key])}; got {shown(value)}."


def _rule_faults(rule: Overrides, arms: Sequence[str], path: str) -> Iterator[tuple[str, str]]:
    if not rule:
        yield path, "an empty rule would leave out every run; name the values of the runs to leave out."
    for key, value in rule.items():
        if key == "arm" and value not in arms:
            if _all_known(arms):
                yield f"{path}.arm", unknown_name("arm", str(value), arms)
        elif key.partition(".")[0] not in ("arm", "seed", *RUN_FIELDS):
            yield f"{path}.{key}", unknown_name("field of a run", key, ("arm", "seed", *RUN_FIELDS), all_in=ALL_FIELDS)


def claim_faults(study: StudySpec, cells: Sequence[Cell]) -> Iterator[tuple[str, str]]:
    """(path, message) of claims that speak of arms, axes or runs that the study does not have."""
    names = [claim.name for claim in study.claims]
    for index, claim in enumerate(study.claims):
        path = f"claims.{index}"
        if claim.name in names[:index]:
            yield f"{path}.name", f"{claim.name!r} is used twice; each claim needs its own name."
        if claim.part not in study.parts:
            yield f"{path}.part", unknown_name("part", claim.part, study.parts)
        elif judged_at(claim, study.size):
            part = study.parts[claim.part]
            for below, select in located_selects(claim):
                yield from _select_faults(part, claim.part, select, cells, f"{path}.{below}" if below else path)
            if isinstance(claim, MonotoneClaim):
                yield from _monotone_faults(claim, part, cells, path)
            if not any(_axis_faults(part, claim.part)):  # which can make runs equal that are not meant to be
                yield from _comparison_faults(claim, part, cells, path)


def _comparison_faults(claim: Claim, part: Part, cells: Sequence[Cell], path: str) -> Iterator[tuple[str, str]]:
    """A comparison of runs with themselves, and a claim of no degradation that has its two sides the wrong way."""
    sides = {below: matching(cells, claim.part, select) for below, select in located_selects(claim)}
    identities = {below: {_identity(cell) for cell in side} for below, side in sides.items()}

    def same_runs(a: str, b: str) -> bool:
        return bool(sides[a]) and identities[a] == identities[b]

    pairs: list[tuple[str, str]] = []
    match claim:
        case DifferenceClaim() | NoDegradationClaim():
            pairs = [("a", "b")]
        case SomeDifferenceClaim():
            pairs = [(f"a.{index}", "b") for index in range(len(claim.a))]
            for index in range(len(claim.a)):
                twin = next((other for other in range(index) if same_runs(f"a.{other}", f"a.{index}")), None)
                if twin is not None:
                    yield f"{path}.a.{index}", f"means the same runs as a.{twin}; each alternative is counted once."
        case DifferenceInDifferencesClaim():
            pairs = [("first.0", "first.1"), ("second.0", "second.1")]
            if all(same_runs(a, b) for a, b in zip(*pairs, strict=True)):
                yield (
                    f"{path}.second",
                    "means the same runs as `first`, so the difference would be 0 whatever is measured.",
                )
    for a, b in pairs:
        if same_runs(a, b):
            yield (
                f"{path}.{b}",
                f"means the same runs as {a}, so the difference would be 0 whatever is measured; at a size that has no "
                "others, leave the claim out with `sizes`.",
            )
    if isinstance(claim, NoDegradationClaim):
        depths = [[depth for cell in sides[side] if (depth := _depth(part, cell)) is not None] for side in ("a", "b")]
        if all(depths) and max(depths[0]) < min(depths[1]):
            yield (
                f"{path}.a",
                f"is the shallower (depth {_range(depths[0])}, and b has {_range(depths[1])}); the claim says that "
                "`a`, the deeper network, is not worse than `b`. Swap them?",
            )


def _identity(cell: Cell) -> tuple[object, ...]:
    return (cell.run_id,) if cell.run_id else (cell.arm, repr(cell.axes), cell.seed)


def _depth(part: Part, cell: Cell) -> int | float | None:
    depths = [fields["depth"] for fields, _ in part.arm(cell.arm).sets(cell.axes) if "depth" in fields]
    found = cell.axes.get("depth", depths[-1] if depths else None)
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def _range(values: Sequence[int | float]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"


def _monotone_faults(claim: MonotoneClaim, part: Part, cells: Sequence[Cell], path: str) -> Iterator[tuple[str, str]]:
    if claim.axis not in part.axes:
        yield f"{path}.axis", unknown_name(f"axis of part {claim.part!r}", claim.axis, part.axes)
        return
    if claim.axis in claim.where:
        yield f"{path}.where.{claim.axis}", "is the axis that the claim goes along; leave it out of `where`."
        return
    values = part.axes[claim.axis]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        yield f"{path}.axis", f"wanted an axis of numbers; {claim.axis} holds {shown(values)}."
        return
    found = {cell.axes[claim.axis] for cell in matching(cells, claim.part, claim.select)}
    if len(found) == 1:
        yield path, f"has one value of {claim.axis}, {found.pop()}; going one way needs two or more."


def _select_faults(
    part: Part, name: str, select: Select, cells: Sequence[Cell], path: str
) -> Iterator[tuple[str, str]]:
    arms = [arm.name for arm in part.arms]
    unknown = [key for key in select.where if key not in part.axes]
    for key in unknown:
        yield f"{path}.where.{key}", unknown_name(f"axis of part {name!r}", key, part.axes)
    if select.arm not in arms:
        if _all_known(arms):
            yield f"{path}.arm", unknown_name("arm", select.arm, arms)
    elif not unknown and not matching(cells, name, select) and any(cell.part == name for cell in cells):
        asked = ", ".join(f"{key} = {shown(value)}" for key, value in select.where.items())
        held = "; ".join(f"{key}: {shown(part.axes[key])}" for key in select.where)
        yield path, f"no run has arm {select.arm!r}" + (f" with {asked}. The part has {held}." if asked else ".")
