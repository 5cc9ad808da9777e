"""Expected multipliers and ratios against the closed forms of plain and residual networks at their fixed points."""

from __future__ import annotations

import math

import pytest
from tests.analysis.model.made import Around, Made, act, linear, norm, profile, scale

from depthscope.analysis.averages import averages, shared_second
from depthscope.analysis.model import Expected, expected
from depthscope.analysis.model.flow import common
from depthscope.analysis.theory import fixed_point_q
from depthscope.core.structure import Op

RELU = (linear("stem.weight"), act())
USUAL = Around()


def of(made: Made, around: Around = USUAL, *, follow: bool = False) -> tuple[Expected | None, Expected | None]:
    """What is expected of one block: multiplier and ratio."""
    found = profile([made] * (2 if follow else 1), around)
    theory = expected(found.structure, found)
    return theory.multipliers.get("blocks.0"), theory.ratios.get("blocks.0:add")


# Plain networks: the entry is at the fixed point, where its mean square is E[phi^2] = (q - sb2) / sw2.
@pytest.mark.parametrize(
    ("name", "sw2", "sb2", "norm_a_layer"),
    [
        ("relu", 2.0, 0.0, 1.0),
        ("relu", 1.0, 0.0, 0.7071),
        ("relu", 1 / 3, 0.0, 0.4082),
        ("tanh", 1.0, 0.05, 0.871224),
        ("tanh", 1.424205, 0.01, 1.0),
        ("tanh", 1.760955, 0.05, 1.0),
        ("tanh", 1.986073, 0.10, 1.0),
        ("tanh", 2.25, 0.0, 1.067391),
        ("tanh", 4.0, 0.05, 1.158621),
    ],
)
def test_plain_layers(name: str, sw2: float, sb2: float, norm_a_layer: float) -> None:
    q = fixed_point_q(name, sw2, sb2) or 1.0  # ReLU under He's gain dies: any q will do
    made = Made(ops=(linear("blocks.0.weight", sw2, sb2=sb2), act(name)))
    found, _ = of(made, Around(second=averages(name, q).second, stem=RELU))
    assert found is not None
    assert found.value == pytest.approx(norm_a_layer, abs=6e-5 if name == "relu" else 6e-7)
    assert found.low < found.value < found.high


# Normalised: the entry is phi of N(0, 1), whose mean is common to all examples. The initialiser cancels.
@pytest.mark.parametrize(
    ("kind", "name", "norm_a_layer"),
    [
        ("batch", "relu", 1.211174),
        ("batch", "gelu", math.sqrt(1.318845)),
        ("batch", "silu", math.sqrt(1.212081)),
        ("batch", "elu", math.sqrt(1.079013)),
        ("batch", "tanh", math.sqrt(1.177807)),
        ("layer", "relu", 1.0),
        ("layer", "tanh", 1.0853),
    ],
)
def test_normalised_layers(kind: str, name: str, norm_a_layer: float) -> None:
    entry = averages(name)
    made = Made(ops=(linear("blocks.0.weight", 0.37), norm(kind), act(name)))
    around = Around(second=entry.second, common=entry.mean**2 / entry.second, mean=entry.mean, stem=RELU)
    found, _ = of(made, around)
    assert found is not None
    assert found.value == pytest.approx(norm_a_layer, abs=5e-5 if kind == "layer" else 1e-6)


def test_batch_norm_needs_what_examples_share_and_train_mode() -> None:
    made = Made(ops=(linear("blocks.0.weight"), norm("batch"), act()))
    assert of(made, Around(common=None, stem=RELU))[0] is None
    evaluated = Made(ops=(linear("blocks.0.weight"), norm("batch", training=0.0), act()))
    assert of(evaluated, Around(stem=RELU))[0] is None


UNIT = (linear("a", 1.0), act(), linear("b", 2.0))


# Residual: squares add.
@pytest.mark.parametrize(
    ("branch", "chi", "ratio"),
    [
        (UNIT, 2.0, 1.0),
        ((act(), linear("b", 1.0)), 1.5, 0.7071),
        ((*UNIT, scale(0.5)), 1.25, 0.5),
        ((*UNIT, scale(0.1)), 1.01, 0.1),
        ((*UNIT, scale(0.0)), 1.0, 0.0),
        ((linear("a"), act(), linear("b", 0.0)), 1.0, 0.0),
        ((linear("a"), norm("batch"), act(), linear("b"), norm("batch", value=0.0)), 1.0, 0.0),
    ],
)
def test_residual_blocks(branch: tuple[Op, ...], chi: float, ratio: float) -> None:
    multiplier, found = of(Made(branch=branch))
    assert multiplier is not None
    assert found is not None
    assert multiplier.value == pytest.approx(math.sqrt(chi), rel=1e-6)
    assert found.value == pytest.approx(ratio, abs=2e-5)
    if not ratio:
        assert (multiplier.low, multiplier.high, found.low, found.high) == (1.0, 1.0, 0.0, 0.0)


@pytest.mark.parametrize("at", [0, 1, 7, 31])
def test_residual_blocks_behind_a_norm(at: int) -> None:
    """Batch norm first: |x|^2 is l + 1, of which l/pi is common; layer norm first: l + 1."""
    batch = Made(branch=(norm("batch"), act(), linear("b")))
    multiplier, ratio = of(batch, Around(second=at + 1, common=at / math.pi / (at + 1)))
    assert multiplier is not None
    assert ratio is not None
    assert multiplier.value**2 == pytest.approx(1 + 1 / (1 + (1 - 1 / math.pi) * at), rel=1e-9)
    assert ratio.value == pytest.approx((at + 1) ** -0.5)
    multiplier, ratio = of(Made(branch=(norm("layer"), *UNIT)), Around(second=at + 1))
    assert multiplier is not None
    assert ratio is not None
    assert multiplier.value**2 == pytest.approx((at + 2) / (at + 1))
    assert ratio.value == pytest.approx((at + 1) ** -0.5)
    after = of(Made(branch=UNIT, after=(norm("layer"),)))[0]
    assert after is not None
    assert after.value == pytest.approx(1.0)


def test_a_relu_after_the_addition() -> None:
    """He 2015: a ratio and no multiplier; gamma 0: the identity, but for the last block, whose gradient has no mask."""
    branch = (linear("a"), norm("batch"), act(), linear("b"), norm("batch"))
    around = Around(second=0.5, mean=0.4, stem=RELU)
    multiplier, ratio = of(Made(branch=branch, after=(act(),)), around, follow=True)
    assert multiplier is None
    assert ratio is not None
    assert ratio.value == pytest.approx(math.sqrt(2.0))
    zero = Made(branch=(*branch[:-1], norm("batch", value=0.0)), after=(act(),))
    multiplier, _ = of(zero, around, follow=True)
    assert multiplier is not None
    assert multiplier.value == multiplier.low == multiplier.high == 1.0
    assert of(zero, around)[0] is None


@pytest.mark.parametrize(
    "ops",
    [
        (linear("a"), act("swish2")),
        (Op(kind="attention", name="sdpa"),),
        (Op(kind="linear", name="addmm", weights=("a",)),),
        (act(), act()),
        (Op(kind="scale", name="mul"),),
        (linear("a"), norm("instance")),
        (linear("a"), act("leaky_relu")),
    ],
)
def test_what_is_not_recognised_gives_nothing(ops: tuple[Op, ...]) -> None:
    assert of(Made(ops=ops)) == (None, None)
    assert of(Made(branch=ops)) == (None, None)


def test_leaky_relu_at_its_own_slope() -> None:
    found, _ = of(Made(ops=(linear("a", 2.0), act("leaky_relu", slope=0.2))))
    assert found is not None
    assert found.value**2 == pytest.approx(1.04)


def test_the_band_is_that_of_finite_width() -> None:
    """At n = 500: ln chi = -2.5/n +- 3 sqrt(5/n) = -.005 +- .3; orthogonal: 3/n of it for ReLU, else the least band."""
    made = Made(ops=(linear("a", 2.0, fan_in=500.0, fan_out=500.0), act()))
    found, _ = of(made)
    assert found is not None
    assert math.log(found.low) == pytest.approx((-0.005 - 0.3) / 2)
    assert math.log(found.high) == pytest.approx((-0.005 + 0.3) / 2)
    orthogonal = linear("a", 2.0, fan_in=500.0, fan_out=500.0, orthogonality=0.0)
    found, _ = of(Made(ops=(orthogonal, act())))
    assert found is not None
    assert math.log(found.low) == pytest.approx((-0.003 - 3 * math.sqrt(3 / 500)) / 2)
    found, _ = of(Made(ops=(orthogonal,)))
    assert found is not None
    assert (found.low / found.value, found.high / found.value) == pytest.approx((1 / 1.05, 1.05))


def test_what_examples_share() -> None:
    """Quadrature against the arc-cosine kernel; a leaky ReLU of slope 1 is linear."""
    relu = act("relu")
    for c in (0.0, 0.3, 1.0, 2.0):
        assert common(relu, 2.0, c) == pytest.approx(shared_second("relu", 2.0, c), abs=1e-4)
        assert common(act("leaky_relu", slope=1.0), 2.0, c) == pytest.approx(c)
    assert common(relu, 2.0, 0.0) == pytest.approx(averages("relu", 2.0).mean ** 2)
    assert common(relu, 2.0, 2.0) == pytest.approx(averages("relu", 2.0).second)


@pytest.mark.parametrize(("kind", "variance"), [("layer", 0.5 - 0.5 / math.pi), ("rms", 0.5)])
def test_a_norm_after_the_activation(kind: str, variance: float) -> None:
    """Layer norm subtracts the mean over units, E relu = 1/sqrt(2 pi) at q = 1; RMS norm does not."""
    found, _ = of(Made(ops=(linear("a", 1.0), act(), norm(kind))))
    assert found is not None
    assert found.value**2 == pytest.approx(0.5 / variance)
