"""Claims: what a study says will be seen, declared before it is run and judged from its records."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal, get_args

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from depthscope.core.errors import unknown_name
from depthscope.study.faults import FieldFaults
from depthscope.study.metrics import SUMMARY, is_metric, loss_or_accuracy
from depthscope.study.run import Bool, Float, Frozen
from depthscope.study.scale import Bound, bound_faults, unit_faults
from depthscope.study.values import Overrides, Text, one_or_list

Expect = Literal["at_least", "at_most"]


class Select(Frozen):
    """Which runs of a part are meant.

    `where` names values of the part's axes; a number may also be `"min"` or `"max"`, the smallest or
    largest that this size of the study holds, so that one claim serves every size.
    """

    arm: str
    where: Overrides = Field(default_factory=dict)


class _Claim(Frozen):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]*$")]
    text: Text = Field(description="the claim as a sentence, by language")
    part: str
    metric: str = Field(description="a key of the run's summary")
    confirmatory: Annotated[
        Annotated[Bool, Tag("<one>")] | Annotated[tuple[str, ...], Tag("<list>")], Discriminator(one_or_list)
    ] = Field(
        default=False,
        description="one of the claims that the study stands or falls with (best one alone; several share "
        "their error rate by Holm's rule), at every size or at these; all others are exploratory",
    )
    sizes: tuple[str, ...] | None = Field(default=None, description="sizes that can judge it; left out, all")
    unit: str = Field(
        default="", description="accuracy, nats, or empty for a pure number; of what your own probe measures, any"
    )

    @field_validator("metric")
    @classmethod
    def _known_metric(cls, metric: str) -> str:
        if not is_metric(metric):
            own = " Or what a probe of your own measures, 'probe:function.name'."
            raise ValueError(unknown_name("metric", metric, SUMMARY) + own)
        return metric

    @model_validator(mode="after")
    def _to_scale(self) -> _Claim:
        bound = self._bound()
        faults = [*unit_faults(self.metric, self.unit), *(bound_faults(self.metric, bound) if bound else ())]
        if faults:
            raise FieldFaults(faults)
        return self

    def _bound(self) -> Bound | None:
        """What the claim holds a figure to; None where that is no figure of the metric's scale."""
        return None


class DifferenceClaim(_Claim):
    """metric(a) - metric(b), paired by seed, is at least or at most `than`.

    With `expect = "at_most"` and `than` above zero this is a non-inferiority claim with margin `than`.
    """

    kind: Literal["difference"]
    a: Select
    b: Select
    expect: Expect
    than: Float

    def _bound(self) -> Bound:
        return Bound("than", self.than, self.expect, self.than, -1, 1)


class SomeDifferenceClaim(_Claim):
    """At least one of several differences metric(a) - metric(b), paired by seed, is at least or at most `than`.

    `a` lists the selections, each of which is compared with the one `b`. Supported where the interval of any difference
    satisfies the bound, at a level corrected for their number (Holm), so that those named as satisfying it are all so
    with the level's probability. Refuted where the interval of EVERY one violates it, which takes no correction (an
    intersection-union test). Else undecided. With `expect = "at_least"` of an accuracy and `than` under zero it says
    that some alternative is not inferior, by the margin -than.
    """

    kind: Literal["some_difference"]
    a: Annotated[tuple[Select, ...], Field(min_length=2, description="the alternatives: two selections or more")]
    b: Select = Field(description="what each of them is compared with")
    expect: Expect
    than: Float

    def _bound(self) -> Bound:
        return Bound("than", self.than, self.expect, self.than, -1, 1)


class DifferenceInDifferencesClaim(_Claim):
    """(first.a - first.b) - (second.a - second.b), paired by seed, is at least or at most `than`."""

    kind: Literal["difference_in_differences"]
    first: tuple[Select, Select]
    second: tuple[Select, Select]
    expect: Expect
    than: Float

    def _bound(self) -> Bound:
        return Bound("than", self.than, self.expect, self.than, -2, 2)


class LevelClaim(_Claim):
    """The metric itself, on every seed or by its median over seeds, is at least or at most `than`.

    `cells` without a `where` mean every value of the axes.
    """

    kind: Literal["level"]
    cells: Annotated[tuple[Select, ...], Field(min_length=1)]
    statistic: Literal["every_seed", "median"]
    expect: Expect
    than: Float

    def _bound(self) -> Bound:
        return Bound("than", self.than, self.expect, self.than, 0, 1)


class TheoryClaim(_Claim):
    """The median over seeds of measured / expected lies within `tolerance` of 1."""

    kind: Literal["theory_ratio"]
    cell: Select
    tolerance: Annotated[Float, Field(gt=0)]


class NoDegradationClaim(_Claim):
    """Non-inferiority: `a` (the deeper network) is worse than `b` (the shallower one) by at most `margin`.

    Judged is the mean worsening over seeds, paired: metric(a) - metric(b) of a loss, metric(b) - metric(a) of
    an accuracy. Supported where its whole interval lies at or below the margin, refuted where it lies above,
    else undecided: an interval that is wide because seeds are few says nothing, and lack of power is never
    evidence of absence.
    """

    kind: Literal["no_degradation"]
    a: Select
    b: Select
    margin: Annotated[Float, Field(gt=0, description="the most worsening that counts as none, in the metric's scale")]

    @field_validator("metric")
    @classmethod
    def _has_a_worse_side(cls, metric: str) -> str:
        return loss_or_accuracy(metric)

    @property
    def expect(self) -> Expect:
        """On which side of `than` the worsening must lie."""
        return "at_most"

    @property
    def than(self) -> float:
        """The bound of the worsening: the margin."""
        return self.margin

    def _bound(self) -> Bound:
        return Bound("margin", self.margin, self.expect, self.than, -1, 1)


class MonotoneClaim(_Claim):
    """Along a numeric axis the metric goes one way, step by step, apart from steps back of at most `within`.

    Judged are the adjacent differences metric(x[k+1]) - metric(x[k]) over the axis' values in ascending order, each
    the mean over seeds of paired differences (their negatives where the direction is "decreasing"). Supported
    where the interval of EVERY difference lies at or above -within: an intersection-union test, whose error rate is
    that of one interval without a correction. Refuted where the interval of ANY lies wholly below, at a level
    corrected by Bonferroni for the number of differences. Else undecided. With `within = 0` it says "never goes
    back", and a plateau whose interval holds 0 leaves it undecided.
    """

    kind: Literal["monotone"]
    arm: str
    where: Overrides = Field(default_factory=dict, description="values of the other axes, as in a selection")
    axis: str = Field(default="depth", description="the numeric axis along which it goes")
    direction: Literal["increasing", "decreasing"]
    within: Annotated[Float, Field(ge=0, description="slack of a step, in the metric's scale")] = 0.0

    @property
    def select(self) -> Select:
        """The runs at all values of the axis."""
        return Select(arm=self.arm, where=self.where)

    @property
    def expect(self) -> Expect:
        """On which side of `than` every step, signed by the direction, must lie."""
        return "at_least"

    @property
    def than(self) -> float:
        """The bound of a step that is signed by the direction."""
        return -self.within if self.within else 0.0

    def _bound(self) -> Bound:
        return Bound("within", self.within, self.expect, self.than, -1, 1)


Claim = Annotated[
    DifferenceClaim
    | SomeDifferenceClaim
    | DifferenceInDifferencesClaim
    | LevelClaim
    | TheoryClaim
    | NoDegradationClaim
    | MonotoneClaim,
    Field(discriminator="kind"),
]
KINDS: Mapping[str, type[_Claim]] = MappingProxyType(
    {str(get_args(model.model_fields["kind"].annotation)[0]): model for model in get_args(get_args(Claim)[0])}
)
"""Model of each kind of claim."""


def judged_at(claim: Claim, size: str) -> bool:
    """Whether this size of the study can judge the claim."""
    return claim.sizes is None or size in claim.sizes


def confirmatory_at(claim: Claim, size: str) -> bool:
    """Whether the claim is a confirmatory one at this size; the others are exploratory."""
    return claim.confirmatory if isinstance(claim.confirmatory, bool) else size in claim.confirmatory


def selects(claim: Claim) -> tuple[Select, ...]:
    """All the selections that a claim makes."""
    return tuple(select for _, select in located_selects(claim))


def located_selects(claim: Claim) -> tuple[tuple[str, Select], ...]:
    """(path within the claim, selection) of all the selections that a claim makes; "" is the claim itself."""
    match claim:
        case DifferenceClaim() | NoDegradationClaim():
            return (("a", claim.a), ("b", claim.b))
        case SomeDifferenceClaim():
            return (*((f"a.{index}", select) for index, select in enumerate(claim.a)), ("b", claim.b))
        case DifferenceInDifferencesClaim():
            named = (("first", claim.first), ("second", claim.second))
            return tuple((f"{name}.{index}", select) for name, pair in named for index, select in enumerate(pair))
        case LevelClaim():
            return tuple((f"cells.{index}", select) for index, select in enumerate(claim.cells))
        case TheoryClaim():
            return (("cell", claim.cell),)
        case MonotoneClaim():
            return (("", claim.select),)
