"""The page on the diagnosis: its tables are those of its records, which a sample judged again bears out."""

from __future__ import annotations

import importlib
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS))
MAKE: Any = importlib.import_module("make_diagnosis")
sys.path.remove(str(DOCS))
ROWS = MAKE.read()
PAGE = MAKE.PAGE.read_text(encoding="utf-8")


def test_every_table_is_made_from_the_records() -> None:
    assert MAKE.fill_all(PAGE, MAKE.tables(ROWS)) == PAGE


def test_all_nets_are_there_once() -> None:
    assert Counter(row["net"].rsplit("/", 1)[0] for row in ROWS) == {"held-out/healthy": 200, "held-out/broken": 200}
    assert len({row["net"] for row in ROWS}) == 400


def test_the_rates_that_were_wanted() -> None:
    healthy, broken = [row for row in ROWS if not row["truth"]], [row for row in ROWS if row["truth"]]
    assert sum(map(MAKE.alarmed, healthy)) <= 0.02 * 200
    assert sum(map(MAKE.caught, broken)) >= 0.95 * 200


def test_trainings_are_told_as_wanted() -> None:
    """None that is well is called ill; what did harm is named, of each sort."""
    rows = MAKE.read(MAKE.TRAININGS)
    assert Counter(row["kind"] for row in rows) == {kind: plan.number for kind, plan in MAKE.PLANS.items()}
    for row in rows:
        cause = MAKE.PLANS[row["kind"]].cause
        if row["kind"] != "too fast" or row["untrained"]:
            assert row["cause"] == cause, row


def test_a_training_is_judged_again_as_recorded() -> None:
    row = next(row for row in MAKE.read(MAKE.TRAININGS) if row["training"] == "held-out/short/0")
    assert MAKE.watched("short", 0) == row


def test_a_place_is_right_only_in_the_block_that_was_planted() -> None:
    row = {"place": "blocks.1", "where": ["blocks.1.branch.3"], "truth": "x", "cause": "x"}
    assert MAKE.caught(row)
    for where in (["blocks.10"], ["blocks.10.branch"], [], ["blocks"]):
        assert not MAKE.caught(row | {"where": where})
    assert not MAKE.caught(row | {"cause": "y"})
    assert MAKE.caught(row | {"place": "whole", "where": []})
    assert not MAKE.caught(row | {"place": "whole"})


def test_clopper_pearson() -> None:
    """0 of n: 1 - (.025)^(1/n); n of n: (.025)^(1/n)."""
    assert MAKE.interval(0, 200) == pytest.approx((0.0, 1 - 0.025 ** (1 / 200)))
    assert MAKE.interval(200, 200) == pytest.approx((0.025 ** (1 / 200), 1.0))
    low, high = MAKE.interval(50, 100)
    assert math.isclose(low + high, 1.0)
    assert low == pytest.approx(0.3983, abs=1e-4)


def again(index: int, broken: bool) -> None:
    row = next(each for each in ROWS if each["net"] == f"held-out/{'broken' if broken else 'healthy'}/{index}")
    assert MAKE.judged(MAKE.net("held-out", broken, index)) == row


@pytest.mark.parametrize("index", [4, 13])
def test_a_healthy_sample(index: int) -> None:
    again(index, False)


@pytest.mark.parametrize("index", range(6))
def test_a_broken_sample(index: int) -> None:
    """One of each kind."""
    again(index, True)


@pytest.mark.slow
def test_all_are_judged_again_as_recorded() -> None:
    for index in range(MAKE.NUM_EACH):
        again(index, False)
        again(index, True)
