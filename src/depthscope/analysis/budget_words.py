"""The words about the last stretch of a training: what was measured, and what is and is not inferred from it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from depthscope.analysis.budget import Tail
from depthscope.analysis.diagnosis_words import LEAST_PAIRS
from depthscope.analysis.finding import Estimate
from depthscope.analysis.notes import Lang
from depthscope.analysis.wording import quantity, scale_of, spread

_TEXT: Mapping[Lang, Mapping[str, str]] = MappingProxyType(
    {
        "en": {
            "measured": " Measured from update {since} to {end}: the gap in training loss changed by {gap}, the deep "
            "network's own loss by {deep}.",
            "catching_up": " Inferred: at that pace, held for another {end} updates, the gap would come to {after}. "
            "Losses flatten, so that this is the most that can be hoped; it says that this budget does not tell a "
            "degraded network from a slow one, not that the gap would close.",
            "not_closing": " At that pace, held for another {end} updates, the gap would come to {after}: not shown to "
            "close.",
            "not_shrinking": " The gap is not shown to shrink.",
            "not_falling": " The deep network's own loss is not shown to fall.",
            "decayed": " The learning rate was at {share} of its largest by then, so that a flat end is no sign of "
            "convergence.",
            "held": " Runs that had stopped early ({k} of {n}) count with their last loss.",
            "none": " Whether a larger budget would help is not told: {why}.",
            "stopped": "all deep runs stopped early, before the budget ended",
            "schedule": "the learning rate moved up to the end, and the pace with it",
            "short": "the curves have too few points in common near the end",
            "few": "fewer than {least} seeds have the curves of both depths",
            "no_gap": "it is not in the running training loss that the deeper network is worse",
        },
        "zh": {
            "measured": "实测（第 {since} 步至第 {end} 步）：训练损失的差距变化了 {gap}，"
            "深层网络自身的损失变化了 {deep}。",
            "catching_up": "推断：若此速度再保持 {end} 步，差距将为 {after}。损失下降会趋缓，因此这是最乐观的情形；"
            "这只说明该预算无法区分退化的网络与较慢的网络，并不说明差距会消失。",
            "not_closing": "若此速度再保持 {end} 步，差距将为 {after}：不足以说明差距会消失。",
            "not_shrinking": "没有证据表明差距在缩小。",
            "not_falling": "没有证据表明深层网络自身的损失仍在下降。",
            "decayed": "此时学习率已降至最大值的 {share}，因此末段平坦并不代表收敛。",
            "held": "提前停止的运行（{n} 次中的 {k} 次）按其最后的损失计算。",
            "none": "更大的预算是否有帮助无从判断：{why}。",
            "stopped": "深层运行都在预算用尽之前提前停止",
            "schedule": "学习率直到最后仍在变化，下降速度也随之变化",
            "short": "接近终点处，曲线的共同点太少",
            "few": "两种深度都有曲线的种子不足 {least} 个",
            "no_gap": "更深的网络并非在训练损失的运行平均上更差",
        },
    }
)


def ending(tail: Tail, lang: Lang) -> str:
    """What follows the diagnosis of a network that ended worse: whether it was still catching up."""
    text = _TEXT[lang]
    if tail.why_not is not None:
        return text["none"].format(why=text[tail.why_not].format(least=LEAST_PAIRS))
    gap, deep, after = (_shown(each, lang) for each in tail.evidence)
    shrinks, falls, _ = (each.high is not None and each.high < 0 for each in tail.evidence)
    verdict = (
        "catching_up"
        if tail.catching_up
        else "not_shrinking"
        if not shrinks
        else "not_falling"
        if not falls
        else "not_closing"
    )
    found = text["measured"].format(since=tail.since, end=tail.num_steps, gap=gap, deep=deep)
    found += text[verdict].format(end=tail.num_steps, after=after)
    if tail.num_held:
        found += text["held"].format(k=tail.num_held, n=2 * tail.evidence[0].n)
    if tail.decayed < 1.0 and not tail.catching_up:
        found += text["decayed"].format(share=f"{100 * tail.decayed:.3g}%")
    return found


def _shown(estimate: Estimate, lang: Lang) -> str:
    assert estimate.value is not None
    shown = quantity(estimate.value, estimate.unit, lang, change=True, signed=True, scale=scale_of(estimate))
    return f"{shown} {spread(estimate, lang)}"
