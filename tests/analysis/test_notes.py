"""Every note, method and name that the room can make is said in Chinese too."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from depthscope.analysis.diagnosis import diagnose
from depthscope.analysis.finding import Estimate
from depthscope.analysis.findings import judge
from depthscope.analysis.headline import depth_changes
from depthscope.analysis.intervals import median_interval, paired_t_interval, proportion_interval, t_interval
from depthscope.analysis.notes import BETWEEN, METHODS, NOTES, key_of, note, phrases_of
from depthscope.analysis.summarise import summarise
from depthscope.analysis.wording import spoken, spoken_method, spoken_note
from depthscope.study.claims import (
    Claim,
    DifferenceClaim,
    DifferenceInDifferencesClaim,
    LevelClaim,
    MonotoneClaim,
    NoDegradationClaim,
    Select,
    TheoryClaim,
)

if TYPE_CHECKING:
    from tests.analysis.conftest import MakeResults, MakeTable

PLAIN, RES = Select(arm="plain"), Select(arm="res")
OUTCOMES: list[list[Any]] = [
    [0.5, 0.6, 0.7],
    [0.5] * 2,
    [0.5] * 6,
    [0.1 * seed for seed in range(7)],
    ["diverged", 0.4, 0.5, 0.6],
    ["diverged"] * 6 + [0.5],
    ["failed", 0.4, 0.5],
    [None, 0.4, 0.5],
    [None],
    [0.5],
    [math.nan, 0.5],  # completed, and without the metric
]


def claims(metric: str) -> Iterator[Claim]:
    common: dict[str, Any] = {"text": {"en": "x"}, "part": "main", "metric": metric, "than": 0.0}
    for at, expect in enumerate(("at_least", "at_most")):
        more = {**common, "expect": expect}
        yield DifferenceClaim(name=f"d{at}", kind="difference", a=PLAIN, b=RES, **more)
        yield DifferenceInDifferencesClaim(
            name=f"dd{at}", kind="difference_in_differences", first=(PLAIN, RES), second=(RES, PLAIN), **more
        )
        for statistic in ("every_seed", "median"):
            named = {"name": f"{statistic[0]}{at}", "kind": "level", "cells": (PLAIN,), "statistic": statistic}
            yield LevelClaim.model_validate(more | named | {"than": 0.1})
    common.pop("than")
    yield MonotoneClaim(name="m", kind="monotone", arm="plain", direction="increasing", **common)
    if "factor" not in metric:
        yield NoDegradationClaim(name="n", kind="no_degradation", a=PLAIN, b=RES, margin=0.1, **common)
    yield TheoryClaim(name="t", kind="theory_ratio", cell=PLAIN, tolerance=0.1, **common)


@pytest.fixture(scope="module")
def made(make_results: MakeResults, table: MakeTable) -> list[Estimate]:
    """The estimates of every kind of claim, cell and diagnosis on every kind of outcome."""
    found: list[Estimate] = []
    for metric in ("train_accuracy", "train_loss", "dh_factor_first"):
        for outcome in OUTCOMES:
            seeds = len(outcome)
            values = {("plain", 8): outcome, ("plain", 2): [0.5] * seeds}
            values |= {("res", 8): [0.5] * seeds, ("res", 2): list(reversed(outcome))}
            kept = table(values, metric)

            def figures(cell: Any, kept: Any = kept, metric: str = metric) -> Any:
                given = kept(cell)
                unmeasured = isinstance(given, dict) and math.isnan(given[metric])
                return {} if unmeasured else given

            results = make_results(figures, *claims(metric), seeds=seeds)
            found += [estimate for finding in judge(results) for estimate in finding.estimates]
            found += [estimate for row in summarise(results) for estimate in row.estimates.values()]
            found += [each.change for each in depth_changes(results, "main")]
            found += [estimate for each in diagnose(results) for estimate in each.diagnosis.evidence]
    extremes = ([-math.inf] * 2 + [0.1] * 5, [math.inf] * 2 + [0.1] * 5, [math.inf] * 7)
    found += [median_interval(values, name="train_loss: median of plain") for values in extremes]
    found += [interval([1.0] * 8, level=0.975, name="train_loss: plain") for interval in (t_interval, median_interval)]
    pairs = dict.fromkeys(range(3), 1.0)
    found += [paired_t_interval(pairs, other, name="train_loss: x minus y") for other in ({0: 0.5}, pairs)]
    return [*found, proportion_interval(0, 0, name="train_loss: fraction of seeds that satisfy the claim")]


def english(text: str) -> list[str]:
    """Words of Latin letters that a Chinese reader would meet."""
    return re.findall(r"[A-Za-z]{2,}", text)


def test_all_notes_are_of_the_table_and_all_of_the_table_is_made(made: list[Estimate]) -> None:
    notes = [each.note for each in made] + [each.effect.note for each in made if each.effect]
    keys = {key_of(phrase) for each in notes if each for phrase in each.split(BETWEEN)}
    assert keys == set(NOTES)


def test_no_english_is_left_in_chinese(made: list[Estimate]) -> None:
    for each in made:
        assert english(spoken_note(each.note, "zh")) == []
        assert spoken_note(each.note, "en") == (each.note or "")
        name = spoken(each.name, "zh")
        # Names of arms and axes are the study's own; the others are symbols.
        assert set(english(name)) <= {"plain", "res", "dh", "dL"}, name


def test_all_methods_are_of_the_table_and_all_of_the_table_is_used(made: list[Estimate]) -> None:
    methods = {each.method for each in made} - {None}
    assert methods == set(METHODS)
    for method in methods:
        assert spoken_method(method, "en") == method
        assert set(english(spoken_method(method, "zh"))) <= {"Clopper", "Pearson"}


@pytest.mark.parametrize("key", NOTES)
def test_numbers_survive_the_translation(key: str) -> None:
    fields: dict[str, float] = {"k": 2, "n": 160, "level": 100 * (1 - 0.05 / 3)}
    used = {name: value for name, value in fields.items() if f"{{{name}}}" in NOTES[key][0]}
    phrase = note(key, "en", **used)
    assert BETWEEN not in phrase
    assert key_of(phrase) == key
    assert spoken_note(phrase, "zh") == note(key, "zh", **used)
    assert set(re.findall(r"\d+\.?\d*", phrase)) == set(re.findall(r"\d+\.?\d*", note(key, "zh", **used)))


def test_phrases_by_hand() -> None:
    text = "no interval: a single pair; 1 of 2 pairs left out (no value); 1 of 4 runs diverged; said elsewhere"
    assert (
        spoken_note(text, "zh")
        == "无区间：只有一对数值；2 对中略去 1 对（没有数值）；4 次运行中有 1 次发散；said elsewhere"
    )
    assert phrases_of(text, ("diverged",), "en") == ["1 of 4 runs diverged"]
    assert phrases_of(None, NOTES, "zh") == []
    assert key_of("1 of 4 runs diverged, or so") is None


def test_names_by_hand() -> None:
    assert spoken("train_loss: plain, mean of 4 cells minus res, depth 8", "zh") == (
        "训练损失（plain，4 个单元的平均 减 res，深度 8）"
    )
    assert spoken("train_loss: deep minus shallow", "zh") == "训练损失（深层减浅层）"
    assert spoken("train_loss: fraction of seeds that satisfy the claim", "zh") == "训练损失（满足论断的种子）"
