"""The rules on made-up profiles whose numbers are derived by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.model.made import WIDTH, Around, Made, act, linear, norm, plain, pre_ln, profile, scale

from depthscope.analysis.model import CAUSES, VERDICTS, ModelDiagnosis, diagnose


def judged(blocks: list[Made], around: Around | None = None) -> ModelDiagnosis:
    found = diagnose(profile(blocks, around or Around()))
    assert found.verdict in VERDICTS
    assert found.cause in CAUSES
    assert json.loads(found.model_dump_json())["verdict"] == found.verdict
    return found


def swap(blocks: list[Made], at: int, **changes: object) -> list[Made]:
    return [replace(each, **changes) if index == at else each for index, each in enumerate(blocks)]  # type: ignore[arg-type]


def unit(count: int, **changes: object) -> list[Made]:
    """Skips without a norm."""
    branches = [(linear(f"blocks.{at}.a.weight", 1.0), act(), linear(f"blocks.{at}.b.weight")) for at in range(count)]
    return [replace(Made(branch=branch), **changes) for branch in branches]  # type: ignore[arg-type]


def off(count: int) -> list[Made]:
    """ReZero at step 0."""
    return [
        replace(each, branch=(*(each.branch or ()), scale(0.0)), ratio=0.0, weight_grad=0.0) for each in unit(count)
    ]


# Whole body.


def test_torch_default_initialiser() -> None:
    """.41 a layer over 30: 30 log10 .41 = -11.6."""
    blocks = plain(30, multiplier=0.41)
    found = judged([replace(each, ops=(linear(f"blocks.{at}.w", 1 / 3), act())) for at, each in enumerate(blocks)])
    assert (found.verdict, found.cause, found.where, found.inferred) == ("vanishing", "gain too small", (), False)
    assert found.sentence == (
        "ReLU with torch's default initialiser: a block multiplies the gradient by .41 (random weights like these in "
        "theory: .408), 30 blocks by 10^-11.6, from output to input."
    )
    assert "variance 2/fan_in" in found.repair
    assert found.numbers["total, decades"] == pytest.approx(30 * math.log10(0.41))
    assert found.rate is not None
    assert found.rate.value == pytest.approx(0.41)


def test_flat_weight_gradients_do_not_hide_a_vanishing_one() -> None:
    """40 tanh layers at std .5/sqrt(w): sw2 = .25, a factor of .5 each way; all |dW| are equal."""
    name = "blocks.{}.fc.weight"
    blocks = [
        Made(ops=(linear(name.format(at), 0.25), act("tanh")), multiplier=0.5, rms=0.5**at, weight_grad=1e-13)
        for at in range(40)
    ]
    found = judged(blocks)
    assert (found.verdict, found.cause, found.where) == ("vanishing", "gain too small", ())
    assert found.numbers["total, decades"] == pytest.approx(-12.04, abs=0.005)
    assert found.numbers["growth of |h|, decades"] == pytest.approx(39 * math.log10(0.5), abs=0.005)


def test_a_naive_skip() -> None:
    """|h| and the gradient grow by sqrt(2) a block: 10^4.5 over 30."""
    blocks = [replace(each, multiplier=2**0.5, ratio=1.0, rms=2 ** ((at + 1) / 2)) for at, each in enumerate(unit(30))]
    found = judged(blocks, Around(loss=5 * math.log(10)))
    assert (found.verdict, found.cause, found.where) == ("exploding", "unscaled branches", ())
    assert found.numbers["loss over ln K"] == pytest.approx(5 / 0.9**0.5)
    assert judged(blocks).numbers.keys() == found.numbers.keys() - {"loss over ln K"}


def test_a_gradient_that_is_repaired_while_the_signal_explodes() -> None:
    blocks = [replace(each, multiplier=1.0, rms=10 ** (at / 8)) for at, each in enumerate(unit(25))]
    found = judged(blocks)
    assert (found.verdict, found.cause) == ("exploding", "unscaled branches")
    assert found.numbers["growth of |h|, decades"] == pytest.approx(3.0)


def test_plain_batch_norm() -> None:
    """(pi/(pi-1))^(40/2) = 10^3.3 at step 0; its theory is found from what examples share."""
    entry = {"second": 0.5, "common": 1 / math.pi, "mean": (2 * math.pi) ** -0.5}
    layer = (norm("batch"), act())
    blocks = [Made(ops=(linear(f"blocks.{at}.w", 0.4), *layer), multiplier=1.21) for at in range(40)]
    found = judged(blocks, Around(**entry, stem=(linear("stem.weight"), act())))
    assert (found.verdict, found.cause, found.inferred) == ("exploding", "plain batch norm", False)
    assert "in theory: 1.21)" in found.sentence


def test_too_large_a_gain() -> None:
    blocks = [Made(ops=(linear(f"blocks.{at}.w", 8.0), act()), multiplier=2.0, rms=2.0**at) for at in range(20)]
    assert judged(blocks).cause == "gain too large"


# One block.


def test_a_cliff_in_a_plain_net() -> None:
    small = swap(plain(10), 4, ops=(linear("blocks.4.fc.weight", 2e-4), act()), multiplier=0.01)
    found = judged(small)
    assert (found.verdict, found.cause, found.where[0]) == ("vanishing", "gain too small", "blocks.4.fc")
    assert found.numbers["sw2"] == pytest.approx(2e-4)
    large = swap(plain(10), 4, ops=(linear("blocks.4.fc.weight", 800.0), act()), multiplier=20.0)
    assert (judged(large).verdict, judged(large).cause) == ("exploding", "gain too large")
    unknown = swap(plain(10), 4, multiplier=0.01)
    assert (judged(unknown).cause, judged(unknown).inferred) == ("one block", True)


@pytest.mark.parametrize("blocks", [pre_ln(12), unit(12, ratio=0.3, multiplier=1.04)])
def test_a_large_branch(blocks: list[Made]) -> None:
    broken = swap(blocks, 8, ratio=10 * blocks[8].ratio)
    found = judged(broken)
    assert (found.verdict, found.cause, found.where[0]) == ("branch-dominated", "branch scale", "blocks.8")
    assert found.numbers["times its like"] == pytest.approx(10, rel=0.15)
    assert judged(swap(blocks, 8, ratio=3 * blocks[8].ratio)).verdict == "healthy"


def test_a_missing_skip() -> None:
    blocks = pre_ln(8)
    lost = replace(blocks[3], branch=None, ops=blocks[3].branch or (), multiplier=0.5)
    found = judged(swap(blocks, 3, branch=None, ops=lost.ops, multiplier=0.5))
    assert (found.verdict, found.cause, found.where) == ("branch-dominated", "missing skip", ("blocks.3",))
    assert found.numbers["multiplier"] == 0.5


def test_no_skip_is_missing_between_stages() -> None:
    """The same two stretches, but the shape changes between them."""
    lost = swap(pre_ln(8), 3, branch=None, ops=pre_ln(8)[3].branch)
    found = profile(lost)
    boundaries = tuple(
        replace(each, shape=(WIDTH // 2,)) if 2 <= each.index <= 4 else each for each in found.structure.boundaries
    )
    seam = replace(found, structure=replace(found.structure, boundaries=boundaries))
    assert diagnose(found).cause == "missing skip"
    assert diagnose(seam).cause != "missing skip"


def test_a_block_without_its_like_is_no_cliff() -> None:
    """A dense layer before a head, a seam, a projection of embeddings: built unlike the rest, or one of few."""
    blocks = plain(8)
    assert judged([*blocks, Made(ops=(linear("blocks.8.w", 0.01), act("gelu")), multiplier=0.1)]).verdict == "healthy"
    few = [Made(ops=(linear(f"blocks.{at}.w"), act("gelu")), multiplier=0.05 if at == 9 else 1.0) for at in (8, 9, 10)]
    assert judged([*blocks, *few]).verdict == "healthy"


def test_a_missing_norm_and_one_on_the_trunk() -> None:
    blocks = pre_ln(8)
    found = judged(swap(blocks, 3, branch=(blocks[3].branch or ())[1:]))
    assert (found.verdict, found.cause, found.where[0]) == ("not depth", "missing norm", "blocks.3")
    found = judged(swap(blocks, 3, branch=(blocks[3].branch or ())[1:], ratio=6.0))
    assert (found.verdict, found.cause) == ("branch-dominated", "missing norm")
    found = judged(swap(blocks, 3, before=(norm(module="blocks.3.trunk"),)))
    assert (found.cause, found.where[0], found.inferred) == ("norm on the trunk", "blocks.3", True)


def test_two_kinds_of_blocks_that_take_turns_are_no_odd_ones() -> None:
    blocks = pre_ln(12)
    for at in range(0, 12, 2):
        blocks = swap(blocks, at, branch=(blocks[at].branch or ())[1:])
    assert judged(blocks).verdict == "healthy"


def test_a_block_stands_out_against_the_others_alone() -> None:
    """Blocks that scatter by factors of 3 hide one that is 6 off: 6 robust standard deviations are more."""
    blocks = [replace(each, multiplier=3.0 ** (-1) ** at) for at, each in enumerate(plain(9))]
    assert judged(swap(blocks, 4, multiplier=6.0)).verdict == "healthy"
    assert judged(swap(plain(9), 4, multiplier=6.0)).cause == "one block"


# Silent blocks.


def test_a_dead_layer() -> None:
    broken = [replace(each, zeros=1.0 if at >= 3 else 0.5, multiplier=0.0) for at, each in enumerate(plain(8))]
    found = judged(broken)
    assert (found.verdict, found.cause, found.where[0]) == ("vanishing", "dead layer", "blocks.3.fc")
    found = judged(swap(pre_ln(8), 5, weight_grad=0.0, ratio=0.0))
    assert (found.verdict, found.cause, found.where[0]) == ("unused layers", "dead layer", "blocks.5")


def test_a_branch_that_a_factor_switches_off_is_not_dead() -> None:
    assert judged([*off(2), *unit(8, ratio=0.3, multiplier=1.04)[2:]]).verdict == "healthy"


def test_a_cut_gradient() -> None:
    found = judged(swap(pre_ln(8), 5, status="no grad"))
    assert (found.verdict, found.cause, found.where[0]) == ("unused layers", "gradient cut", "blocks.5")
    trunk = [replace(each, status="no grad" if at <= 4 else "ok") for at, each in enumerate(plain(8))]
    found = judged(trunk, Around(stem_status="no grad", grads=False))
    assert (found.verdict, found.cause, found.where[0]) == ("vanishing", "gradient cut", "blocks.4.fc")


def test_a_frozen_block() -> None:
    found = judged(swap(pre_ln(8), 5, status="frozen"))
    assert (found.verdict, found.cause, found.where[0]) == ("unused layers", "frozen block", "blocks.5")


def test_transfer_learning_is_no_fault() -> None:
    for count in (2, 4, 8):
        blocks = [replace(each, status="frozen" if at < count else "ok") for at, each in enumerate(pre_ln(8))]
        found = judged(blocks, Around(stem_status="frozen"))
        assert found.verdict == "healthy"
        assert any("transfer learning: no fault" in note for note in found.notes)


def test_an_uncalled_block() -> None:
    found = judged(swap(plain(8), 5, used=False, status="unused"))
    assert (found.verdict, found.cause, found.where) == ("unused layers", "uncalled block", ("blocks.5",))


# No false alarm.


@pytest.mark.parametrize(
    "blocks",
    [
        plain(20),
        pre_ln(33),
        off(20),
        unit(20, ratio=20**-0.5, multiplier=1.024),
        [replace(each, multiplier=1.25 if at < 6 else 1.0) for at, each in enumerate(pre_ln(12))],
    ],
    ids=["plain", "pre-LN", "ReZero", "scaled", "larger early gradients"],
)
def test_healthy(blocks: list[Made]) -> None:
    found = judged(blocks)
    assert (found.verdict, found.cause, found.others) == ("healthy", "", ())
    assert found.sentence.startswith("The gradient changes by 10^")


def test_embeddings_far_smaller_than_a_branch() -> None:
    """GPT-2's start: x_0 of spread .02, the first branch of 1."""
    blocks = swap(pre_ln(12), 0, ratio=50.0, multiplier=50.0)
    assert judged(blocks, Around(stem_rms=0.02)).verdict == "healthy"


# What cannot be told.


def test_too_few_blocks_and_no_gradient() -> None:
    assert judged(plain(2)).sentence.startswith("2 blocks between stem and head")
    found = judged(plain(8), Around(grads=False))
    assert (found.verdict, found.cause) == ("cannot tell", "no gradient")


def test_a_zero_classifier() -> None:
    found = judged(pre_ln(8, weight_grad=0.0), Around(head_weight=0.0, head_multiplier=0.0))
    assert (found.verdict, found.cause) == ("cannot tell", "zero classifier")


def test_values_that_are_not_finite() -> None:
    base = profile(plain(8))
    bad = tuple(
        replace(row, value=3.0) if row.quantity == "nonfinite" and row.name in ("blocks.5", "blocks.6") else row
        for row in base.readings
    )
    found = diagnose(replace(base, readings=bad))
    assert (found.verdict, found.cause, found.where) == ("exploding", "non-finite values", ("blocks.5",))
    at_input = tuple(
        replace(row, value=3.0) if row.quantity == "nonfinite" and row.name == "input" else row for row in base.readings
    )
    assert diagnose(replace(base, readings=at_input)).verdict == "not depth"


def test_notes_say_what_limits_a_verdict() -> None:
    found = judged(plain(8), Around(conditions={"data": "noise", "training": False, "objective": "cotangent"}, step=7))
    text = " | ".join(found.notes)
    for words in ("made-up noise", "eval mode", "no loss was given", "initialisation"):
        assert words in text
    (unchecked,) = judged(plain(8)).notes
    assert unchecked.startswith("learning rate, labels and whether the loss falls were not checked")


def test_a_collapsed_representation() -> None:
    ranks = [30.0, 12.0, 5.0, 2.0, 1.2, 1.0]
    found = judged([replace(each, rank=rank) for each, rank in zip(plain(6), ranks, strict=True)])
    assert (found.verdict, found.where) == ("rank collapse", ("blocks.5",))


# Scale.

CASES: dict[str, Callable[[], list[Made]]] = {
    "healthy": lambda: pre_ln(12),
    "vanishing": lambda: plain(30, multiplier=0.41),
    "naive": lambda: unit(30, multiplier=2**0.5, ratio=1.0),
    "branch": lambda: swap(pre_ln(12), 5, ratio=6.0),
    "dead": lambda: swap(pre_ln(12), 5, ratio=0.0, weight_grad=0.0),
}


@settings(max_examples=25)
@given(st.sampled_from(sorted(CASES)), st.floats(-12, 12))
def test_a_factor_on_the_loss_changes_nothing(case: str, decades: float) -> None:
    blocks = CASES[case]()
    plainly = diagnose(profile(blocks, Around(loss=20.0)))
    scaled = diagnose(profile(blocks, Around(loss=20.0, loss_factor=10**decades)))
    same: dict[str, object] = {"numbers": {}, "notes": ()}  # a note tells the loss as it is
    assert scaled.model_copy(update=same) == plainly.model_copy(update=same)
    assert scaled.numbers == pytest.approx(plainly.numbers)
