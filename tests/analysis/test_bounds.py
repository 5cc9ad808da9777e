"""Claims at their bound, where rounding must decide nothing; and figures that a later divergence leaves alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest

from depthscope.analysis.findings import judge
from depthscope.analysis.table import BEFORE_TRAINING, Results
from depthscope.record.schema import Outcome
from depthscope.study.absent import CONSTRUCTED
from depthscope.study.claims import DifferenceClaim, DifferenceInDifferencesClaim, LevelClaim, Select
from depthscope.study.scale import unit_of
from depthscope.study.study import Arm

if TYPE_CHECKING:
    from tests.analysis.conftest import MakeResults

Expect = Literal["at_least", "at_most"]
Values = dict[tuple[str, int], list[Any]]


def cell(arm: str, depth: int | str | None = None) -> Select:
    return Select(arm=arm, where={} if depth is None else {"depth": depth})


def difference(than: float, expect: Expect = "at_least", **more: Any) -> DifferenceClaim:
    """Deep minus shallow, of the plain arm."""
    return DifferenceClaim.model_validate(
        {
            "name": "c",
            "text": {"en": "x"},
            "part": "main",
            "metric": "train_accuracy",
            "unit": unit_of(more.get("metric", "train_accuracy")),
            "kind": "difference",
            "a": cell("plain", "max"),
            "b": cell("plain", "min"),
            "expect": expect,
            "than": than,
            **more,
        }
    )


@pytest.mark.parametrize("n", [6, 8])
@pytest.mark.parametrize(("expect", "than", "verdict"), [
    ("at_least", 0.1, "supported"), ("at_most", 0.1, "supported"), ("at_least", 0.1001, "refuted"),
    ("at_most", 0.0999, "refuted"),
])  # fmt: skip
def test_rounding_decides_nothing_at_the_bound(found: Any, n: int, expect: Expect, than: float, verdict: str) -> None:
    """.3 - .2 is 0.09999999999999998 in floats, and .1 in what was measured."""
    finding = found(difference(than, expect), {("plain", 8): [0.3] * n, ("plain", 2): [0.2] * n})
    assert (finding.verdict, finding.estimates[0].value) == (verdict, 0.1)


def test_a_bound_that_no_decimal_can_say_is_met(found: Any) -> None:
    """Accuracies of 150 examples: 77/150 - 76/150 against 1/150."""
    values: Values = {("plain", 8): [77 / 150, 14 / 150] * 3, ("plain", 2): [76 / 150, 13 / 150] * 3}
    for expect in ("at_least", "at_most"):
        assert found(difference(1 / 150, expect), values).verdict == "supported"


@pytest.mark.parametrize("expect", ["at_least", "at_most"])
def test_equal_changes_have_no_difference_in_differences(found: Any, expect: Expect) -> None:
    claim = DifferenceInDifferencesClaim(
        name="c", text={"en": "x"}, part="main", metric="train_accuracy", kind="difference_in_differences",
        first=(cell("plain", 8), cell("plain", 2)), second=(cell("res", 8), cell("res", 2)), expect=expect, than=0.0,
    )  # fmt: skip
    values: Values = {
        ("plain", 8): [0.3, 77 / 150] * 3,
        ("plain", 2): [0.2, 76 / 150] * 3,
        ("res", 8): [0.4, 1.0] * 3,
        ("res", 2): [0.3, 149 / 150] * 3,
    }
    finding = found(claim, values)
    judged = finding.estimates[0]
    assert (finding.verdict, judged.value, judged.low, judged.high) == ("supported", 0.0, None, None)
    assert judged.method == "order statistics"


def test_changes_that_are_the_same_on_every_seed_have_no_t_interval(found: Any) -> None:
    values: Values = {("plain", 8): [0.3, 0.9, 0.8, 0.7], ("plain", 2): [0.2, 0.8, 0.7, 0.6]}
    judged = found(difference(0.0), values).estimates[0]
    assert (judged.value, judged.low, judged.values) == (0.1, None, (0.1,) * 4)


@pytest.mark.parametrize("metric", sorted(BEFORE_TRAINING))
def test_divergence_says_nothing_of_the_untrained_network(make_results: MakeResults, metric: str) -> None:
    """The deep run of seed 1 diverged, and its record holds what was measured before."""
    claim = LevelClaim(
        name="c", text={"en": "x"}, part="main", metric=metric, kind="level", cells=(cell("plain"),),
        statistic="every_seed", expect="at_least", than=0.5,
    )  # fmt: skip
    base = {"backend": "torch", "measures": [], "activation": "relu", "init": "constructed", "gain": 1.0}
    constructed: dict[str, Any] = {
        "base": {**base, "init_options": {"from_depth": 1}},
        "arms": (Arm(name="plain", set={"shortcut": "none"}),),
    }
    gpt = {"backend": "torch", "measures": ["layers"], "family": "gpt", "data": "names", "init": "gpt2", "gain": 1.0}
    transformer: dict[str, Any] = {"base": {**gpt, "norm": "layer", "activation": "gelu"}}
    curved: dict[str, Any] = {"base": {**base, "measures": ["sharpness", "smoothness"], "init": "gaussian"}}
    needs = {
        **dict.fromkeys(CONSTRUCTED, constructed),
        "dw_end_log_first": transformer,
        **dict.fromkeys(("sharpness_first", "smoothness_first"), curved),
    }
    results = make_results(
        lambda c: {metric: 0.7 + 0.01 * c.seed, "train_loss": 1.0}, claim, difference(-0.9, metric=metric, name="d"),
        difference(-0.9, metric="train_loss", name="e"),
        **needs.get(metric, {}),
    )  # fmt: skip
    assert [each.verdict for each in judge(results)] == ["supported", "undecided", "undecided"]
    (row,) = [row for row in results.select("main", cell("plain", 8)) if row.cell.seed == 1]
    assert row.record is not None
    gone = row.record.model_copy(update={"outcome": Outcome(status="diverged", step=3), "summary": {metric: 0.71}})
    after = Results(
        plan=results.plan, records={**results.records, row.cell.run_id: gone}, load_table=results.load_table
    )
    level, change, loss = judge(after)
    assert level.verdict == "supported"
    assert change.estimates[0].n == 3
    assert "diverged" not in level.reason + change.reason
    assert "1 of 6 runs diverged" in loss.reason
    bare = gone.model_copy(update={"summary": {}})
    bared = Results(plan=after.plan, records={**after.records, row.cell.run_id: bare}, load_table=after.load_table)
    assert "1 of 6 runs lack the metric" in judge(bared)[0].reason
    assert judge(bared)[0].verdict == "undecided"
