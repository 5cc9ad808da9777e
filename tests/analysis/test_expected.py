"""What theory expects of a run, against calibrated values and a simulation written apart from the laboratory."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import digamma

from depthscope.analysis.averages import averages
from depthscope.analysis.theory import expected, gradient_profile
from depthscope.study.run import RunSpec

Array = NDArray[np.float64]


def spec_of(**changes: Any) -> RunSpec:
    fields: dict[str, Any] = {
        "backend": "numpy",
        "family": "mlp",
        "depth": 40,
        "width": 16,
        "activation": "tanh",
        "init": "gaussian",
        "gain": 0.72,
        "data": "spiral",
        "steps": 0,
    }
    return RunSpec.model_validate({**fields, **changes})


def factor(spec: RunSpec) -> float:
    found = expected(spec, "dh_factor_first")
    assert found is not None
    return found


@pytest.mark.parametrize(("width", "predicted"), [(8, 0.674), (16, 0.697), (32, 0.708), (64, 0.714)])
def test_the_calibrated_recipe(width: int, predicted: float) -> None:
    """With a small stem the tanh is linear, and the factor is gain x exp(.5 (psi(w/2) + ln(2/w)))."""
    small_stem = factor(spec_of(width=width, stem_gain=0.1))
    exact = 0.72 * math.exp(0.5 * (float(digamma(width / 2)) + math.log(2 / width)))
    assert small_stem == pytest.approx(exact, rel=2e-4)
    # The oracle prints .708 for width 32, where its own formula gives .70872.
    assert small_stem == pytest.approx(predicted, abs=8e-4)
    # The stem's own signal bends the tanh a little: at gain .72 the factor is under that, by 0.2%.
    assert exact * 0.997 < factor(spec_of(width=width)) < exact


def test_the_orthogonal_stem_spreads_its_input_over_the_width() -> None:
    """One layer by hand: q_0 = r^2 / w at the stem, then q_1 = E tanh^2, chi = E tanh'^2, averaged over the radii."""
    spec = spec_of(init="orthogonal", gain=1.0, depth=1, width=4, data_options={"points_per_arm": 2})
    chis = [averages("tanh", averages("tanh", r**2 / 4).second).slope for r in (0.1, 1.0)]
    assert factor(spec) == pytest.approx(math.sqrt(sum(chis) / 2), rel=1e-12)


def test_the_typical_signal_shrinks_with_the_width() -> None:
    """Two Gaussian layers by hand: f = exp(psi(w/2) + ln(2/w)) on the way forward as on the way back."""
    f = math.exp(float(digamma(2.0)) + math.log(0.5))
    spec = spec_of(gain=1.3, depth=2, width=4, data_options={"points_per_arm": 2})
    products = []
    for r in (0.1, 1.0):
        second, product = averages("tanh", 1.3**2 * r**2 / 2).second, 1.0
        for _ in range(2):
            q = 1.3**2 * second * f
            product *= 1.3**2 * averages("tanh", q).slope * f
            second = averages("tanh", q).second
        products.append(product)
    assert factor(spec) == pytest.approx((sum(products) / 2) ** 0.25, rel=1e-12)


def draw(rng: np.random.Generator, num_out: int, num_in: int, init: str) -> Array:
    if init == "gaussian":
        return rng.normal(size=(num_out, num_in)) / math.sqrt(num_in)
    q, r = np.linalg.qr(rng.normal(size=(max(num_out, num_in), min(num_out, num_in))))
    q = q * np.sign(np.diag(r))
    return q if num_out >= num_in else q.T


def simulated(spec: RunSpec, num_seeds: int = 12) -> float:
    """Median over seeds of (|dL/dx_0| / |dL/dx_D|)^(1/D), forward and backward written out once more."""
    found = []
    for seed in range(num_seeds):
        rng = np.random.default_rng(seed)
        r = np.linspace(0.1, 1.0, 50)
        theta = 2 * np.pi * (np.arange(3)[:, None] / 3 + 0.64 * (r - 0.1) / 0.9) + 0.1 * rng.normal(size=(3, 50))
        h = np.stack([r * np.cos(theta), r * np.sin(theta)], axis=-1).reshape(-1, 2)
        one_hot = np.repeat(np.eye(3), 50, axis=0)
        skip, linear, norm = spec.shortcut == "identity", spec.activation == "linear", spec.norm == "batch"
        stem = spec.gain if spec.stem_gain is None else spec.stem_gain
        fans = [(spec.width, 2, stem)] + [(spec.width, spec.width, spec.gain)] * spec.depth
        weights = [gain * draw(rng, out, fan_in, spec.init) for out, fan_in, gain in fans]
        slopes, spreads, normed = [], [], []
        for at, weight in enumerate(weights):
            z = h @ weight.T
            spreads.append(z.std(axis=0) if norm else np.ones(spec.width))
            z = (z - z.mean(axis=0)) / spreads[-1] if norm else z
            normed.append(z)
            if spec.activation == "relu":
                out, slope = np.maximum(z, 0), (z > 0).astype(float)
            else:
                out = z if linear else np.tanh(z)
                slope = np.ones_like(z) if linear else 1 - out**2
            slopes.append(slope)
            h = out + h if skip and at else out
        head = spec.gain * draw(rng, 3, spec.width, spec.init)
        logits = h @ head.T
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        last = g = (p / p.sum(axis=1, keepdims=True) - one_hot) / 150 @ head
        for at in range(spec.depth, 0, -1):
            d = g * slopes[at]
            if norm:
                d = (d - d.mean(axis=0) - normed[at] * (d * normed[at]).mean(axis=0)) / spreads[at]
            g = d @ weights[at] + (g if skip else 0)
        found.append((np.linalg.norm(g) / np.linalg.norm(last)) ** (1 / spec.depth))
    return float(np.median(found))


@pytest.mark.parametrize("width", [16, 48])
@pytest.mark.parametrize("depth", [8, 40])
@pytest.mark.parametrize("gain", [0.5, 0.72, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("init", ["gaussian", "orthogonal"])
def test_plain_tanh(init: str, gain: float, depth: int, width: int) -> None:
    spec = spec_of(init=init, gain=gain, depth=depth, width=width)
    # An orthogonal stack in its linear range has no scatter over seeds at all.
    tolerance = 1e-3 if init == "orthogonal" and gain <= 1 else 0.03
    assert simulated(spec) == pytest.approx(factor(spec), rel=tolerance)


@pytest.mark.parametrize("width", [16, 48])
@pytest.mark.parametrize("gain", [0.72, 1.5])
def test_identity_skips(gain: float, width: int) -> None:
    spec = spec_of(shortcut="identity", gain=gain, width=width)
    assert simulated(spec) == pytest.approx(factor(spec), rel=0.02)


def test_linear_stacks() -> None:
    assert factor(spec_of(activation="linear", init="orthogonal", gain=0.9)) == pytest.approx(0.9)
    gaussian = spec_of(activation="linear", gain=1.0)
    assert simulated(gaussian) == pytest.approx(factor(gaussian), rel=0.03)
    # Hundreds of factors multiply beyond what a float holds; the factor a layer does not.
    deep = factor(spec_of(activation="linear", depth=5_000))
    assert deep == pytest.approx(factor(spec_of(activation="linear")))


def test_relu_with_batch_norm_is_the_wide_limit() -> None:
    spec = spec_of(activation="relu", norm="batch", gain=2.0, depth=40, width=48)
    assert factor(spec) == pytest.approx(math.sqrt(math.pi / (math.pi - 1)))
    assert factor(spec) < simulated(spec, 3) < 1.06 * factor(spec)


def test_profile_ends_at_one_and_falls_by_the_factor() -> None:
    spec = spec_of(stem_gain=0.1, depth=12)
    profile = gradient_profile(spec)
    assert profile is not None
    assert len(profile) == 13
    assert profile[-1] == 1.0
    assert profile[0] == pytest.approx(factor(spec) ** 12)
    assert [a / b for a, b in itertools.pairwise(profile)] == pytest.approx([factor(spec)] * 12, rel=1e-3)


@pytest.mark.parametrize(
    "changes",
    [
        {"shortcut": "identity_2"},
        {"activation": "relu"},
        {"activation": "tanh", "norm": "batch"},
        {"activation": "relu", "norm": "batch", "shortcut": "identity"},
        {"backend": "torch", "norm": "layer"},
        {"backend": "torch", "norm": "mine:norm"},
        {"backend": "torch", "shortcut": "mine:shortcut"},
    ],
)
def test_no_closed_form_is_none(changes: dict[str, Any]) -> None:
    assert expected(spec_of(**changes), "dh_factor_first") is None
    assert gradient_profile(spec_of(**changes)) is None


def test_other_metrics_have_none() -> None:
    assert expected(spec_of(), "train_accuracy") is None
    assert expected(spec_of(), "dh_factor_last") is None


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({"activation": "linear", "init": "orthogonal"}, 1e6),
        ({"activation": "linear", "init": "orthogonal", "shortcut": "identity"}, math.sqrt(1 + 1e12)),
        ({"activation": "tanh"}, None),  # saturated
        ({"activation": "tanh", "shortcut": "identity"}, None),
    ],
)
def test_the_largest_gain_at_the_largest_size(changes: dict[str, Any], value: float | None) -> None:
    spec = spec_of(gain=1e6, width=65_536, depth=100_000, **changes)
    assert expected(spec, "dh_factor_first") == (None if value is None else pytest.approx(value, rel=1e-9))
    assert gradient_profile(spec) is None  # 1e6 to the power of 100 000


def test_the_smallest_gain_has_a_factor_and_no_profile() -> None:
    spec = spec_of(gain=1e-300, init="orthogonal")
    assert expected(spec, "dh_factor_first") == pytest.approx(1e-300, rel=1e-9)
    assert gradient_profile(spec) is None


def test_a_fixed_point_is_taken_to_the_end() -> None:
    """Beyond the layer where the signal settles each layer's factor is the same, at any depth."""
    near, far = (gradient_profile(spec_of(gain=1.5, init="orthogonal", depth=depth)) for depth in (300, 400))
    assert near is not None
    assert far is not None
    assert far[200:] == pytest.approx(near[100:], rel=1e-9)
    assert factor(spec_of(gain=1.5, depth=100_000)) == pytest.approx(factor(spec_of(gain=1.5, depth=50_000)), rel=1e-4)


def test_a_million_points_are_stood_for_by_fewer() -> None:
    many, few = (spec_of(data_options={"points_per_arm": num}) for num in (1_000_000, 1_000))
    assert factor(many) == factor(few)


@settings(max_examples=60)
@given(
    gain=st.floats(0, 1e6, exclude_min=True),
    stem_gain=st.none() | st.floats(0, 1e6, exclude_min=True),
    depth=st.integers(1, 60) | st.sampled_from([1_000, 3_000]),
    width=st.integers(1, 65_536),
    start=st.floats(0, 1, exclude_max=True),
    names=st.fixed_dictionaries(
        {
            "shortcut": st.sampled_from(["none", "identity"]),
            "norm": st.sampled_from(["none", "none", "batch"]),
            "activation": st.sampled_from(["tanh", "tanh", "linear", "relu"]),
            "init": st.sampled_from(["gaussian", "orthogonal"]),
        }
    ),
)
def test_no_valid_run_breaks_the_theory(
    gain: float, stem_gain: float | None, depth: int, width: int, start: float, names: dict[str, str]
) -> None:
    """Every value is finite, or there is none. Warnings are errors here."""
    options = {"start_radius": start, "points_per_arm": 5}
    spec = spec_of(gain=gain, stem_gain=stem_gain, depth=depth, width=width, data_options=options, **names)
    value, profile = expected(spec, "dh_factor_first"), gradient_profile(spec)
    assert value is None or math.isfinite(value)
    assert profile is None or (len(profile) == depth + 1 and all(math.isfinite(each) for each in profile))
