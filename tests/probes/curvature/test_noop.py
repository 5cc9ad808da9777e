"""A measurement of curvature leaves the model and the program bit for bit as found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from tests.probes.curvature.nets import NETS, built
from tests.probes.test_noop import dishevel, unchanged
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.probes.curvature import Hessian, extremes, trace


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("train", [False, True])
def test_the_model_is_left_as_found(name: str, train: bool) -> None:
    model, inputs, targets, loss_fn = built(name)
    ran = dishevel(model)
    given = inputs.clone(), targets.clone()
    with unchanged(model):
        hessian = Hessian(model, [(inputs[:6], targets[:6]), (inputs[6:], targets[6:])], loss_fn, train=train)
        assert np.isfinite(hessian.matvec(np.ones(hessian.size))).all()
        trace(hessian, samples=2)
    assert ran == []
    assert torch.equal(inputs, given[0])
    assert torch.equal(targets, given[1])


def forward_fails(error: type[BaseException]) -> Callable[[nn.Module], None]:
    def plant(model: nn.Module) -> None:
        def fail(*_: object) -> None:
            torch.rand(1)
            np.random.rand()  # noqa: NPY002
            raise error("planted")

        model.forward = fail

    return plant


def loss_fails(error: type[BaseException], call: int) -> Callable[[Tensor, Tensor], Tensor]:
    calls = []

    def loss_fn(output: Tensor, targets: Tensor) -> Tensor:
        calls.append(1)
        torch.rand(1)
        if len(calls) == call:
            torch.set_default_dtype(torch.float16)
            raise error("planted")
        return nn.functional.cross_entropy(output, targets)

    return loss_fn


@pytest.mark.parametrize(("error", "seen"), [(RuntimeError, UserError), (KeyboardInterrupt, KeyboardInterrupt)])
@pytest.mark.parametrize("call", [1, 2, 7])
@pytest.mark.parametrize("train", [False, True])
def test_also_after_an_exception_and_after_ctrl_c(
    error: type[BaseException], seen: type[BaseException], call: int, train: bool
) -> None:
    model, inputs, targets, _ = built("convolution")
    dishevel(model)
    batches = [(inputs[:6], targets[:6]), (inputs[6:], targets[6:])]
    with unchanged(model):
        hessian = Hessian(model, batches, loss_fails(error, call), train=train)
        with pytest.raises(seen, match="planted"):
            extremes(hessian)


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_also_where_the_second_derivative_fails(error: type[BaseException]) -> None:
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: Tensor) -> Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: object, *grads: Tensor) -> Tensor:
            raise error("planted")

    model, inputs, targets, loss_fn = built("mlp")
    dishevel(model)

    def loss(output: Tensor, y: Tensor) -> Tensor:
        applied: Tensor = Fails.apply(output)  # type: ignore[no-untyped-call]
        return loss_fn(applied, y)

    with unchanged(model):
        hessian = Hessian(model, [(inputs, targets)], loss)
        with pytest.raises(UserError if error is RuntimeError else KeyboardInterrupt):
            hessian.matvec(np.ones(hessian.size))


def test_a_pass_that_the_program_still_owes_goes_on() -> None:
    model, inputs, targets, loss_fn = built("convolution")
    twin, _, _, _ = built("convolution")
    owed, same = loss_fn(model(inputs), targets), loss_fn(twin(inputs), targets)
    extremes(Hessian(model, [(inputs, targets)], loss_fn, train=True), tol=1e-2)
    for each in (owed, same):
        torch.autograd.backward(each)
    for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
        assert ours.grad is not None
        assert theirs.grad is not None
        assert torch.equal(ours.grad, theirs.grad)


def test_it_works_in_inference_mode_under_no_grad_and_under_autocast() -> None:
    model, inputs, targets, loss_fn = built("attention")
    plain = extremes(Hessian(model, [(inputs, targets)], loss_fn), tol=1e-2)
    for mode in (torch.inference_mode(), torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16)):
        with mode:
            assert extremes(Hessian(model, [(inputs, targets)], loss_fn), tol=1e-2) == plain
