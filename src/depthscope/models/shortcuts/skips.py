"""Shortcuts of He et al. 2015 (arXiv 1512.03385, sections 3.3 and 4.1): what is added to a block's branch.

Each is a function `(num_in, num_out, stride) -> nn.Module`. The result is a module also where the
shortcut is the identity, so that a probe finds the skip's value as that module's output.

Shape letters: B batch, C channels in, O channels out, H and W height and width in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch.nn.functional as F
from torch import Tensor, nn


class Pad(nn.Module):
    """Option A: keep every `stride`-th pixel, append zero channels. It has no parameter.

    x_BCHW -> [B, O, ceil(H/stride), ceil(W/stride)]: channels 0 to C-1 are x's, the others zero. He et
    al. do not say where the zeros go; any placement is a relabelling of the channels.
    """

    def __init__(self, num_in: int, num_out: int, stride: int) -> None:
        super().__init__()
        assert num_out >= num_in, f"option A cannot drop channels ({num_in} to {num_out})"
        self.stride = stride
        self.num_extra = num_out - num_in

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        strided = x_BCHW[:, :, :: self.stride, :: self.stride]
        return F.pad(strided, (0, 0, 0, 0, 0, self.num_extra))

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"stride={self.stride}, num_extra={self.num_extra}"


class Project(nn.Module):
    """Option B: a strided 1x1 convolution without bias, then batch norm. x_BCHW -> [B, O, ...]."""

    def __init__(self, num_in: int, num_out: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(num_in, num_out, kernel_size=1, stride=stride, bias=False)
        self.bn = nn.BatchNorm2d(num_out)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        projected: Tensor = self.bn(self.conv(x_BCHW))
        return projected


def option_a(num_in: int, num_out: int, stride: int) -> nn.Module:
    """The identity; where the dimension changes, `Pad`."""
    return nn.Identity() if _keeps_shape(num_in, num_out, stride) else Pad(num_in, num_out, stride)


def option_b(num_in: int, num_out: int, stride: int) -> nn.Module:
    """The identity; where the dimension changes, `Project`."""
    return nn.Identity() if _keeps_shape(num_in, num_out, stride) else Project(num_in, num_out, stride)


def _keeps_shape(num_in: int, num_out: int, stride: int) -> bool:
    return num_in == num_out and stride == 1


SHORTCUTS: Mapping[str, Callable[[int, int, int], nn.Module] | None] = MappingProxyType(
    {"none": None, "A": option_a, "B": option_b}
)
"""Name -> function. `none` makes the plain control: nothing is added to the branch."""
