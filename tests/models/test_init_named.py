"""Named initialisers: where they meet other layers, other shortcuts, models of the user's, and what they refuse."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.core.profile import Addition, Point
from depthscope.lab import Stack, init_params
from depthscope.models.convnet import cifar_resnet
from depthscope.models.densenet import cifar_densenet
from depthscope.models.init import INITIALISERS, TORCH, build, fill
from depthscope.models.mlp import mlp
from depthscope.models.preact import preact_resnet
from depthscope.study.catalog import CATALOG

IMAGES = torch.randn(16, 3, 8, 8, generator=torch.Generator().manual_seed(0))
POINTS = torch.randn(40, 2, generator=torch.Generator().manual_seed(0))
LSUV: dict[str, Any] = {"init": "lsuv", "examples": IMAGES}


def test_the_catalogue_knows_each_and_no_other() -> None:
    assert {*INITIALISERS, TORCH, "constructed"} == set(CATALOG["init"])
    unscaled = {name for name, each in INITIALISERS.items() if not each.takes_gain} | {TORCH}
    assert unscaled == {name for name, entry in CATALOG["init"].items() if "gain" in entry.accepts}
    for name, each in INITIALISERS.items():
        assert {*each.options} == CATALOG["init"][name].options.keys() - {"examples"}


@pytest.mark.parametrize("shortcut", ["none", "identity_2"])
@pytest.mark.parametrize("init", ["gaussian", "orthogonal"])
def test_torch_starts_where_the_laboratory_does(init: Any, shortcut: Any) -> None:
    stack = Stack(depth=4, width=7, num_inputs=2, num_classes=3, shortcut=shortcut)
    params = init_params(stack, [5], init=init, gain=0.72, stem_gain=0.1)
    model, _ = build(
        lambda: mlp(depth=4, width=7, num_inputs=2, num_classes=3, shortcut=shortcut),
        seed=5,
        dtype=torch.float64,
        init=init,
        gain=0.72,
        gains={"stem.weight": 0.1},
    )
    state = model.state_dict()
    assert state.keys() == params.keys()
    for name, value in params.items():
        np.testing.assert_array_equal(state[name].numpy(), value[0], err_msg=name)


def test_each_group_and_each_projection_is_orthonormal_by_itself() -> None:
    grouped = nn.Conv2d(6, 12, 3, groups=3, bias=False).double()
    for init in ("orthogonal", "delta_orthogonal"):
        fill(grouped, 0, init=init)
        for part in grouped.weight.detach().chunk(3):
            matrix = part.flatten(1) if init == "orthogonal" else part[:, :, 1, 1]
            gram = matrix @ matrix.T if init == "orthogonal" else matrix.T @ matrix
            torch.testing.assert_close(gram, torch.eye(len(gram)).double())
    attention = nn.MultiheadAttention(6, 2).double()
    fill(attention, 0, init="orthogonal")
    for part in attention.in_proj_weight.detach().chunk(3):
        torch.testing.assert_close(part.T @ part, torch.eye(6).double())


@pytest.mark.parametrize("init", ["he_fan_in", "orthogonal", "lsuv", TORCH])
def test_what_a_module_declares_is_what_it_starts_as(init: str) -> None:
    model, _ = build(
        lambda: cifar_resnet(
            depth=8, width=4, shortcut="highway", norm="fixup", shortcut_options={"bias": -3.0}, num_classes=3
        ),
        seed=0,
        init=init,
        examples=IMAGES if init == "lsuv" else None,
    )
    assert model.get_parameter("blocks.1.join.gate.bias").eq(-3).all()
    assert model.get_parameter("blocks.1.bn2.multiplier").eq(1).all()
    assert model.get_parameter("head.shift").eq(0).all()


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_looks_linear_is_so_of_activations_whose_odd_part_is_linear(activation: str) -> None:
    model, _ = build(
        lambda: mlp(depth=6, width=8, activation=activation), seed=0, init="looks_linear", dtype=torch.float64
    )
    x, y = POINTS.double(), POINTS.double().flip(0)
    torch.testing.assert_close(model(x - 2 * y), model(x) - 2 * model(y), rtol=0, atol=1e-12)


def test_looks_linear_is_so_with_standardised_weights() -> None:
    model, _ = build(
        lambda: cifar_resnet(depth=8, width=8, norm="ws"), seed=0, init="looks_linear", dtype=torch.float64
    )
    x, y = IMAGES.double(), IMAGES.double().flip(0)
    torch.testing.assert_close(model(x - 2 * y), model(x) - 2 * model(y), rtol=0, atol=1e-12)


@pytest.mark.parametrize("norm", ["batch", "layer", "group"])
def test_a_normaliser_keeps_the_mirrored_pairs_of_looks_linear(norm: str) -> None:
    model, _ = build(
        lambda: cifar_resnet(depth=8, width=8, norm=norm), seed=0, init="looks_linear", dtype=torch.float64
    )
    seen: list[Tensor] = []
    model.blocks[2].bn2.register_forward_hook(lambda module, args, output: seen.append(output.detach()))  # type: ignore[union-attr]
    x = IMAGES.double()
    one, other = model(x).detach(), model(torch.cat([x[:8], x[:8].flip(3)])).detach()
    torch.testing.assert_close(seen[0][:, :16], -seen[0][:, 16:], rtol=0, atol=1e-10)
    assert float(one.std()) > 1e-3
    # Scaled by the statistics: those of the batch (an example depends on the others) or of each example by itself.
    assert torch.allclose(one[:8], other[:8]) == (norm != "batch")


def test_looks_linear_is_so_of_a_pre_activation_block_that_keeps_the_shape() -> None:
    model, _ = build(
        lambda: preact_resnet(depth=14, width=8, shortcut="A", norm="none"),
        seed=0,
        init="looks_linear",
        dtype=torch.float64,
    )
    first = nn.Sequential(model.stem, model.blocks[0], model.blocks[1])
    x, y = IMAGES.double(), IMAGES.double().flip(0)
    torch.testing.assert_close(first(x - 2 * y), first(x) - 2 * first(y), rtol=0, atol=1e-11)


@pytest.mark.parametrize("shortcut", ["A", "B", "constant_scaling", "scaled", "highway", "stochastic_depth", "rezero"])
def test_zero_last_gamma_finds_the_end_of_a_branch_behind_any_join(shortcut: str) -> None:
    def digests(zero: bool) -> dict[str, str]:
        return build(lambda: cifar_resnet(depth=8, width=4, shortcut=shortcut), seed=0, zero_last_gamma=zero)[1]

    one, zero = digests(False), digests(True)
    assert {name for name in one if one[name] != zero[name]} == {f"blocks.{at}.bn2.weight" for at in range(3)}


@pytest.mark.parametrize(
    "make",
    [
        lambda: preact_resnet(depth=8, width=4, shortcut="A"),  # ends in a convolution
        lambda: cifar_resnet(depth=8, width=4, shortcut="scaled", norm="none"),
        lambda: cifar_resnet(depth=8, width=4, shortcut="A", norm="fixup"),
        lambda: mlp(depth=4, shortcut="scaled", norm="batch"),  # ends in an activation
    ],
)
def test_zero_last_gamma_is_refused_where_a_branch_ends_in_something_else(make: Any) -> None:
    with pytest.raises(UserError, match=r"zero_last_gamma: .* is no normaliser") as told:
        build(make, seed=0, zero_last_gamma=True)
    end = str(told.value).split()[1].rstrip(",")
    assert f"nor is {end}," not in str(told.value)  # it is named once


class Dropping(nn.Module):
    """A user's model: a layer that starts at 0, dropout, running statistics, and a layer that is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 9)
        self.norm = nn.BatchNorm1d(9)
        self.zero = nn.Linear(9, 9)
        nn.init.zeros_(self.zero.weight)
        self.last = nn.Linear(9, 4)
        self.unused = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = nn.functional.dropout(torch.relu(self.norm(self.first(x))), training=self.training)
        logits: Tensor = self.last(h + self.zero(h))
        return logits


def test_lsuv_works_on_a_model_of_the_user_s() -> None:
    before, numpy_before = torch.get_rng_state(), str(np.random.get_state())  # noqa: NPY002
    options: dict[str, Any] = {"seed": 1, "init": "lsuv", "constants": True, "examples": POINTS}
    model, digests = build(Dropping, **options)
    assert digests == build(Dropping, **options)[1]  # (dropout would have differed)
    assert torch.equal(before, torch.get_rng_state())
    assert numpy_before == str(np.random.get_state())  # noqa: NPY002
    assert model.training
    assert model.norm.training
    assert not model.zero.weight.any()  # what a constructor sets stays
    assert int(model.norm.num_batches_tracked or 0) == 0
    assert not model.norm.running_mean.any()  # type: ignore[union-attr]
    torch.testing.assert_close(model.unused.weight.T @ model.unused.weight, torch.eye(3))
    assert not model.first._forward_hooks
    with torch.no_grad():
        first = model.first(POINTS)
        last = model.last(torch.relu(model.norm(first)))
    assert abs(float(first.var(correction=0)) - 1) < 0.02
    assert abs(float(last.var(correction=0)) - 1) < 0.02


def test_lsuv_starts_from_the_orthonormal_draw_and_changes_scales_alone() -> None:
    orthonormal, _ = build(lambda: cifar_resnet(depth=8, width=4, shortcut="B"), seed=2, init="orthogonal")
    scaled, _ = build(lambda: cifar_resnet(depth=8, width=4, shortcut="B"), seed=2, **LSUV)
    for name, parameter in scaled.named_parameters():
        given = orthonormal.get_parameter(name)
        if parameter.ndim > 1:
            torch.testing.assert_close(parameter / parameter.norm(), given / given.norm(), msg=name)
        else:
            assert torch.equal(parameter, given), name


@pytest.mark.parametrize(
    ("norm", "examples", "message"),
    [
        ("none", torch.zeros(8, 3, 8, 8), r"output of stem.conv has variance 0"),
        ("none", torch.full((8, 3, 8, 8), float("nan")), r"output of stem.conv has variance nan"),
        ("ws", IMAGES, r"stem.conv \(StandardisedConv2d\) has variance .* choose another norm"),
        ("batch", None, "give it `examples`"),
        ("batch", IMAGES[:1], "two or more"),
    ],
)
def test_lsuv_that_cannot_be_had_is_said(norm: str, examples: Tensor | None, message: str) -> None:
    model = cifar_resnet(depth=8, width=4, norm=norm)
    running = copy.deepcopy(dict(model.named_buffers()))
    with pytest.raises(UserError, match=message):
        fill(model, 0, init="lsuv", examples=examples)
    if examples is not None:
        assert model.training
        for name, buffer in model.named_buffers():
            assert torch.equal(buffer, running[name]), name


class Named(nn.Module):
    """A user's model that tells of itself."""

    def __init__(self, branches: tuple[tuple[str, ...], ...]) -> None:
        super().__init__()
        self.first, self.inner, self.last = nn.Linear(2, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self._branches = branches

    def points(self) -> tuple[Point, ...]:
        return tuple(
            Point(layer=name, kind="linear", weight=f"{name}.weight", output=name) for name in ("first", "last")
        )

    def branches(self) -> tuple[tuple[str, ...], ...]:
        return self._branches

    def additions(self) -> tuple[Addition, ...]:
        return ()


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (lambda: nn.Linear(2, 2), {"init": "fixup"}, r"fixup: Linear has no method branches\(\)"),
        (lambda: cifar_resnet(depth=8, width=4), {"init": "fixup"}, "no residual branch"),
        (lambda: cifar_densenet(depth=10, width=4), {"init": "fixup"}, "no residual branch"),
        (lambda: mlp(depth=4, shortcut="identity"), {"init": "fixup"}, "2 or more weighted layers.* one of 1"),
        (lambda: Named((("inner",),)), {"init": "fixup"}, "2 or more weighted layers"),
        (lambda: nn.Linear(2, 2), {"init": "looks_linear"}, r"looks_linear: Linear has no method points\(\)"),
        (lambda: mlp(depth=4, width=7), {"init": "looks_linear"}, "7 outputs have no half. Choose an even width"),
        (lambda: nn.Conv2d(2, 2, (3, 2)), {"init": "delta_orthogonal"}, "kernel of 3 x 2 has no centre"),
        (lambda: mlp(depth=2), {"init": "looks_linear", "gain": 2.0}, "'looks_linear' takes none"),
        (lambda: mlp(depth=2), {"init": "lsuv", "gains": {"stem.weight": 2.0}}, "'lsuv' takes none"),
        (lambda: mlp(depth=2), {"init": "torch", "gain": 2.0}, "'torch' takes none"),
        (lambda: mlp(depth=2), {"gains": {"stam.weight": 2.0}}, "MLP has no tensor 'stam.weight'"),
        (lambda: mlp(depth=2), {"gains": {"stem.weight": -1.0}}, "above 0"),
        (lambda: mlp(depth=2), {"options": {"tolerance": 0.1}}, "unknown option of init 'he_fan_in', 'tolerance'"),
        (lambda: mlp(depth=2), {"init": "lsuv", "options": {"tolerence": 0.1}}, "Did you mean 'tolerance'"),
    ],
)
def test_what_an_initialiser_cannot_do_is_said(make: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build(make, seed=0, **options)


def test_fixup_goes_by_what_a_user_s_model_tells() -> None:
    model = Named((("first", "inner"),))
    plain = Named(())
    fill(model, 0, init="fixup")
    fill(plain, 0)
    assert torch.equal(model.first.weight, plain.first.weight)  # 1 branch: the factor is 1
    assert not model.inner.weight.any()
    assert not model.last.weight.any()
