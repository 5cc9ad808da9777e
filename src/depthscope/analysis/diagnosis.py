"""What depth did to a network: degradation, overfitting or divergence, told apart by one rule.

A deeper network that is worse on TEST data may have overfitted, degraded or diverged; only training
and test figures together tell which. The rule, on paired differences (deep minus shallow, over seeds):

1. **divergence**: half or more of the deep runs that ended have diverged. (Fewer are told in the text,
   and the others judged.)
2. **degradation**: the deeper network fits its own TRAINING data worse: the interval of the training
   loss lies above 0, or that of the training accuracy under 0. He et al. 2015, arXiv 1512.03385.
3. **overfitting**: it is shown to fit the training data at least as well (interval of the loss at or
   under 0, or of the accuracy at or above 0), and is worse on test data: test accuracy where it was
   measured, else test loss (a loss may rise by confidence alone).
4. **none**: at least as good on both; or on training data, where no test figure exists.
5. **undecided**: anything else. Lack of power is never evidence of absence, and training figures
   that contradict each other (loss up, accuracy up) decide nothing.

Where all differences are exactly equal their value stands for the interval; one seed decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from depthscope.analysis import samples
from depthscope.analysis.finding import Estimate
from depthscope.analysis.intervals import paired_t_interval
from depthscope.analysis.judging import ends
from depthscope.analysis.samples import Sample
from depthscope.analysis.table import Results
from depthscope.analysis.wording import LANGS, Lang, quantity, scale_of, spoken, spread
from depthscope.study.run import Frozen

Kind = Literal["degradation", "overfitting", "divergence", "none", "undecided"]

_TRAIN = (("train_loss", "train_loss_running"), ("train_accuracy", "train_accuracy_running"))
_TEST = (("test_accuracy", "test_loss"),)
_ALL = tuple(metric for group in (*_TRAIN, *_TEST) for metric in group)

_MEANING: dict[Lang, dict[str, str]] = {
    "en": {
        "degradation": "Degradation: the deeper network fits its own training data worse",
        "overfitting": "Overfitting: the deeper network fits its training data at least as well and test data worse",
        "divergence": "Divergence: deep runs ended with a loss that is not finite",
        "none": "No harm from depth: the deeper network is at least as good",
        "undecided": "Undecided: the intervals do not tell what depth did",
        "fits": "Undecided: the deeper network fits its training data at least as well; on test data the intervals "
        "do not tell",
    },
    "zh": {
        "degradation": "退化：更深的网络对自己的训练数据拟合得更差",
        "overfitting": "过拟合：更深的网络对训练数据的拟合不差，在测试数据上却更差",
        "divergence": "发散：深层运行的损失不再有限",
        "none": "加深无害：更深的网络至少同样好",
        "undecided": "尚无定论：区间不足以说明加深的影响",
        "fits": "尚无定论：更深的网络对训练数据的拟合不差；在测试数据上，区间不足以说明",
    },
}


class Diagnosis(Frozen):
    """What depth did, with its evidence.

    Attributes:
        kind: see the module's rule.
        evidence: the paired differences that were looked at, deep minus shallow.
        text: the diagnosis in a sentence made from the numbers, by language.
    """

    kind: Kind
    evidence: tuple[Estimate, ...]
    text: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Side:
    """The runs at one depth.

    Attributes:
        statuses: seed -> `completed`, `diverged`, `failed` or `missing`.
        figures: metric -> seed -> value (None where there is none), metrics as in a run's summary.
    """

    statuses: Mapping[int, str]
    figures: Mapping[str, Mapping[int, float | None]]

    @classmethod
    def of(cls, sample: Sample) -> Side:
        """The runs of a sample."""
        return cls(
            statuses={row.cell.seed: samples.status(row) for row in sample.rows},
            figures={metric: sample.by_seed(metric) for metric in _ALL},
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
        level: coverage of the intervals.
    """
    train = list(_changes(shallow, deep, _TRAIN, level))
    test = list(_changes(shallow, deep, _TEST, level))
    statuses = list(deep.statuses.values())
    num_diverged = statuses.count("diverged")
    num_ended = len(statuses) - statuses.count("missing")
    kind = "divergence" if num_diverged and 2 * num_diverged >= num_ended else _kind(train, test)
    evidence = (*train, *test)
    counts = (num_diverged, list(shallow.statuses.values()).count("diverged"))
    totals = (len(deep.statuses), len(shallow.statuses))
    what = "fits" if kind == "undecided" and _fits(train) else kind
    return Diagnosis(
        kind=kind, evidence=evidence, text={lang: _text(what, evidence, counts, totals, lang) for lang in LANGS}
    )


def diagnose(results: Results, *, level: float = 0.95) -> tuple[DepthDiagnosis, ...]:
    """Diagnose each arm of each part along its depth axis, least against greatest depth.

    Parts without two depths, and runs that are not trained at all, give nothing.
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
        if len(found) > 1:
            yield DepthDiagnosis(
                part=part,
                arm=arm,
                axes={key: value for key, value in found[0].axes.items() if key != "depth"},
                shallow=int(found[0].axes["depth"]),
                deep=int(found[-1].axes["depth"]),
                diagnosis=tell_apart(Side.of(found[0]), Side.of(found[-1]), level=level),
            )


def _changes(shallow: Side, deep: Side, groups: Sequence[Sequence[str]], level: float) -> Iterator[Estimate]:
    """For each group of metrics the change in the first that both sides have."""
    for group in groups:
        for metric in group:
            change = paired_t_interval(
                deep.figures.get(metric, {}),
                shallow.figures.get(metric, {}),
                level=level,
                name=f"{metric}: deep minus shallow",
                unit="accuracy" if "accuracy" in metric else "nats",
            )
            if change.n:
                yield change
                break


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
    """What the interval of a change shows; `equal` is a change of exactly 0, or an interval that ends at it."""
    low, high = ends(change)
    if low is None or high is None:
        return "unknown"
    if change.unit == "accuracy":
        low, high = -high, -low
    if low > 0:
        return "worse"
    if high < 0:
        return "better"
    return "equal" if high <= 0 else "unknown"


def _text(
    what: str, evidence: Sequence[Estimate], diverged: tuple[int, int], totals: tuple[int, int], lang: Lang
) -> str:
    told = []
    for change in evidence:
        assert change.value is not None
        shown = quantity(change.value, change.unit, lang, change=True, signed=True, scale=scale_of(change))
        metric = spoken(change.name.partition(":")[0], lang)
        told.append(f"{metric} {shown} {spread(change, lang)}")
    if lang == "en":
        sides = zip(diverged, totals, ("deep", "shallow"), strict=True)
        told += [f"{k} of {n} {side} runs diverged" for k, n, side in sides if k]
        return f"{_MEANING[lang][what]} ({'; '.join(told) or 'no figures'})."
    sides = zip(diverged, totals, ("深层", "浅层"), strict=True)
    told += [f"{n} 次{side}运行中有 {k} 次发散" for k, n, side in sides if k]
    return f"{_MEANING[lang][what]}（{'；'.join(told) or '没有数据'}）。"
