"""Jacobian spectra of blocks where they stand in a model, against those of the same blocks by themselves."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from depthscope.core.errors import UserError
from depthscope.probes.demand import block_spectra, gradient_trust, jacobian_cost, spectrum
from depthscope.probes.demand.linearise import Anchor, Linearised


class Residual(nn.Module):
    """Layers with in-place additions and activations, so that no boundary tensor stays as it was."""

    def __init__(self, *, width: int = 12, depth: int = 2, recompute: bool = False, norm: bool = False) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) if norm else nn.Identity() for _ in range(depth))
        self.recompute = recompute

    def forward(self, x: Tensor) -> Tensor:
        for index in range(len(self.layers)):
            x = checkpoint(self.block, index, x, use_reentrant=False) if self.recompute else self.block(index, x)
        return x

    def block(self, index: int, x: Tensor) -> Tensor:
        out = F.silu(self.layers[index](self.norms[index](x)))
        out += x
        return out


def seeded(make: Any) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make().double()


def inputs(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("recompute", "norm", "width"), [(False, False, 140), (True, False, 12), (False, True, 12)])
def test_each_block_is_measured_as_it_is_by_itself(recompute: bool, norm: bool, width: int) -> None:
    model = seeded(lambda: Residual(width=width, recompute=recompute, norm=norm))
    x = inputs(9, width)
    found = block_spectra(model, x, num_probes=4)
    assert not found.missing
    assert len(found.spectra) == 2
    h = x
    for index, (name, measured) in enumerate(found.spectra.items()):
        alone = spectrum(lambda given, index=index: model.block(index, given), h, num_probes=4)  # type: ignore[misc]
        assert measured.per_example is alone.per_example is not norm
        assert measured.largest == pytest.approx(alone.largest, rel=1e-6 if alone.exact else 1e-3), name
        spread = 6 * (alone.mean_square_error + measured.mean_square_error)
        assert measured.mean_square == pytest.approx(alone.mean_square, abs=1e-9 + spread)
        spread = 6 * (alone.identity_distance_error + measured.identity_distance_error)
        assert measured.identity_distance == pytest.approx(alone.identity_distance, abs=1e-9 + spread)
        with torch.no_grad():
            h = model.block(index, h)


def test_a_place_in_the_graph_outlasts_in_place_operations() -> None:
    x = inputs(2, 3).requires_grad_(True)
    h = x * 2
    begin = Anchor(h)
    h.mul_(3)
    end = Anchor(h)
    assert end.output is h
    h.mul_(5)
    assert end.output is not h
    between = Linearised(begin, end)
    ones = torch.ones(2, 3, dtype=torch.float64)
    assert torch.equal(between.vjp(ones), 3 * ones)
    assert torch.equal(between.jvp(ones), 3 * ones)


class TinyGPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.norm, self.mix, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.head = nn.Linear(16, 11)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        query, key, value = (each.unsqueeze(1) for each in self.mix(self.norm(x)).chunk(3, dim=-1))
        x = x + self.out(F.scaled_dot_product_attention(query, key, value, is_causal=True).squeeze(1))
        logits: Tensor = self.head(x)
        return logits


def test_integers_frozen_weights_and_fused_attention() -> None:
    model = seeded(TinyGPT).requires_grad_(False)
    tokens = torch.arange(18).reshape(2, 9) % 11
    found = block_spectra(model, tokens)
    assert list(found.missing.values()) == ["the model's input is not of floating point"]
    attention = next(each for name, each in found.spectra.items() if each.identity_distance)

    def block(x: Tensor) -> Tensor:
        query, key, value = (each.unsqueeze(1) for each in model.mix(model.norm(x)).chunk(3, dim=-1))
        out: Tensor = model.out(F.scaled_dot_product_attention(query, key, value, is_causal=True).squeeze(1))
        return x + out

    x = model.embed(tokens)
    dense: Any = torch.autograd.functional.jacobian(block, x)  # type: ignore[no-untyped-call]
    blocks = [dense[b, :, :, b].reshape(144, 144) for b in range(2)]
    expected = sum(float(torch.linalg.matrix_norm(each, ord=2)) for each in blocks) / 2
    assert attention.largest == pytest.approx(expected, rel=1e-3)
    assert not attention.exact
    assert not any(parameter.requires_grad for parameter in model.parameters())


class ReZero(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(140, 140) for _ in range(2))
        self.scales = nn.ParameterList(nn.Parameter(torch.zeros(())) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for layer, scale in zip(self.layers, self.scales, strict=True):
            x = x + scale * layer(x).relu()
        return x


def test_rezero_begins_as_the_identity() -> None:
    found = block_spectra(ReZero(), inputs(3, 140).float())
    assert len(found.spectra) == 2
    for each in found.spectra.values():
        assert (each.mean_square, each.identity_distance) == (1, 0)
        assert each.largest == pytest.approx(1, abs=1e-6)


def test_the_model_is_left_as_found() -> None:
    model = seeded(lambda: Residual(norm=True, recompute=True))
    model.layers[0].weight.grad = torch.ones_like(model.layers[0].weight)
    twin = copy.deepcopy(model)
    grad = model.layers[0].weight.grad
    state = torch.get_rng_state()
    first = block_spectra(model, inputs(9, 12))
    torch.manual_seed(3)
    assert block_spectra(model, inputs(9, 12)) == first
    torch.set_rng_state(state)
    for found, kept in zip(model.state_dict().values(), twin.state_dict().values(), strict=True):
        assert torch.equal(found, kept)
    assert model.layers[0].weight.grad is grad
    assert bool((grad == 1).all())
    assert model.training


class Fickle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        Fickle.times += 1
        h: Tensor = self.layer(x)
        return h.relu() if Fickle.times % 2 else h.tanh()

    times = 0


def test_a_model_that_takes_another_way_has_no_spectra_and_says_so() -> None:
    found = block_spectra(seeded(Fickle), inputs(2, 4))
    assert not found.spectra
    assert all("another way" in reason for reason in found.missing.values())
    assert found.missing


def test_blocks_are_chosen_by_name_and_give_readings() -> None:
    model = seeded(Residual)
    names = list(block_spectra(model, inputs(3, 12)).spectra)
    found = block_spectra(model, inputs(3, 12), blocks=names[1:2])
    assert [(each.name, each.quantity) for each in found.readings(step=7)] == [
        (names[1], "jacobian_max"),
        (names[1], "jacobian_mean_square"),
        (names[1], "identity_distance"),
    ]
    with pytest.raises(UserError, match="unknown block"):
        block_spectra(model, inputs(3, 12), blocks=["layer"])


def test_the_cost_is_an_upper_bound_of_what_is_done() -> None:
    model = seeded(lambda: Residual(width=140))
    passes = 0

    # Each product with a block's Jacobian passes once through that block's activation, forward or transposed.
    class Counted(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Tensor:
            nonlocal passes
            passes += 1
            return gradient * 1

    apply: Any = Counted.apply
    spectrum(lambda x: apply(model.block(0, x)), inputs(3, 140))
    told = jacobian_cost(block_spectra(model, inputs(3, 140), max_iterations=1, num_probes=1).structure, 3)
    assert passes > 16
    assert told.backwards * 2 >= passes
    assert "training steps" in str(told)


class Demanding(Residual):
    """Sets the flag of its input, as Wav2Vec2 does in train mode; torch lets it where the input depends on no leaf."""

    def forward(self, x: Tensor) -> Tensor:
        x.requires_grad = False
        return super().forward(x)


def test_a_model_that_sets_its_inputs_flag_is_measured_without_its_inputs_gradient() -> None:
    demanding, free = (seeded(lambda kind=kind: kind(norm=True, recompute=False)) for kind in (Demanding, Residual))
    found, expected = (block_spectra(each, inputs(9, 12)) for each in (demanding, free))
    first, second = expected.spectra
    assert found.missing == {first: "the model demands that its input requires no gradient"}
    assert found.spectra == {second: expected.spectra[second]}
    assert gradient_trust(demanding, inputs(9, 12)) == gradient_trust(free, inputs(9, 12))
