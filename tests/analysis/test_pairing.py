"""What the sides of each claim's comparison share, and what a reader is warned of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.analysis.test_arms import with_digests
from tests.analysis.test_more_claims import monotone

from depthscope.analysis.finding import Pairing
from depthscope.analysis.findings import findings_document, judge
from depthscope.analysis.table import Results
from depthscope.study.claims import Claim, DifferenceClaim, DifferenceInDifferencesClaim, LevelClaim, Select
from depthscope.study.study import Arm

if TYPE_CHECKING:
    from tests.analysis.conftest import MakeResults

COMMON: dict[str, Any] = {"name": "c", "text": {"en": "x"}, "part": "main", "metric": "train_loss", "than": 0.0}


def at(arm: str, depth: int | None = None) -> Select:
    return Select(arm=arm, where={} if depth is None else {"depth": depth})


def difference(a: Select, b: Select) -> DifferenceClaim:
    return DifferenceClaim(kind="difference", a=a, b=b, expect="at_least", **COMMON)


def made(make_results: MakeResults, claim: Claim, **more: Any) -> Results:
    return make_results(lambda cell: {"train_loss": 1.0 + 0.1 * cell.seed}, claim, **more)


def pairing(results: Results) -> tuple[Pairing, ...]:
    (finding,) = judge(results)
    assert findings_document(results, (finding,), {})["findings"][0]["pairing"] == [
        each.model_dump(mode="json") for each in finding.pairing
    ]
    return finding.pairing


def test_arms_that_differ_in_one_setting_share_everything_else(make_results: MakeResults) -> None:
    (found,) = pairing(made(make_results, difference(at("res", 8), at("plain", 8))))
    assert (found.a, found.b) == ("res, depth 8", "plain, depth 8")
    assert (found.num_shared, found.num_common, found.seeds) == (2, 2, (0, 1, 2))
    assert (found.same_data, found.same_order, found.same_augment, found.same_code) == (True, True, True, None)
    assert (found.fields, found.varied, found.flags) == (("shortcut",), ("shortcut",), ())


def test_depth_is_a_thing_that_varies(make_results: MakeResults) -> None:
    (found,) = pairing(made(make_results, difference(at("plain", 8), at("plain", 2))))
    assert (found.varied, found.flags) == (("depth",), ())
    (found,) = pairing(made(make_results, difference(at("res", 8), at("plain", 2))))
    assert (found.varied, found.flags) == (("depth", "shortcut"), ("several",))


def test_each_side_of_a_double_difference_and_each_step_is_a_comparison(make_results: MakeResults) -> None:
    first, second = (at("plain", 8), at("plain", 2)), (at("res", 8), at("res", 2))
    claim = DifferenceInDifferencesClaim(
        kind="difference_in_differences", first=first, second=second, expect="at_least", **COMMON
    )
    assert [(each.a, each.b, each.varied) for each in pairing(made(make_results, claim))] == [
        ("plain, depth 8", "plain, depth 2", ("depth",)),
        ("res, depth 8", "res, depth 2", ("depth",)),
    ]
    steps = pairing(made(make_results, monotone("increasing"), axes={"depth": [8, 2, 4]}))
    assert [(each.a, each.b) for each in steps] == [
        ("plain, depth 4", "plain, depth 2"),
        ("plain, depth 8", "plain, depth 4"),
    ]


def test_cells_are_compared_at_equal_values_of_the_axes_left_free(make_results: MakeResults) -> None:
    found = pairing(made(make_results, difference(at("res"), at("plain"))))
    assert [(each.a, each.b) for each in found] == [
        ("res, depth 2", "plain, depth 2"),
        ("res, depth 8", "plain, depth 8"),
    ]


def test_a_level_compares_nothing(make_results: MakeResults) -> None:
    claim = LevelClaim(kind="level", cells=(at("plain"),), statistic="median", expect="at_least", **COMMON)
    assert pairing(made(make_results, claim)) == ()


@pytest.mark.parametrize(
    ("digests", "flags"),
    [
        ({"data": "other"}, ("data",)),
        ({"order": "x"}, ("unknown",)),  # one side only: not known
        ({"augment": "x"}, ("unknown",)),
        ({"init": {"stem.weight": "x", "head.weight": "y"}}, ("implied",)),
        ({"init": {}}, ("unknown",)),
        ({"code": {"mine:net": "x"}}, ()),  # one side alone names it: that is a setting, and not a change of it
    ],
)
def test_what_was_not_the_same_is_flagged(make_results: MakeResults, digests: dict[str, Any], flags: Any) -> None:
    results = made(make_results, difference(at("res", 8), at("plain", 8)))
    (found,) = pairing(with_digests(results, "res", **digests))
    assert found.flags == flags


@pytest.mark.parametrize(("source", "same", "flags"), [("x", True, ()), ("y", False, ("code",))])
def test_the_users_code_is_compared_by_its_source(
    make_results: MakeResults, source: str, same: bool, flags: Any
) -> None:
    results = made(make_results, difference(at("res", 8), at("plain", 8)))
    results = with_digests(with_digests(results, "plain", code={"mine:net": "x"}), "res", code={"mine:net": source})
    (found,) = pairing(results)
    assert (found.same_code, found.flags) == (same, flags)


def test_tensors_that_start_otherwise_by_design_are_no_second_thing(make_results: MakeResults) -> None:
    """A shortcut alone, where tensors start otherwise, changes the initialiser too; a gain says so itself."""
    arms = (Arm(name="plain", set={"gain": 0.72}), Arm(name="res", set={"gain": 1.0}))
    results = made(make_results, difference(at("res", 8), at("plain", 8)), arms=arms)
    (found,) = pairing(with_digests(results, "res", init={"stem.weight": "x", "head.weight": "head0"}))
    assert (found.num_shared, found.num_common, found.differing) == (0, 2, ("stem.weight", "head.weight"))
    assert (found.varied, found.flags) == (("gain",), ())


def test_the_options_of_another_optimiser_are_one_thing_with_it_and_its_rate_is_a_second(
    make_results: MakeResults,
) -> None:
    arms = (Arm(name="plain", set={"optimizer": "sgd"}), Arm(name="res", set={"optimizer": "adam"}))
    (found,) = pairing(made(make_results, difference(at("res", 8), at("plain", 8)), arms=arms))
    assert len(found.fields) > 2
    assert (found.varied, found.flags) == (("optimizer",), ())
    arms = (arms[0], Arm(name="res", set={"optimizer": "adam", "lr": 1e-3}))
    (found,) = pairing(made(make_results, difference(at("res", 8), at("plain", 8)), arms=arms))
    assert found.flags == ("several",)
