"""The words of a diagnosis: what was found, with which figures, in both languages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from depthscope.analysis.finding import Estimate
from depthscope.analysis.wording import Lang, quantity, scale_of, spoken, spread

LEAST_PAIRS = 3
"""Seeds with results at both depths under which nothing is diagnosed from their differences."""

FIGURES: dict[Lang, dict[str, str]] = {
    "en": {
        "train_loss": "training loss (clean pass after the last step)",
        "train_loss_running": "training loss (running mean of the last epoch)",
        "train_accuracy": "training accuracy (clean pass after the last step)",
        "train_accuracy_running": "training accuracy (running mean of the last epoch)",
    },
    "zh": {
        "train_loss": "训练损失（最后一步之后的完整评估）",
        "train_loss_running": "训练损失（最后一个 epoch 的运行平均）",
        "train_accuracy": "训练准确率（最后一步之后的完整评估）",
        "train_accuracy_running": "训练准确率（最后一个 epoch 的运行平均）",
    },
}
"""Which of two training figures is meant; other metrics have one name."""

TWO_CHANCES: dict[Lang, str] = {
    "en": "97.5%: loss and accuracy are two chances to find harm, corrected by Bonferroni",
    "zh": "97.5%：损失与准确率是发现危害的两次机会，按 Bonferroni 校正",
}
"""Why the intervals of two training figures are wider."""

LEFT_OUT: dict[Lang, dict[str, str]] = {
    "en": {
        "stopped": "training loss left out: {k} of {n} runs stopped early, which pins it",
        "both": "training loss left out: every training example is fitted on both sides",
    },
    "zh": {
        "stopped": "不看训练损失：{n} 次运行中有 {k} 次提前停止，损失因此被固定",
        "both": "不看训练损失：两侧都拟合了全部训练样本",
    },
}
"""Why the training loss was left out."""

MEANING: dict[Lang, dict[str, str]] = {
    "en": {
        "degradation": "Degradation: the deeper network fits its own training data worse",
        "budget": "Not enough budget to tell: the deeper network fits its own training data worse, and was still "
        "catching up when the budget ended",
        "overfitting": "Overfitting: the deeper network fits its training data at least as well and test data worse",
        "divergence": "Divergence: the loss of deep runs left all bounds (not finite, or above 1000 times that of a "
        "guess)",
        "recipe": "Divergence: the recipe diverges at both depths, which is no effect of depth (the loss left all "
        "bounds: not finite, or above 1000 times that of a guess)",
        "none": "No harm from depth: the deeper network is at least as good",
        "undecided": "Undecided: the intervals do not tell what depth did",
        "few": "Undecided: fewer than {least} seeds have results at both depths, and what depth did is not told from "
        "so few",
        "fits": "Undecided: the deeper network fits its training data at least as well; on test data the intervals "
        "do not tell",
        "both": "Undecided: both networks fit every training example on every seed, and the seeds are too few to "
        "rule out harm",
    },
    "zh": {
        "degradation": "退化：更深的网络对自己的训练数据拟合得更差",
        "budget": "训练预算不足以判断：更深的网络对自己的训练数据拟合得更差，但预算用尽时仍在追赶",
        "overfitting": "过拟合：更深的网络对训练数据的拟合不差，在测试数据上却更差",
        "divergence": "发散：深层运行的损失超出一切界限（不再有限，或高于随机猜测的 1000 倍）",
        "recipe": "发散：该训练配方在两种深度下都发散，这不是加深的影响"
        "（损失超出一切界限：不再有限，或高于随机猜测的 1000 倍）",
        "none": "加深无害：更深的网络至少同样好",
        "undecided": "尚无定论：区间不足以说明加深的影响",
        "few": "尚无定论：两种深度都有结果的种子不足 {least} 个，数量太少，无法说明加深的影响",
        "fits": "尚无定论：更深的网络对训练数据的拟合不差；在测试数据上，区间不足以说明",
        "both": "尚无定论：两个网络在每个种子上都拟合了全部训练样本，但种子太少，不足以排除危害",
    },
}
"""What was found (a kind, or the reason why it is undecided) as the beginning of a sentence."""


def told(evidence: Sequence[Estimate], lang: Lang) -> Iterator[str]:
    """Each change with its figure, number and interval."""
    for change in evidence:
        assert change.value is not None
        shown = quantity(change.value, change.unit, lang, change=True, signed=True, scale=scale_of(change))
        metric = change.name.partition(":")[0]
        yield f"{FIGURES[lang].get(metric) or spoken(metric, lang)} {shown} {spread(change, lang)}"


def diverged(counts: Iterable[int], totals: Iterable[int], lang: Lang) -> list[str]:
    """How many runs of the deep and of the shallow side diverged; a side without is not named."""
    sides = ("deep", "shallow") if lang == "en" else ("深层", "浅层")
    phrase = "{k} of {n} {side} runs diverged" if lang == "en" else "{n} 次{side}运行中有 {k} 次发散"
    return [phrase.format(k=k, n=n, side=side) for k, n, side in zip(counts, totals, sides, strict=True) if k]


def sentence(what: str, phrases: Sequence[str], lang: Lang) -> str:
    """What was found, and the phrases behind it in brackets."""
    if lang == "en":
        return f"{MEANING[lang][what].format(least=LEAST_PAIRS)} ({'; '.join(phrases) or 'no figures'})."
    return f"{MEANING[lang][what].format(least=LEAST_PAIRS)}（{'；'.join(phrases) or '没有数据'}）。"
