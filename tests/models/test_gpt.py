"""The GPT: published counts, Hugging Face's logits, a twin written out from its tensors, and what its tracer sees."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest
import torch
from tests.models.gpt_naive import written_out
from torch import Tensor, nn

from depthscope.core.depth import deepnorm
from depthscope.core.errors import UserError
from depthscope.models.gpt import GPT, PLACEMENTS, gpt
from depthscope.models.init import build
from depthscope.probes.trace import trace
from depthscope.probes.watch import profile
from depthscope.study.catalog import CATALOG

VOCABULARY, LENGTH, WIDTH, HEADS = 11, 6, 12, 3
TINY: dict[str, Any] = {"width": WIDTH, "heads": HEADS, "length": LENGTH}
SHORTCUTS = CATALOG["family"]["gpt"].accepts["shortcut"]
MICRO: dict[str, Any] = {
    "width": 16,
    "heads": 4,
    "length": 16,
    "norm": "rms",
    "norm_options": {"scale": False},
    "activation": "relu",
    "tied": False,
    "bias": False,
    "norm_embedding": True,
    "norm_end": False,
}


def of(num_tokens: int = VOCABULARY, **options: Any) -> GPT:
    return gpt(num_inputs=num_tokens, num_classes=num_tokens, **{"depth": 2, **TINY, **options})


def text(batch: int = 3, length: int = LENGTH, num_tokens: int = VOCABULARY, seed: int = 0) -> Tensor:
    return torch.randint(num_tokens, (batch, length), generator=torch.Generator().manual_seed(seed))


def drawn(model: GPT, seed: int = 0) -> GPT:
    """The model in float64, every parameter drawn, so that nothing is at 0 or 1 by chance."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.double().parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) * 0.4)
    return model


def num_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


# ---- counts --------------------------------------------------------------------------------------------------------


def test_published_counts_on_the_meta_device() -> None:
    with torch.device("meta"):
        small = of(50257, depth=12, width=768, heads=12, length=1024)
        unbiased = of(50257, depth=12, width=768, heads=12, length=1024, bias=False)
        large = of(50257, depth=96, width=12288, heads=96, length=2048)
    assert (num_parameters(small), len(small.additions())) == (124_439_808, 24)
    # Without a bias nor a shift of its normalisers: 12 blocks of (3 + 1 + 4 + 1 + 2) D of them, and D at the end.
    assert num_parameters(small) - num_parameters(unbiased) == 12 * 11 * 768 + 768
    assert len(large.additions()) == 192
    assert round(num_parameters(large) / 1e9) == 175


def test_microgpt() -> None:
    model = of(27, depth=1, **MICRO)
    shapes = {name: tuple(each.shape) for name, each in model.state_dict().items()}
    assert shapes == {
        "tokens.weight": (27, 16),
        "positions.weight": (16, 16),
        "blocks.0.attention.qkv.weight": (48, 16),
        "blocks.0.attention.proj.weight": (16, 16),
        "blocks.0.mlp.up.weight": (64, 16),
        "blocks.0.mlp.down.weight": (16, 64),
        "head.weight": (27, 16),
    }
    assert num_parameters(model) == 4192


# ---- additions and points ------------------------------------------------------------------------------------------


def traced(model: nn.Module, tokens: Tensor) -> int:
    return len(trace(model, (tokens,), {}).structure.additions)


def test_gpt2_small_traced_has_24_additions() -> None:
    model = of(50257, depth=12, width=768, heads=12, length=1024)
    assert num_parameters(model) == 124_439_808
    assert traced(model, text(1, 4)) == 24


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("shortcut", SHORTCUTS)
def test_the_tracer_finds_the_additions_that_the_model_tells(shortcut: str, placement: str) -> None:
    model = drawn(of(depth=3, shortcut=shortcut, placement=placement))
    assert len(model.additions()) == len(model.branches()) == (0 if shortcut == "none" else 6)
    assert traced(model, text()) == len(model.additions())


def test_gpt3_s_depth_traced_has_192_additions() -> None:
    assert traced(of(depth=96), text(1, 3)) == 192


def test_arms_share_points_and_start() -> None:
    """Whatever is added, and wherever the normaliser stands: the same points, and the same tensors drawn the same."""
    points = set()
    starts = []
    for shortcut, placement in itertools.product(("none", "identity", "deepnorm", "scaled"), PLACEMENTS):
        for init in ("gaussian", "depth_scaled", "deepnorm"):
            make = lambda s=shortcut, p=placement: of(shortcut=s, placement=p)  # noqa: E731
            model, digests = build(make, seed=3, init=init)
            points.add(model.points())
            starts.append((init, {name: each for name, each in digests.items() if not name.startswith("norm.")}))
    assert len(points) == 1
    assert [point.layer for point in points.pop()] == [
        "tokens",
        *(f"blocks.{at}.{end}" for at in range(2) for end in ("attention.proj", "mlp.down")),
        "head",
    ]
    for init, start in starts:
        assert start == next(other for name, other in starts if name == init)


@pytest.mark.parametrize("shortcut", SHORTCUTS)
@pytest.mark.parametrize("tied", [True, False])
def test_it_is_measured(shortcut: str, tied: bool) -> None:
    model = drawn(of(shortcut=shortcut, tied=tied))
    x = text()
    found = profile(
        model,
        lambda logits, y: nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten()),
        x,
        x.roll(-1, 1),
        points=model.points(),
        additions=model.additions(),
    )
    assert [layer.shape for layer in found.layers] == [(LENGTH, WIDTH)] * 5 + [(LENGTH, VOCABULARY)]
    for quantity in ("h_norm", "dh_norm", "w_norm", "dw_norm"):
        assert sorted(found.values(quantity, 0)) == list(range(6)), quantity
    assert sorted(found.values("f_over_x", 0)) == ([] if shortcut == "none" else [1, 2, 3, 4])


# ---- the forward pass ----------------------------------------------------------------------------------------------


def test_hugging_face_s_gpt2_gives_the_same_logits() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        vocab_size=61, n_positions=20, n_embd=24, n_layer=3, n_head=4, activation_function="gelu", use_cache=False
    )
    theirs = transformers.GPT2LMHeadModel(config).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    ours = of(61, depth=3, width=24, heads=4, length=20)
    names = {
        "wte": "tokens",
        "wpe": "positions",
        "ln_f": "norm",
        **{f"h.{at}.{old}": f"blocks.{at}.{new}" for at in range(3) for old, new in HUGGING_FACE.items()},
    }
    state = theirs.transformer.state_dict()
    copied = {}
    for old, new in names.items():
        for which in ("weight", "bias"):
            if f"{old}.{which}" in state:
                tensor = state[f"{old}.{which}"]
                # Its Conv1D has [in, out].
                copied[f"{new}.{which}"] = tensor.T if which == "weight" and "c_" in old else tensor
    ours.load_state_dict(copied)  # strict: there is nothing else
    x = text(4, 20, 61)
    with torch.no_grad():
        wanted = theirs(x).logits
        torch.testing.assert_close(ours(x), wanted, rtol=0, atol=1e-4)
        torch.testing.assert_close(ours.double()(x), theirs.double()(x).logits, rtol=0, atol=1e-11)
    assert float(wanted.std()) > 0.5


HUGGING_FACE = {
    "ln_1": "attention.norm",
    "attn.c_attn": "attention.qkv",
    "attn.c_proj": "attention.proj",
    "ln_2": "mlp.norm",
    "mlp.c_fc": "mlp.up",
    "mlp.c_proj": "mlp.down",
}


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize(
    ("shortcut", "norm", "activation"),
    [
        ("none", "layer", "gelu"),
        ("identity", "layer", "gelu"),
        ("identity", "rms", "relu"),
        ("identity", "rms_plain", "silu"),
        ("scaled", "layer", "tanh"),
        ("deepnorm", "layer", "gelu"),
        ("rezero", "none", "gelu"),
    ],
)
@pytest.mark.parametrize(("tied", "bias"), [(True, True), (False, False)])
def test_every_arm_is_what_its_tensors_say(
    shortcut: str, norm: str, activation: str, placement: str, tied: bool, bias: bool
) -> None:
    plain = norm == "rms_plain"
    model = drawn(
        of(
            shortcut=shortcut,
            norm="rms" if plain else norm,
            norm_options={"scale": False} if plain else {},
            activation=activation,
            placement=placement,
            tied=tied,
            bias=bias,
        )
    )
    state = {name: each.detach().numpy() for name, each in model.named_parameters()}
    arm: Any = {"shortcut": shortcut, "norm": norm, "activation": activation, "placement": placement}
    for x in (text(), text(2, 4)):  # shorter than its table of positions, too
        wanted = written_out(state, x.numpy(), heads=HEADS, depth=2, **arm)
        np.testing.assert_allclose(model(x).detach().numpy(), wanted, rtol=0, atol=1e-12 * abs(wanted).max())


def test_a_normaliser_of_the_embedding() -> None:
    model = drawn(of(norm_embedding=True))
    seen: list[Tensor] = []
    model.embedding.register_forward_hook(lambda module, args, h: seen.append(h))
    model(text())
    assert [name for name in model.state_dict() if "embedding" in name] == [
        "norm_embedding.weight",
        "norm_embedding.bias",
    ]
    scale, shift = (model.get_parameter(f"norm_embedding.{each}") for each in ("weight", "bias"))
    standard = (seen[0] - shift) / scale
    torch.testing.assert_close(standard.mean(-1), torch.zeros(3, LENGTH).double(), rtol=0, atol=1e-12)
    torch.testing.assert_close(standard.square().mean(-1), torch.ones(3, LENGTH).double(), rtol=1e-3, atol=0)


def test_no_position_sees_what_follows() -> None:
    model = drawn(of(depth=3))
    x = text()
    for at in range(1, LENGTH):
        other = x.clone()
        other[:, at:] = (other[:, at:] + 1) % VOCABULARY
        torch.testing.assert_close(model(x)[:, :at], model(other)[:, :at], rtol=0, atol=1e-12)
        assert (model(x)[:, at:] - model(other)[:, at:]).abs().amax(-1).gt(1e-6).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_gives_the_same_bits_twice(dtype: torch.dtype) -> None:
    x = text(16, 32, 65)
    made = [build(lambda: of(65, width=32, heads=4, length=32), seed=0, dtype=dtype)[0] for _ in range(2)]
    found = []
    for model in made:
        logits = model(x)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), x.roll(-1, 1).flatten())
        found.append((logits, *torch.autograd.grad(loss, list(model.parameters()))))
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


# ---- ties ----------------------------------------------------------------------------------------------------------


def test_what_is_tied_stays_so_when_it_is_built_copied_and_moved() -> None:
    """Memory that is made on another device, as `build` makes it, parts what two modules hold as parameters."""
    built, _ = build(lambda: of(shortcut="rezero", norm="none"), seed=0, init="gpt2", dtype=torch.float64)
    for model in (built, copy.deepcopy(built), copy.deepcopy(built).float().double()):
        names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
        assert "head.weight" not in names
        assert [name for name in names if name.endswith(".a")] == [f"blocks.{at}.attention.join.a" for at in (0, 1)]
        with torch.no_grad():
            model.get_parameter("blocks.1.attention.join.a").fill_(0.7)
        before = model(text())
        with torch.no_grad():
            model.tokens.weight.mul_(2)
            model.positions.weight.mul_(2)
        assert not torch.allclose(before, model(text()))
        state = {name: each.detach().numpy() for name, each in model.named_parameters()}
        arm: Any = {"shortcut": "rezero", "norm": "none", "activation": "gelu", "placement": "pre"}
        np.testing.assert_allclose(
            model(text()).detach().numpy(),
            written_out(state, text().numpy(), heads=HEADS, depth=2, **arm),
            rtol=1e-9,
            atol=1e-15,
        )


# ---- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": 5}, "heads: 5 heads do not divide a width of 12"),
        ({"heads": 0}, "heads: wanted 1 or more, got 0"),
        ({"depth": 0}, "depth: wanted 1 or more, got 0"),
        ({"length": 0}, "length: wanted 1 or more, got 0"),
        ({"placement": "pst"}, "unknown placement 'pst'.*Did you mean 'post'"),
        ({"shortcut": "identty"}, "unknown shortcut 'identty'.*Did you mean 'identity'"),
        ({"norm": "rms", "norm_options": {"scales": False}}, "Did you mean 'scale'"),
    ],
)
def test_what_cannot_be_had_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        of(**options)


def test_a_tied_head_has_as_many_answers_as_tokens() -> None:
    with pytest.raises(UserError, match=r"table of 11 tokens gives 11 outputs, and 5 are wanted\. Set tied = false"):
        gpt(depth=1, num_inputs=11, num_classes=5, **TINY)
    logits = gpt(depth=1, num_inputs=11, num_classes=5, tied=False, **TINY)(text())
    assert logits.shape == (3, LENGTH, 5)


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(UserError, match="wanted 6 tokens at most, its positions, got 7"):
        of()(text(1, 7))


def test_derived() -> None:
    assert of(shortcut="deepnorm", depth=5).derived() == {"deepnorm_alpha": deepnorm(5)[0]}
    assert of(shortcut="scaled", depth=8).derived() == {"branch_scale": 0.25}
    assert of().derived() == {}
