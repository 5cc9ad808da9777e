"""The second engine: torch's autograd on the same weights, in `nn.Linear`'s own layout, float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from depthscope.lab import Stack, evaluate, gradients, init_params, units

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("norm", ["none", "batch"])
@pytest.mark.parametrize("shortcut", ["none", "identity", "identity_2"])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_loss_and_gradients(shortcut: str, activation: str, norm: str, spiral: Any) -> None:
    stack = Stack(
        depth=6,
        width=11,
        num_inputs=2,
        num_classes=3,
        shortcut=shortcut,  # type: ignore[arg-type]
        activation=activation,  # type: ignore[arg-type]
        norm=norm,  # type: ignore[arg-type]
    )
    x, y = spiral([5], 20)
    params = init_params(stack, [5], gain=1.2)
    own = {name: torch.tensor(value[0], requires_grad=True) for name, value in params.items()}
    h = torch.tensor(x[0])
    for unit in units(stack):
        f = h
        for step in unit.steps:
            f = torch.nn.functional.linear(f, own[step.weight], own.get(step.bias))
            if step.norm:
                f = torch.nn.functional.batch_norm(
                    f, None, None, own[step.norm_weight], own[step.norm_bias], training=True, eps=1e-5
                )
            if step.activation != "linear":
                f = getattr(torch, step.activation)(f)
        h = h + f if unit.skip else f
    loss = torch.nn.functional.cross_entropy(h, torch.tensor(y[0]))
    loss.backward()
    assert evaluate(stack, params, x, y)[0][0] == pytest.approx(loss.item(), rel=1e-13)
    _, grads = gradients(stack, params, x, y)
    for name, tensor in own.items():
        np.testing.assert_allclose(grads[name][0], tensor.grad.numpy(), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("which", ["adam", "momentum"])
def test_optimisers(which: str) -> None:
    from depthscope.lab import Adam, Momentum

    rng = np.random.default_rng(0)
    w = rng.normal(size=(1, 20))
    leaf = torch.tensor(w[0].copy(), requires_grad=True)
    if which == "adam":
        state, twin = Adam(beta2=0.99).start(w), torch.optim.Adam([leaf], lr=0.03, betas=(0.9, 0.99))
    else:
        state, twin = Momentum(momentum=0.8).start(w), torch.optim.SGD([leaf], lr=0.03, momentum=0.8)
    for _ in range(50):
        g = rng.normal(size=(1, 20)) * np.logspace(-6, 3, 20)
        leaf.grad = torch.tensor(g[0].copy())
        twin.step()
        state.update(w, g, 0.03)
    np.testing.assert_allclose(w[0], leaf.detach().numpy(), rtol=1e-12)
