"""Initialisers: variances, isometries, linearity and zeros, measured through real layers at unequal widths."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from tests.conformance.case import Case
from torch import Tensor, nn

from depthscope.core import draws
from depthscope.models.convnet import cifar_resnet
from depthscope.models.init import INITIALISERS, build, fill, filling, lsuv, mirrored, rules, variance, zeroed
from depthscope.models.init import fixup as fixup_rules
from depthscope.models.init.rules import Array, Weight
from depthscope.models.init.statistics import widened
from depthscope.models.mlp import mlp
from depthscope.models.preact import preact_resnet

Alter = Callable[[pytest.MonkeyPatch], None]
GAIN = 0.8


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def conv(num_in: int, num_out: int, kernel: int = 3, **options: Any) -> nn.Conv2d:
    return nn.Conv2d(num_in, num_out, kernel, padding=kernel // 2, **options).double()


def linear(num_in: int, num_out: int) -> nn.Linear:
    return nn.Linear(num_in, num_out).double()


def wrong_rule(name: str, rule: Callable[[Weight, np.random.Generator], Array]) -> Alter:
    """The rule of one name, replaced."""

    def alter(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(filling, "INITIALISERS", {**INITIALISERS, name: replace(INITIALISERS[name], rule=rule)})

    return alter


def spread(init: str, expected: Callable[[int, int], float]) -> Callable[[], None]:
    """fan_in Var(W) = gain^2 expected(fan_in, fan_out): the mean square that a layer makes of white noise."""

    def check() -> None:
        for layer, taps in ((conv(16, 32), 9), (conv(32, 16), 9), (conv(16, 32, 1), 1), (linear(96, 40), 1)):
            x = normal(6, layer.weight.shape[1], 10, 10) if layer.weight.ndim == 4 else normal(600, 96)
            found = []
            for seed in range(6):
                fill(layer, seed, init=init, gain=GAIN)
                with torch.no_grad():
                    y = layer(x)
                y = y[..., 1:-1, 1:-1] if y.ndim == 4 else y
                found.append(float(y.square().mean()))
            fan_in, fan_out = layer.weight.shape[1] * taps, layer.weight.shape[0] * taps
            tolerance = 5 * math.sqrt(2 / (6 * layer.weight.numel())) + 0.03  # scatter of the weights; of the inputs
            assert float(np.mean(found)) == pytest.approx(GAIN**2 * expected(fan_in, fan_out), rel=tolerance)

    return check


def swapped_fans(patch: pytest.MonkeyPatch) -> None:
    """A weight read as [in, out]."""
    right = rules.fans
    patch.setattr(rules, "fans", lambda weight: right(weight)[::-1])


def one_fan(patch: pytest.MonkeyPatch) -> None:
    right = rules.fans
    patch.setattr(rules, "fans", lambda weight: (right(weight)[0],) * 2)


def keeps_lengths() -> None:
    """|W x| = gain |x| where the layer widens, |W^T g| = gain |g| where it narrows; a deep linear stack is one."""
    for num_in, num_out in ((10, 16), (16, 16), (16, 10)):
        layer = linear(num_in, num_out)
        fill(layer, 0, init="orthogonal", gain=1.5)
        image = (layer(torch.eye(num_in, dtype=torch.float64)) - layer.bias).detach()  # rows are W's columns
        gram = image @ image.T if num_out >= num_in else image.T @ image
        torch.testing.assert_close(gram, 2.25 * torch.eye(min(num_in, num_out), dtype=torch.float64))
    # A kernel as the matrix [out, in k k]: the outputs at a place are as long as the window that they come from.
    layer2 = conv(3, 32)
    fill(layer2, 0, init="orthogonal")
    x = normal(2, 3, 7, 5)
    windows = nn.functional.unfold(x, 3, padding=1)
    assert_lengths(layer2(x).flatten(2), windows, 1.0)
    widths = [6, 10, *[10] * 40, 16]
    stack = nn.Sequential(*(linear(*pair) for pair in pairwise(widths)))
    fill(stack, 3, init="orthogonal")
    x = normal(5, 6)
    assert_lengths(stack(x), x, 1.0)


def assert_lengths(mine: Tensor, given: Tensor, factor: float) -> None:
    """Lengths over dimension 1."""
    torch.testing.assert_close(mine.detach().norm(dim=1), factor * given.norm(dim=1), rtol=1e-12, atol=0)


def is_the_identity() -> None:
    """W x = gain x, cut off where the layer narrows and followed by zeros where it widens; a kernel's at each place."""
    for num_in, num_out in ((10, 16), (16, 16), (16, 10)):
        for layer, x in (
            (linear(num_in, num_out), normal(5, num_in)),
            (conv(num_in, num_out), normal(2, num_in, 7, 5)),
        ):
            fill(layer, 0, init="identity", gain=GAIN)
            wanted = torch.zeros(len(x), num_out, *x.shape[2:], dtype=x.dtype)
            kept = min(num_in, num_out)
            wanted[:, :kept] = GAIN * x[:, :kept]
            torch.testing.assert_close(layer(x).detach(), wanted)


def starts_as_its_skips() -> None:
    """An untrained network of two-layer branches, without a stem and a head, is f(x) = x; other weights are drawn."""
    shape: dict[str, Any] = {"depth": 6, "width": 5, "num_inputs": 5, "num_classes": 5, "bare": True}
    for shortcut, last, other in (("identity_2", "linear2", "linear1"), ("identity", "layers", "none")):
        make = partial(mlp, shortcut=shortcut, **shape)
        model, _ = build(make, seed=0, init="zero_branch", dtype=torch.float64)
        x = normal(7, 5)
        assert torch.equal(model(x), x)
        for name, weight in model.named_parameters():
            if name.endswith(".weight"):
                assert bool(weight.count_nonzero()) == (other in name), name
                assert last in name or other in name


def unzeroed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(zeroed, "ZeroBranch", lambda zeros: variance.gaussian)


def ones(weight: Weight, rng: np.random.Generator) -> Array:
    return np.full(weight.shape, weight.gain)


def gaussian_matrix(num_out: int, num_in: int, rng: np.random.Generator) -> Array:
    return rng.normal(size=(num_out, num_in)) / math.sqrt(max(num_in, num_out))


def has_no_preferred_sign() -> None:
    """Uniform over the orthogonal matrices: E of an entry is 0, and of its square 1/out (40 draws of [3, 2])."""
    layer = linear(2, 3)
    entries = []
    for seed in range(40):
        fill(layer, seed, init="orthogonal")
        entries.append(layer.weight.detach().flatten().clone())
    drawn = torch.stack(entries)
    scatter = math.sqrt(1 / 3 / 40)
    assert float(drawn.mean(dim=0).abs().max()) < 4 * scatter
    torch.testing.assert_close(drawn.square().mean(dim=0), torch.full((6,), 1 / 3).double(), rtol=0.6, atol=0)


def unsigned(patch: pytest.MonkeyPatch) -> None:
    """Q as LAPACK gives it: the sign of R's diagonal is not moved into it."""
    patch.setattr(draws, "orthogonal", lambda num_out, num_in, rng: np.linalg.qr(rng.normal(size=(num_out, num_in)))[0])


def keeps_images() -> None:
    """A stack of delta-orthogonal convolutions keeps the length of every pixel, whatever the padding."""
    x = normal(2, 5, 6, 7)
    for mode in ("circular", "zeros"):
        shapes = ((5, 8, 3), (8, 8, 5), (8, 20, 3), (20, 24, 1), (24, 24, 7))
        stack = nn.Sequential(*(conv(*shape, padding_mode=mode, bias=False) for shape in shapes))
        fill(stack, 0, init="delta_orthogonal")
        assert_lengths(stack(x), x, 1.0)
    narrowing = conv(8, 5)
    fill(narrowing, 0, init="delta_orthogonal", gain=2.0)
    g = normal(2, 5, 6, 7)
    x = normal(2, 8, 6, 7).requires_grad_()
    (pulled_back,) = torch.autograd.grad(narrowing(x), x, g)
    assert_lengths(pulled_back, g, 2.0)


def keeps_the_mean_square() -> None:
    """Q = 1 through 32 -> 64 exactly and through 64 -> 32 on average over directions: 1/sqrt(32 x 500) scatter."""
    for num_in, num_out, tolerance in ((32, 64, 1e-12), (64, 32, 0.03), (48, 48, 1e-12)):
        x = normal(5, num_in, 10, 10)
        for layer in (conv(num_in, num_out), linear(num_in, num_out)):
            fill(layer, 0, init="tat")
            given = x if layer.weight.ndim == 4 else x.movedim(1, -1)
            with torch.no_grad():
                q = float(layer(given).square().mean() / given.square().mean())
            assert q == pytest.approx(1.0, rel=tolerance), (num_in, num_out)


def transposed_tat(weight: Weight, rng: np.random.Generator) -> Array:
    """The layout of another framework: [in, out]."""
    return INITIALISERS["delta_orthogonal"].rule_for(nn.Identity())(weight, rng) * max(
        math.sqrt(weight.num_in / weight.num_out), 1.0
    )


@contextmanager
def outputs_of(model: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Output of every module of a forward pass, by name."""
    found: dict[str, Tensor] = {}

    def watch(name: str) -> Any:
        return lambda module, args, output: found.update({name: output.detach()})

    hooks = [module.register_forward_hook(watch(name)) for name, module in model.named_modules()]
    yield found
    for hook in hooks:
        hook.remove()


def reaches_unit_variance() -> None:
    """In train mode on the examples, every convolution's output has variance 1, projections and the head too."""
    x = normal(24, 3, 10, 10)
    for norm in ("none", "batch"):
        model, _ = build(
            lambda norm=norm: cifar_resnet(depth=14, width=6, shortcut="B", norm=norm),  # type: ignore[misc]
            seed=0,
            dtype=torch.float64,
            init="lsuv",
            options={"tolerance": 0.01},
            examples=x,
        )
        before = {name: buffer.clone() for name, buffer in model.named_buffers()}
        assert all(bool((each == (1 if "var" in name else 0)).all()) for name, each in before.items())
        with outputs_of(model) as outputs, torch.no_grad():
            model(x)
        layers = [name for name, module in model.named_modules() if isinstance(module, nn.Conv2d | nn.Linear)]
        assert len(layers) == 16
        for name in layers:
            assert abs(float(outputs[name].var(correction=0)) - 1) <= 0.01, name


def biased_variance(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lsuv, "widened", lambda output: 1.05 * widened(output))


def scales_by_depth() -> None:
    """Fixup: fan_in Var(W) = 2 L^(-1/(m-1)) inside of branches, 2 outside; branches and logits are exactly 0."""
    for make, num_branches, num_layers in (
        (lambda: cifar_resnet(depth=38, width=16, shortcut="A_pool", norm="fixup"), 18, 2),
        (lambda: preact_resnet(depth=47, width=8, shortcut="A_pool", norm="fixup", bottleneck=True), 15, 3),
    ):
        model: Any = build(make, seed=0, init="fixup", dtype=torch.float64)[0]
        assert len(model.branches()) == num_branches
        inside = [model.get_submodule(layer) for branch in model.branches() for layer in branch[:-1]]
        # Weights of every layer, at 8 to 64 channels, brought to one scale by fan_in: their pooled mean square.
        pooled = torch.cat([(each.weight * math.sqrt(each.weight[0].numel())).detach().flatten() for each in inside])
        wanted = 2 * num_branches ** (-1 / (num_layers - 1))
        assert float(pooled.square().mean()) == pytest.approx(wanted, rel=5 * math.sqrt(2 / len(pooled)))
        stem = model.stem.conv.weight.detach()
        assert float(stem.square().mean()) * 27 == pytest.approx(2, rel=5 * math.sqrt(2 / stem.numel()))
        x = normal(2, 3, 16, 16)
        with outputs_of(model) as outputs, torch.no_grad():
            logits = model(x)
        assert not logits.any()
        for addition in model.additions():
            assert not outputs[addition.branch].any()
            assert torch.equal(outputs[addition.skip].relu(), outputs[addition.block].relu())


def other_exponent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fixup_rules, "fixup_scale", lambda num_branches, num_layers: num_branches ** (-1 / (2 * num_layers)))


def no_zeros(patch: pytest.MonkeyPatch) -> None:
    def draw(self: fixup_rules.Fixup, weight: Weight, rng: np.random.Generator) -> Array:
        return variance.he_fan_in(weight, rng) * (self.factors.get(weight.name, 1.0) or 1e-3)

    patch.setattr(fixup_rules.Fixup, "__call__", draw)


def is_linear() -> None:
    """A ReLU network whose logits are the product of its half-width matrices: isometries, but for the head."""
    model: Any = build(
        lambda: mlp(depth=30, width=12, num_inputs=4, num_classes=3, activation="relu"),
        seed=0,
        init="looks_linear",
        dtype=torch.float64,
    )[0]
    x = normal(40, 4)
    with torch.no_grad():
        state = x.T
        for point in model.points()[:-1]:
            weight = model.get_parameter(point.weight)
            state = weight[:6, : 4 if point.layer == "stem" else 6] @ state
        assert_lengths(state.T, x, 1.0)
        torch.testing.assert_close(model(x), (model.head.weight[:, :6] @ state).T, rtol=0, atol=1e-12)
        images = build(
            lambda: cifar_resnet(depth=20, width=8, norm="none"), seed=0, init="looks_linear", dtype=torch.float64
        )[0]
        one, other = normal(3, 3, 12, 12), normal(3, 3, 12, 12, seed=1)
        assert float(images(one).std()) > 1e-2
        torch.testing.assert_close(images(one - 2 * other), images(one) - 2 * images(other), rtol=0, atol=1e-12)


def unmirrored(patch: pytest.MonkeyPatch) -> None:
    """[[W, -W], [W, -W]]: both halves alike."""
    right = mirrored.LooksLinear.__call__

    def draw(self: mirrored.LooksLinear, weight: Weight, rng: np.random.Generator) -> Array:
        values = right(self, weight, rng)
        if weight.name != self.head:
            values[len(values) // 2 :] *= -1
        return values

    patch.setattr(mirrored.LooksLinear, "__call__", draw)


def no_gaussian_fan(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(draws, "gaussian", lambda shape, fan_in, rng: rng.normal(size=shape) / math.sqrt(shape[0]))


CASES = [
    Case(kind="init", name="gaussian", check=spread("gaussian", lambda fan_in, fan_out: 1.0), alter=no_gaussian_fan),
    Case(kind="init", name="he_fan_in", check=spread("he_fan_in", lambda fan_in, fan_out: 2.0), alter=swapped_fans),
    Case(
        kind="init",
        name="he_fan_out",
        check=spread("he_fan_out", lambda fan_in, fan_out: 2 * fan_in / fan_out),
        alter=swapped_fans,
    ),
    Case(
        kind="init",
        name="xavier",
        check=spread("xavier", lambda fan_in, fan_out: 2 * fan_in / (fan_in + fan_out)),
        alter=one_fan,
    ),
    Case(
        kind="init",
        name="orthogonal",
        check=keeps_lengths,
        alter=lambda patch: patch.setattr(draws, "orthogonal", gaussian_matrix),
    ),
    Case(kind="init", name="orthogonal", check=has_no_preferred_sign, alter=unsigned),
    Case(kind="init", name="identity", check=is_the_identity, alter=wrong_rule("identity", ones)),
    Case(kind="init", name="zero_branch", check=starts_as_its_skips, alter=unzeroed),
    Case(
        kind="init",
        name="delta_orthogonal",
        check=keeps_images,
        alter=wrong_rule("delta_orthogonal", INITIALISERS["orthogonal"].rule_for(nn.Identity())),
    ),
    Case(kind="init", name="tat", check=keeps_the_mean_square, alter=wrong_rule("tat", transposed_tat)),
    Case(kind="init", name="lsuv", check=reaches_unit_variance, alter=biased_variance),
    Case(kind="init", name="fixup", check=scales_by_depth, alter=other_exponent),
    Case(kind="init", name="fixup", check=scales_by_depth, alter=no_zeros),
    Case(kind="init", name="looks_linear", check=is_linear, alter=unmirrored),
]
