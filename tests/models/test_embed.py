"""A shallow network in a deep one: the same function, by layers that are identities."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.models.convnet import cifar_resnet
from depthscope.models.embed import embed
from depthscope.models.init import build
from depthscope.models.mlp import mlp
from depthscope.models.preact import preact_resnet

IMAGES = torch.randn(32, 3, 12, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
POINTS = torch.randn(60, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def trained(family: Any, x: Tensor, **shape: Any) -> Any:
    """A network whose weights, scales, shifts and running statistics have all moved."""
    model, _ = build(lambda: family(num_classes=3, **shape), seed=0, dtype=x.dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    y = torch.arange(len(x)) % 3
    for _ in range(4):
        optimizer.zero_grad()
        loss: Tensor = nn.functional.cross_entropy(model(x), y)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return model


def empty(family: Any, x: Tensor, **shape: Any) -> Any:
    """A network whose memory holds NaN, so that a tensor left out would show."""
    with torch.device("meta"):
        model = family(num_classes=3, **shape)
    model = model.to(x.dtype).to_empty(device="cpu")
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.detach().fill_(float("nan") if tensor.is_floating_point() else -7)
    return model


@pytest.mark.parametrize(
    ("family", "x", "shape"),
    [
        (cifar_resnet, IMAGES, {"width": 4, "norm": "batch"}),
        (cifar_resnet, IMAGES, {"width": 4, "norm": "none"}),
        (cifar_resnet, IMAGES, {"width": 4, "norm": "fixup"}),
        (mlp, POINTS, {"width": 8, "norm": "batch", "activation": "relu"}),
        (mlp, POINTS, {"width": 8, "norm": "none", "activation": "relu"}),
    ],
)
def test_the_deep_network_computes_what_the_shallow_one_does(family: Any, x: Tensor, shape: Any) -> None:
    shallow = trained(family, x, depth=14, **shape)
    before = copy.deepcopy(shallow.state_dict())
    deep = empty(family, x, depth=38, **shape)
    extra = embed(shallow, deep, x)
    assert len(extra) == 24
    for name, tensor in shallow.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    with torch.no_grad():
        for mode in (False, True):  # (in train mode running statistics move, which changes no output)
            given, mine = shallow.train(mode)(x), deep.train(mode)(x)
            assert float(given.std()) > 1e-3
            assert float((given - mine).abs().max()) <= 1e-12


def test_in_eval_mode_the_identities_hold_for_any_input() -> None:
    shallow = trained(cifar_resnet, IMAGES, depth=8, width=4)
    deep = empty(cifar_resnet, IMAGES, depth=26, width=4)
    embed(shallow, deep, IMAGES)
    other = 3 * torch.randn(5, 3, 16, 16, generator=torch.Generator().manual_seed(3), dtype=torch.float64) + 1
    with torch.no_grad():
        assert float((shallow.eval()(other) - deep.eval()(other)).abs().max()) <= 1e-12


def test_each_stage_begins_with_the_shallow_one_s_blocks() -> None:
    shallow = trained(cifar_resnet, IMAGES, depth=14, width=4)
    deep = empty(cifar_resnet, IMAGES, depth=26, width=4)
    extra = embed(shallow, deep, IMAGES)
    assert {name.rpartition(".")[0] for name in extra} == {f"blocks.{at}" for at in (2, 3, 6, 7, 10, 11)}
    for mine, given in ((0, 0), (1, 1), (4, 2), (5, 3), (8, 4), (9, 5)):
        for name, tensor in shallow.blocks[given].state_dict().items():
            assert torch.equal(tensor, deep.blocks[mine].state_dict()[name]), (mine, name)
    identity = deep.blocks[6]
    x = torch.rand(2, 8, 6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(identity.eval()(x), x, rtol=0, atol=1e-13)


def test_it_is_exact_to_single_precision_too() -> None:
    x = IMAGES.float()
    shallow = trained(cifar_resnet, x, depth=20, width=4)
    deep = empty(cifar_resnet, x, depth=56, width=4)
    embed(shallow, deep, x)
    with torch.no_grad():
        given, mine = shallow.eval()(x), deep.eval()(x)
    assert float((given - mine).abs().max()) <= 1e-5 * float(given.abs().max())


@pytest.mark.parametrize(
    ("shallow", "deep", "message"),
    [
        ((mlp, {"depth": 4}), (mlp, {"depth": 6}), r"off the shallow one's.* relu or linear"),  # tanh
        (
            (mlp, {"depth": 4, "activation": "relu", "norm": "layer"}),
            (mlp, {"depth": 6, "activation": "relu", "norm": "layer"}),
            "norm batch, none or fixup",
        ),
        ((mlp, {"depth": 6}), (mlp, {"depth": 4}), "has 4 blocks and the shallow one's has 6"),
        ((mlp, {"depth": 4, "shortcut": "identity"}), (mlp, {"depth": 6}), "Choose shortcut none"),
        ((mlp, {"depth": 4}), (mlp, {"depth": 6, "width": 8}), "differ in depth alone"),
        ((mlp, {"depth": 4}), (cifar_resnet, {"depth": 8}), "two networks of one family"),
        (
            (preact_resnet, {"depth": 8, "shortcut": "none"}),
            (preact_resnet, {"depth": 14, "shortcut": "none"}),
            "PreactResNet has no layers that can be identities",
        ),
    ],
)
def test_what_cannot_be_embedded_is_said(shallow: Any, deep: Any, message: str) -> None:
    (small, small_shape), (large, large_shape) = shallow, deep
    x = POINTS if small is mlp else IMAGES
    networks = trained(small, x, **small_shape), empty(large, x, **large_shape)
    with pytest.raises(UserError, match=message):
        embed(*networks, x)


def test_a_diverged_network_is_said_to_be_one() -> None:
    shallow = trained(mlp, POINTS, depth=3, activation="relu")
    shallow.head.bias.data[0] = float("nan")
    with pytest.raises(UserError, match="has diverged"):
        embed(shallow, empty(mlp, POINTS, depth=5, activation="relu"), POINTS)
