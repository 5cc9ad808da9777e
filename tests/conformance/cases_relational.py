"""The relational memory: slots see one another and what comes in, and keep what a shut gate lets them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.conformance.case import Case
from torch import Tensor

from depthscope.models import relational as module
from depthscope.models.layers import attention as layers
from depthscope.models.relational import Relational, relational


def _drawn() -> Relational:
    model = relational(depth=2, width=6, slots=4, heads=2, num_inputs=5, num_classes=3, length=3).double()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(generator=generator)
    return model


def _memories(model: Relational, x_BTI: Tensor) -> list[Tensor]:
    seen: list[Tensor] = []
    hooks = [
        model.get_submodule(f"times.{at}.memory").register_forward_hook(lambda _m, _i, out: seen.append(out))
        for at in range(3)
    ]
    model(x_BTI)
    for hook in hooks:
        hook.remove()
    return seen


def _slots_relate() -> None:
    """Every slot depends on every slot before it and on the element; the slots of a set of rows have no order."""
    model = _drawn()
    x = torch.randn(1, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    attention: Any = model.get_submodule("blocks.0.attention")
    rows = torch.randn(1, 5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    reach = torch.autograd.functional.jacobian(attention, rows)[0, :, :, 0].abs().sum(dim=(1, 3))  # type: ignore[no-untyped-call]
    assert (reach > 1e-9).all(), "a row does not see another"
    order = torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(attention(rows[:, order]), attention(rows)[:, order])
    before, after = _memories(model, x), _memories(model, x + torch.tensor([[[0.0], [0.0], [1.0]]]))
    assert torch.equal(before[1], after[1]), "what comes in later changes what was"
    assert ((before[2] - after[2]).abs().amax(dim=2) > 1e-9).all(), "a slot does not see what comes in"


def _gates_shut() -> None:
    """With what is written shut off and what is kept wide open, each memory is that before it: the identity's rows."""
    model = _drawn()
    with torch.no_grad():
        for gate in model.gates.children():
            for parameter in gate.parameters():
                parameter.zero_()
        element: Any = model.gates["element"]
        element.bias[:6], element.bias[6:] = -60, 60
    x = torch.randn(2, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for memory in _memories(model, x):
        torch.testing.assert_close(memory, torch.eye(4, 6, dtype=torch.float64).expand(2, -1, -1))


def _causal(patch: pytest.MonkeyPatch) -> None:
    right = layers.attention
    patch.setattr(module, "attention", lambda qkv, heads: right(qkv, heads, is_causal=True))


def _swapped(patch: pytest.MonkeyPatch) -> None:
    right = module.Gates.forward
    patch.setattr(module.Gates, "forward", lambda self, x: right(self, x).roll(x.shape[-1], dims=-1))


CASES = [
    Case(kind="family", name="relational", check=_slots_relate, alter=_causal),
    Case(kind="family", name="relational", check=_gates_shut, alter=_swapped),
]
