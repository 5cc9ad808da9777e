"""The MLP: it is the laboratory's network, and a dense layer sees all that came before it."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from tests.conformance.case import Case
from torch import Tensor

from depthscope.lab import Stack, gradients, init_params
from depthscope.models import mlp as module
from depthscope.models.mlp import mlp


def _is_the_laboratory_s(shortcut: str) -> None:
    """Logits and gradients of a network with a normaliser, an activation and additions are those derived by hand."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(1, 20, 3)), rng.integers(0, 4, size=(1, 20))
    shape: dict[str, Any] = {"depth": 4, "shortcut": shortcut, "norm": "batch", "activation": "tanh"}
    stack = Stack(width=7, num_inputs=3, num_classes=4, **shape)
    params = init_params(stack, [0])
    net, grads = gradients(stack, params, x, y)
    model = mlp(width=7, num_inputs=3, num_classes=4, **shape).double()
    model.load_state_dict({name: torch.tensor(value[0]) for name, value in params.items()})
    logits = model(torch.tensor(x[0]))
    assert np.allclose(logits.detach().numpy(), net.inputs[-1][0].T, rtol=0, atol=1e-12)
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(y[0]))
    for parameter, found in zip(params, torch.autograd.grad(loss, list(model.parameters())), strict=True):
        assert np.allclose(found.numpy(), grads[parameter][0], rtol=0, atol=1e-12), parameter


def _normalises_after_the_activation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "_activated", lambda layer, h: layer.norm(layer.act(layer(h))))


def _sees_all_that_came_before() -> None:
    """The input of layer l is the stem's output and those of layers 0 to l-1, side by side, and the head's is all."""
    depth, width, growth = 5, 7, 3
    model = mlp(depth=depth, width=width, shortcut="dense", shortcut_options={"growth": growth}, num_inputs=2)
    made: list[Tensor] = []
    fed: list[Tensor] = []
    for layer in (model.stem, *model.layers):
        layer.get_submodule("act").register_forward_hook(lambda _m, _i, out: made.append(out))
    for layer in (*model.layers, model.head):
        layer.register_forward_pre_hook(lambda _m, given: fed.append(given[0]))
    model(torch.randn(4, 2, generator=torch.Generator().manual_seed(0)))
    assert [tensor.shape[1] for tensor in fed] == [width + growth * at for at in range(depth + 1)]
    for at, tensor in enumerate(fed):
        assert torch.equal(tensor, torch.cat(made[: at + 1], dim=1))


def _forgets_the_newest(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "_beside", lambda h, f: torch.cat((h, torch.zeros_like(f)), dim=1))


def _adds_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(module, "_joined", lambda holder, h, f: f)


CASES = [
    Case(
        kind="family",
        name="mlp",
        check=partial(_is_the_laboratory_s, "identity"),
        alter=_normalises_after_the_activation,
    ),
    Case(kind="shortcut", name="identity", check=partial(_is_the_laboratory_s, "identity"), alter=_adds_nothing),
    Case(kind="shortcut", name="identity_2", check=partial(_is_the_laboratory_s, "identity_2"), alter=_adds_nothing),
    Case(kind="shortcut", name="dense", check=_sees_all_that_came_before, alter=_forgets_the_newest),
]
