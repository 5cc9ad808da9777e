"""Maps by the caller's own losses: precision, class weights, states, targets that are ignored."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.probes.landscape.outputs import widened
from depthscope.study.landscape import MapSpec
from depthscope.train.mapping import Mapper, OfObject


def mapper(loss_fn: Any, y: Tensor, **changes: Any) -> tuple[nn.Module, Tensor, Mapper]:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)), torch.randn(20, 5)
    spec = MapSpec(**{"axes": 1, "points": 3, "examples": 20, **changes})
    return model, x, Mapper(spec=spec, material=OfObject(model=model, data=(x, y), loss_fn=loss_fn).material(spec))


LABELS = torch.arange(20) % 3


def given(output: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(output, targets)


@pytest.mark.parametrize("loss_fn", [F.cross_entropy, given])
def test_a_loss_of_a_callers_own_is_not_rounded_to_16_bits(loss_fn: Any) -> None:
    """In bfloat16 the loss would be a number of 8 bits; it is that of the model's outputs in more."""
    model, x, found = mapper(loss_fn, LABELS, precision="bfloat16")
    loss = found.point("loss", 1)["loss"]
    assert loss is not None
    assert float(torch.tensor(loss).bfloat16()) != loss
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        output = model(x)
    assert loss == pytest.approx(float(F.cross_entropy(output.double(), LABELS)), rel=1e-6)


class Output(dict[str, Any]):
    """As transformers gives them: a mapping with attributes."""


def test_all_of_an_output_is_widened() -> None:
    half, count = torch.ones(2, dtype=torch.bfloat16), torch.arange(2)
    given = Output(loss=half, past=(half, [half]), count=count)
    found = widened(given)
    assert type(found) is Output
    assert [found["loss"].dtype, found["past"][0].dtype, found["past"][1][0].dtype] == [torch.float32] * 3
    assert found["count"] is count
    assert given["loss"] is half
    assert widened(exact := Output(loss=count)) is exact


@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16"])
def test_class_weights_take_the_precision(precision: str) -> None:
    loss_fn = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0]))
    weight = loss_fn.weight
    model, x, found = mapper(loss_fn, LABELS, precision=precision)
    with torch.no_grad():
        wanted = float(F.cross_entropy(model(x).double(), LABELS, weight=torch.tensor([1.0, 2.0, 3.0]).double()))
    assert found.point("loss", 1)["loss"] == pytest.approx(wanted, rel=0.01 if precision == "bfloat16" else 1e-6)
    assert loss_fn.weight is weight
    assert weight is not None
    assert weight.dtype is torch.float32


class Counting(nn.Module):
    """A loss that grows by itself."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.ones(()))

    def forward(self, output: Tensor, targets: Tensor) -> Tensor:
        self.calls += 1
        return F.cross_entropy(output, targets) * self.calls


def test_a_loss_with_a_state_is_left_and_begins_each_point_alike() -> None:
    loss_fn = Counting()
    _, _, found = mapper(loss_fn, LABELS, batch_size=8)
    first = [found.point("loss", at) for at in (0, 1, 2)]
    assert [found.point("loss", at) for at in (2, 1, 0)] == first[::-1]
    assert float(loss_fn.calls) == 1.0


@pytest.mark.parametrize(
    "loss_fn", ["cross_entropy", F.cross_entropy, nn.CrossEntropyLoss(), nn.CrossEntropyLoss(ignore_index=7)]
)
def test_ignored_targets_are_no_wrong_answers_and_weigh_nothing(loss_fn: Any) -> None:
    """As over all in one batch: also where all targets of a batch are ignored."""
    from depthscope.train.named import loss_named

    loss_fn = loss_named(loss_fn) if isinstance(loss_fn, str) else loss_fn
    ignored = getattr(loss_fn, "ignore_index", -100)
    asked = (torch.arange(20) >= 9) & (torch.arange(20) != 12)
    model, x, found = mapper(loss_fn, torch.where(asked, LABELS, ignored), batch_size=8)
    with torch.no_grad():
        output = model(x[asked]).double()
    point = found.point("loss", 1)
    assert point["loss"] == pytest.approx(float(F.cross_entropy(output, LABELS[asked])), rel=1e-6)
    assert point["accuracy"] == pytest.approx(float((output.argmax(1) == LABELS[asked]).double().mean()))


def test_eigenvalues_inside_torch_func_are_refused_in_a_line() -> None:
    _, _, found = mapper(F.cross_entropy, LABELS, hessian_points=3, hessian_examples=8)

    def inside(z: Tensor) -> Tensor:
        return z * float(found.point("hessian", 1)["lambda_max"] or 0.0)

    with pytest.raises(UserError, match=r"inside torch\.func"):
        torch.func.grad(inside)(torch.tensor(1.0))
