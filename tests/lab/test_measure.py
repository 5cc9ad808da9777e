"""Profiles: each quantity by its definition, and gradient flow against theory (ORACLES, sections 4 and 11)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from depthscope.core.profile import QUANTITIES
from depthscope.core.streams import stream
from depthscope.lab import Stack, evaluate, flow_factor, gradients, init_params, layer_table, profile


def spread(seeds: int, examples: int, inputs: int, classes: int) -> tuple[Any, Any]:
    rng = stream(0, "probe", "spread")
    return rng.normal(size=(seeds, examples, inputs)), rng.integers(0, classes, size=(seeds, examples))


def digamma(n: int) -> float:
    """psi(n) of a positive integer: -gamma + 1 + 1/2 + ... + 1/(n-1)."""
    return float(-np.euler_gamma + sum(1 / k for k in range(1, n)))


def test_quantities_by_definition(spiral: Any) -> None:
    stack = Stack(depth=1, width=5, num_inputs=2, num_classes=3, shortcut="identity")
    x, y = spiral([0, 1], 6)
    p = init_params(stack, [0, 1])
    for seed, found in enumerate(profile(stack, p, x, y, 7)):
        own = {name: value[seed] for name, value in p.items()}
        x0 = np.tanh(x[seed] @ own["stem.weight"].T)
        f = np.tanh(x0 @ own["layers.0.weight"].T)
        logits = (x0 + f) @ own["head.weight"].T
        probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        g2 = (probs - np.eye(3)[y[seed]]) / len(x[seed])
        g1 = g2 @ own["head.weight"]
        dw = (g1 * (1 - f**2)).T @ x0
        assert found.steps() == (7,)
        assert [layer.name for layer in found.layers] == ["stem", "layers.0", "head"]
        expected = {
            "h_norm": np.linalg.norm(x0 + f),
            "h_mean_abs": np.abs(x0 + f).mean(),
            "dh_norm": np.linalg.norm(g1),
            "dh_mean_abs": np.abs(g1).mean(),
            "w_norm": np.linalg.norm(own["layers.0.weight"]),
            "dw_norm": np.linalg.norm(dw),
            "dw_ratio": np.linalg.norm(dw) / np.linalg.norm(own["layers.0.weight"]),
            "f_over_x": (np.linalg.norm(f, axis=1) / np.linalg.norm(x0, axis=1)).mean(),
        }
        assert set(expected) == {each for each in QUANTITIES if "lesion" not in each}
        for quantity, value in expected.items():
            assert found.values(quantity, 7)[1] == pytest.approx(value, rel=1e-12), quantity
        assert set(found.values("f_over_x", 7)) == {1}
        assert found.values("h_norm", 7)[2] == pytest.approx(np.linalg.norm(logits), rel=1e-12)
        assert found.values("dh_norm", 7)[2] == pytest.approx(np.linalg.norm(g2), rel=1e-12)


def test_the_inner_layer_of_a_two_layer_block(spiral: Any) -> None:
    stack = Stack(depth=2, width=5, num_inputs=2, num_classes=3, shortcut="identity_2")
    x, y = spiral([3], 6)
    p = init_params(stack, [3])
    (found,) = profile(stack, p, x, y, 0)
    x0 = np.tanh(x[0] @ p["stem.weight"][0].T)
    inner = np.tanh(x0 @ p["blocks.0.linear1.weight"][0].T)
    assert found.values("h_norm", 0)[1] == pytest.approx(np.linalg.norm(inner), rel=1e-12)
    # dL/d(inner) = W2^T dL/d(block's output).
    net, _ = gradients(stack, p, x, y)
    expected = np.linalg.norm(p["blocks.0.linear2.weight"][0].T @ net.grads_out[1][0])
    assert found.values("dh_norm", 0)[1] == pytest.approx(float(expected), rel=1e-12)
    assert [layer.kind for layer in found.layers] == ["linear", "linear", "block", "linear"]
    assert set(found.values("f_over_x", 0)) == {2}


def test_dh_is_the_derivative_of_the_loss(spiral: Any) -> None:
    # The bias of a linear layer shifts h, so dL/db of the head and of a block's last layer sum dL/dh.
    stack = Stack(depth=4, width=5, num_inputs=2, num_classes=3, shortcut="identity_2")
    x, y = spiral([0], 6)
    p = init_params(stack, [0])
    net, _ = gradients(stack, p, x, y)
    for unit, name in ((1, "blocks.0.linear2.bias"), (2, "blocks.1.linear2.bias"), (3, "head.bias")):
        for at in range(p[name].shape[1]):
            up, down = ({**p, name: p[name].copy()} for _ in range(2))
            up[name][0, at] += 1e-5
            down[name][0, at] -= 1e-5
            slope = (evaluate(stack, up, x, y)[0][0] - evaluate(stack, down, x, y)[0][0]) / 2e-5
            assert net.grads_out[unit][0, at].sum() == pytest.approx(slope, rel=1e-5, abs=1e-10)


def test_a_ratio_without_a_denominator_gives_no_row() -> None:
    stack = Stack(depth=1, width=3, num_inputs=2, num_classes=2, shortcut="identity", activation="relu")
    p = init_params(stack, [0, 1])
    p["stem.weight"][0] = 0.0
    x, y = spread(2, 8, 2, 2)
    dead, alive = profile(stack, p, x, y, 0)
    assert dead.values("f_over_x", 0) == {}
    assert set(dead.values("dw_ratio", 0)) == {1, 2}
    assert set(alive.values("f_over_x", 0)) == {1}


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_flow_of_the_plain_net_against_theory(width: int, spiral: Any) -> None:
    """Factor a layer = g exp(.5 (psi(w/2) + ln(2/w))) with q near 0, so sqrt(chi) = g; 30 seeds, within 3%."""
    stack = Stack(depth=40, width=width, num_inputs=2, num_classes=3)
    seeds = range(30)
    x, y = spiral(seeds, 25)
    profiles = profile(stack, init_params(stack, seeds, gain=0.72, stem_gain=0.1), x, y, 0)
    theory = 0.72 * np.exp(0.5 * (digamma(width // 2) + np.log(2 / width)))
    assert np.median([flow_factor(one, 0) for one in profiles]) == pytest.approx(theory, rel=0.03)
    # Forward and backward shrinkage cancel in |dW|: within a seed it is flat while |dL/dh| falls 1e5-fold.
    for one in profiles:
        dw = [value for layer, value in one.values("dw_norm", 0).items() if 0 < layer <= 40]
        dh = list(one.values("dh_norm", 0).values())[:-1]
        assert max(dw) / min(dw) < 100
        assert dh[-1] / dh[0] > 1e4


def test_published_flow_figures(spiral: Any) -> None:
    """Mean |dL/dh| at width 48, 699 points, untrained, depth 40: order of magnitude (ORACLES, section 11)."""
    seeds = range(8)
    x, y = spiral(seeds, 233)

    def ends(shortcut: str) -> tuple[float, float]:
        stack = Stack(depth=40, width=48, num_inputs=2, num_classes=3, shortcut=shortcut)  # type: ignore[arg-type]
        found = [
            one.values("dh_mean_abs", 0)
            for one in profile(stack, init_params(stack, seeds, gain=0.72, stem_gain=0.1), x, y, 0)
        ]
        return float(np.median([one[40] for one in found])), float(np.median([one[0] for one in found]))

    output_end, input_end = ends("none")
    assert output_end == pytest.approx(9.0e-5, rel=0.1)
    assert 7e-11 < input_end < 4e-10
    assert ends("identity_2")[1] == pytest.approx(8.0e-4, rel=0.15)


def test_batch_norm_with_relu_explodes_at_step_0() -> None:
    """A factor of sqrt(pi/(pi-1)) = 1.211 a layer toward the input, whatever the gain (Yang et al. 2019)."""
    stack = Stack(depth=12, width=256, num_inputs=256, num_classes=256, activation="relu", norm="batch")
    x, y = spread(1, 768, 256, 256)
    for gain in (0.3, 2.0):
        (found,) = profile(stack, init_params(stack, [0], gain=gain), x, y, 0)
        assert flow_factor(found, 0) == pytest.approx(np.sqrt(np.pi / (np.pi - 1)), rel=0.02)


def test_he_relu_keeps_the_gradient_and_torch_s_default_does_not() -> None:
    x, y = spread(4, 64, 100, 10)
    stack = Stack(depth=10, width=200, num_inputs=100, num_classes=10, activation="relu")
    for gain, theory in ((np.sqrt(2), 1.0), (1.0, 0.7071), (np.sqrt(1 / 3), 0.4082)):
        profiles = profile(stack, init_params(stack, range(4), gain=gain), x, y, 0)
        assert np.median([flow_factor(one, 0) for one in profiles]) == pytest.approx(theory, rel=0.06)


def test_layer_table_matches_the_parameters() -> None:
    stack = Stack(depth=4, width=5, num_inputs=2, num_classes=3, shortcut="identity_2", norm="batch")
    params = init_params(stack, [0])
    table = layer_table(stack)
    assert [layer.index for layer in table] == list(range(6))
    for layer in table:
        assert layer.weight in params
        assert params[layer.weight].shape[1:2] == layer.shape
