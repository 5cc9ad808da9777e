"""The normaliser-free family: the untrained network, what it names, and its forward pass against a naive NumPy twin.

That its variances are what it predicts is a conformance case.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tests.models.naive import Array, conv_naive
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.models.hints import hints_of
from depthscope.models.init import build
from depthscope.models.nfnet import cifar_nfnet

RELU = 1.7139588594


def test_an_untrained_block_is_its_skip() -> None:
    model, _ = build(lambda: cifar_nfnet(depth=14, width=4), seed=0)
    seen: dict[str, tuple[Tensor, Tensor]] = {}
    for name, module in model.named_modules():
        module.register_forward_hook(lambda _m, args, out, name=name: seen.update({name: (args[0], out)}))
    model(torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
    for index, addition in enumerate(model.additions()):
        before, after = seen[addition.block]
        assert not seen[addition.branch][1].any()
        assert torch.equal(after, seen[addition.skip][1])
        assert torch.equal(after, before) == (index not in (2, 4))


def test_additions_points_and_branches_name_what_is_there() -> None:
    model = cifar_nfnet(depth=14, width=4)
    for block in model.blocks:
        nn.init.ones_(block.get_parameter("join.gain"))
    called: list[str] = []
    seen: dict[str, Tensor] = {}
    for point in model.points():
        model.get_submodule(point.output).register_forward_hook(lambda *_, name=point.output: called.append(name))
    for name, module in model.named_modules():
        module.register_forward_hook(lambda _m, _i, out, name=name: seen.update({name: out}))
    model(torch.randn(2, 3, 8, 8))
    assert called == [point.output for point in model.points()]
    assert len(called) == 14
    assert model.branches() == tuple((f"blocks.{at}.conv1", f"blocks.{at}.conv2") for at in range(6))
    for each in model.additions():
        assert torch.equal(seen[each.branch] + seen[each.skip], seen[each.block])
    assert {name.rsplit(".", 1)[1] for name in hints_of(model)} == {"gain", "bias"}
    assert model.derived() == {"expected_variance": pytest.approx(1.08)}


def test_forward_equals_the_naive_twin() -> None:
    rng = np.random.default_rng(0)
    model = cifar_nfnet(depth=14, width=3, num_inputs=2, num_classes=4, shortcut_options={"alpha": 0.5}).double()
    state = {name: rng.standard_normal(tensor.shape) for name, tensor in model.state_dict().items()}
    model.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})

    def conv(h: Array, name: str, scale: float = RELU, stride: int = 1) -> Array:
        weight = state[f"{name}.weight"]
        rows = weight.reshape(len(weight), -1)
        rows = (rows - rows.mean(axis=1, keepdims=True)) / np.sqrt(rows.shape[1] * rows.var(axis=1, keepdims=True))
        rows *= scale * state[f"{name}.gain"][:, None]
        out: Array = conv_naive(h, rows.reshape(weight.shape), stride) + state[f"{name}.bias"][None, :, None, None]
        return out

    x = rng.standard_normal((3, 2, 8, 8))
    h = conv(x, "stem.conv", 1.0)
    for index, variance in enumerate((1, 1.25, 1.5, 1.25, 1.5, 1.25)):
        name, stride = f"blocks.{index}", 2 if index in (2, 4) else 1
        scaled = np.maximum(h, 0) / np.sqrt(variance)
        skip = conv(scaled, f"{name}.shortcut", stride=2) if stride == 2 else h
        branch = conv(np.maximum(conv(scaled, f"{name}.conv1", stride=stride), 0), f"{name}.conv2")
        h = skip + 0.5 * state[f"{name}.join.gain"] * branch
    wanted = np.maximum(h, 0).mean(axis=(2, 3)) @ state["head.weight"].T + state["head.bias"]
    np.testing.assert_allclose(model(torch.from_numpy(x)).detach().numpy(), wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"depth": 21}, "depth 21 is not 6n.2"),
        ({"depth": 20, "shortcut": "A"}, "unknown shortcut of nfnet 'A'. Known: nfnet"),
        ({"depth": 20, "norm": "batch"}, "unknown norm of nfnet 'batch'. Known: scaled_ws"),
        ({"depth": 20, "activation": "tat"}, "no scale for activation 'tat'"),
        ({"depth": 20, "shortcut_options": {"alpha": 0.0}}, "alpha: wanted a number above 0"),
        ({"depth": 20, "num_classes": 0}, "num_classes: wanted 1 or more"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message), torch.device("meta"):
        cifar_nfnet(**arguments)
