"""What the two sides of each comparison share that a claim makes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from depthscope.analysis import samples
from depthscope.analysis.controls import Control, compare, things
from depthscope.analysis.finding import Flag, Pairing
from depthscope.analysis.monotone import places
from depthscope.analysis.samples import Sample
from depthscope.analysis.table import Results
from depthscope.study.claims import (
    Claim,
    DifferenceClaim,
    DifferenceInDifferencesClaim,
    LevelClaim,
    MonotoneClaim,
    NoDegradationClaim,
    Select,
    SomeDifferenceClaim,
    TheoryClaim,
)

_INIT = ("init", "gain", "stem_gain", "zero_last_gamma")
"""Fields that set how tensors start."""


def pairings(results: Results, claim: Claim) -> tuple[Pairing, ...]:
    """The comparisons that a claim makes, each with what its sides share; none where it compares nothing.

    A selection of several cells is compared cell by cell, at equal values of the axes that the claim does not
    name. Cells that then have no partner are compared with none.
    """
    return tuple(_pairing(results, claim.part, a, b) for a, b in _compared(results, claim))


def _compared(results: Results, claim: Claim) -> Iterator[tuple[Sample, Sample]]:
    match claim:
        case DifferenceClaim() | NoDegradationClaim():
            yield from _cell_by_cell(results, claim.part, claim.a, claim.b)
        case SomeDifferenceClaim():
            for each in claim.a:
                yield from _cell_by_cell(results, claim.part, each, claim.b)
        case DifferenceInDifferencesClaim():
            for a, b in (claim.first, claim.second):
                yield from _cell_by_cell(results, claim.part, a, b)
        case MonotoneClaim():
            for before, after in pairwise(places(results, claim)):
                yield from _partners(after, before, {claim.axis, *claim.where})
        case LevelClaim() | TheoryClaim():
            return


def _cell_by_cell(results: Results, part: str, a: Select, b: Select) -> Iterator[tuple[Sample, Sample]]:
    left, right = (samples.samples(results, part, select) for select in (a, b))
    yield from _partners(left, right, {*a.where, *b.where})


def _partners(a: Sequence[Sample], b: Sequence[Sample], named: set[str]) -> Iterator[tuple[Sample, Sample]]:
    def free(sample: Sample) -> Mapping[str, object]:
        return {axis: value for axis, value in sample.axes.items() if axis not in named}

    for one in a:
        yield from ((one, other) for other in b if free(one) == free(other))


def tuned_field(results: Results, part: str, *sides: tuple[str, Mapping[str, Any]]) -> str | None:
    """The field that was tuned, if it was for all these (arm, values of the axes) of a part."""
    tuned = results.study.tuned
    return tuned.field if tuned and all(tuned.chose(part, arm, axes) for arm, axes in sides) else None


def _pairing(results: Results, part: str, a: Sample, b: Sample) -> Pairing:
    found = compare(part, b, a)
    tuned = tuned_field(results, part, (a.arm, a.axes), (b.arm, b.axes))
    differs = tuned is not None and tuned in found.fields
    return Pairing(
        a=a.label,
        b=b.label,
        seeds=found.seeds,
        num_shared=len(found.shared),
        num_common=len(found.shared) + len(found.differing),
        differing=found.differing,
        reshaped=found.reshaped,
        only_a=found.only_arm,
        only_b=found.only_baseline,
        same_data=found.same_data,
        same_order=found.same_order,
        same_augment=found.same_augment,
        same_code=found.same_code,
        fields=found.fields,
        varied=things(found.fields),
        tuned=tuned if differs else None,
        tuned_by=results.study.tuned.by if differs and results.study.tuned else (),
        flags=flags(found, tuned=tuned),
    )


def flags(control: Control, *, tuned: str | None = None) -> tuple[Flag, ...]:
    """What a reader must be warned of in a comparison; see `finding.Pairing`.

    Args:
        control: what the sides share.
        tuned: a field that was tuned for both sides. That it differs is what makes the comparison fair, so that it is
            no second thing.
    """
    if not control.seeds:
        return ("unknown",)
    facts: dict[Flag, bool | None] = {
        "data": control.same_data,
        "order": control.same_order,
        "augment": control.same_augment,
    }
    found: list[Flag] = [flag for flag, same in facts.items() if same is False]
    if control.same_code is False:
        found.append("code")
    if len(set(things(control.fields)) - {tuned}) > 1:
        found.append("several")
    if set(control.differing) - set(control.reshaped) and not any(field in _INIT for field in control.fields):
        found.append("implied")
    if None in facts.values():
        found.append("unknown")
    return tuple(found)
