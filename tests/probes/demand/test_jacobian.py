"""Jacobian spectra: closed forms (ORACLES 6) and autograd's own dense Jacobian."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.models.convnet import cifar_resnet
from depthscope.models.init import build
from depthscope.probes.demand import Spectrum, spectrum
from depthscope.probes.demand.spectra import EXACT

SMALL, LARGE = 40, 3 * EXACT // 2
"""Widths at which the Jacobian is formed, and at which it is estimated."""


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def chain(*weights: Tensor) -> Callable[[Tensor], Tensor]:
    def apply(x: Tensor) -> Tensor:
        for weight in weights:
            x = x @ weight
        return x

    return apply


def dense(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The slow twin: the whole batch's Jacobian, entry by entry, by autograd's own function."""
    whole: Any = torch.autograd.functional.jacobian(function, x)  # type: ignore[no-untyped-call]
    return torch.as_tensor(whole).reshape(-1, x.numel()).double()


def assert_agrees(found: Spectrum, jacobian: Tensor, groups: int) -> None:
    """With the blocks of a dense Jacobian: the largest to the tolerance, the estimates to 4 standard errors."""
    rows, columns = jacobian.shape[0] // groups, jacobian.shape[1] // groups
    blocks = [jacobian[g * rows : (g + 1) * rows, g * columns : (g + 1) * columns] for g in range(groups)]
    largest = sum(float(torch.linalg.matrix_norm(block, ord=2)) for block in blocks) / groups
    assert found.largest is not None
    assert found.largest == pytest.approx(largest, rel=1e-3)
    mean_square = sum(float(block.square().sum()) for block in blocks) / (groups * min(rows, columns))
    assert abs(found.mean_square - mean_square) <= 4 * found.mean_square_error + 1e-9 * mean_square
    if found.identity_distance is not None:
        away = sum(float((block - torch.eye(rows)).square().sum()) for block in blocks)
        distance = math.sqrt(away / (groups * rows))
        assert abs(found.identity_distance - distance) <= 4 * found.identity_distance_error + 1e-9


# -- closed forms


@pytest.mark.parametrize("n", [SMALL, LARGE])
def test_orthogonal_stack_keeps_every_length(n: int) -> None:
    found = spectrum(chain(*(torch.linalg.qr(normal(n, n, seed=layer))[0] for layer in range(20))), normal(2, n))
    # Twenty products, each rounded to some units in the last place; processors sum in other orders.
    assert found.largest == pytest.approx(1, abs=1e-14)
    assert found.mean_square == pytest.approx(1, abs=2e-14)
    assert found.exact is (n == SMALL)


@pytest.mark.parametrize("n", [SMALL, LARGE])
def test_identity_its_negative_and_a_permutation(n: int) -> None:
    x = normal(3, n)
    identity = spectrum(lambda x: x, x)
    assert (identity.largest, identity.mean_square, identity.identity_distance) == (1, 1, 0)
    negative = spectrum(lambda x: -x, x)
    assert (negative.largest, negative.identity_distance) == (1, 2)
    rolled = spectrum(lambda x: x.roll(1, dims=1), x)
    assert rolled.identity_distance is not None
    assert rolled.identity_distance == pytest.approx(math.sqrt(2), abs=1e-12 + 4 * rolled.identity_distance_error)
    assert rolled.identity_distance_error < 0.05


@pytest.mark.parametrize("n", [SMALL, LARGE])
@pytest.mark.parametrize("a", [0.1, 2.0])
def test_identity_plus_a_matrix(n: int, a: float) -> None:
    matrix = normal(n, n)
    matrix -= torch.eye(n, dtype=torch.float64) * matrix.trace() / n
    matrix *= math.sqrt(n) / torch.linalg.matrix_norm(matrix)  # so that both values hold exactly at this width
    found = spectrum(lambda x: x + a * x @ matrix, normal(2, n))
    assert found.mean_square == pytest.approx(1 + a * a, abs=1e-12 + 4 * found.mean_square_error)
    assert found.identity_distance == pytest.approx(a, abs=1e-12 + 4 * found.identity_distance_error)


def law_of_products(depth: int, n: int, seeds: int) -> tuple[float, float]:
    """Mean over seeds of the squared largest singular value, and of the mean square, of a product of Gaussians."""
    largest, mean_square = [], []
    for seed in range(seeds):
        weights = [normal(n, n, seed=100 * seed + layer) / math.sqrt(n) for layer in range(depth)]
        found = spectrum(chain(*weights), normal(1, n))
        largest.append((found.largest or 0) ** 2)
        mean_square.append(found.mean_square)
    return sum(largest) / seeds, sum(mean_square) / seeds


@pytest.mark.parametrize(("depth", "limit"), [(1, 4.0), (2, 6.75), (3, 9.4815)])
def test_products_of_gaussians(depth: int, limit: float) -> None:
    # One factor's s_max^2 is 4 + 2^(4/3) n^(-2/3) TW, TW of mean -1.21 and deviation 1.27 (Johnstone 2001): at n = 300
    # 1.7% low, and 1% of scatter over 3 seeds; a product's is as many times as far off, roughly, as it has factors.
    largest, mean_square = law_of_products(depth, 300, 3)
    assert largest == pytest.approx(limit, rel=0.035 * depth)
    # Of 16 probes the deviation is sqrt(2 E[s^4] / (16 n)), over 3 seeds: .024 where E[s^4] = depth + 1 is 4.
    assert mean_square == pytest.approx(1, abs=0.08)


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "limit"), [(1, 4.0), (2, 6.75), (3, 9.4815)])
def test_products_of_large_gaussians(depth: int, limit: float) -> None:
    assert law_of_products(depth, 1000, 3)[0] == pytest.approx(limit, rel=0.05)


# -- residual blocks at initialisation (ORACLES 5)


def test_a_zero_branch_is_the_identity_and_a_relu_behind_it_a_mask() -> None:
    model, _ = build(
        lambda: cifar_resnet(depth=8, width=4, shortcut="A"), seed=0, zero_last_gamma=True, dtype=torch.float64
    )
    for size in (4, 8):  # 64 numbers are formed exactly in evaluation mode, 256 estimated
        for block in (model.blocks[0].train(), model.blocks[0].eval()):
            inputs = normal(3, 4, size, size)
            assert spectrum(block, inputs.abs() + 0.1).identity_distance == 0
            masked = spectrum(block, inputs)
            kept = float((inputs > 0).double().mean())
            # No sum of different entries: even the estimates are exact.
            assert masked.mean_square == pytest.approx(kept, abs=1e-12)
            assert masked.identity_distance == pytest.approx(math.sqrt(1 - kept), abs=1e-12)
            assert masked.largest == pytest.approx(1)


# -- against the dense twin


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix = nn.Linear(width, 3 * width)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = (each.unsqueeze(1) for each in self.mix(x).chunk(3, dim=-1))
        return F.scaled_dot_product_attention(query, key, value, is_causal=True).squeeze(1)


class InPlace(nn.Module):
    """Changes its input, and a tensor between, in place."""

    def forward(self, x: Tensor) -> Tensor:
        x.mul_(1.5)
        out = x.sin()
        out += x
        return F.relu_(out)


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make().double()


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], bool]] = {
    "linear, wider": (lambda: nn.Linear(20, 170), (2, 20), True),
    "linear, narrower": (lambda: nn.Linear(170, 20), (2, 170), True),
    "mlp": (lambda: nn.Sequential(nn.Linear(160, 160), nn.GELU(), nn.Linear(160, 160)), (2, 160), True),
    "convolution": (lambda: nn.Conv2d(2, 5, 3, stride=2, padding=1), (3, 2, 16, 16), True),
    "batch norm, small": (lambda: nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), nn.Tanh()), (5, 6), False),
    "batch norm": (lambda: nn.Sequential(nn.BatchNorm1d(12), nn.Linear(12, 12)), (16, 12), False),
    "layer norm": (lambda: nn.Sequential(nn.LayerNorm(150), nn.ReLU()), (2, 150), True),
    "fused attention": (lambda: Attention(24), (2, 7, 24), True),
    "in place": (InPlace, (2, 150), True),
}


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_the_dense_jacobian(case: str) -> None:
    make, shape, per_example = CASES[case]
    model = seeded(make)
    x = normal(*shape)
    found = spectrum(model, x, num_probes=40)
    assert found.per_example is per_example
    assert_agrees(found, dense(lambda inputs: model(inputs.clone()), x), shape[0] if per_example else 1)


def test_evaluation_mode_gives_each_example_its_own_jacobian() -> None:
    make, shape, _ = CASES["batch norm"]
    model = seeded(make).eval()
    found = spectrum(model, normal(*shape))
    assert found.per_example
    assert_agrees(found, dense(model, normal(*shape)), shape[0])


def test_a_half_model_is_measured_in_its_own_rounding() -> None:
    weight = (normal(200, 200) / math.sqrt(200)).bfloat16()
    found = spectrum(chain(weight), normal(2, 200).bfloat16())
    exact = float(torch.linalg.matrix_norm(weight.double(), ord=2))
    assert found.largest == pytest.approx(exact, rel=0.01)
    assert found.num_iterations < 50
    # The same under autocast, whose rounding no boundary's dtype shows.
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cast = spectrum(lambda x: chain(weight.float())(x).float(), normal(2, 200).float())
    assert cast.largest == pytest.approx(exact, rel=0.01)


def test_the_standard_error_is_that_of_the_estimate() -> None:
    weight = normal(LARGE, LARGE) / math.sqrt(LARGE)
    true = float(weight.square().sum()) / LARGE
    scores = []
    for seed in range(30):
        found = spectrum(chain(weight), normal(1, LARGE), num_probes=20, max_iterations=1, seed=seed)
        scores.append((found.mean_square - true) / found.mean_square_error)
    # t with 19 degrees of freedom: over 30 draws mean 0 +- .19, and mean square 19/17 +- .34.
    assert abs(sum(scores) / 30) < 0.6
    assert 0.4 < sum(score**2 for score in scores) / 30 < 2.2


def test_what_cannot_be_differentiated_twice_has_no_largest_value_and_says_so() -> None:
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return 3 * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            return 3 * gradient

    apply: Any = Once.apply
    found = spectrum(apply, normal(2, LARGE))
    assert found.largest is None
    assert "transpose do not agree" in found.missing
    assert (found.mean_square, found.identity_distance) == (9, 2)
    beside = spectrum(lambda x: x + apply(x), normal(2, LARGE))  # where a part of J u would remain
    assert (beside.largest, beside.mean_square) == (None, 16)
    small = spectrum(apply, normal(2, SMALL))
    assert small.largest == pytest.approx(3)


def test_values_that_are_not_finite_stay_so() -> None:
    for n in (SMALL, LARGE):
        found = spectrum(lambda x: x * math.nan, normal(2, n))
        assert found.largest is not None
        assert math.isnan(found.largest)
        assert math.isnan(found.mean_square)
        zero = spectrum(lambda x: x * 0, normal(2, n))
        assert (zero.largest, zero.mean_square, zero.identity_distance) == (0, 0, 1)


# -- what it leaves alone, and refuses


def test_the_same_numbers_whatever_the_generators_and_grad_mode() -> None:
    weight = normal(LARGE, LARGE)
    first = spectrum(chain(weight), normal(2, LARGE))
    torch.manual_seed(5)
    state = torch.get_rng_state()
    with torch.no_grad():
        assert spectrum(chain(weight), normal(2, LARGE)) == first
        assert not torch.is_grad_enabled()
    assert torch.equal(torch.get_rng_state(), state)


def test_the_module_is_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(12, 12), nn.BatchNorm1d(12), nn.Dropout(0.5)).double()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    state = torch.get_rng_state()
    x = normal(16, 12)
    spectrum(model, x)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(x, normal(16, 12))


@pytest.mark.parametrize(
    ("function", "x", "words"),
    [
        (lambda x: x, torch.zeros(2, 3, dtype=torch.int64), "floating-point"),
        (lambda x: x, torch.zeros(0, 3), "none of its dimensions 0"),
        (lambda x: (x, x), torch.ones(2, 3), "type tuple"),
        (lambda x: x.detach(), torch.ones(2, 3), "requires_grad False"),
    ],
)
def test_refusals(function: Any, x: Tensor, words: str) -> None:
    with pytest.raises(UserError, match=words):
        spectrum(function, x)
    with pytest.raises(UserError, match="num_probes"):
        spectrum(lambda x: x, torch.ones(1, 1), num_probes=0)
