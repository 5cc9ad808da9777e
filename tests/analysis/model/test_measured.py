"""Measured beside expected: real networks of torch at initialisation against closed forms of the wide limit.

The multipliers' product over L blocks of width n has ln chi = -2.5/n a block in the mean, within 3 sqrt(5/(n L)).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from depthscope.analysis.model import ModelDiagnosis, diagnose, expected
from depthscope.core.readings import ModelProfile
from depthscope.probes.measure.profile import profile_model

N = 128
L = 8


class Residual(nn.Module):
    """x + scale * branch(x), then `after`."""

    def __init__(self, *branch: nn.Module, scale: float = 1.0, after: nn.Module | None = None) -> None:
        super().__init__()
        self.branch, self.scale, self.after = nn.Sequential(*branch), scale, after

    def forward(self, x: Tensor) -> Tensor:
        y = x + self.scale * self.branch(x)
        return y if self.after is None else self.after(y)  # type: ignore[no-any-return]


def linear(sw2: float, sb2: float = 0.0, *, orthogonal: bool = False) -> nn.Linear:
    layer = nn.Linear(N, N)
    if orthogonal:
        nn.init.orthogonal_(layer.weight, sw2**0.5)
    else:
        nn.init.normal_(layer.weight, std=(sw2 / N) ** 0.5)
    nn.init.normal_(layer.bias, std=sb2**0.5)
    return layer


def plain(sw2: float, act: nn.Module, sb2: float = 0.0, norm: Callable[[int], nn.Module] | None = None) -> nn.Module:
    return nn.Sequential(linear(sw2, sb2), *([norm(N)] if norm else []), act)


def measured(block: Callable[[], nn.Module], *, stem_act: nn.Module | None = None, num: int = L) -> ModelProfile:
    """A stem, `num` blocks, a head, on a batch of 2N unit Gaussian examples; a random cotangent."""
    torch.manual_seed(7)
    stem = nn.Linear(N // 2, N)
    nn.init.normal_(stem.weight, std=(2 / N) ** 0.5)
    first = nn.Sequential(stem, stem_act) if stem_act is not None else stem
    model = nn.Sequential(first, *(block() for _ in range(num)), nn.Linear(N, 10))
    return profile_model(model, torch.randn(2 * N, N // 2))


def centre_and_width() -> tuple[float, float]:
    return -2.5 / N, 3 * math.sqrt(5 / (N * L))


PLAIN: dict[str, tuple[Callable[[], nn.Module], float]] = {
    "relu He": (lambda: plain(2.0, nn.ReLU()), 1.0),
    "relu LeCun": (lambda: plain(1.0, nn.ReLU()), 0.5),
    "relu default": (lambda: plain(1 / 3, nn.ReLU()), 1 / 6),
    "tanh 1 .05": (lambda: plain(1.0, nn.Tanh(), 0.05), 0.759032),
    "tanh critical .01": (lambda: plain(1.424205, nn.Tanh(), 0.01), 1.0),
    "tanh critical .05": (lambda: plain(1.760955, nn.Tanh(), 0.05), 1.0),
    "tanh 4 .05": (lambda: plain(4.0, nn.Tanh(), 0.05), 1.342402),
    "BN relu": (lambda: plain(0.7, nn.ReLU(), norm=nn.BatchNorm1d), 1.466942),
    "BN gelu": (lambda: plain(0.7, nn.GELU(), norm=nn.BatchNorm1d), 1.318845),
    "BN silu": (lambda: plain(0.7, nn.SiLU(), norm=nn.BatchNorm1d), 1.212081),
    "BN elu": (lambda: plain(0.7, nn.ELU(), norm=nn.BatchNorm1d), 1.079013),
    "BN tanh": (lambda: plain(0.7, nn.Tanh(), norm=nn.BatchNorm1d), 1.177807),
    "LN relu": (lambda: plain(0.7, nn.ReLU(), norm=nn.LayerNorm), 1.0),
    "LN tanh": (lambda: plain(0.7, nn.Tanh(), norm=nn.LayerNorm), 1.177807),
}


@pytest.mark.parametrize("case", PLAIN)
def test_plain_networks(case: str) -> None:
    """Blocks 2 on: the first ones bring the signal to its fixed point."""
    block, chi = PLAIN[case]
    found = measured(block, stem_act=block()[-1], num=L + 3)  # type: ignore[index]
    m = list(found.values("block", "grad_multiplier").values())[4:-1]
    centre, width = centre_and_width()
    assert len(m) == L
    assert 2 * sum(map(math.log, m)) / L - math.log(chi) == pytest.approx(centre, abs=width)
    agreement(found)


RESIDUAL: dict[str, tuple[Callable[[], nn.Module], Callable[[int], float], Callable[[int], float]]] = {
    "unit": (lambda: Residual(linear(1.0), nn.ReLU(), linear(2.0)), lambda at: 2.0, lambda at: 1.0),
    "relu first": (lambda: Residual(nn.ReLU(), linear(1.0)), lambda at: 1.5, lambda at: 0.5**0.5),
    "a = .5": (lambda: Residual(linear(1.0), nn.ReLU(), linear(2.0), scale=0.5), lambda at: 1.25, lambda at: 0.5),
    "a = .1": (lambda: Residual(linear(1.0), nn.ReLU(), linear(2.0), scale=0.1), lambda at: 1.01, lambda at: 0.1),
    "BN first": (
        lambda: Residual(nn.BatchNorm1d(N), nn.ReLU(), linear(2.0)),
        lambda at: 1 + 1 / (1 + (1 - 1 / math.pi) * at),
        lambda at: (at + 1) ** -0.5,
    ),
    "Pre-LN": (
        lambda: Residual(nn.LayerNorm(N), linear(1.0), nn.ReLU(), linear(2.0)),
        lambda at: (at + 2) / (at + 1),
        lambda at: (at + 1) ** -0.5,
    ),
    "Post-LN": (
        lambda: Residual(linear(1.0), nn.ReLU(), linear(2.0), after=nn.LayerNorm(N)),
        lambda at: 1.0,
        lambda at: 1.0,
    ),
}


@pytest.mark.parametrize("case", RESIDUAL)
def test_residual_networks(case: str) -> None:
    block, chi, ratio = RESIDUAL[case]
    found = measured(block)
    m = list(found.values("block", "grad_multiplier").values())[1:-1]
    r = list(found.values("addition", "residual_ratio").values())
    centre, width = centre_and_width()
    assert len(m) == len(r) == L
    total = sum(2 * math.log(each) - math.log(chi(at)) for at, each in enumerate(m))
    assert total / L == pytest.approx(centre / 2, abs=width)
    for at, each in enumerate(r):
        assert each == pytest.approx(ratio(at), rel=2 * math.sqrt(5 / N))
    agreement(found, ratios=True)


def agreement(found: ModelProfile, *, ratios: bool = False) -> None:
    """Every block is recognised, and what was measured lies in its band."""
    theory = expected(found.structure, found)
    m = found.values("block", "grad_multiplier")
    assert [block.name for block in found.structure.body] == list(theory.multipliers)
    assert all(band.agrees(m[name]) for name, band in theory.multipliers.items())
    if ratios:
        r = found.values("addition", "residual_ratio")
        assert list(theory.ratios) == list(r)
        assert all(band.agrees(r[name]) for name, band in theory.ratios.items())


def test_a_zero_branch_is_exactly_the_identity() -> None:
    found = measured(lambda: Residual(linear(2.0), nn.ReLU(), linear(2.0), scale=0.0))
    m = list(found.values("block", "grad_multiplier").values())[1:-1]
    assert m == pytest.approx([1.0] * L, rel=1e-12)
    theory = expected(found.structure, found)
    assert all((e.value, e.low, e.high) == (1.0, 1.0, 1.0) for e in theory.multipliers.values())
    assert all(e.value == 0.0 for e in theory.ratios.values())


def test_an_orthogonal_stack_keeps_every_norm() -> None:
    found = measured(lambda: nn.Sequential(linear(1.0, orthogonal=True), nn.Identity()))
    m = list(found.values("block", "grad_multiplier").values())[1:-1]
    assert m == pytest.approx([1.0] * L, rel=1e-5)
    theory = expected(found.structure, found)
    assert all(e.value == pytest.approx(1.0, rel=1 / N) for e in theory.multipliers.values())


def judged(model: nn.Module, factor: float = 1.0) -> ModelDiagnosis:
    torch.manual_seed(3)
    batch = torch.randn(64, 20), torch.randint(10, (64,))
    return diagnose(profile_model(model, batch, lambda y, t: factor * nn.functional.cross_entropy(y, t)))


def test_a_scaled_loss_has_the_same_diagnosis() -> None:
    torch.manual_seed(1)
    layers = [each for _ in range(20) for each in (nn.Linear(64, 64), nn.ReLU())]
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), *layers, nn.Linear(64, 10))
    plainly = judged(model)
    assert (plainly.verdict, plainly.cause) == ("vanishing", "gain too small")
    assert plainly.sentence.startswith("ReLU with torch's default initialiser: a block multiplies")
    for factor in (1e-6, 1e6):
        scaled = judged(model, factor)
        same: dict[str, object] = {"numbers": {}, "rate": None, "sentence": "", "notes": ()}
        assert scaled.model_copy(update=same) == plainly.model_copy(update=same)
        assert scaled.numbers == pytest.approx(plainly.numbers, rel=1e-6)


def test_the_norm_at_the_end_of_a_stack_is_on_no_trunk() -> None:
    """An encoder's last norm comes before the decoder's first block, which is built as its like are."""
    torch.manual_seed(0)
    model = nn.Transformer(16, 2, 3, 3, 32, dropout=0.0, batch_first=True)
    found = diagnose(profile_model(model, {"src": torch.randn(4, 7, 16), "tgt": torch.randn(4, 5, 16)}))
    assert found.verdict == "healthy"


def test_a_weight_that_is_not_finite_has_no_expected_value_and_a_verdict() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(*(plain(2.0, nn.ReLU()) for _ in range(6)))
    with torch.no_grad():
        model.get_parameter("2.0.weight")[0, 0] = math.nan
    profile = profile_model(model, torch.randn(8, N))
    assert "2" not in expected(profile.structure, profile).multipliers
    found = diagnose(profile)
    assert (found.cause, found.where) == ("non-finite values", ("2",))
