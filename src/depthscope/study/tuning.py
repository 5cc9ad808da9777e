"""Fair tuning: what a study asks to be chosen (`[tuning]`), and what was chosen and from what (`[tuned]`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, WithJsonSchema, field_validator, model_validator

from depthscope.core.errors import shown
from depthscope.study.cells import agrees
from depthscope.study.faults import FieldFaults
from depthscope.study.metrics import worse_side
from depthscope.study.run import Float, Frozen, Int
from depthscope.study.seeds import MAX_SEEDS, Seed, Seeds, listed
from depthscope.study.values import Overrides

FIRST_SELECTION_SEED = MAX_SEEDS
"""A number of selection seeds counts from here: a number of a study's own seeds never gets so far."""

SelectionMetric = Literal["validation_accuracy", "validation_loss"]


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300 or not isfinite(value):
        raise ValueError(f"wanted a number, got {shown(value)}.")
    return value


Number = Annotated[Any, AfterValidator(_number), WithJsonSchema({"type": "number"})]
"""An integer or a float, kept as it is: a width is no float."""


def _each_once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    twice = next((value for at, value in enumerate(values) if value in values[:at]), None)
    if twice is not None:
        raise ValueError(f"holds {shown(twice)} twice.")
    return values


Grid = Annotated[tuple[Number, ...], Field(min_length=2, max_length=1000, json_schema_extra={"uniqueItems": True})]


class Tuning(Frozen):
    """How one number is chosen for each arm before the study is run, on seeds and examples of its own.

    Attributes:
        field: the number that is chosen, as a field of a run; options are reached with a dot.
        by: axes at each of whose values the choice is made by itself, such as depth; a part that lacks one of them
            has one choice over it.
        grid: the values tried, the same for every arm.
        seeds: seeds that the choice is made on. A number of them counts from 10,000 on; the study's own are refused.
        validation: examples held out of each training set, that the choice is made on.
        metric: what is compared: its mean over the seeds and those of the part's axes that are not in `by`.
        parts: parts whose arms are tuned; left out, all that train.
    """

    field: str = "lr"
    by: Annotated[tuple[str, ...], AfterValidator(_each_once), Field(json_schema_extra={"uniqueItems": True})] = ()
    grid: Grid
    seeds: Seeds = 3
    validation: Annotated[Int, Field(ge=1, le=10_000_000)]
    metric: SelectionMetric = "validation_accuracy"
    parts: Annotated[tuple[str, ...], Field(min_length=1)] | None = None

    @field_validator("grid")
    @classmethod
    def _ascending(cls, grid: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(sorted(_each_once(grid)))

    @property
    def selection_seeds(self) -> tuple[int, ...]:
        """The seeds themselves, ascending."""
        return listed(self.seeds, first=FIRST_SELECTION_SEED)


class Score(Frozen):
    """What one value of the grid gave an arm.

    Attributes:
        value: of the tuned field.
        mean: the mean of the metric over the runs that ended with a figure; left out where none did.
        num_runs: how many runs were made with it.
        num_lost: how many of them diverged or failed.
    """

    value: Number
    mean: Float | None = None
    num_runs: Annotated[Int, Field(ge=1)]
    num_lost: Annotated[Int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _some_of_them(self) -> Score:
        if self.num_lost > self.num_runs:
            raise FieldFaults([("num_lost", f"wanted {self.num_runs} (num_runs) or less, got {self.num_lost}.")])
        return self


def best(scores: Sequence[Score], metric: str) -> Score | None:
    """The score that wins; None where no run of any ended with a figure.

    A value at which runs were lost stands behind all at which fewer were, whatever its mean: its mean is of
    survivors, and the study itself would lose runs to it. Of equal ones the smaller value wins.

    >>> scores = [Score(value=0.1, mean=0.8, num_runs=4), Score(value=1.0, mean=0.9, num_runs=4, num_lost=1)]
    >>> best(scores, "validation_accuracy").value
    0.1
    """
    sign = 1.0 if worse_side(metric) == "up" else -1.0
    found = [(score.num_lost, sign * score.mean, score.value, score) for score in scores if score.mean is not None]
    return min(found, key=lambda each: each[:3])[3] if found else None


class Choice(Frozen):
    """What was chosen for an arm.

    Attributes:
        part: the arm's part.
        arm: the arm.
        at: the values of the axes that the choice is for; left out where it is for all.
        value: the chosen value.
        scores: what each value of the grid gave, ascending by value.
    """

    part: str
    arm: str
    at: Overrides = Field(default_factory=dict)
    value: Number
    scores: Annotated[tuple[Score, ...], Field(min_length=1)]

    @property
    def fit(self) -> bool:
        """Whether any run ended with a figure; where none did the smallest value stands in for a choice."""
        return any(score.mean is not None for score in self.scores)

    @property
    def edge(self) -> Literal["low", "high"] | None:
        """Which end of the grid the chosen value is, where it is one: the best value may then lie outside."""
        values = [score.value for score in self.scores]
        # With no figure at any value nothing is known of either side.
        return (
            None
            if not self.fit
            else "low"
            if self.value == min(values)
            else "high"
            if self.value == max(values)
            else None
        )


class Tuned(Frozen):
    """Where the tuned values of a study come from. Its seeds are refused in the study: they were used for choosing.

    Attributes:
        field: the field that was tuned.
        grid: the values tried, ascending.
        metric: what was compared.
        seeds: the seeds that the choice was made on.
        validation: examples held out of each training set, that it was made on.
        num_runs: how many runs the choice took.
        digest: of the study that was run to choose.
        choices: one for each tuned arm, or one for each of its places where they were made apart.
    """

    field: str
    grid: Grid
    metric: SelectionMetric
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)]
    validation: Annotated[Int, Field(ge=1)]
    num_runs: Annotated[Int, Field(ge=1)]
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
    choices: Annotated[tuple[Choice, ...], Field(min_length=1)]

    @property
    def by(self) -> tuple[str, ...]:
        """The axes at each of whose values a choice was made by itself."""
        return tuple(dict.fromkeys(axis for choice in self.choices for axis in choice.at))

    def chose(self, part: str, arm: str, axes: Mapping[str, Any]) -> bool:
        """Whether the value that an arm has at this place of the axes was chosen."""
        return any((each.part, each.arm) == (part, arm) and agrees(axes, each.at) for each in self.choices)
