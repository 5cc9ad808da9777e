"""The slow twin: one seed, one example-major layer at a time, textbook formulas, nothing shared or reused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from depthscope.lab import Adam, Momentum, Optimizer, Stack, evaluate, fit, gradients, init_params

Array = NDArray[Any]

STACKS = {
    "plain": Stack(depth=4, width=6, num_inputs=2, num_classes=3),
    "identity": Stack(depth=3, width=6, num_inputs=2, num_classes=3, shortcut="identity"),
    "identity_2": Stack(depth=4, width=5, num_inputs=2, num_classes=3, shortcut="identity_2"),
    "plain_bn": Stack(depth=3, width=6, num_inputs=2, num_classes=3, activation="relu", norm="batch"),
    "identity_bn": Stack(
        depth=3, width=6, num_inputs=2, num_classes=3, activation="relu", norm="batch", shortcut="identity"
    ),
    "two_bn": Stack(
        depth=4, width=6, num_inputs=2, num_classes=3, activation="relu", norm="batch", shortcut="identity_2"
    ),
    "linear": Stack(depth=2, width=6, num_inputs=2, num_classes=3, activation="linear", shortcut="identity_2"),
}


class Naive:
    """Loss, scores and gradients of one seed; parameters are `{name: array}` without a seed axis."""

    def __init__(self, stack: Stack, p: dict[str, Array]) -> None:
        self.stack, self.p = stack, p
        self.g: dict[str, Array] = {}

    def layer(self, name: str, h: Array, act: str, norm: bool) -> tuple[Array, Callable[[Array], Array]]:
        p, w = self.p, self.p[f"{name}.weight"]
        if norm:
            z = h @ w.T
            mean, var = z.mean(axis=0), z.var(axis=0)
            zhat = (z - mean) / np.sqrt(var + 1e-5)
            a = p[f"{name}.norm.weight"] * zhat + p[f"{name}.norm.bias"]
        else:
            a = h @ w.T + p[f"{name}.bias"]
        out = {"tanh": np.tanh(a), "relu": a * (a > 0), "linear": a}[act]

        def back(dout: Array) -> Array:
            da = dout * {"tanh": 1 - np.tanh(a) ** 2, "relu": a > 0, "linear": np.ones_like(a)}[act]
            if norm:
                self.g[f"{name}.norm.weight"] = (da * zhat).sum(axis=0)
                self.g[f"{name}.norm.bias"] = da.sum(axis=0)
                dzhat = da * p[f"{name}.norm.weight"]
                # The whole Jacobian of the normalisation of each unit, as a matrix over the examples.
                n = len(h)
                dz = np.empty_like(da)
                for unit in range(da.shape[1]):
                    v = zhat[:, unit]
                    jacobian = (np.eye(n) - 1 / n - np.outer(v, v) / n) / np.sqrt(var[unit] + 1e-5)
                    dz[:, unit] = jacobian.T @ dzhat[:, unit]
            else:
                dz = da
                self.g[f"{name}.bias"] = dz.sum(axis=0)
            self.g[f"{name}.weight"] = dz.T @ h
            dh: Array = dz @ w
            return dh

        return out, back

    def run(self, x: Array, y: Array) -> tuple[float, Array]:
        stack, norm, act = self.stack, self.stack.norm == "batch", self.stack.activation
        h, back = self.layer("stem", x, act, norm)
        backs = [back]
        if stack.shortcut == "identity_2":
            for at in range(stack.depth // 2):
                inner, back1 = self.layer(f"blocks.{at}.linear1", h, act, norm)
                branch, back2 = self.layer(f"blocks.{at}.linear2", inner, "linear", False)
                backs.append(around(lambda d, one=back1, two=back2: one(two(d))))  # type: ignore[misc]
                h = h + branch
        else:
            for at in range(stack.depth):
                branch, back = self.layer(f"layers.{at}", h, act, norm)
                if stack.shortcut == "identity":
                    backs.append(around(back))
                    h = h + branch
                else:
                    backs.append(back)
                    h = branch
        logits, back = self.layer("head", h, "linear", False)
        backs.append(back)
        p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        d = (p - np.eye(stack.num_classes)[y]) / len(y)
        for back in reversed(backs):
            d = back(d)
        return float(-np.log(p[np.arange(len(y)), y]).mean()), logits


def around(back: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """The backward pass of x + F(x), from that of F."""
    return lambda d: d + back(d)


def one_seed(arrays: dict[str, Array], at: int) -> dict[str, Array]:
    return {name: value[at].copy() for name, value in arrays.items()}


@pytest.mark.parametrize("name", STACKS)
def test_loss_and_gradients(name: str, spiral: Any) -> None:
    stack, seeds = STACKS[name], [0, 4, 2]
    x, y = spiral(seeds, 7)
    params = init_params(stack, seeds, gain=1.2)
    _, grads = gradients(stack, params, x, y)
    loss, hits = evaluate(stack, params, x, y)
    for at in range(len(seeds)):
        twin = Naive(stack, one_seed(params, at))
        twin_loss, logits = twin.run(x[at], y[at])
        assert loss[at] == pytest.approx(twin_loss, rel=1e-12)
        assert hits[at] == (logits.argmax(axis=1) == y[at]).mean()
        assert set(twin.g) == set(params)
        for tensor, grad in twin.g.items():
            np.testing.assert_allclose(grads[tensor][at], grad, rtol=1e-12, atol=1e-15)


def adam_twin(p: Array, g: Array, memory: dict[str, Any], lr: float) -> Array:
    t = memory["t"] = memory.get("t", 0) + 1
    m = memory["m"] = 0.9 * memory.get("m", 0.0) + 0.1 * g
    v = memory["v"] = 0.99 * memory.get("v", 0.0) + 0.01 * g**2
    step: Array = lr * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.99**t)) + 1e-6)
    return p - step


def momentum_twin(p: Array, g: Array, memory: dict[str, Any], lr: float) -> Array:
    velocity = memory["v"] = 0.8 * memory.get("v", 0.0) + g
    step: Array = lr * velocity
    return p - step


@pytest.mark.parametrize(
    ("optimizer", "twin_step"),
    [(Adam(beta2=0.99, eps=1e-6), adam_twin), (Momentum(momentum=0.8), momentum_twin)],
    ids=["adam", "momentum"],
)
@pytest.mark.parametrize("name", ["plain", "identity", "two_bn"])
def test_training(name: str, optimizer: Optimizer, twin_step: Callable[..., Array], spiral: Any) -> None:
    stack, seeds, num_steps = STACKS[name], [1, 6], 25
    x, y = spiral(seeds, 6)
    start = init_params(stack, seeds)
    rates = np.linspace(0.02, 0.01, num_steps)
    reports = [
        (report.step, report.lr, report.loss, {tensor: value.copy() for tensor, value in report.params.items()})
        for report in fit(stack, start, x, y, optimizer=optimizer, lr=rates, num_steps=num_steps, every=5)
    ]
    assert [step for step, *_ in reports] == [0, 5, 10, 15, 20, 25]
    assert [lr for _, lr, *_ in reports] == [None, *rates[4::5]]
    for at in range(len(seeds)):
        p = one_seed(start, at)
        memory: dict[str, dict[str, Any]] = {tensor: {} for tensor in p}
        losses = []
        for step in range(num_steps + 1):
            twin = Naive(stack, p)
            losses.append(twin.run(x[at], y[at])[0])
            if step < num_steps:
                p = {tensor: twin_step(p[tensor], twin.g[tensor], memory[tensor], rates[step]) for tensor in p}
        # From roundoff, grown through 25 updates.
        np.testing.assert_allclose([loss[at] for *_, loss, _ in reports], losses[::5], rtol=1e-9)
        for tensor, value in reports[-1][-1].items():
            np.testing.assert_allclose(value[at], p[tensor], rtol=1e-8, atol=1e-10)
