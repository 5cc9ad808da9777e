"""Activations: each function makes a new module, not in place, of a network with `depth` weighted layers."""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor, nn

from depthscope.core.depth import tat_slope


def tanh(depth: int) -> nn.Module:
    """The hyperbolic tangent."""
    return nn.Tanh()


def relu(depth: int) -> nn.Module:
    """max(0, x)."""
    return nn.ReLU()


def linear(depth: int) -> nn.Module:
    """No nonlinearity."""
    return nn.Identity()


def gelu(depth: int) -> nn.Module:
    """Hendrycks and Gimpel's x Phi(x), exactly (by the error function).

    Source: Hendrycks & Gimpel 2016, arXiv 1606.08415.
    """
    return nn.GELU()


def silu(depth: int) -> nn.Module:
    """The sigmoid-weighted x sigmoid(x).

    Source: Hendrycks & Gimpel 2016, arXiv 1606.08415.
    """
    return nn.SiLU()


def tat(depth: int) -> nn.Module:
    """The tailored leaky ReLU whose slope `core.depth.tat_slope` gives for `depth`.

    Raises:
        UserError: as for `tat_slope`.
    """
    return TailoredReLU(tat_slope(depth))


class TailoredReLU(nn.Module):
    """sqrt(2/(1+a^2)) max(x, a x): E[phi(z)^2] = 1 for z ~ N(0, 1), whatever the slope a of the negative side.

    Source: Zhang et al. 2022, arXiv 2203.08120, section 4.
    """

    def __init__(self, slope: float) -> None:
        super().__init__()
        self.slope = slope
        self.scale = math.sqrt(2 / (1 + slope * slope))

    def forward(self, x: Tensor) -> Tensor:
        """See the class."""
        return self.scale * F.leaky_relu(x, self.slope)

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"slope={self.slope:.6g}"
