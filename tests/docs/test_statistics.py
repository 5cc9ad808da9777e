"""The page on statistics: simulated by the real rules, promises that hold, tables that are what was simulated."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from depthscope.analysis import intervals
from depthscope.analysis.findings import judge
from depthscope.analysis.simultaneous import compare_all
from depthscope.analysis.table import Results
from depthscope.record.schema import Outcome, Provenance, RunRecord, Timings
from depthscope.study.expand import expand
from depthscope.study.run import RunSpec
from depthscope.study.study import StudySpec

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    found = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


CAL: Any = load("calibration")
RANKS: Any = load("calibration_ranks")
MAKE: Any = load("make_statistics")


def table(name: str) -> list[list[str]]:
    found = re.search(rf"<!-- made: {name} -->\n(.*?)\n<!-- end -->", PAGE, re.DOTALL)
    assert found
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found[1].splitlines()]


@pytest.mark.parametrize("n", [3, 5, 10])
def test_the_twins_of_the_intervals_are_the_real_ones(n: int) -> None:
    values = CAL.collapsing(CAL.generator(1, n), (60, n))
    low, high = CAL.t_ends(values, 0.975)
    ends = CAL.median_ends(values, 0.95)
    for at, row in enumerate(values):
        real = intervals.t_interval(list(row), level=0.975)
        paired = intervals.paired_t_interval(dict(enumerate(row)), dict.fromkeys(range(n), 0.0), level=0.975)
        assert (real.low, real.high) == pytest.approx((low[at], high[at]), rel=1e-9)
        assert (paired.low, paired.high) == pytest.approx((low[at], high[at]), rel=1e-9)
        assert intervals.median_ends(list(row)) == (None if ends is None else (ends[0][at], ends[1][at]))


COMMON = {"text": {"en": "x"}, "part": "main", "confirmatory": True}
BASE = {
    "backend": "numpy", "family": "mlp", "width": 16, "activation": "tanh", "init": "gaussian", "data": "spiral",
    "steps": 10, "shortcut": "none",
}  # fmt: skip
DECLARED: dict[str, dict[str, Any]] = {
    "difference": {"kind": "difference", "a": 1, "b": 0, "expect": "at_least", "than": 0.0},
    "difference_in_differences": {
        "kind": "difference_in_differences", "first": [1, 0], "second": [3, 2], "expect": "at_least", "than": 0.0,
    },
    "no_degradation": {"kind": "no_degradation", "a": 1, "b": 0, "margin": CAL.MARGIN},
    "monotone": {"kind": "monotone", "direction": "increasing"},
    "some_difference": {"kind": "some_difference", "a": [1, 2, 3], "b": 0, "expect": "at_least", "than": 0.0},
    "median": {"kind": "level", "statistic": "median", "cells": [0], "expect": "at_least", "than": 1.0},
}  # fmt: skip


def record(spec: RunSpec, summary: dict[str, float]) -> RunRecord:
    return RunRecord(
        run_id=spec.run_id,
        spec=spec,
        outcome=Outcome(status="completed", step=10),
        summary=summary,
        timings=Timings(wall_s=1.0, cpu_s=1.0, started="2026-01-01T00:00:00+00:00"),
        provenance=Provenance(
            depthscope="0", python="3", numpy="2", platform="x", processor="x", device="cpu", threads=1
        ),
    )


def real_verdicts(kinds: tuple[str, ...], cells: list[Any], n: int) -> list[float]:
    """The verdicts of `judge` on a study whose claim k has the four depths of arm k as its cells."""

    def select(arm: str, at: int) -> dict[str, Any]:
        return {"arm": arm, "where": {"depth": 2 * at + 2}}

    claims = []
    for at, kind in enumerate(kinds):
        arm = f"arm-{at}"
        fields = dict(DECLARED[kind])
        for key in {"a", "b"} & set(fields) if kind != "some_difference" else {"b"}:
            fields[key] = select(arm, fields[key])
        for key in {"first", "second", "cells"} & set(fields):
            fields[key] = [select(arm, each) for each in fields[key]]
        if kind == "some_difference":
            fields["a"] = [select(arm, each) for each in DECLARED[kind]["a"]]
        if kind == "monotone":
            fields["arm"] = arm
        claims.append({**COMMON, "name": f"c{at}", "metric": "train_loss", **fields})
    # A monotone claim goes along all cells of its arm: it has three.
    exclude = [{"arm": f"arm-{at}", "depth": 8} for at, kind in enumerate(kinds) if kind == "monotone"]
    arms = [{"name": f"arm-{at}", "set": {"lr": 0.1 / (1 + at)}} for at in range(len(kinds))]
    part = {"arms": arms, "axes": {"depth": [2, 4, 6, 8]}, "exclude": exclude}
    study = StudySpec.model_validate(
        {"name": "x", "title": {"en": "x"}, "base": BASE, "seeds": n, "parts": {"main": part}, "claims": claims}
    )
    plan = expand(study)
    records = {}
    for cell in plan.cells:
        value = cells[int(cell.arm.removeprefix("arm-"))][cell.axes["depth"] // 2 - 1, cell.seed]
        records[cell.run_id] = record(plan.runs[cell.run_id], {"train_loss": float(value)})
    found = judge(Results(plan=plan, records=records, load_table=lambda run_id, name: None))
    return [{"supported": 1.0, "refuted": -1.0, "undecided": 0.0}[finding.verdict] for finding in found]


def draws(kinds: tuple[str, ...], n: int, num: int) -> Iterator[tuple[list[Any], list[float]]]:
    """Cells on their bounds moved by a random shift, so that all verdicts occur; with what the twin says of them."""
    rng = CAL.generator(77, n, len(kinds))
    cells = [CAL.null_cells(kind, CAL.LAWS["normal"], rng, num, n) for kind in kinds]
    for each, kind in zip(cells, kinds, strict=True):
        shift = rng.choice([-0.3, 0.0, 0.3], size=(num, 1))
        each[:, 1] += shift
        if kind == "some_difference":  # refuted by all of its alternatives alone
            each[:, 2:] += np.minimum(shift, 0.0)[:, None]
    verdicts = CAL.holm(cells, kinds)
    for at in range(num):
        yield [each[at] for each in cells], list(verdicts[:, at])


@pytest.mark.parametrize(
    ("name", "n", "num"),
    [
        ("4: difference, no degradation, monotone, median", 10, 12),
        ("3: difference, difference in differences, no degradation", 5, 12),
        ("1: some of three differences", 5, 9),
    ],
)
def test_the_twin_of_a_family_is_the_real_one(name: str, n: int, num: int) -> None:
    kinds = CAL.FAMILIES[name]
    told = []
    for cells, twin in draws(kinds, n, num):
        assert real_verdicts(kinds, cells, n) == twin
        told += twin
    assert {-1.0, 0.0, 1.0} == set(told)


@pytest.mark.parametrize("n", [3, 5, 10])
def test_95_percent_intervals_cover_94_to_96_on_normal_draws(n: int) -> None:
    for against in MAKE.AGAINST:
        assert 0.94 <= CAL.coverage(CAL.LAWS["normal"], n, against).value <= 0.96


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize(
    "name", ["1: a difference", "2: differences", "4: difference, no degradation, monotone, median"]
)
def test_a_family_supports_a_false_claim_in_5_percent_of_draws_at_most(name: str, n: int) -> None:
    rate = CAL.false_support(CAL.FAMILIES[name], CAL.LAWS["normal"], n)
    assert rate.num_draws == 4000
    assert rate.value <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / rate.num_draws)


def test_the_page_is_what_was_simulated_and_no_family_breaks_its_promise() -> None:
    """Within a draw in a thousand: another NumPy may round a draw at a bound to the other side."""
    for name, made in (
        ("coverage", MAKE.coverage_table()),
        ("misses", MAKE.misses_table()),
        ("medians", MAKE.median_table()),
        ("families", MAKE.family_table()),
    ):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in made.splitlines()]
        for ours, theirs in zip(rows, table(name), strict=True):
            assert ours[0] == theirs[0]
            for a, b in zip(ours[1:], theirs[1:], strict=True):
                assert a == b or float(a) == pytest.approx(float(b), abs=0.11)
    for row in table("families")[2:]:
        assert all(float(cell) <= 100 * (0.05 + 2 * np.sqrt(0.05 * 0.95 / 4000)) for cell in row[1:] if cell)


def test_the_page_names_every_kind_of_claim_and_of_diagnosis() -> None:
    from depthscope.study.claims import KINDS

    for kind in KINDS:
        assert f"`{kind}`" in PAGE
    for word in ("divergence", "recipe", "degradation", "not enough budget", "overfitting", "no harm", "undecided"):
        assert f"**{word}**" in PAGE


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(((?!https?:|#)[^)#]+)\)", PAGE))))
def test_every_link_is_there(target: str) -> None:
    assert (ROOT / "docs" / target).exists()


def example(name: str) -> str:
    found = re.search(rf"<!-- example: {name} -->\n(.*?)\n<!-- end -->", PAGE, re.DOTALL)
    assert found
    return found[1]


def test_the_worked_example_is_what_judge_says() -> None:
    """The claim, the numbers and the sentence as they stand on the page, and the arithmetic between them."""
    claim = tomllib.loads(example("claim").removeprefix("```toml").removesuffix("```"))["claims"][0]
    table_ = [[cell.strip() for cell in line.strip("|").split("|")] for line in example("numbers").splitlines()[2:]]
    values = {int(row[0]): [float(cell) for cell in row[1:]] for row in table_}
    part = {"arms": [{"name": "residual", "set": {"shortcut": "identity"}}], "axes": {"depth": sorted(values)}}

    def judged(margin: float) -> Any:
        study = StudySpec.model_validate(
            {
                "name": "x", "title": {"en": "x"}, "base": BASE, "seeds": 5, "parts": {"main": part},
                "claims": [{**claim, "margin": margin}],
            }
        )  # fmt: skip
        plan = expand(study)
        records = {
            cell.run_id: record(plan.runs[cell.run_id], {"test_accuracy": values[cell.axes["depth"]][cell.seed]})
            for cell in plan.cells
        }
        (found,) = judge(Results(plan=plan, records=records, load_table=lambda run_id, name: None))
        return found

    found = judged(claim["margin"])
    assert example("reason") == f"> {found.reason}"
    differences = 100 * (np.array(values[20]) - np.array(values[56]))
    (estimate, *_) = found.estimates
    half = 100 * (estimate.high - estimate.low) / 2
    told = (differences.mean(), differences.std(ddof=1), half / differences.std(ddof=1), half)
    assert [f"{each:.2f}" for each in told] == ["-0.12", "0.20", "1.24", "0.25"]
    for text in ("is −.12 points", "s = .20", "1.24 s", "or .25 points: from −.37 to .13", "−.2, .1, −.3, .1, −.3"):
        assert text in PAGE
    assert [round(100 * end, 2) for end in (estimate.low, estimate.high)] == [-0.37, 0.13]
    assert judged(0.001).verdict == "undecided"


@pytest.mark.parametrize("name", ["normal, two arms scatter 10 times as much", "normal, scatter over three decades"])
@pytest.mark.parametrize("n", [3, 5])
def test_the_twin_of_rankings_is_the_real_one(name: str, n: int) -> None:
    """Of arms that differ, so that some pairs are settled and some are not."""
    steps = 0.2 * np.cumsum(RANKS.SCATTERS[name][1](6))  # two standard deviations apart
    values = RANKS.draw(name, 6, n, 12) + steps[None, :, None]
    twin = RANKS.moderated(values)
    for each, told in zip(values, twin, strict=True):
        real = compare_all({str(at): dict(enumerate(map(float, column))) for at, column in enumerate(each)})
        assert len(real.above) == told
    assert len(set(twin)) > 1


def test_the_table_of_ranks_is_what_was_simulated_and_keeps_its_promise() -> None:
    _, _, *rows = table("ranks")
    assert [row[0] for row in rows] == list(RANKS.SCATTERS)
    made = RANKS.called_different("normal, two arms scatter 10 times as much", 4, 3)
    assert float(rows[1][1]) == pytest.approx(100 * made.value, abs=0.11)
    assert made.num_draws == 2000
    assert max(float(cell) for row in rows for cell in row[1:]) <= 100 * (0.05 + 2 * np.sqrt(0.05 * 0.95 / 2000))
    # What the rule was taken for: the pooled one breaks the promise, and that of single pairs is nearly blind.
    own, pooled, moderated = ([float(cell) for cell in row[1:]] for row in table("rules")[2:])
    assert pooled[1] > 15
    assert moderated[-1] > 3 * own[-1]


def test_the_table_of_widths_is_that_of_the_real_interval() -> None:
    """Half the paired interval of differences whose standard deviation is 1."""
    heads, _, row = table("widths")
    for n, told in zip(heads[1:], row[1:], strict=True):
        values = np.arange(float(n))
        values /= values.std(ddof=1)
        found = intervals.paired_t_interval(dict(enumerate(values)), dict.fromkeys(range(int(n)), 0.0))
        assert found.low is not None
        assert found.high is not None
        assert told == f"{(found.high - found.low) / 2:.2f}"
