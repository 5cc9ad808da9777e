"""Notes of estimates, in both languages.

An `Estimate.note` is one English string, as it stands in `findings.json`. It is made of phrases from
the table here and of nothing else, so that each can be said again in another language.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal

Lang = Literal["en", "zh"]
LANGS: tuple[Lang, ...] = ("en", "zh")

BETWEEN = "; "
"""Stands between two phrases of a note, and inside none."""

NOTES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "no_value": ("no value", "没有数值"),
        "one_value": ("no interval: a single value", "无区间：只有一个数值"),
        "one_pair": ("no interval: a single pair", "无区间：只有一对数值"),
        "equal_few": (
            "no interval: all {n} values are equal, and too few for {level}% coverage of a median",
            "无区间：{n} 个数值全部相同，且数量不足以使中位数达到 {level}% 的覆盖率",
        ),
        "equal_values": (
            "no interval: all {n} values are equal, and enough to decide by their median",
            "无区间：{n} 个数值全部相同，数量足以按中位数判定",
        ),
        "equal_pairs": (
            "no interval: all {n} differences are equal, and enough to decide by their median",
            "无区间：{n} 个差值全部相同，数量足以按中位数判定",
        ),
        "few": (
            "no interval: {n} values cannot give {level}% coverage of a median",
            "无区间：{n} 个数值不足以使中位数达到 {level}% 的覆盖率",
        ),
        "values_left_out": ("{k} of {n} values left out (no value)", "{n} 个中略去 {k} 个（没有数值）"),
        "pairs_left_out": ("{k} of {n} pairs left out (no value)", "{n} 对中略去 {k} 对（没有数值）"),
        "median_infinite": ("the median lies among runs without a finite value", "中位数落在没有有限数值的运行中"),
        "low_infinite": ("the lower end lies among runs without a finite value", "区间下端落在没有有限数值的运行中"),
        "high_infinite": ("the upper end lies among runs without a finite value", "区间上端落在没有有限数值的运行中"),
        "seeds_not_seen": (
            "{k} of {n} seeds left out (a run without a value)",
            "{n} 个种子中略去 {k} 个（有的运行没有数值）",
        ),
        "runs_of_seeds": ("{n} runs, together by seed", "共 {n} 次运行，按种子合并"),
        "missing": ("{k} of {n} runs are missing", "{n} 次运行中有 {k} 次尚缺"),
        "diverged": ("{k} of {n} runs diverged", "{n} 次运行中有 {k} 次发散"),
        "failed": ("{k} of {n} runs failed", "{n} 次运行中有 {k} 次出错"),
        "unmeasured": ("{k} of {n} runs lack the metric", "{n} 次运行中有 {k} 次没有该指标"),
        "against": ("divergence speaks against the claim", "发散不利于该论断"),
        "for": ("divergence speaks for the claim", "发散有利于该论断"),
        "unknown": ("divergence says neither yes nor no to the claim", "发散对该论断既非肯定也非否定"),
        "effect_few": ("no effect size: fewer than three pairs", "无效应量：不足三对数值"),
        "effect_no_spread": (
            "no effect size: the differences have no spread",
            "无效应量：各差值没有离散程度",
        ),
        "no_closed_form": ("no closed form for this run", "该运行没有闭式解"),
    }
)
"""Key -> (English, Chinese)."""

ABSENT = ("missing", "diverged", "failed", "unmeasured")
"""The phrases that say what became of runs without a value."""

METHODS: Mapping[str, str] = MappingProxyType(
    {
        "t": "t 区间",
        "paired t": "配对 t 区间",
        "order statistics": "次序统计量",
        "Clopper-Pearson": "Clopper-Pearson",
        "closed form": "闭式解",
    }
)
"""`Estimate.method` -> the same in Chinese."""


def note(key: str, lang: Lang = "en", **fields: float) -> str:
    """A phrase of the table with its numbers.

    >>> note("diverged", k=1, n=8), note("few", "zh", n=5, level=97.5)
    ('1 of 8 runs diverged', '无区间：5 个数值不足以使中位数达到 97.5% 的覆盖率')
    """
    return NOTES[key][LANGS.index(lang)].format(**{name: f"{value:g}" for name, value in fields.items()})


def joined(phrases: Iterable[str]) -> str | None:
    """Phrases as one note; None where there are none."""
    return BETWEEN.join(phrases) or None


def spoken_note(text: str | None, lang: Lang) -> str:
    """A note as a reader says it; a phrase that is not in the table stays as it is.

    >>> spoken_note("no value; 2 of 2 values left out (no value)", "zh")
    '没有数值；2 个中略去 2 个（没有数值）'
    >>> spoken_note(None, "zh")
    ''
    """
    if not text or lang == "en":
        return text or ""
    return "；".join(_spoken(phrase, lang) or phrase for phrase in text.split(BETWEEN))


def phrases_of(text: str | None, keys: Collection[str], lang: Lang) -> list[str]:
    """Those phrases of a note that are of these keys.

    >>> phrases_of("no value; 2 of 2 runs diverged", ABSENT, "zh")
    ['2 次运行中有 2 次发散']
    """
    found = []
    for phrase in (text or "").split(BETWEEN):
        key = key_of(phrase)
        if key in keys:
            found.append(_spoken(phrase, lang) or phrase)
    return found


def spoken_method(method: str | None, lang: Lang) -> str:
    """How an interval was made, as a reader says it; empty where there is none.

    >>> spoken_method("order statistics", "zh"), spoken_method("paired t", "en"), spoken_method(None, "zh")
    ('次序统计量', 'paired t', '')
    """
    if method is None:
        return ""
    return METHODS.get(method, method) if lang == "zh" else method


def key_of(phrase: str) -> str | None:
    """The key that a phrase in English was made from, or None."""
    return next((key for key, pattern in _patterns().items() if pattern.fullmatch(phrase)), None)


def _spoken(phrase: str, lang: Lang) -> str | None:
    key = key_of(phrase)
    if key is None:
        return None
    match = _patterns()[key].fullmatch(phrase)
    assert match is not None
    return NOTES[key][LANGS.index(lang)].format(**match.groupdict())


@cache
def _patterns() -> Mapping[str, re.Pattern[str]]:
    """Each English phrase as a pattern in which a field is a number."""
    return {
        key: re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[0-9.e+-]+)", re.escape(english)))
        for key, (english, _) in NOTES.items()
    }
