"""Batches of every make, and bad input: one sentence that says what was wanted, what came, how to mend it."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.probes.measure.batch import read_batch
from depthscope.probes.measure.objective import start_of
from depthscope.probes.measure.profile import profile_model

if TYPE_CHECKING:
    from tests.probes.measure.conftest import Case

    Make = Callable[[str], Case]

X, Y, M = torch.ones(4, 6), torch.arange(4), torch.ones(4, 1)


class Any_(nn.Module):
    def forward(self, x: Any, mask: Any = None) -> Any:
        return x


class Named(nn.Module):
    def forward(self, **inputs: Any) -> Any:
        return inputs


@pytest.mark.parametrize(
    ("batch", "model", "args", "kwargs", "targets"),
    [
        (X, Any_(), (X,), {}, None),
        ([X], Any_(), (X,), {}, None),
        ((X, Y), Any_(), (X,), {}, Y),
        ([X, M, Y], Any_(), (X, M), {}, Y),
        (({"x": X, "mask": M}, Y), Any_(), (), {"x": X, "mask": M}, Y),
        ({"x": X, "mask": M}, Any_(), (), {"x": X, "mask": M}, None),
        (UserDict({"x": X, "labels": Y}), Named(), (), {"x": X, "labels": Y}, Y),
        ({"x": X, "labels": Y}, Any_(), (), {"x": X}, Y),
        (([X, M], Y), Any_(), ([X, M],), {}, Y),
    ],
)
def test_batches(batch: object, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], targets: Any) -> None:
    read = read_batch(batch, model, with_loss=True)
    assert read.args == args
    assert read.kwargs == kwargs
    assert read.targets is targets
    assert read.num_examples == 4


def test_fresh_arguments_share_nothing_and_bear_in_place_operations() -> None:
    read = read_batch(([X, Y], None), Any_(), with_loss=False)
    ((floats, integers),), _, (leaf,) = read.fresh()
    floats.mul_(2)
    integers.add_(1)
    assert torch.equal(X, torch.ones(4, 6))
    assert torch.equal(Y, torch.arange(4))
    (gradient,) = torch.autograd.grad(floats.sum(), [leaf])
    assert torch.equal(gradient, torch.full((4, 6), 2.0))


def one(output: Tensor, _targets: Any) -> Any:
    return output.square().sum()


@pytest.mark.parametrize(
    ("batch", "loss_fn", "message"),
    [
        (3, None, r"batch: wanted a tensor, \(inputs, targets\).* got int\."),
        ((), None, r"got tuple\."),
        (np.ones((2, 6)), None, r"got ndarray \[2, 6\]\."),
        ((np.ones((2, 6)), 1), None, r"with tensors as inputs; got ndarray \[2, 6\]\. See torch.as_tensor\."),
        ({"x": X}, None, r"it gives the model x; Sequential.forward\(input\) does not take that: missing a required"),
        ((X, X, Y), one, r"it gives the model input 0, input 1; Sequential.forward\(input\) does not take that: too"),
        ({3: X}, None, r"argument names as the mapping's keys; got \[3\]"),
        (torch.ones(0, 6), None, "no example"),
        (X.to("meta"), None, r"a tensor lies on meta, the model on cpu\. Move one with `\.to\(device\)`"),
        (
            torch.ones(4, 5),
            None,
            r"model \(Sequential\) raised RuntimeError on this batch \(float32 \[4, 5\]\): mat1",
        ),
        (X, F.cross_entropy, r"loss_fn raised \w+: .* targets NoneType\. The batch holds no targets: give"),
        ((X, Y), lambda out, y: F.cross_entropy(out, y % 3, reduction="none"), r"one number, got shape \(4,\).*mean"),
        ((X, Y), lambda out, y: 3.0, "wanted a tensor of one number, got float"),
        ((X, Y), lambda out, y: out.detach().sum(), "loss_fn: it does not depend on"),
    ],
)
def test_bad_input_is_told_in_one_line(batch: object, loss_fn: Any, message: str, make: Make) -> None:
    with pytest.raises(UserError, match=message) as caught:
        profile_model(make("stack").model, batch, loss_fn)
    assert "\n" not in str(caught.value)


def test_other_bad_input(make: Make) -> None:
    with pytest.raises(UserError, match=r"wanted a torch.nn.Module, got 'x'"):
        profile_model("x", X)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"holds no floating-point tensor .* no_grad"):
        profile_model(Silent(), X)


class Silent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 3)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(x)
        return out


def test_what_lies_inside_the_pass_gets_no_cotangent() -> None:
    h = torch.ones(2, 3, requires_grad=True)
    inner, logits, value = h * 1, h * 2, h * 3
    output = {"logits": logits, "value": value, "past_key_values": ((inner,),), "decoder_hidden_states": (inner,)}
    start = start_of(output, None, None, seed=0)
    assert [id(each) for each in start.tensors] == [id(logits), id(value)]
    assert start.loss is None


@pytest.mark.parametrize(
    ("scores", "targets", "expected"),
    [
        ((4, 7), (4,), 7),
        ((4, 5, 7), (4, 5), 7),
        ((4, 7, 3, 3), (4, 3, 3), 7),
        ((4, 7), (4, 7), None),
    ],
)
def test_number_of_classes(scores: tuple[int, ...], targets: tuple[int, ...], expected: int | None) -> None:
    output = torch.ones(scores, requires_grad=True) * 1
    labels = torch.zeros(targets, dtype=torch.long)
    assert start_of(output, labels, lambda out, _: out.sum(), seed=0).num_classes == expected
    assert start_of(output, labels.float(), lambda out, _: out.sum(), seed=0).num_classes is None
