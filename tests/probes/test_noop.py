"""A probe is a no-op: the caller's model, generators and training are bit for bit as without it."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from depthscope.core.profile import Point
from depthscope.models.convnet import cifar_resnet
from depthscope.models.init import build
from depthscope.probes.numbers import weights_digest
from depthscope.probes.watch import Probe, profile

if TYPE_CHECKING:
    from tests.probes.conftest import Case


def generators() -> str:
    return repr((random.getstate(), np.random.get_state(), torch.get_rng_state().tolist()))  # noqa: NPY002


@contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    """Assert that nothing of the model nor of the global generators differs after the block."""

    def state() -> dict[str, object]:
        tensors = [*model.named_parameters(), *model.named_buffers()]
        return {
            "digest": weights_digest(dict(tensors)),
            "tensors": {name: (id(each), each.data_ptr(), each.dtype, each.requires_grad) for name, each in tensors},
            "grad": {
                name: None if each.grad is None else (id(each.grad), each.grad.data_ptr(), each.grad.tolist())
                for name, each in model.named_parameters()
            },
            "flags": {name: module.training for name, module in model.named_modules()},
            "hooks": {
                (name, table): list(hooks.items())
                for name, module in model.named_modules()
                for table, hooks in vars(module).items()
                if table.endswith("_hooks")
            },
            "generators": generators(),
            "modes": (torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.get_default_dtype()),
        }

    before = state()
    try:
        yield
    finally:
        after = state()
        for key, value in before.items():
            assert after[key] == value, key


def dishevel(model: nn.Module) -> list[str]:
    """Gradients, mixed flags, and hooks that record when they run."""
    ran: list[str] = []
    for index, module in enumerate(model.modules()):
        module.training = index % 2 == 0
        module.register_forward_hook(lambda *_: ran.append("forward"))
        module.register_forward_pre_hook(lambda *_: ran.append("before"))
        module.register_full_backward_hook(lambda *_: ran.append("backward"))
    for index, parameter in enumerate(model.parameters()):
        if parameter.requires_grad:
            parameter.register_hook(lambda _: ran.append("parameter"))  # type: ignore[no-untyped-call]
            parameter.grad = torch.randn_like(parameter) if index % 2 else None
    return ran


def test_the_model_is_left_as_found(any_case: Case) -> None:
    case = any_case
    ran = dishevel(case.model)
    with unchanged(case.model):
        probe = Probe(case.model, case.loss_fn, points=case.points, additions=case.additions)
    for _ in range(2):
        with unchanged(case.model):
            assert probe.measure(case.inputs, case.targets).rows
    assert ran == []


def fail_in_loss(_out: Tensor, _target: Tensor) -> Tensor:
    raise RuntimeError("planted")


def fail_in_backward(out: Tensor, target: Tensor) -> Tensor:
    def fail(_gradient: Tensor) -> Tensor:
        raise RuntimeError("planted")

    torch.rand(1)
    out.register_hook(fail)  # type: ignore[no-untyped-call]
    return out.float().mean()


@pytest.mark.parametrize("loss_fn", [fail_in_loss, fail_in_backward])
def test_also_after_an_exception(any_case: Case, loss_fn: Callable[[Tensor, Tensor], Tensor]) -> None:
    case = any_case
    dishevel(case.model)
    losses = [loss_fn, case.loss_fn]
    probe = Probe(case.model, lambda out, target: losses[0](out, target), points=case.points, additions=case.additions)
    with unchanged(case.model), pytest.raises(RuntimeError, match="planted"):
        probe.measure(case.inputs, case.targets)
    del losses[0]
    fresh = Probe(case.model, case.loss_fn, points=case.points, additions=case.additions)
    assert probe.measure(case.inputs, case.targets) == fresh.measure(case.inputs, case.targets)


def train(probed: bool, dropout: float, steps: int = 4) -> tuple[str, str, list[float]]:
    """A few steps of SGD with momentum on random images; the end state, generators and losses."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)
    network, _ = build(lambda: cifar_resnet(depth=8, width=4, shortcut="B"), seed=0)
    model = nn.Sequential(network, nn.Dropout(dropout))
    points = [
        Point(layer=f"0.{p.layer}", kind=p.kind, weight=f"0.{p.weight}", output=f"0.{p.output}")
        for p in network.points()
    ]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    held_x, held_y = torch.randn(8, 3, 8, 8), torch.arange(8)
    probe = Probe(model, F.cross_entropy, points=points) if probed else None
    losses = []
    for step in range(steps):
        if probe is not None:
            probe.measure(held_x, held_y, step=step)
        x, y = torch.randn(8, 3, 8, 8), torch.randint(10, (8,))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        torch.autograd.backward(loss)
        if probe is not None:
            # Between backward and step: the gradients that wait must not be touched.
            probe.measure(held_x, held_y, step=step)
        optimizer.step()
        losses.append(loss.item())
    return weights_digest(model.state_dict()), generators(), losses


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_training_with_and_without_a_probe_is_bit_identical(dropout: float) -> None:
    assert train(probed=True, dropout=dropout) == train(probed=False, dropout=dropout)


def test_profile_leaves_the_model_as_found(case: Case) -> None:
    with unchanged(case.model):
        profile(case.model, case.loss_fn, case.inputs, case.targets, points=case.points)


def test_an_activation_is_not_kept_after_it_was_reduced(make_residual: Callable[[], Case]) -> None:
    """The graph of a measurement is gone when it ends, and nothing of it waits for the collector."""
    case = make_residual()
    outputs: list[weakref.ref[Tensor]] = []

    def loss_fn(out: Tensor, target: Tensor) -> Tensor:
        outputs.append(weakref.ref(out))
        return F.cross_entropy(out, target)

    probe = Probe(case.model, loss_fn, points=case.points, additions=case.additions)
    gc.disable()
    try:
        probe.measure(case.inputs, case.targets)
        assert outputs[0]() is None
    finally:
        gc.enable()
