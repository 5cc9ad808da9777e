"""Claims: what a study says will be seen, declared before it is run and judged from its records."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from depthscope.study.run import Frozen

Expect = Literal["at_least", "at_most"]
Text = Annotated[dict[Literal["en", "zh"], str], Field(min_length=1)]


class Select(Frozen):
    """Which runs of a part are meant.

    `where` names values of the part's axes; a number may also be `"min"` or `"max"`, the smallest or
    largest that this size of the study holds, so that one claim serves every size.
    """

    arm: str
    where: dict[str, Any] = Field(default_factory=dict)


class _Claim(Frozen):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]*$")]
    text: Text = Field(description="the claim as a sentence, by language")
    part: str
    metric: str = Field(description="a key of the run's summary")
    confirmatory: bool | tuple[str, ...] = Field(
        default=False, description="the one claim that the study stands or falls with, at every size or at these"
    )
    sizes: tuple[str, ...] | None = Field(default=None, description="sizes that can judge it; None: all")
    unit: str = ""


class DifferenceClaim(_Claim):
    """metric(a) - metric(b), paired by seed, is at least or at most `than`.

    With `expect = "at_most"` and `than` above zero this is a non-inferiority claim with margin `than`.
    """

    kind: Literal["difference"]
    a: Select
    b: Select
    expect: Expect
    than: float


class DifferenceInDifferencesClaim(_Claim):
    """(first.a - first.b) - (second.a - second.b), paired by seed, is at least or at most `than`."""

    kind: Literal["difference_in_differences"]
    first: tuple[Select, Select]
    second: tuple[Select, Select]
    expect: Expect
    than: float


class LevelClaim(_Claim):
    """The metric itself, on every seed or by its median over seeds, is at least or at most `than`.

    `cells` without a `where` mean every value of the axes.
    """

    kind: Literal["level"]
    cells: Annotated[tuple[Select, ...], Field(min_length=1)]
    statistic: Literal["every_seed", "median"]
    expect: Expect
    than: float


class TheoryClaim(_Claim):
    """The median over seeds of measured / expected lies within `tolerance` of 1."""

    kind: Literal["theory_ratio"]
    cell: Select
    tolerance: Annotated[float, Field(gt=0)]


Claim = Annotated[
    DifferenceClaim | DifferenceInDifferencesClaim | LevelClaim | TheoryClaim, Field(discriminator="kind")
]


def judged_at(claim: Claim, size: str) -> bool:
    """Whether this size of the study can judge the claim."""
    return claim.sizes is None or size in claim.sizes


def confirmatory_at(claim: Claim, size: str) -> bool:
    """Whether the claim is the confirmatory one at this size; the others are exploratory."""
    return claim.confirmatory if isinstance(claim.confirmatory, bool) else size in claim.confirmatory


def selects(claim: Claim) -> tuple[Select, ...]:
    """All the selections that a claim makes."""
    match claim:
        case DifferenceClaim():
            return (claim.a, claim.b)
        case DifferenceInDifferencesClaim():
            return (*claim.first, *claim.second)
        case LevelClaim():
            return claim.cells
        case TheoryClaim():
            return (claim.cell,)
