"""How a GPT starts: spreads read through its layers, and the mean-field rows of its branches (ORACLES section 5)."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.models.gpt import GPT, gpt
from depthscope.models.init import build, fill
from depthscope.models.layers.attention import Stacked, Table


def built(init: str, *, seed: int = 0, num_tokens: int = 400, **options: Any) -> GPT:
    shape: dict[str, Any] = {"depth": 3, "width": 96, "length": 64, **options}
    return build(
        lambda: gpt(num_inputs=num_tokens, num_classes=num_tokens, **shape), seed=seed, dtype=torch.float64, init=init
    )[0]


def spreads(model: GPT) -> dict[str, float]:
    return {name: float(each.detach().square().mean().sqrt()) for name, each in model.named_parameters()}


@pytest.mark.parametrize("tied", [True, False])
def test_gaussian_keeps_the_variance_in_every_layer(tied: bool) -> None:
    """Tables have 1/sqrt(D), tied or not: normalised features give logits of variance 1."""
    found = spreads(built("gaussian", tied=tied))
    for name, spread in found.items():
        fan_in = 4 * 96 if name.endswith("down.weight") else 96
        wanted = 1.0 if "norm" in name else 1 / math.sqrt(fan_in)
        if name.endswith("bias"):
            assert spread == 0
        else:
            assert spread == pytest.approx(wanted, rel=0.04), name


def test_the_three_maps_of_attention_are_drawn_as_three() -> None:
    """By xavier each has fan_out D, not 3 D; orthogonal, each is orthogonal by itself."""
    layer = Stacked(96, bias=True).double()
    fill(layer, 0, init="xavier")
    assert float(layer.weight.detach().square().mean()) == pytest.approx(1 / 96, rel=0.04)
    fill(layer, 0, init="orthogonal")
    for part in layer.weight.detach().chunk(3):
        torch.testing.assert_close(part @ part.T, torch.eye(96).double())


def test_a_table_of_somebody_else_has_unit_variance() -> None:
    ours, theirs = Table(40, 96), nn.Embedding(40, 96)
    for module, wanted in ((ours, 96**-0.5), (theirs, 1.0)):
        fill(module, 0, init="gaussian")
        assert float(module.weight.detach().std()) == pytest.approx(wanted, rel=0.05)


@pytest.mark.parametrize("init", ["depth_scaled", "zero_projection", "deepnorm"])
def test_who_has_no_sublayers_is_told(init: str) -> None:
    with pytest.raises(UserError, match=rf"{init}: Linear has no method sublayers\(\)"):
        fill(nn.Linear(2, 2), 0, init=init)


@pytest.mark.parametrize("init", ["gpt2", "depth_scaled", "zero_projection"])
def test_gain_scales_gpt2(init: str) -> None:
    """Microgpt has .08 rather than .02."""
    one, four = (
        build(
            lambda: gpt(depth=1, width=16, length=8, num_inputs=27, num_classes=27, tied=False),
            seed=0,
            init=init,
            gain=gain,
        )[0]
        for gain in (1.0, 4.0)
    )
    for name, parameter in one.named_parameters():
        factor = 4 if name.endswith("weight") and "norm" not in name else 1
        torch.testing.assert_close(four.get_parameter(name), factor * parameter)


# ---- mean field ----------------------------------------------------------------------------------------------------

DEPTH, WIDTH = 16, 256


def feed_forward_alone(placement: str) -> GPT:
    """A GPT of normalised input whose attention gives nothing and whose other branches keep the variance."""
    model = built(
        "gaussian",
        depth=DEPTH,
        width=WIDTH,
        num_tokens=200,
        activation="relu",
        placement=placement,
        norm_embedding=True,
        norm_end=False,
    )
    with torch.no_grad():
        for block in model.blocks:
            block.attention.proj.weight.zero_()  # type: ignore[union-attr,operator]
            block.mlp.up.weight.mul_(math.sqrt(2))  # type: ignore[union-attr,operator]
    return model


def flow(model: GPT) -> tuple[list[Tensor], list[Tensor], list[float]]:
    """x_0 to x_L behind each block, the gradients of a random linear function of x_L at them, and |F|/|x| a block."""
    generator = torch.Generator().manual_seed(0)
    states: list[Tensor] = []
    ratios: list[float] = []
    model.embedding.register_forward_hook(lambda module, args, h: states.append(h))
    for block in model.blocks:
        block.register_forward_hook(lambda module, args, h: states.append(h))
        block.mlp.join.register_forward_hook(  # type: ignore[union-attr]
            lambda _module, args, _y: ratios.append(
                float((args[1].norm(dim=-1) / args[0].norm(dim=-1)).mean().detach())
            )
        )
    model(torch.randint(200, (4, 64), generator=generator))
    cotangent = torch.randn(states[-1].shape, generator=generator, dtype=torch.float64)
    return states, list(torch.autograd.grad((states[-1] * cotangent).sum(), states)), ratios


def squared(tensors: list[Tensor]) -> list[float]:
    return [float(each.detach().square().sum()) for each in tensors]


def test_pre_ln_feed_forward() -> None:
    """Chi = (l+2)/(l+1) at block l, L+1 in all; |F|/|x| = 1/sqrt(l+1)."""
    states, gradients, ratios = flow(feed_forward_alone("pre"))
    back = squared(gradients)
    assert back[0] / back[-1] == pytest.approx(DEPTH + 1, rel=0.1)
    forward = squared(states)
    assert forward[-1] / forward[0] == pytest.approx(DEPTH + 1, rel=0.1)
    for block, ratio in enumerate(ratios):
        assert back[block] / back[block + 1] == pytest.approx((block + 2) / (block + 1), rel=0.05)
        assert ratio == pytest.approx(1 / math.sqrt(block + 1), rel=0.15)  # one draw of a width of 256
    scaled = [ratio * math.sqrt(block + 1) for block, ratio in enumerate(ratios)]
    assert math.prod(scaled) ** (1 / DEPTH) == pytest.approx(1, rel=0.03)


def test_post_ln_feed_forward() -> None:
    """Chi = 1 at every block, |F|/|x| = 1."""
    _, gradients, ratios = flow(feed_forward_alone("post"))
    back = squared(gradients)
    for block, ratio in enumerate(ratios):
        assert back[block] / back[block + 1] == pytest.approx(1, rel=0.15)
        assert ratio == pytest.approx(1, rel=0.1)
    assert (back[0] / back[-1]) ** (1 / DEPTH) == pytest.approx(1, rel=0.01)
    assert math.prod(ratios) ** (1 / DEPTH) == pytest.approx(1, rel=0.01)


def test_small_embeddings_make_the_first_pre_ln_block_huge() -> None:
    """Without a normaliser after tables of std .02 the first branches are many times x_0: the row has a condition."""
    model = feed_forward_alone("pre")
    model.norm_embedding = nn.Identity()
    with torch.no_grad():
        for table in (model.tokens, model.positions):
            table.weight.mul_(0.02 / math.sqrt(2) * math.sqrt(WIDTH))
    _, gradients, _ = flow(model)
    back = squared(gradients)
    # x_0 has variance .0004, so the first chi is 1 + 1/.0004, and the variance after it is 1.0004.
    assert back[0] / back[1] == pytest.approx(1 + 1 / 0.0004, rel=0.1)
