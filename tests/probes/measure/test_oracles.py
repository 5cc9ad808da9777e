"""ORACLES sections 4 and 5: what theory says of fresh networks, and what `profile_model` measures in them.

chi is the squared multiplier of a block, its geometric mean over the blocks. CI measures every row in a small network,
with the tolerance that the width allows; the sizes of the table are slow. `pytest -rP` prints measured beside expected.

Shape letters: B batch, N width, L layers or blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from depthscope.core.readings import ModelProfile
from depthscope.probes.measure.profile import profile_model


def normal(num_in: int, num_out: int, variance: float, bias: float | None = None) -> nn.Linear:
    """W ~ N(0, variance / num_in), b ~ N(0, bias); none where it is None."""
    layer = nn.Linear(num_in, num_out, bias=bias is not None)
    nn.init.normal_(layer.weight, std=math.sqrt(variance / num_in))
    if bias is not None:
        nn.init.normal_(layer.bias, std=math.sqrt(bias))
    return layer


def plain(width: int, depth: int, make: Callable[[], list[nn.Module]]) -> nn.Module:
    return nn.Sequential(*(module for _ in range(depth) for module in make()), normal(width, 2, 1))


def measure(model: nn.Module, width: int, batch: int, *, q: float = 1.0, signs: bool = False) -> ModelProfile:
    """Inputs of mean square q."""
    x = torch.randn(batch, width) * math.sqrt(q)
    return profile_model(model, x.sign() * math.sqrt(q) if signs else x)


def chi(profile: ModelProfile, *, skip: int = 0) -> float:
    """Geometric mean over blocks, without the first `skip`."""
    found = profile.values("block", "grad_multiplier")
    values = [found[block.name] for block in profile.structure.body][skip:]
    return math.exp(2 * math.fsum(map(math.log, values)) / len(values))


def report(name: str, measured: float, expected: float, tolerance: float) -> None:
    print(f"{name}: measured {measured:.4f}, expected {expected:.4f} to {tolerance:.1%}")
    assert measured == pytest.approx(expected, rel=tolerance), name


def wide_limit(width: int, depth: int, seeds: int) -> float:
    """Three deviations of ln chi a layer, beside its shift (ORACLES, notation)."""
    return 3 * math.sqrt(5 / (width * depth * seeds)) + 2.5 / width


@dataclass(frozen=True, kw_only=True)
class Plain:
    """A row of section 4: activation, weight variance, bias variance, the fixed point q that it starts from, chi.

    `torch`: the layer is left as `nn.Linear` makes it.
    """

    act: Callable[[], nn.Module]
    sw2: float
    sb2: float | None = None
    q: float = 1.0
    expected: float
    torch: bool = False


PLAIN = {
    "ReLU, He: 1": Plain(act=nn.ReLU, sw2=2, expected=1),
    "ReLU, LeCun: .5": Plain(act=nn.ReLU, sw2=1, expected=0.5),
    "ReLU, nn.Linear: 1/6": Plain(act=nn.ReLU, sw2=1 / 3, expected=1 / 6, torch=True),
    "tanh 1 .05: .759032": Plain(act=nn.Tanh, sw2=1, sb2=0.05, q=0.193593, expected=0.759032),
    "tanh 1.424205 .01: 1": Plain(act=nn.Tanh, sw2=1.424205, sb2=0.01, expected=1),
    "tanh 1.760955 .05: 1": Plain(act=nn.Tanh, sw2=1.760955, sb2=0.05, expected=1),
    "tanh 1.986073 .10: 1": Plain(act=nn.Tanh, sw2=1.986073, sb2=0.10, expected=1),
    "tanh 2.25 0: 1.139323": Plain(act=nn.Tanh, sw2=2.25, q=0.793354, expected=1.139323),
    "tanh 4 .05: 1.342402": Plain(act=nn.Tanh, sw2=4, sb2=0.05, q=2.195494, expected=1.342402),
}


def plain_chi(row: Plain, width: int, depth: int, batch: int, seeds: int) -> float:
    logs = []
    for seed in range(seeds):
        torch.manual_seed(seed)

        def layer() -> list[nn.Module]:
            if row.torch:
                return [nn.Linear(width, width), row.act()]
            return [normal(width, width, row.sw2, row.sb2), row.act()]

        # x_0 has the mean square of the layers' outputs at the fixed point, so that none is on the way to it.
        second_moment = 1.0 if row.act is nn.ReLU else max((row.q - (row.sb2 or 0)) / row.sw2, 0.0)
        logs.append(math.log(chi(measure(plain(width, depth, layer), width, batch, q=second_moment), skip=depth // 4)))
    return math.exp(math.fsum(logs) / seeds)


@pytest.mark.parametrize("name", PLAIN)
def test_plain_networks(name: str) -> None:
    row = PLAIN[name]
    width, depth, seeds = 192, 16, 2
    report(name, plain_chi(row, width, depth, 48, seeds), row.expected, wide_limit(width, depth * 3 // 4, seeds))


@pytest.mark.slow
@pytest.mark.parametrize("name", PLAIN)
def test_plain_networks_in_full(name: str) -> None:
    row = PLAIN[name]
    report(name, plain_chi(row, 512, 30, 256, 3), row.expected, 0.02)


def test_tanh_without_bias_at_unit_gain_tends_to_1_as_one_over_the_layer() -> None:
    """Section 4, its last row: q is about 1/(2l) and 1 - chi about 1/l."""
    width, depth = 256, 48
    torch.manual_seed(0)
    profile = measure(plain(width, depth, lambda: [normal(width, width, 1), nn.Tanh()]), width, 16)
    found = list(profile.values("block", "grad_multiplier").values())[:depth]
    late = found[depth // 2 :]
    expected = math.fsum(math.log(1 - 1 / layer) for layer in range(depth // 2 + 1, depth + 1)) / len(late)
    measured = 2 * math.fsum(map(math.log, late)) / len(late)
    assert measured == pytest.approx(expected, abs=wide_limit(width, len(late), 1))
    assert measured < 0
    q = profile.values("boundary", "std")[str(2 * depth - 1)] ** 2
    assert q == pytest.approx(1 / (2 * depth), rel=0.35)


NORMALISED: dict[str, tuple[str, Callable[[], nn.Module], float]] = {
    "BN, ReLU: 1.466942": ("batch", nn.ReLU, math.pi / (math.pi - 1)),
    "BN, GELU: 1.318845": ("batch", nn.GELU, 1.318845),
    "BN, SiLU: 1.212081": ("batch", nn.SiLU, 1.212081),
    "BN, ELU: 1.079013": ("batch", nn.ELU, 1.079013),
    "BN, tanh: 1.177807": ("batch", nn.Tanh, 1.177807),
    "LN, ReLU: 1": ("layer", nn.ReLU, 1.0),
    "LN, tanh: 1.177807": ("layer", nn.Tanh, 1.177807),
}


def normalised_chi(kind: str, act: Callable[[], nn.Module], width: int, depth: int, batch: int) -> float:
    torch.manual_seed(0)
    norm = nn.BatchNorm1d if kind == "batch" else nn.LayerNorm
    model = plain(width, depth, lambda: [normal(width, width, 1), norm(width), act()])
    return chi(measure(model, width, batch), skip=1)  # the first layer is different


@pytest.mark.parametrize("name", NORMALISED)
def test_normalised_networks(name: str) -> None:
    kind, act, expected = NORMALISED[name]
    width, depth = 160, 8
    batch = 512 if kind == "batch" else 64
    report(name, normalised_chi(kind, act, width, depth, batch), expected, 0.04)


@pytest.mark.slow
@pytest.mark.parametrize("name", NORMALISED)
def test_normalised_networks_in_full(name: str) -> None:
    kind, act, expected = NORMALISED[name]
    report(name, normalised_chi(kind, act, 512, 12, 512), expected, 0.04)


@pytest.mark.slow
@pytest.mark.parametrize(("batch", "expected"), [(64, 1.486), (16, 1.594), (8, 1.775)])
def test_small_batches_explode_faster(batch: int, expected: float) -> None:
    report(f"BN, ReLU at batch {batch}", normalised_chi("batch", nn.ReLU, 512, 12, batch), expected, 0.03)


class Residual(nn.Module):
    """x + a F(x), or norm(x + F(x))."""

    def __init__(self, branch: nn.Module, scale: float | Tensor = 1.0, after: nn.Module | None = None) -> None:
        super().__init__()
        self.branch, self.after = branch, after
        self.scale = nn.Parameter(scale) if isinstance(scale, Tensor) else scale

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.scale * self.branch(x)
        return self.after(out) if self.after is not None else out


def two_layers(width: int) -> nn.Module:
    """W2 relu(W1 x), which keeps the variance: ReLU halves it, and W1 doubles it."""
    return nn.Sequential(normal(width, width, 2), nn.ReLU(), normal(width, width, 1))


@dataclass(frozen=True, kw_only=True)
class Skip:
    """A row of section 5: a block from width, its number and how many there are; chi and ratio of block l."""

    block: Callable[[int, int], nn.Module]
    chi: Callable[[int], float]
    ratio: Callable[[int], float]


SKIPS = {
    "keeps variance: 2, 1": Skip(
        block=lambda n, count: Residual(two_layers(n)), chi=lambda at: 2.0, ratio=lambda at: 1.0
    ),
    "ReLU first: 1.5, .7071": Skip(
        block=lambda n, count: Residual(nn.Sequential(nn.ReLU(), normal(n, n, 1))),
        chi=lambda at: 1.5,
        ratio=lambda at: math.sqrt(0.5),
    ),
    "a = .5: 1.25, .5": Skip(
        block=lambda n, count: Residual(two_layers(n), 0.5), chi=lambda at: 1.25, ratio=lambda at: 0.5
    ),
    "a = .1: 1.01, .1": Skip(
        block=lambda n, count: Residual(two_layers(n), 0.1), chi=lambda at: 1.01, ratio=lambda at: 0.1
    ),
    "a = L^-1/2: (1 + 1/L)^L": Skip(
        block=lambda n, count: Residual(two_layers(n), count**-0.5),
        chi=lambda at: 1 + 1 / 16,
        ratio=lambda at: 0.25,
    ),
    "BN first": Skip(
        block=lambda n, count: Residual(nn.Sequential(nn.BatchNorm1d(n), nn.ReLU(), normal(n, n, 2))),
        chi=lambda at: 1 + 1 / (1 + (1 - 1 / math.pi) * at),
        ratio=lambda at: 1 / math.sqrt(at + 1),
    ),
    "Pre-LN: (l+2)/(l+1), 1/sqrt(l+1)": Skip(
        block=lambda n, count: Residual(nn.Sequential(nn.LayerNorm(n), two_layers(n))),
        chi=lambda at: (at + 2) / (at + 1),
        ratio=lambda at: 1 / math.sqrt(at + 1),
    ),
    "Post-LN: 1": Skip(
        block=lambda n, count: Residual(two_layers(n), after=nn.LayerNorm(n)), chi=lambda at: 1.0, ratio=lambda at: 1.0
    ),
}


def residual_net(row: Skip, width: int, depth: int, batch: int, seed: int) -> ModelProfile:
    torch.manual_seed(seed)
    blocks = [row.block(width, depth) for _ in range(depth)]
    return measure(nn.Sequential(*blocks, normal(width, 2, 1)), width, batch)


def check_residual(name: str, width: int, depth: int, batch: int, seeds: int, tolerance: float) -> None:
    row = SKIPS[name]
    totals, ratios = [], []
    for seed in range(seeds):
        profile = residual_net(row, width, depth, batch, seed)
        assert len(profile.structure.body) == len(profile.structure.additions) == depth
        totals.append(2 * math.log(profile.value("grad_multiplier")))
        ratios.append(list(profile.values("addition", "residual_ratio").values()))
    expected = math.prod(map(row.chi, range(depth)))
    measured = math.exp(math.fsum(totals) / seeds)
    each = expected ** (1 / depth)
    # What fluctuates is the branch's part, which is the excess over 1.
    report(f"{name}, chi a block", measured ** (1 / depth), each, tolerance * min(4 * (each - 1) or 1, 1))
    over = [math.fsum(found) / seeds / row.ratio(at) for at, found in enumerate(zip(*ratios, strict=True))]
    report(f"{name}, ratio over expected", math.fsum(over) / depth, 1.0, tolerance)
    assert over == pytest.approx([1.0] * depth, rel=0.2)  # one block alone scatters


@pytest.mark.parametrize("name", SKIPS)
def test_residual_networks(name: str) -> None:
    batch = 384 if name == "BN first" else 32
    check_residual(name, width=256, depth=8 if "L^" not in name else 16, batch=batch, seeds=1, tolerance=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("name", SKIPS)
def test_residual_networks_in_full(name: str) -> None:
    depth = 16 if "L^" in name else 32
    check_residual(name, width=512, depth=depth, batch=512, seeds=1, tolerance=0.015)


class Fixed(nn.Module):
    """The last weight of the branch is 0 (Fixup), or the last gamma."""

    def __init__(self, width: int, last: str) -> None:
        super().__init__()
        layers: list[nn.Module] = [normal(width, width, 2), nn.ReLU(), normal(width, width, 2)]
        if last == "weight":
            nn.init.zeros_(layers[-1].weight)  # type: ignore[arg-type]
        else:
            layers.append(nn.BatchNorm1d(width))
            nn.init.zeros_(layers[-1].weight)  # type: ignore[arg-type]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.layers(x)
        return out


STILL: dict[str, Callable[[], nn.Module]] = {
    "ReZero": lambda: Residual(two_layers(16), torch.zeros(1)),
    "SkipInit": lambda: Residual(nn.Sequential(two_layers(16), nn.ReLU()), torch.zeros(())),
    "Fixup": lambda: Residual(Fixed(16, "weight")),
    "zero gamma": lambda: Residual(Fixed(16, "gamma")),
}


@pytest.mark.parametrize("name", STILL)
def test_blocks_that_start_as_the_identity_have_exactly_1_and_0(name: str) -> None:
    torch.manual_seed(0)
    profile = measure(nn.Sequential(*(STILL[name]() for _ in range(4)), normal(16, 2, 1)), 16, 24)
    body = [profile.values("block", "grad_multiplier")[block.name] for block in profile.structure.body]
    assert body == [1.0] * 4
    assert list(profile.values("addition", "residual_ratio").values()) == [0.0] * 4
    assert profile.values("addition", "cosine") == {}
    assert profile.value("grad_multiplier") == 1
    # The only gradients inside a branch (ORACLES 5); those of the others are 0, and their status is still ok.
    moving = {
        name.rpartition(".")[2] if "scale" in name else name.split(".", 2)[2]
        for name, value in profile.values("parameter", "weight_grad_norm").items()
        if value and not name.startswith("4.")
    }
    assert (
        moving
        == {
            "ReZero": {"scale"},
            "SkipInit": {"scale"},
            "Fixup": {"layers.2.weight"},
            "zero gamma": {"layers.3.weight", "layers.3.bias"},
        }[name]
    )
    assert set(profile.statuses.values()) == {"ok"}
