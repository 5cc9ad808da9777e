"""What depth did to a network: degradation, overfitting, divergence or too small a budget, told apart by one rule.

A deeper network that is worse on TEST data may have overfitted, degraded or diverged; only training
and test figures together tell which. The rule, on paired differences (deep minus shallow, over seeds):

1. **divergence**: half or more of the deep runs that ended have diverged. (Fewer are told in the text,
   and the others judged.) Where this holds of the shallow runs too, depth is not what did it: **recipe**.
2. **degradation**: the deeper network fits its own TRAINING data worse: the interval of the training
   loss lies above 0, or that of the training accuracy under 0. He et al. 2015, arXiv 1512.03385.
   **budget**: the same, but it was still catching up when the budget ended, by the rule of `budget`: from what
   was measured a degraded network cannot be told from a slow one, and degradation is not claimed.
3. **overfitting**: it is shown to fit the training data at least as well (interval of the loss at or
   under 0, or of the accuracy at or above 0), and is worse on test data: test accuracy where it was
   measured, else test loss (a loss may rise by confidence alone).
4. **none**: at least as good on both; or on training data, where no test figure exists.
5. **undecided**: anything else, and whatever fewer than 3 pairs show (that a run diverged is seen, and
   needs no pairs). Lack of power is never evidence of absence, and training figures
   that contradict each other (loss up, accuracy up) decide nothing.

The training loss is left out, and said to be, where it measures something else than the fit:

- where any run of either side **stopped early**: a loss target pins the final loss of every run just
  under itself, so that what is left of a difference is where the last step happened to land;
- where **both sides fit every training example** on every seed: a loss that differs there is confidence,
  and no degradation.

Two training figures are two chances to call chance a degradation. Each is therefore tried at
1 - .05/2 = 97.5% where both are (Bonferroni), so that the two together err at most 5% of the time; the
test figure, looked at only after a fit is shown, at 95%. Differences that are all equal have the interval
of their median, from 6 seeds on (7 at 97.5%); fewer decide nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from depthscope.analysis import samples
from depthscope.analysis.budget import Curves, read_curves, tail_of
from depthscope.analysis.budget_words import ending
from depthscope.analysis.diagnosis_words import LEAST_PAIRS, LEFT_OUT, TWO_CHANCES, diverged, sentence, told
from depthscope.analysis.finding import Estimate
from depthscope.analysis.intervals import paired_t_interval
from depthscope.analysis.samples import Sample
from depthscope.analysis.table import LoadTable, Results
from depthscope.analysis.wording import LANGS
from depthscope.study.run import Frozen

Kind = Literal["degradation", "budget", "overfitting", "divergence", "recipe", "none", "undecided"]

_TRAIN = (("train_loss", "train_loss_running"), ("train_accuracy", "train_accuracy_running"))
_TEST = (("test_accuracy", "test_loss"),)
_ALL = tuple(metric for group in (*_TRAIN, *_TEST) for metric in group)

COMPARABLE = 0.1
"""Share by which the loss of a guess may differ between two depths, for the depths to be compared."""


class Diagnosis(Frozen):
    """What depth did, with its evidence.

    Attributes:
        kind: see the module's rule.
        evidence: the paired differences that were looked at, deep minus shallow.
        tail: what the last stretch of the training said of a network that ended worse; else empty.
        text: the diagnosis in a sentence made from the numbers, by language.
    """

    kind: Kind
    evidence: tuple[Estimate, ...]
    tail: tuple[Estimate, ...] = ()
    text: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Side:
    """The runs at one depth.

    Attributes:
        statuses: seed -> `completed`, `diverged`, `failed` or `missing`.
        figures: metric -> seed -> value (None where there is none), metrics as in a run's summary.
        curves: how their training went.
        num_stopped_early: how many of the runs the recipe's declared rule ended.
    """

    statuses: Mapping[int, str]
    figures: Mapping[str, Mapping[int, float | None]]
    curves: Curves = field(default_factory=Curves)
    num_stopped_early: int = 0

    @classmethod
    def of(cls, sample: Sample, load_table: LoadTable) -> Side:
        """The runs of a sample."""
        return cls(
            statuses={row.cell.seed: samples.status(row) for row in sample.rows},
            figures={metric: sample.by_seed(metric) for metric in _ALL},
            curves=read_curves(sample, load_table),
            num_stopped_early=sum(row.record is not None and row.record.outcome.stopped_early for row in sample.rows),
        )


@dataclass(frozen=True, kw_only=True)
class DepthDiagnosis:
    """The diagnosis of one arm between its least and greatest depth.

    Attributes:
        part: name of the part.
        arm: name of the arm.
        axes: values of the other axes.
        shallow: least depth.
        deep: greatest depth.
        diagnosis: what depth did.
    """

    part: str
    arm: str
    axes: Mapping[str, Any]
    shallow: int
    deep: int
    diagnosis: Diagnosis


def tell_apart(shallow: Side, deep: Side, *, level: float = 0.95) -> Diagnosis:
    """Diagnose a shallow and a deep network of one arm by the module's rule.

    Args:
        shallow: the runs at the lesser depth.
        deep: the runs at the greater depth, paired with the others by seed.
        level: coverage of the intervals on training data together, and of that on test data.
    """
    sides = (shallow, deep)
    num_stopped, num_runs = (sum(side.num_stopped_early for side in sides), sum(len(side.statuses) for side in sides))
    both = all(_fits_all(side) for side in sides)
    why = "stopped" if num_stopped else "both" if both else None
    train = list(_changes(shallow, deep, _TRAIN[1:] if why else _TRAIN, level, together=True))
    test = list(_changes(shallow, deep, _TEST, level))
    lost = (_has_diverged(deep), _has_diverged(shallow))
    kind: Kind = "recipe" if all(lost) else "divergence" if lost[0] else _kind(train, test)
    evidence = (*train, *test)
    num_diverged = [list(side.statuses.values()).count("diverged") for side in (deep, shallow)]
    totals = (len(deep.statuses), len(shallow.statuses))
    tail = tail_of(shallow.curves, deep.curves, level=level) if kind == "degradation" else None
    if tail is not None and tail.catching_up:
        kind = "budget"
    what: str = kind
    if kind == "undecided" and evidence and all(change.n < LEAST_PAIRS for change in evidence):
        what = "few"
    elif kind == "undecided":
        what = "fits" if _fits(train) else "both" if both else kind
    text: dict[str, str] = {}
    for lang in LANGS:
        phrases = [*told(evidence, lang), *diverged(num_diverged, totals, lang)]
        phrases += (
            [TWO_CHANCES[lang]] if any(change.level > level and change.low != change.high for change in train) else []
        )
        phrases += [LEFT_OUT[lang][why].format(k=num_stopped, n=num_runs)] if why else []
        text[lang] = sentence(what, phrases, lang) + (ending(tail, lang) if tail is not None else "")
    return Diagnosis(kind=kind, evidence=evidence, tail=tail.evidence if tail is not None else (), text=text)


def diagnose(results: Results, *, level: float = 0.95) -> tuple[DepthDiagnosis, ...]:
    """Diagnose each arm of each part along its depth axis, least against greatest depth.

    Parts without two depths, runs that are not trained at all, and depths at which a guess costs otherwise
    (`COMPARABLE`), give nothing.
    """
    return tuple(
        found
        for name, part in results.study.parts.items()
        if "depth" in part.axes
        for found in _part(results, name, level)
    )


def _part(results: Results, part: str, level: float) -> Iterator[DepthDiagnosis]:
    rows = [row for row in results.rows if row.cell.part == part and row.spec.steps != 0]
    lines: dict[tuple[str, tuple[tuple[str, str], ...]], list[Sample]] = {}
    for sample in samples.group(rows):
        others = tuple((key, repr(value)) for key, value in sample.axes.items() if key != "depth")
        lines.setdefault((sample.arm, others), []).append(sample)
    for (arm, _), found in lines.items():
        found.sort(key=lambda sample: int(sample.axes["depth"]))
        if len(found) > 1 and _comparable(found[0], found[-1]):
            yield DepthDiagnosis(
                part=part,
                arm=arm,
                axes={key: value for key, value in found[0].axes.items() if key != "depth"},
                shallow=int(found[0].axes["depth"]),
                deep=int(found[-1].axes["depth"]),
                diagnosis=tell_apart(*(Side.of(found[at], results.load_table) for at in (0, -1)), level=level),
            )


def _comparable(shallow: Sample, deep: Sample) -> bool:
    """Whether a guess costs the same at both depths: copying over more steps asks less a step, and is another task."""
    means = []
    for sample in (shallow, deep):
        known = [row.record.chance_loss for row in sample.rows if row.record and row.record.chance_loss is not None]
        if not known:
            return True  # of older records it is not known
        means.append(math.fsum(known) / len(known))
    return max(means) <= (1.0 + COMPARABLE) * min(means)


def _has_diverged(side: Side) -> bool:
    """Whether half or more of the runs that ended have diverged."""
    statuses = list(side.statuses.values())
    num = statuses.count("diverged")
    return num > 0 and 2 * num >= len(statuses) - statuses.count("missing")


def _fits_all(side: Side) -> bool:
    """Whether every run of a side completed and classifies every training example rightly."""
    columns = [side.figures.get(metric, {}) for metric in _TRAIN[1]]
    column = next((each for each in columns if any(value is not None for value in each.values())), {})
    return bool(side.statuses) and all(column.get(seed) == 1.0 for seed in side.statuses)


def _changes(
    shallow: Side, deep: Side, groups: Sequence[Sequence[str]], level: float, *, together: bool = False
) -> Iterator[Estimate]:
    """For each group of metrics the change in the first that both sides have; `together` corrects for their number."""

    def change(metric: str, level: float) -> Estimate:
        return paired_t_interval(
            deep.figures.get(metric, {}),
            shallow.figures.get(metric, {}),
            level=level,
            name=f"{metric}: deep minus shallow",
            unit="accuracy" if "accuracy" in metric else deep.curves.unit,
        )

    chosen = [next((metric for metric in group if change(metric, level).n), None) for group in groups]
    metrics = [metric for metric in chosen if metric is not None]
    for metric in metrics:
        yield change(metric, 1.0 - (1.0 - level) / len(metrics) if together else level)


def _kind(train: Sequence[Estimate], test: Sequence[Estimate]) -> Kind:
    on_train = [_harm(change) for change in train]
    if "worse" in on_train:
        return "undecided" if "better" in on_train else "degradation"
    if not _fits(train):
        return "undecided"
    on_test = [_harm(change) for change in test]
    if "worse" in on_test:
        return "overfitting"
    return "undecided" if "unknown" in on_test else "none"


def _fits(train: Sequence[Estimate]) -> bool:
    """Whether the deeper network is shown to fit the training data at least as well."""
    on_train = {_harm(change) for change in train}
    return "worse" not in on_train and bool(on_train & {"better", "equal"})


def _harm(change: Estimate) -> Literal["worse", "better", "equal", "unknown"]:
    """What the interval of a change shows; `equal` is a change of exactly 0, or an interval that ends at it.

    Fewer than `LEAST_PAIRS` pairs show nothing: their t interval stands on one or two numbers' chance.
    """
    low, high = change.low, change.high
    if low is None or high is None or change.n < LEAST_PAIRS:
        return "unknown"
    if change.unit == "accuracy":
        low, high = -high, -low
    if low > 0:
        return "worse"
    if high < 0:
        return "better"
    return "equal" if high <= 0 else "unknown"
