"""The GPT, RMSNorm, DeepNorm, and how transformers start: their formulas, through real layers at unequal widths."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from tests.conformance.case import Case
from tests.models.gpt_naive import written_out
from torch import Tensor, nn

from depthscope.models import gpt_blocks
from depthscope.models.gpt import GPT, gpt
from depthscope.models.init import build, transformers
from depthscope.models.layers.attention import causal_attention
from depthscope.models.layers.make import Layers
from depthscope.models.shortcuts import transformers as joins
from depthscope.models.shortcuts.make import make_shortcut
from depthscope.models.site import Site


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def made(init: str = "gaussian", **options: Any) -> GPT:
    shape: dict[str, Any] = {"depth": 2, "width": 12, "heads": 3, "length": 6, **options}
    return build(
        lambda: gpt(num_inputs=11, num_classes=11, **shape), seed=0, init=init, dtype=torch.float64, constants=True
    )[0]


TEXT = torch.randint(11, (3, 6), generator=torch.Generator().manual_seed(1))


def is_written_out(placement: str) -> None:
    """The logits are those that the tensors give, one position and one head at a time."""
    model = made(placement=placement)
    with torch.no_grad():
        for at, parameter in enumerate(model.parameters()):
            parameter.copy_(normal(*parameter.shape, seed=at) * 0.4)
    state = {name: each.detach().numpy() for name, each in model.named_parameters()}
    arm: Any = {"shortcut": "identity", "norm": "layer", "activation": "gelu", "placement": placement}
    wanted = written_out(state, TEXT.numpy(), heads=3, depth=2, **arm)
    np.testing.assert_allclose(model(TEXT).detach().numpy(), wanted, rtol=0, atol=1e-11)


def sees_what_follows(patch: pytest.MonkeyPatch) -> None:
    right = nn.functional.scaled_dot_product_attention
    patch.setattr(nn.functional, "scaled_dot_product_attention", lambda q, k, v, is_causal: right(q, k, v))


def interleaved_heads(patch: pytest.MonkeyPatch) -> None:
    """Heads of every third unit, not of neighbours."""
    right = causal_attention

    def attention(qkv: Tensor, heads: int) -> Tensor:
        order = torch.arange(qkv.shape[-1] // 3).view(-1, heads).T.flatten()
        return right(torch.cat([each[..., order] for each in qkv.chunk(3, dim=-1)], dim=-1), heads)

    patch.setattr(gpt_blocks, "causal_attention", attention)


def normalises_before(patch: pytest.MonkeyPatch) -> None:
    """Post as pre."""
    patch.setattr(gpt_blocks.Branch, "forward", lambda self, x: self.join(x, self.branch(self.norm(x))))


def adds_alpha() -> None:
    """LN(alpha x + F(x)), alpha 2.2134 in 12 layers and 3.7606 in 100 (ORACLES section 9)."""
    layers = Layers(norm="layer", spatial=False)
    for num_layers, alpha in ((12, 2.2134), (100, 3.7606)):
        shortcut = make_shortcut("deepnorm", Site(num_in=7, num_out=7, num_blocks=2 * num_layers, layers=layers))
        assert shortcut is not None
        s, f = normal(2, 5, 7), normal(2, 5, 7, seed=1)
        y = shortcut.join(shortcut.skip(s), f)
        torch.testing.assert_close(y, alpha * s + f, rtol=1e-4, atol=1e-4)
        model = made("deepnorm", depth=num_layers, shortcut="deepnorm", placement="post")
        block: Any = model.blocks[num_layers - 1]
        x = normal(2, 6, 12)
        wanted = block.mlp.norm(alpha * x + block.mlp.branch(x))
        torch.testing.assert_close(block.mlp(x), wanted, rtol=1e-4, atol=1e-4)


def root_mean_square(scale: bool) -> None:
    """Each position's mean square is 1, its mean is left, its direction too; times a scale a unit."""
    norm: Any = Layers(norm="rms", spatial=False, norm_options={"scale": scale}).normaliser(9).double()
    assert sum(each.numel() for each in norm.parameters()) == (9 if scale else 0)
    weight = normal(9, seed=2) if scale else torch.ones(9).double()
    if scale:
        with torch.no_grad():
            norm.weight.copy_(weight)
    x = 3 * normal(4, 5, 9) + 2
    y = norm(x) / weight
    torch.testing.assert_close(y.square().mean(-1), torch.ones(4, 5).double(), rtol=1e-4, atol=0)
    torch.testing.assert_close(
        nn.functional.cosine_similarity(x, y, dim=-1), torch.ones(4, 5).double(), rtol=1e-12, atol=0
    )
    tiny = norm(1e-4 * x[0, 0]) / weight  # below the 1e-5 beside the mean square
    torch.testing.assert_close(
        tiny, 1e-4 * x[0, 0] / (1e-8 * x[0, 0].square().mean() + 1e-5).sqrt(), rtol=1e-12, atol=0
    )


def other_epsilon(patch: pytest.MonkeyPatch) -> None:
    """PyTorch's own, the smallest that the type tells from 0."""
    right = nn.RMSNorm
    patch.setattr(nn, "RMSNorm", lambda num, eps, elementwise_affine: right(num, None, elementwise_affine))


def gains(init: str, depth: int, wanted: dict[str, float]) -> None:
    """Root mean square of what each kind of layer makes of white noise, over all blocks, times 1/sqrt(fan_in)."""
    model = made(init, depth=depth, width=48)
    found: dict[str, list[Tensor]] = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            x = normal(300, module.in_features)
            with torch.no_grad():
                y = (module(x) - (0 if module.bias is None else module.bias)) / math.sqrt(module.in_features)
            kind = name.rpartition(".")[2]
            parts = y.chunk(3, dim=-1) if kind == "qkv" else (y,)
            for part, each in zip("qkv" if kind == "qkv" else (kind,), parts, strict=True):
                found.setdefault(part, []).append(each.flatten())
    for table in ("tokens", "positions"):
        found[table] = [model.get_parameter(f"{table}.weight").detach().flatten()]
    assert found.keys() == wanted.keys()
    for kind, values in found.items():
        pooled = torch.cat(values)
        tolerance = 0.12 if kind in ("tokens", "positions") else 0.04
        assert float(pooled.square().mean().sqrt()) == pytest.approx(wanted[kind], rel=tolerance, abs=1e-15), kind


KINDS = ("q", "k", "v", "proj", "up", "down", "tokens", "positions")


def spreads(init: str, depth: int, end: float) -> None:
    """.02 everywhere, and `end` in the projections."""
    wanted = {kind: end if kind in ("proj", "down") else 0.02 for kind in KINDS}
    gains(init, depth, wanted)


def by_fans(init: str, depth: int, beta: float) -> None:
    """sqrt(2/(fan_in + fan_out)), times beta in feed-forward, value and output; tables 1/sqrt(D)."""
    square, oblong = (2 / 96) ** 0.5, (2 / 240) ** 0.5
    wanted = {"q": square, "k": square, "v": beta * square, "proj": beta * square}
    wanted |= {"up": beta * oblong, "down": beta * oblong, "tokens": 48**-0.5, "positions": 48**-0.5}
    gains(init, depth, wanted)


def starts_as_nothing() -> None:
    """With a plus sign every block is the identity; without one the logits are exactly 0."""
    model = made("zero_projection", depth=3)
    states: list[Tensor] = []
    for module in (model.embedding, *model.blocks):
        module.register_forward_hook(lambda _module, _args, h: states.append(h.detach()))
    assert model(TEXT).any()
    assert states[0].any()
    assert all(torch.equal(state, states[0]) for state in states)
    assert not made("zero_projection", depth=3, shortcut="none")(TEXT).any()


def whole_stack(patch: pytest.MonkeyPatch) -> None:
    """Beta on queries and keys too."""
    right = transformers.DeepNormInit.__init__

    def init(self: transformers.DeepNormInit, model: nn.Module) -> None:
        right(self, model)
        self.stacked = set()

    patch.setattr(transformers.DeepNormInit, "__init__", init)


def nearly_zero(patch: pytest.MonkeyPatch) -> None:
    right = transformers.ByName.__init__
    patch.setattr(
        transformers.ByName,
        "__init__",
        lambda self, factors: right(self, {name: each or 1e-3 for name, each in factors.items()}),
    )


CASES = [
    Case(kind="family", name="gpt", check=partial(is_written_out, "pre"), alter=sees_what_follows),
    Case(kind="family", name="gpt", check=partial(is_written_out, "pre"), alter=interleaved_heads),
    Case(kind="family", name="gpt", check=partial(is_written_out, "post"), alter=normalises_before),
    Case(
        kind="shortcut",
        name="deepnorm",
        check=adds_alpha,
        alter=lambda patch: patch.setattr(joins, "deepnorm", lambda num_layers: (num_layers**0.25, 1.0)),
    ),
    Case(
        kind="norm",
        name="rms",
        check=partial(root_mean_square, True),
        alter=lambda patch: patch.setattr(nn, "RMSNorm", lambda num, **_: nn.LayerNorm(num, bias=False)),
    ),
    Case(
        kind="norm",
        name="rms",
        check=partial(root_mean_square, False),
        alter=other_epsilon,
    ),
    Case(
        kind="init",
        name="gpt2",
        check=partial(spreads, "gpt2", 6, 0.02),
        alter=lambda patch: patch.setattr(transformers, "GPT2_DEVIATION", 0.025),
    ),
    Case(
        kind="init",
        name="depth_scaled",
        check=partial(spreads, "depth_scaled", 6, 0.02 / math.sqrt(12)),
        alter=lambda patch: patch.setattr(transformers, "gpt2_scale", lambda num: (num / 2) ** -0.5),
    ),
    Case(kind="init", name="zero_projection", check=starts_as_nothing, alter=nearly_zero),
    Case(
        kind="init",
        name="deepnorm",
        check=partial(by_fans, "deepnorm", 12, 0.3195),
        alter=lambda patch: patch.setattr(transformers, "deepnorm", lambda num: (1.0, (2 * num) ** -0.25)),
    ),
    Case(kind="init", name="deepnorm", check=partial(by_fans, "deepnorm", 12, 0.3195), alter=whole_stack),
]
