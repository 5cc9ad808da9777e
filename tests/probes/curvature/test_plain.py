"""Operations whose own second derivative is wrong, against formulas by hand; and that a wrong one is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from depthscope.core.errors import UserError
from depthscope.probes.curvature import Hessian, dense


def old_style(module: nn.Module, dim: Any) -> nn.Module:
    with pytest.warns(FutureWarning, match="weight_norm"):
        found: nn.Module = nn.utils.weight_norm(module, dim=dim)
    return found


def new_style(module: nn.Module, dim: Any) -> nn.Module:
    found: nn.Module = parametrizations.weight_norm(module, dim=dim)
    return found


def problem(
    wrap: Callable[[nn.Module, int | None], nn.Module], dim: int | None
) -> tuple[nn.Sequential, Tensor, Tensor]:
    torch.manual_seed(0)
    net = nn.Sequential(wrap(nn.Linear(5, 4), dim), nn.Tanh(), nn.Linear(4, 3))
    with torch.no_grad():
        for each in net.parameters():
            each.mul_(1 + torch.rand_like(each))  # g is not |v|
    return net, torch.randn(10, 5), torch.randint(3, (10,))


@pytest.mark.parametrize("wrap", [old_style, new_style])
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm_is_g_v_by_the_norm_of_v(
    wrap: Callable[[nn.Module, int | None], nn.Module], dim: int | None
) -> None:
    net, x, y = problem(wrap, dim)
    hessian = Hessian(net, [(x, y)], F.cross_entropy)
    named = {name: each.detach().double() for name, each in net.named_parameters()}
    of = {name.rpartition(".")[2]: name for name in named if name.startswith("0.") and name != "0.bias"}
    g_name, v_name = (of.get("weight_g") or of["original0"]), (of.get("weight_v") or of["original1"])

    def loss(flat: Tensor) -> Tensor:
        parts = torch.split(flat, [each.numel() for each in named.values()])
        p = {name: part.view_as(named[name]) for name, part in zip(named, parts, strict=True)}
        g, v = p[g_name], p[v_name]
        norm = (v**2).sum().sqrt() if dim is None else (v**2).sum(1 - dim, keepdim=True).sqrt()
        hidden = torch.tanh(x.double() @ (g * v / norm).T + p["0.bias"])
        return F.cross_entropy(hidden @ p["2.weight"].T + p["2.bias"], y)

    twice: Any = torch.autograd.functional.hessian
    twin = twice(loss, torch.cat([each.reshape(-1) for each in named.values()])).numpy()
    assert hessian.names == tuple(named)
    found = dense(hessian)
    assert np.abs(found - twin).max() < 1e-12 * np.abs(twin).max() * 100
    hessian.check_symmetric()


class Scaled(torch.autograd.Function):
    """a b, with a right gradient that takes b for a constant where it is differentiated: what a fused kernel may do."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        a, b = ctx.saved_tensors
        return grads[0] * b.detach(), grads[0] * a


class Wrong(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.scale, self.outer = nn.Linear(3, 4), nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        apply: Any = Scaled.apply
        out: Tensor = self.outer(apply(self.inner(x), self.scale(x)))
        return out


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_wrong_second_derivative_is_told(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    hessian = Hessian(Wrong(), [(torch.randn(8, 3), torch.randn(8, 2))], F.mse_loss, dtype=dtype)
    with pytest.raises(UserError, match=r"unsymmetric.*plain operations"):
        hessian.check_symmetric()
