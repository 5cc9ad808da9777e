"""Shortcuts, through the modules that `make_shortcut` makes, against NumPy twins, closed forms and expectations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.conformance.case import Case
from tests.models.naive import Array, conv_naive, norm_naive, pad_naive
from torch import Tensor, nn

from depthscope.models.layers.make import Layers
from depthscope.models.shortcuts import joins, named, skips
from depthscope.models.shortcuts.make import make_shortcut
from depthscope.models.shortcuts.shortcut import Shortcut
from depthscope.models.site import Site

SHRINKS = Site(num_in=3, num_out=5, stride=2, block=1, num_blocks=4)
KEEPS = replace(SHRINKS, num_in=5, stride=1)
VECTOR = Site(num_in=7, num_out=7, num_blocks=9, layers=Layers(norm="none", spatial=False))


def made(name: str, site: Site, **options: Any) -> Shortcut:
    shortcut = make_shortcut(name, site, **options)
    assert shortcut is not None
    for module in (shortcut.skip, shortcut.join):
        module.double()
    return shortcut


def operands(site: Site, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Independent x and F(x) of an odd image or a vector."""
    rng = torch.Generator().manual_seed(seed)
    places = (7, 5) if site.layers.spatial else ()
    shrunk = tuple(-(-size // site.stride) for size in places)
    x = torch.randn(2, site.num_in, *places, generator=rng, dtype=torch.float64)
    return x, torch.randn(2, site.num_out, *shrunk, generator=rng, dtype=torch.float64)


def drawn(module: nn.Module) -> dict[str, Array]:
    """Give every tensor of a module random values; return them."""
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    return {name: parameter.detach().numpy() for name, parameter in module.named_parameters()}


def close(measured: Tensor, expected: Array) -> None:
    np.testing.assert_allclose(measured.detach().numpy(), expected, rtol=1e-11, atol=1e-12)


def skip_naive(x: Tensor, site: Site, *, pool: bool = False) -> Array:
    return pad_naive(x.numpy(), site.num_out, site.stride, pool=pool) if site.layers.spatial else x.numpy()


def output(shortcut: Shortcut, x: Tensor, f: Tensor) -> Tensor:
    y: Tensor = shortcut.join(shortcut.skip(x), f)
    return y


def sums(name: str, *, pool: bool = False, sites: tuple[Site, ...] = (SHRINKS, KEEPS)) -> Callable[[], None]:
    def check() -> None:
        for site in sites:
            x, f = operands(site)
            close(output(made(name, site), x, f), skip_naive(x, site, pool=pool) + f.numpy())

    return check


def projects(name: str, *, kept: bool) -> Callable[[], None]:
    """A normalised projection where the shape changes; where it is kept, one too or the identity."""

    def check() -> None:
        for site in (SHRINKS, KEEPS):
            shortcut, (x, f) = made(name, site), operands(site)
            state = drawn(shortcut.skip)
            skip = x.numpy()
            if kept or not site.keeps_shape:
                skip = norm_naive(conv_naive(skip, state["conv.weight"], site.stride), state, "bn", training=True)
            close(output(shortcut, x, f), skip + f.numpy())

    return check


def conv1x1() -> None:
    for site in (SHRINKS, KEEPS):
        shortcut, (x, f) = made("conv1x1", site), operands(site)
        state = drawn(shortcut.skip)
        close(output(shortcut, x, f), conv_naive(x.numpy(), state["weight"], site.stride) + f.numpy())


def constant_scaling() -> None:
    for site in (SHRINKS, VECTOR):
        x, f = operands(site)
        y = output(made("constant_scaling", site, skip=0.75, branch=0.25), x, f)
        close(y, 0.75 * skip_naive(x, site) + 0.25 * f.numpy())


def gate_naive(s: Array, state: dict[str, Array]) -> Array:
    weight, bias = state["gate.layer.weight"], state["gate.bias"]
    z = conv_naive(s, weight, 1) + bias[:, None, None] if s.ndim == 4 else s @ weight.T + bias
    gate: Array = 1 / (1 + np.exp(-z))
    return gate


def gates(
    name: str, kernel: int, formula: Callable[[Array, Array, Array], Array], closed: Callable[[Array, Array], Array]
) -> Callable[[], None]:
    """At its bias where it sees nothing; its formula at random weights; shut, it carries."""

    def check() -> None:
        for site in (SHRINKS, VECTOR):
            x, f = operands(site)
            s, branch = skip_naive(x, site), f.numpy()
            shortcut = made(name, site, bias=-2.0)
            start = np.full_like(s, 1 / (1 + math.exp(2)))
            close(output(shortcut, torch.zeros_like(x), f), formula(np.zeros_like(s), branch, start))
            state = drawn(shortcut.join)
            shape = (5, 5, kernel, kernel) if site.layers.spatial else (7, 7)
            assert state["gate.layer.weight"].shape == shape
            close(output(shortcut, x, f), formula(s, branch, gate_naive(s, state)))
            shut = made(name, site, bias=-60.0)  # sigmoid(-60) is below double's rounding beside 1
            close(output(shut, 1e-3 * x, f), closed(1e-3 * s, branch))

    return check


def starts_at_zero(name: str) -> Callable[[], None]:
    """The untrained branch adds exactly nothing, and is not dead: da = <g, f>; at a it adds a f."""

    def check() -> None:
        for site in (SHRINKS, VECTOR):
            shortcut, (x, f) = made(name, site), operands(site)
            y = output(shortcut, x, f)
            assert np.array_equal(y.detach().numpy(), skip_naive(x, site))
            (slope,) = torch.autograd.grad(y.sum(), list(shortcut.join.parameters()))
            close(slope.sum(), f.sum().numpy())
            with torch.no_grad():
                next(shortcut.join.parameters()).fill_(0.7)
            close(output(shortcut, x, f), skip_naive(x, site) + 0.7 * f.numpy())

    return check


def scaled() -> None:
    """L branches that keep the variance: it grows by (1 + 1/L)^L, below e at every L (ORACLES section 5: 2.638 at 16).

    Through linear layers of 48 -> 160 -> 48 units. Scatter of one network: about 2/sqrt(48 * 256) and the inputs' own.
    """
    rng = torch.Generator().manual_seed(0)
    for depth in (4, 16):
        grown = []
        for _ in range(6):
            first = x = torch.randn(256, 48, generator=rng)
            for block in range(depth):
                site = Site(num_in=48, num_out=48, block=block, num_blocks=depth, layers=VECTOR.layers)
                shortcut = make_shortcut("scaled", site)
                assert shortcut is not None
                narrow, wide = (torch.randn(a, b, generator=rng) / math.sqrt(a) for a, b in ((48, 160), (160, 48)))
                x = output(shortcut, x, x @ narrow @ wide)
            grown.append(float(x.square().sum() / first.square().sum()))
        assert np.mean(grown) == pytest.approx((1 + 1 / depth) ** depth, rel=0.05)


def dropout() -> None:
    """Each value of the skip is 0 or s/(1 - rate), 0 at the rate; in evaluation it is s."""
    shortcut = made("dropout", SHRINKS, rate=0.3)
    x, f = operands(SHRINKS)
    s = torch.from_numpy(skip_naive(x, SHRINKS))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        skips_ = torch.stack([output(shortcut, x, f) - f for _ in range(500)])
    dropped = skips_.abs() < 1e-12
    assert torch.allclose(skips_, torch.where(dropped, 0, s / 0.7), atol=1e-12)
    seen = dropped[:, s != 0].double().mean().item()
    assert seen == pytest.approx(0.3, abs=5 * math.sqrt(0.3 * 0.7 / (500 * int((s != 0).sum()))))
    shortcut.skip.eval()
    close(output(shortcut, x, f), s.numpy() + f.numpy())


def stochastic_depth() -> None:
    """Block l of L = 5 lives with 1 - (l/L)(1 - .4), whole batches at a time; evaluation gives the expected output."""
    num = 1500
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for block, survival in enumerate((0.88, 0.76, 0.64, 0.52, 0.40)):
            site = replace(SHRINKS, block=block, num_blocks=5)
            shortcut = made("stochastic_depth", site, survival=0.4)
            x, f = operands(site)
            s = torch.from_numpy(skip_naive(x, site))
            outputs = torch.stack([output(shortcut, x, f) for _ in range(num)])
            kept = (outputs == s + f).flatten(1).all(1)
            assert torch.equal(outputs[~kept], s.expand_as(outputs)[~kept])
            tolerance = 5 * math.sqrt(survival * (1 - survival) / num)
            assert kept.double().mean().item() == pytest.approx(survival, abs=tolerance)
            shortcut.join.eval()
            expected = output(shortcut, x, f)
            close(expected, (s + survival * f).numpy())
            assert torch.allclose(expected, outputs.mean(0), atol=tolerance * float(f.abs().max()))


def _highway(s: Array, f: Array, T: Array) -> Array:
    return f * T + s * (1 - T)


def _gated_skip(s: Array, f: Array, g: Array) -> Array:
    return f + s * (1 - g)


def _carried(s: Array, f: Array) -> Array:
    return s


def _plain(s: Array, f: Array) -> Array:
    return f + s


def _subsampled(self: skips.PoolPad, x: Tensor) -> Tensor:
    return skips.Pad.forward(self, x)  # type: ignore[arg-type]


def _shifted(self: skips.Pad, x: Tensor) -> Tensor:
    strided = x.roll(1, dims=2)[:, :, :: self.stride, :: self.stride]
    return nn.functional.pad(strided, (0, 0, 0, 0, 0, self.num_extra))


def _biased(site: Site) -> nn.Conv2d:
    return nn.Conv2d(site.num_in, site.num_out, 1, stride=site.stride)


def _coupled(self: joins.ShortcutGate, s: Tensor, f: Tensor) -> Tensor:
    gate: Tensor = self.gate(s)
    return gate * f + (1 - gate) * s


def _swapped(self: joins.Highway | joins.ExclusiveGate, s: Tensor, f: Tensor) -> Tensor:
    gate: Tensor = self.gate(s)
    return (1 - gate) * f + gate * s


def _starts_at_one(self: joins.ReZero, s: Tensor, f: Tensor) -> Tensor:
    return s + (1 + self.a) * f


def _constant_survival(self: joins.StochasticDepth, *, block: int, num_blocks: int, survival: float) -> None:
    joins.Join.__init__(self)
    self.survival = survival


def _over_l(self: joins.Scaled, s: Tensor, f: Tensor) -> Tensor:
    return s + self.scale**2 * f


def _undivided(self: nn.Dropout, x: Tensor) -> Tensor:
    return x * (torch.rand_like(x) >= self.p) if self.training else x


def _unscaled(self: joins.ConstantScaling, s: Tensor, f: Tensor) -> Tensor:
    return self.skip * s + f


def case(name: str, check: Callable[[], None], owner: object, attribute: str, value: Any) -> Case:
    """A check, and what is set in the product to spoil it."""
    return Case(kind="shortcut", name=name, check=check, alter=lambda patch: patch.setattr(owner, attribute, value))


CASES = [
    case("identity", sums("identity", sites=(KEEPS, VECTOR)), joins.Add, "forward", lambda self, s, f: f),
    case("A", sums("A"), skips.Pad, "forward", _shifted),
    case("A_pool", sums("A_pool", pool=True), skips.PoolPad, "forward", _subsampled),
    case("B", projects("B", kept=False), named, "option_a", named.option_c),
    case("C", projects("C", kept=True), skips.Project, "forward", lambda self, x: self.conv(x)),
    case("conv1x1", conv1x1, skips, "pointwise", _biased),
    case("constant_scaling", constant_scaling, joins.ConstantScaling, "forward", _unscaled),
    case("highway", gates("highway", 3, _highway, _carried), joins.Highway, "forward", _swapped),
    case("exclusive_gate", gates("exclusive_gate", 1, _highway, _carried), joins.ExclusiveGate, "forward", _swapped),
    case("shortcut_gate", gates("shortcut_gate", 1, _gated_skip, _plain), joins.ShortcutGate, "forward", _coupled),
    case("dropout", dropout, nn.Dropout, "forward", _undivided),
    case("scaled", scaled, joins.Scaled, "forward", _over_l),
    case("rezero", starts_at_zero("rezero"), joins.ReZero, "forward", _starts_at_one),
    case("skipinit", starts_at_zero("skipinit"), joins.SkipInit, "forward", _starts_at_one),
    case("stochastic_depth", stochastic_depth, joins.StochasticDepth, "__init__", _constant_survival),
]
