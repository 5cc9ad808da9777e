"""Numbers in words: estimates, intervals and verdicts as text, in English and Chinese."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from depthscope.analysis.finding import Estimate, Verdict
from depthscope.analysis.intervals import has_no_spread
from depthscope.analysis.notes import LANGS as LANGS
from depthscope.analysis.notes import Lang as Lang
from depthscope.analysis.notes import spoken_method as spoken_method
from depthscope.analysis.notes import spoken_note as spoken_note

VERDICTS: dict[Lang, dict[Verdict, str]] = {
    "en": {"supported": "supported", "refuted": "refuted", "undecided": "undecided"},
    "zh": {"supported": "成立", "refuted": "不成立", "undecided": "尚无定论"},
}

METRIC_NAMES: dict[Lang, dict[str, str]] = {
    "en": {
        "train_loss_running": "training loss (last epoch)",
        "train_accuracy_running": "training accuracy (last epoch)",
        "train_loss": "training loss",
        "train_accuracy": "training accuracy",
        "validation_loss": "validation loss",
        "validation_accuracy": "validation accuracy",
        "test_loss": "test loss",
        "test_accuracy": "test accuracy",
        "train_loss_first": "loss of the first batch",
        "train_loss_change": "change of the training loss by training",
        "train_loss_start": "training loss as constructed",
        "train_accuracy_start": "training accuracy as constructed",
        "train_loss_start_batch": "training loss as constructed, training mode",
        "train_accuracy_start_batch": "training accuracy as constructed, training mode",
        "construction_loss_change": "change of the training loss by the construction",
        "construction_accuracy_change": "change of the training accuracy by the construction",
        "lesion_loss_change": "change of the loss by taking out one branch",
        "lesion_accuracy_change": "change of the accuracy by taking out one branch",
        "landscape_roughness": "roughness of the loss landscape",
        "landscape_rise": "rise of the loss around the network (orders of magnitude)",
        "landscape_nonconvex_share": "share of the loss landscape that curves down",
        "landscape_curvature_ratio": "negative curvature over the largest",
        "smoothness_first": "effective smoothness along the step, untrained",
        "smoothness_last": "effective smoothness along the step, trained",
        "smoothness_most": "largest effective smoothness along the step",
        "sharpness_first": "sharpness, untrained",
        "sharpness_last": "sharpness, trained",
        "sharpness_most": "largest sharpness",
        "sharpness_ratio_last": "sharpness over the edge of stability, trained",
        "dh_factor_first": "factor of |dL/dh| a layer, untrained",
        "dh_factor_last": "factor of |dL/dh| a layer, trained",
        "dh_factor_change": "change by training of the factor of |dL/dh| a layer",
        "dw_factor_first": "factor of |dW| a layer, untrained",
        "dw_end_log_first": "ln |dW| of the last layer before the head, untrained",
        "gradcheck_complex_median": "gradient check, complex step",
        "gradcheck_central_median": "gradient check, central difference",
        "gradcheck_five_point_median": "gradient check, five points",
    },
    "zh": {
        "train_loss_running": "训练损失（最后一个 epoch）",
        "train_accuracy_running": "训练准确率（最后一个 epoch）",
        "train_loss": "训练损失",
        "train_accuracy": "训练准确率",
        "test_loss": "测试损失",
        "test_accuracy": "测试准确率",
        "validation_loss": "验证损失",
        "validation_accuracy": "验证准确率",
        "train_loss_first": "第一批的损失",
        "train_loss_change": "训练引起的训练损失变化",
        "train_loss_start": "构造完成时的训练损失",
        "train_accuracy_start": "构造完成时的训练准确率",
        "train_loss_start_batch": "构造完成时的训练损失（训练模式）",
        "train_accuracy_start_batch": "构造完成时的训练准确率（训练模式）",
        "construction_loss_change": "构造引起的训练损失变化",
        "construction_accuracy_change": "构造引起的训练准确率变化",
        "lesion_loss_change": "去掉一个支路引起的损失变化",
        "lesion_accuracy_change": "去掉一个支路引起的准确率变化",
        "landscape_roughness": "损失景观的粗糙度",
        "landscape_rise": "网络周围损失的上升（数量级）",
        "landscape_nonconvex_share": "损失景观中向下弯曲的份额",
        "landscape_curvature_ratio": "负曲率与最大曲率之比",
        "smoothness_first": "未训练时沿步的有效光滑度",
        "smoothness_last": "训练后沿步的有效光滑度",
        "smoothness_most": "沿步有效光滑度的最大值",
        "sharpness_first": "未训练时的锐度",
        "sharpness_last": "训练后的锐度",
        "sharpness_most": "锐度的最大值",
        "sharpness_ratio_last": "训练后锐度与稳定性边缘之比",
        "dh_factor_first": "未训练时 |dL/dh| 的逐层因子",
        "dh_factor_last": "训练后 |dL/dh| 的逐层因子",
        "dh_factor_change": "训练前后 |dL/dh| 逐层因子之比",
        "dw_factor_first": "每层 |dW| 的倍数（未训练）",
        "dw_end_log_first": "未训练时输出层之前最后一层的 ln |dW|",
        "gradcheck_complex_median": "梯度检验（复步法）",
        "gradcheck_central_median": "梯度检验（中心差分）",
        "gradcheck_five_point_median": "梯度检验（五点差分）",
    },
}
"""The keys of a run's summary as a reader says them."""

IN_TIME: dict[Lang, dict[str, str]] = {
    "en": {
        "dh_factor_first": "factor of |dL/dh| a step in time, untrained",
        "dh_factor_last": "factor of |dL/dh| a step in time, trained",
        "dh_factor_change": "change by training of the factor of |dL/dh| a step in time",
    },
    "zh": {
        "dh_factor_first": "未训练时 |dL/dh| 的逐时间步因子",
        "dh_factor_last": "训练后 |dL/dh| 的逐时间步因子",
        "dh_factor_change": "训练前后 |dL/dh| 逐时间步因子之比",
    },
}
"""Those that are called otherwise where depth is a number of steps in time."""


def pick(texts: Mapping[Any, str], lang: Lang) -> str:
    """A text in this language, else in English, else in the one that is there.

    >>> pick({"zh": "更深"}, "en"), pick({"en": "deeper"}, "zh")
    ('更深', 'deeper')
    """
    return texts.get(lang) or texts.get("en") or next(iter(texts.values()))


def whole_percent(value: float) -> str:
    """An accuracy as a level; a whole percent without a decimal, and nothing else rounded to one.

    >>> whole_percent(1.0), whole_percent(0.9999), whole_percent(0.3333)
    ('100%', '99.99%', '33.3%')
    """
    percent = 100.0 * value
    if abs(percent - round(percent)) < 1e-9:
        return f"{round(percent)}%"
    return f"{percent:.2f}%" if percent > 99.9 else f"{percent:.1f}%"


_CHINESE = (
    ("fraction of seeds that satisfy the claim", "满足论断的种子"),
    ("measured / expected, ", "实测与理论之比，"),
    ("measured, ", "实测，"),
    ("expected, ", "理论值，"),
    ("median of ", "中位数，"),
    ("deep minus shallow", "深层减浅层"),
    (" minus ", " 减 "),
    ("depth ", "深度 "),
)


def spoken(name: str, lang: Lang, *, in_time: bool = False) -> str:
    """The name of an estimate as a reader says it; `in_time` where its runs' depth is a number of steps.

    >>> spoken("train_accuracy: plain, depth 56 minus plain, depth 20", "en")
    'training accuracy: plain, depth 56 minus plain, depth 20'
    >>> spoken("train_accuracy: plain, depth 56 minus plain, depth 20", "zh")
    '训练准确率（plain，深度 56 减 plain，深度 20）'
    """
    metric, colon, rest = name.partition(": ")
    metric = (in_time and IN_TIME[lang].get(metric)) or METRIC_NAMES[lang].get(metric, metric)
    if lang == "en":
        return f"{metric}{colon}{rest}"
    for english, chinese in _CHINESE:
        rest = rest.replace(english, chinese)
    rest = re.sub(r"mean of (\d+) cells", r"\1 个单元的平均", rest)
    rest = rest.replace(", ", "，")
    return f"{metric}（{rest}）" if rest else metric


def quantity(
    value: float, unit: str, lang: Lang, *, change: bool = False, signed: bool = False, scale: float | None = None
) -> str:
    """A number with its unit.

    Args:
        value: in the unit's own scale; an accuracy is a fraction of 1.
        unit: `accuracy` is shown in percent, or in percentage points where it is a change.
        lang: language.
        change: whether the value is a difference of two values.
        signed: whether to show a plus sign.
        scale: the number whose third digit is the last that is shown; the value itself by default.

    >>> quantity(-0.231, "accuracy", "en", change=True), quantity(0.95, "accuracy", "en")
    ('−23.1 points', '95.0%')
    >>> quantity(0.5712, "nats", "zh"), quantity(0.0845, "nats", "en", scale=0.29)
    ('0.571 nats', '0.085 nats')
    """
    shown = _number(value, unit, signed=signed, scale=scale)
    if unit == "accuracy":
        if not change:
            return f"{shown}%"
        return f"{shown} points" if lang == "en" else f"{shown} 个百分点"
    return f"{shown} {unit}" if unit else shown


def scale_of(estimate: Estimate) -> float | None:
    """The largest of an estimate's value and ends, so that all three are shown to the same place."""
    sizes = [abs(each) for each in (estimate.value, estimate.low, estimate.high) if each is not None]
    return max(sizes, default=None)


def _number(value: float, unit: str, *, signed: bool = False, scale: float | None = None) -> str:
    sign = "+" if signed else ""
    size = abs(value) if scale is None else scale
    if unit == "accuracy":
        text = f"{100.0 * value:{sign}.1f}"
    elif size == 0:
        text = "0"
    elif not 1e-3 <= size < 1e4:
        return f"{value:{sign}.3g}".replace("-", "−")
    else:
        text = f"{value:{sign}.{max(0, 2 - math.floor(math.log10(size)))}f}"
    if float(text) == 0:
        text = text.lstrip("+-")  # a rounded zero has no sign
    return text.replace("-", "−")


def spread(estimate: Estimate, lang: Lang, *, flip: bool = False) -> str:
    """What stands behind a value in brackets: its interval and number of seeds, or why there is none.

    Args:
        estimate: the estimate.
        lang: language.
        flip: show the interval of minus the value (a loss of 3 for a change of -3).

    >>> spread(Estimate(name="x", value=-2.0, low=-3.0, high=-1.0, n=3), "en", flip=True)
    '[95% CI 1.00 to 3.00, 3 seeds]'
    """
    seeds = _seeds(estimate.n, lang)
    if has_no_spread(
        estimate
    ):  # an interval of width 0 may decide a claim, but printed it would pretend to a precision
        return f"[{seeds}, all equal]" if lang == "en" else f"[{seeds}，数值全部相同]"
    if estimate.low is not None and estimate.high is not None:
        ends = (-estimate.high, -estimate.low) if flip else (estimate.low, estimate.high)
        low, high = (_number(end, estimate.unit, scale=scale_of(estimate)) for end in ends)
        if lang == "en":
            return f"[{_confidence(estimate)} {low} to {high}, {seeds}]"
        return f"[{_confidence(estimate)} {low} 至 {high}，{seeds}]"
    return f"[{seeds}, no interval]" if lang == "en" else f"[{seeds}，无区间]"


def with_spread(estimate: Estimate, lang: Lang, *, change: bool = False) -> str:
    """The estimate's value, unit and spread, or a word where there is no value."""
    if estimate.value is None:
        return "not known" if lang == "en" else "未知"
    if estimate.unit == "fraction":
        return counted(estimate, lang)
    shown = quantity(estimate.value, estimate.unit, lang, change=change, scale=scale_of(estimate))
    return f"{shown} {spread(estimate, lang)}"


def counted(estimate: Estimate, lang: Lang) -> str:
    """A fraction of seeds as k of n, with its interval.

    >>> counted(Estimate(name="x", value=1.0, n=10, num_runs=160, low=0.692, high=1.0), "en")
    '10 of 10 seeds (160 runs) [95% CI 69.2% to 100.0%]'
    """
    assert estimate.value is not None
    k, runs = round(estimate.value * estimate.n), estimate.num_runs
    if lang == "en":
        text = f"{k} of {_seeds(estimate.n, lang)}" + (f" ({runs} runs)" if runs else "")
    else:
        text = f"{estimate.n} 个种子中的 {k} 个" + (f"（{runs} 次运行）" if runs else "")
    if estimate.low is None or estimate.high is None:
        return text
    low, high = _number(estimate.low, "accuracy"), _number(estimate.high, "accuracy")
    joined = f"{low}% to {high}%" if lang == "en" else f"{low}% 至 {high}%"
    return f"{text} [{_confidence(estimate)} {joined}]"


def _confidence(estimate: Estimate) -> str:
    return f"{100.0 * estimate.level:.3g}% CI"


def _seeds(n: int, lang: Lang) -> str:
    if lang == "zh":
        return f"{n} 个种子"
    return "1 seed" if n == 1 else f"{n} seeds"
