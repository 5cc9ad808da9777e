"""The verdicts of a headline: the confirmatory claims with their numbers, or how many claims came out how."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from depthscope.analysis.finding import Estimate, Finding
from depthscope.analysis.notes import ABSENT, phrases_of
from depthscope.analysis.verdicts import CHANGES
from depthscope.analysis.wording import VERDICTS, Lang, pick, quantity, scale_of, spoken, spread, with_spread

MOST_NAMED = 4
"""Alternatives of a claim on one of several differences that a sentence names."""


def verdict_sentence(findings: Sequence[Finding], lang: Lang) -> Iterator[str]:
    """The verdicts on the confirmatory claims; where there is none, how the claims came out."""
    confirmatory = [finding for finding in findings if finding.confirmatory]
    if confirmatory:
        joined = "; ".join if lang == "en" else "；".join
        told = [_verdict(finding, lang) for finding in confirmatory]
        text = joined(told) + ("." if lang == "en" else "。")
        yield text[:1].upper() + text[1:]
    elif findings:
        counts = {kind: sum(finding.verdict == kind for finding in findings) for kind in VERDICTS[lang]}
        told = [f"{counts[kind]} {word}" for kind, word in VERDICTS[lang].items() if counts[kind]]
        yield (
            f"Of {len(findings)} claim{'s' if len(findings) > 1 else ''}: {', '.join(told)}."
            if lang == "en"
            else f"{len(findings)} 条论断中：{'，'.join(told)}。"
        )


def some_of(judged: Sequence[Estimate], num_met: int, lang: Lang, said: Callable[[str], str]) -> str:
    """Which of several differences meet their bound; where none does, the nearest.

    Args:
        judged: the differences, those that meet the bound first, the nearest next.
        num_met: how many meet it.
        lang: language.
        said: the name of an estimate as a reader says it.
    """
    named = judged[: min(num_met, MOST_NAMED) or 1]
    equals, between = (" = ", "; ") if lang == "en" else ("：", "；")
    told = between.join(f"{said(each.name)}{equals}{with_spread(each, lang, change=True)}" for each in named)
    more = num_met - len(named)
    if lang == "en":
        head = (
            f"{num_met} of {len(judged)} meet it" if num_met else f"none of {len(judged)} is shown to meet it; nearest"
        )
        return f"{head}: {told}" + (f"; and {more} more" if more > 0 else "")
    head = f"{len(judged)} 个中有 {num_met} 个符合" if num_met else f"{len(judged)} 个中没有一个被证实符合；最接近的"
    return f"{head}：{told}" + (f"；另有 {more} 个" if more > 0 else "")


def alternative(estimate: Estimate, lang: Lang) -> str:
    """The side of a difference before the minus sign.

    >>> alternative(Estimate(name="train_loss: plain, depth 56 minus plain, depth 20", value=None, n=0), "en")
    'plain, depth 56'
    """
    sides = estimate.name.partition(": ")[2]
    return spoken(f"x: {sides.partition(' minus ')[0]}", lang).removeprefix("x").strip("（）: ")


def _better(worsening: Estimate, lang: Lang) -> str:
    """A worsening under 0 as the improvement that it is, with its interval turned round."""
    assert worsening.value is not None
    gain = quantity(-worsening.value, worsening.unit, lang, change=True, scale=scale_of(worsening))
    word = "better by" if lang == "en" else "改善"
    return f"{word} {gain} {spread(worsening, lang, flip=True)}"


def _verdict(finding: Finding, lang: Lang) -> str:
    text = pick(finding.text, lang)
    change = finding.kind in CHANGES
    shown = finding.estimates[0]
    if finding.kind == "monotone":  # the step that comes nearest to going back
        shown = min(
            finding.estimates[: finding.num_judged], key=lambda each: math.inf if each.value is None else each.value
        )
    better = finding.kind == "no_degradation" and shown.value is not None and shown.value < 0
    behind = _better(shown, lang) if better else with_spread(shown, lang, change=change)
    verdict = VERDICTS[lang][finding.verdict]
    absent = phrases_of(shown.note, ABSENT, lang)
    if absent:
        behind += f" ({', '.join(absent)})" if lang == "en" else f"（{'，'.join(absent)}）"
    if lang == "en":
        what = {
            "difference": "difference ",
            "difference_in_differences": "difference in differences ",
            "no_degradation": "" if better else "worsening ",
            "monotone": "smallest step ",
            "some_difference": f"{_met(finding, lang)}difference ",
        }
        return f"the confirmatory claim “{text}” is {verdict}: {what.get(finding.kind, '')}{behind}"
    what = {
        "difference": "差值 ",
        "difference_in_differences": "双重差分 ",
        "no_degradation": "" if better else "变差 ",
        "monotone": "最小的一步 ",
        "some_difference": f"{_met(finding, lang)}差值 ",
    }
    return f"确认性论断“{text}”{verdict}：{what.get(finding.kind, '')}{behind}"


def _met(finding: Finding, lang: Lang) -> str:
    """How many of several differences meet their bound, and which of them the number behind is of."""
    name, k, n = alternative(finding.estimates[0], lang), finding.num_met, finding.num_judged
    if lang == "en":
        return f"{k} of {n} meet it, {name} with a " if k else f"none of {n} is shown to meet it; nearest {name}, "
    return f"{n} 个中有 {k} 个符合，{name} " if k else f"{n} 个中没有一个被证实符合，最接近的 {name} "
