"""Weighted layers whose weight is standardised, or whose input is shifted.

Each is a subclass of `nn.Conv2d` or `nn.Linear`: its `weight` has their name, shape and role, so that initialisers draw
the same tensor as for the plain layer, and the layer computes with a function of it.

Shape letters: B batch, C channels in, O channels (units) out, H and W height and width, N fan_in (C times the kernel).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from depthscope.models.hints import ParamHint

FLOOR = 1e-4
"""What N var of a unit counts at least as, in NFNet's scaled weight standardisation."""

EPSILON = 1e-5
"""What is added to N var of a unit in weight standardisation: an all-zero weight so has a finite gradient."""

ACTIVATION_SCALES: Mapping[str, float] = {
    "relu": 1.7139588594436646,
    "gelu": 1.7015043497085571,
    "silu": 1.7881293296813965,
    "tanh": 1.5939117670059204,
}
"""About 1/sd(act(z)), z ~ N(0, 1), as the authors of NFNet print them: up to 1.4e-3 above quadrature's.

Source: Brock et al. 2021, arXiv 2102.06171, and its code.
"""


def standardised(weight: Tensor) -> Tensor:
    """Weight standardisation: each output unit's weights to mean 0 and variance 1/N.

    The paper makes the variance 1 and leaves the rest to the normaliser that follows, where a factor cancels. With
    1/N in its place the same layer stands without a normaliser too: independent inputs of variance v give outputs of
    variance v. N var + `EPSILON` in the denominator moves a weight of unit gain by 5e-6 of itself.

    Source: Qiao et al. 2019, arXiv 1903.10520, equations 4 and 5 (biased variance).
    """
    centred, scaled_variance = _centred(weight)
    return (centred / (scaled_variance + EPSILON).sqrt()).view_as(weight)


def scaled(weight: Tensor, gain_O: Tensor, scale: float) -> Tensor:
    """NFNet's scaled weight standardisation: scale g (W - mu)/sqrt(max(N var, 1e-4)) of each output unit.

    Source: Brock et al. 2021, arXiv 2101.08692 and 2102.06171 (biased variance).
    """
    centred, scaled_variance = _centred(weight)
    return (centred * (scale * gain_O[:, None] / scaled_variance.clamp(min=FLOOR).sqrt())).view_as(weight)


def _centred(weight: Tensor) -> tuple[Tensor, Tensor]:
    """(W - mu, N var) of each output unit, [O, N] and [O, 1]."""
    flat_ON = weight.flatten(1)
    variance, mean = torch.var_mean(flat_ON, dim=1, correction=0, keepdim=True)
    return flat_ON - mean, variance * flat_ON.shape[1]


class StandardisedConv2d(nn.Conv2d):
    """A convolution with the `standardised` weight. x_BCHW -> [B, O, ...]."""

    def forward(self, input: Tensor) -> Tensor:  # (torch's name)
        """See the class."""
        convolved: Tensor = self._conv_forward(input, standardised(self.weight), self.bias)
        return convolved


class StandardisedLinear(nn.Linear):
    """A linear layer with the `standardised` weight. [B, C] -> [B, O]."""

    def forward(self, input: Tensor) -> Tensor:
        """See the class."""
        return F.linear(input, standardised(self.weight), self.bias)


_UNDECAYED = {"gain": ParamHint(weight_decay=False), "bias": ParamHint(weight_decay=False)}
"""NFNet's weight decay spares gains and biases, as the authors' code has it."""


class ScaledConv2d(nn.Conv2d):
    """A convolution with the `scaled` weight and a learned gain a unit. x_BCHW -> [B, O, ...].

    Args:
        *args: of `nn.Conv2d`.
        scale: of the activation that feeds the layer; 1 where none does.
        **kwargs: of `nn.Conv2d`.
    """

    initial: ClassVar[Mapping[str, float]] = {"gain": 1.0}
    hints: ClassVar[Mapping[str, ParamHint]] = _UNDECAYED

    def __init__(self, *args: Any, scale: float = 1.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.scale = scale
        self.gain = nn.Parameter(torch.ones(self.out_channels))

    def forward(self, input: Tensor) -> Tensor:
        """See the class."""
        convolved: Tensor = self._conv_forward(input, scaled(self.weight, self.gain, self.scale), self.bias)
        return convolved


class ScaledLinear(nn.Linear):
    """A linear layer with the `scaled` weight and a learned gain a unit. [B, C] -> [B, O].

    Args:
        *args: of `nn.Linear`.
        scale: of the activation that feeds the layer; 1 where none does.
        **kwargs: of `nn.Linear`.
    """

    initial: ClassVar[Mapping[str, float]] = {"gain": 1.0}
    hints: ClassVar[Mapping[str, ParamHint]] = _UNDECAYED

    def __init__(self, *args: Any, scale: float = 1.0, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.scale = scale
        self.gain = nn.Parameter(torch.ones(self.out_features))

    def forward(self, input: Tensor) -> Tensor:
        """See the class."""
        return F.linear(input, scaled(self.weight, self.gain, self.scale), self.bias)


SLOW_SCALAR = ParamHint(lr_scale=0.1)
"""Fixup's scalars learn at a tenth of the rate; weight decay is theirs too (arXiv 1901.09321, its CIFAR code)."""


class ShiftedConv2d(nn.Conv2d):
    """Fixup's convolution: a learned scalar is added to its input, before the zero padding. x_BCHW -> [B, O, ...]."""

    initial: ClassVar[Mapping[str, float]] = {"shift": 0.0}
    hints: ClassVar[Mapping[str, ParamHint]] = {"shift": SLOW_SCALAR}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.shift = nn.Parameter(torch.zeros(1))

    def forward(self, input: Tensor) -> Tensor:
        """See the class."""
        return super().forward(input + self.shift)


class ShiftedLinear(nn.Linear):
    """Fixup's linear layer: a learned scalar is added to its input. [B, C] -> [B, O]."""

    initial: ClassVar[Mapping[str, float]] = {"shift": 0.0}
    hints: ClassVar[Mapping[str, ParamHint]] = {"shift": SLOW_SCALAR}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.shift = nn.Parameter(torch.zeros(1))

    def forward(self, input: Tensor) -> Tensor:
        """See the class."""
        return super().forward(input + self.shift)
