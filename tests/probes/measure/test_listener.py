"""The recorder's numbers against NumPy's in float64, of one pass and of several micro-batches."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from depthscope.core.structure import Block, Boundary, ResidualAddition, Structure
from depthscope.probes.measure import reduce
from depthscope.probes.measure.listener import Recorder

STRUCTURE = Structure(
    boundaries=tuple(Boundary(index=index, name=name) for index, name in enumerate(("input", "a", "b", "output"))),
    blocks=(
        Block(index=0, name="a", role="stem", ops=()),
        Block(index=1, name="b", role="body", ops=()),
        Block(index=2, name="output", role="body", ops=()),
    ),
    additions=(ResidualAddition(index=0, name="add", block=1, branch=()),),
)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small tensor is taken in several."""
    monkeypatch.setitem(reduce._PIECE, "cpu", 7)


def values(recorder: Recorder, scale: float = 1.0) -> dict[tuple[str, str], float]:
    return {(each.name, each.quantity): each.value for each in recorder.readings(STRUCTURE, step=0, scale=scale)}


def chain(x: Tensor, recorder: Recorder) -> tuple[Tensor, Tensor]:
    """Input -> a = 3 input -> b = a^2 -> output = b.sum over columns, each with its hook."""
    recorder.boundary(0, x)
    a = 3 * x
    recorder.boundary(1, a)
    recorder.addition(0, a, x)
    b = a * a
    recorder.boundary(2, b)
    output = b.sum(1)
    recorder.boundary(3, output)
    return a, output


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "channels last"])
def test_one_pass_by_hand(layout: str) -> None:
    x = torch.randn(6, 2, 3, 5, generator=torch.Generator().manual_seed(0)) + 40
    x[x < 39.5] = 0
    if layout == "transposed":
        x = x.transpose(1, 3)
    elif layout == "channels last":
        x = x.contiguous(memory_format=torch.channels_last)
    recorder = Recorder(6)
    leaf = x.clone().requires_grad_()
    _, output = chain(leaf, recorder)
    output.sum().backward()  # type: ignore[no-untyped-call]
    found = values(recorder)
    h = 3 * x.double().numpy()
    gradient = {"b": np.ones_like(h), "a": 2 * h, "input": 6 * h}
    assert found["a", "norm"] == pytest.approx(np.sqrt((h**2).sum()), rel=1e-6)
    assert found["a", "mean"] == pytest.approx(h.mean(), rel=1e-6)
    assert found["a", "std"] == pytest.approx(h.std(), rel=1e-6)
    assert found["a", "zeros"] == (h == 0).mean()
    assert found["a", "nonfinite"] == found["a", "grad_nonfinite"] == 0
    for name, each in gradient.items():
        assert found[name, "grad_norm"] == pytest.approx(np.sqrt((each**2).sum()), rel=1e-6), name
    assert found["b", "grad_multiplier"] == found["a", "grad_norm"] / found["b", "grad_norm"]
    assert found["", "grad_multiplier"] == pytest.approx(
        found["b", "grad_multiplier"] * found["output", "grad_multiplier"], rel=1e-15
    )
    assert found["add", "residual_ratio"] == pytest.approx(3, rel=1e-6)
    assert found["add", "cosine"] == pytest.approx(1, rel=1e-12)
    assert found["add", "share"] == pytest.approx(0.75, rel=1e-6)


def test_micro_batches_are_read_as_one_batch() -> None:
    x = torch.randn(10, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    whole, parts = Recorder(10), Recorder(3)
    for recorder, pieces in ((whole, [x]), (parts, [x[:3], x[3:6], x[6:]])):
        for piece in pieces:
            recorder.num_examples = len(piece)
            _, output = chain(piece.clone().requires_grad_(), recorder)
            output.sum().backward()  # type: ignore[no-untyped-call]
    expected = values(whole)
    assert values(parts) == pytest.approx(expected, rel=1e-12)
    halved = values(parts, scale=2.0)
    assert halved["a", "grad_norm"] == pytest.approx(expected["a", "grad_norm"] / 2, rel=1e-12)
    assert halved["a", "norm"] == pytest.approx(expected["a", "norm"], rel=1e-12)
    assert halved["", "grad_multiplier"] == pytest.approx(expected["", "grad_multiplier"], rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_entries_of_1e_minus_24_are_not_0(dtype: torch.dtype) -> None:
    """Squared they are no float32."""
    tiny = torch.full((100,), 1e-24, dtype=dtype)
    norm, nonfinite = reduce.merged_sizes([row.tolist() for row in reduce.sizes(tiny)])
    assert norm == pytest.approx(1e-23, rel=5e-3)
    assert nonfinite == 0
    assert reduce.merged_moments([row.tolist() for row in reduce.moments(tiny)])["norm"] == norm


def test_where_there_is_no_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    """MPS: in float32, scaled so that no square underflows."""
    monkeypatch.setattr(reduce, "_wide", lambda _tensor: torch.float32)
    generator = torch.Generator().manual_seed(0)
    h, x = torch.randn(4, 50, generator=generator) * 1e-24, torch.randn(4, 50, generator=generator) * 1e-24
    found = reduce.merged_moments([row.tolist() for row in reduce.moments(h)])
    assert found["norm"] == pytest.approx(h.double().norm().item(), rel=1e-6)
    assert found["norm"] == reduce.merged_sizes([row.tolist() for row in reduce.sizes(h)])[0]
    expected = compared(h.double() * 1e24, x.double() * 1e24, 4)
    assert compared(h, x, 4) == pytest.approx(expected, rel=1e-5)


def test_equal_entries_have_no_deviation_and_a_distant_mean_costs_no_digits() -> None:
    rows = [row.tolist() for row in reduce.moments(torch.full((20,), 0.1))]
    assert reduce.merged_moments(rows)["std"] == 0
    near = torch.arange(20, dtype=torch.float64) + 1e9
    rows = [row.tolist() for row in reduce.moments(near)]
    assert reduce.merged_moments(rows)["std"] == pytest.approx(math.sqrt((20**2 - 1) / 12), rel=1e-9)


def test_what_is_not_finite_is_counted_and_kept() -> None:
    x = torch.ones(20)
    x[0], x[9], x[19] = math.inf, math.nan, -math.inf
    found = reduce.merged_moments([row.tolist() for row in reduce.moments(x)])
    assert found["nonfinite"] == 3
    assert not any(math.isfinite(found[name]) for name in ("norm", "mean", "std"))
    (norm, count) = reduce.merged_sizes([row.tolist() for row in reduce.sizes(x)])
    assert count == 3
    assert not math.isfinite(norm)


def compared(branch: Tensor, skip: Tensor, num_examples: int) -> dict[str, float]:
    return reduce.merged_comparisons([row.tolist() for row in reduce.comparisons(branch, skip, num_examples)])


def test_an_addition_is_read_example_by_example() -> None:
    """Not over the batch: a large example would drown a small one."""
    skip = torch.tensor([[1.0, 0.0], [1000.0, 0.0]])
    branch = torch.tensor([[0.0, 3.0], [1000.0, 0.0]])
    assert compared(branch, skip, 2) == pytest.approx({"residual_ratio": 2, "cosine": 0.5, "share": (0.9 + 0.5) / 2})


@pytest.mark.parametrize("shape", [(2, 3, 4), (3, 2, 4), (6, 4)], ids=["batch first", "sequence first", "flattened"])
def test_the_batch_dimension_is_known_by_its_length(shape: tuple[int, ...]) -> None:
    skip_BTC = torch.tensor([1.0, 100.0]).reshape(2, 1, 1).expand(2, 3, 4)
    branch_BTC = torch.tensor([2.0, 100.0]).reshape(2, 1, 1).expand(2, 3, 4)
    if shape == (3, 2, 4):
        skip_BTC, branch_BTC = skip_BTC.transpose(0, 1), branch_BTC.transpose(0, 1)
    found = compared(branch_BTC.reshape(shape), skip_BTC.reshape(shape), 2)
    assert found["residual_ratio"] == pytest.approx(1.5)


def test_what_has_no_ratio_has_none() -> None:
    zero, one = torch.zeros(2, 3), torch.ones(2, 3)
    assert compared(zero, one, 2) == {"residual_ratio": 0.0, "share": 0.0}  # ReZero at step 0
    assert compared(one, zero, 2) == {"residual_ratio": math.inf, "share": 1.0}
    assert compared(zero, zero, 2) == {}
    assert compared(-one, one, 2) == pytest.approx({"residual_ratio": 1.0, "cosine": -1.0})


def test_further_readings_find_their_place() -> None:
    recorder = Recorder(2, reducers=[lambda index, h: {"rank": float(index), "dead": (h == 0).double().mean()}])
    for _ in range(2):
        recorder.boundary(1, torch.tensor([[0.0, 1.0]]))
    found = values(recorder)
    assert (found["a", "rank"], found["a", "dead"]) == (1.0, 0.5)


def test_integers_and_what_needs_no_gradient() -> None:
    recorder = Recorder(2)
    recorder.boundary(0, torch.ones(2, 3, dtype=torch.long))
    recorder.boundary(1, torch.ones(2, 3))
    assert {name for name, _ in values(recorder)} == {"a"}
    assert ("a", "grad_norm") not in values(recorder)
