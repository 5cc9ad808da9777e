"""Skips: how a block's input x comes to the shape of its branch's output, as a module `x -> s`.

Each is a module also where it is the identity, so that a probe finds the skip's value as that module's output.

Shape letters: B batch, C channels in, O channels out, H and W height and width in.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.models.site import Site


class Pad(nn.Module):
    """Option A: keep every `stride`-th pixel, append zero channels. It has no parameter.

    x_BCHW -> [B, O, ceil(H/stride), ceil(W/stride)]: channels 0 to C-1 are x's, the others zero. He et
    al. do not say where the zeros go; any placement is a relabelling of the channels.

    Source: He et al. 2015, arXiv 1512.03385, section 3.3.
    """

    def __init__(self, num_in: int, num_out: int, stride: int) -> None:
        super().__init__()
        assert num_out >= num_in, f"option A cannot drop channels ({num_in} to {num_out})"
        self.stride = stride
        self.num_extra = num_out - num_in

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        # The mean of a window of one pixel is that pixel. Unlike the gradient of an index with steps, its own keeps the
        # channels last in memory, and so does that of every layer before: 7% of a step of ResNet-20.
        strided = F.avg_pool2d(x_BCHW, kernel_size=1, stride=self.stride)
        return F.pad(strided, (0, 0, 0, 0, 0, self.num_extra))

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"stride={self.stride}, num_extra={self.num_extra}"


class PoolPad(nn.Module):
    """Option A with an average over windows of stride x stride pixels in place of the subsampling; no parameter.

    x_BCHW -> [B, O, ceil(H/stride), ceil(W/stride)]; a window that hangs over the border averages what it covers.

    Source: Zhang et al. 2019 (Fixup), arXiv 1901.09321. The code published with it writes the pool with a window of
    one pixel, which is option A; this is the pool that its name says.
    """

    def __init__(self, num_in: int, num_out: int, stride: int) -> None:
        super().__init__()
        assert num_out >= num_in, f"option A cannot drop channels ({num_in} to {num_out})"
        self.stride = stride
        self.num_extra = num_out - num_in

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        pooled = F.avg_pool2d(x_BCHW, self.stride, ceil_mode=True, count_include_pad=False)
        return F.pad(pooled, (0, 0, 0, 0, 0, self.num_extra))

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"stride={self.stride}, num_extra={self.num_extra}"


class Project(nn.Module):
    """A strided 1x1 convolution, then the network's normaliser: options B and C. x_BCHW -> [B, O, ...].

    Source: He et al. 2015, arXiv 1512.03385, section 3.3.
    """

    def __init__(self, site: Site) -> None:
        super().__init__()
        self.conv = site.layers.weighted(site.num_in, site.num_out, kernel=1, stride=site.stride)
        self.bn = site.layers.normaliser(site.num_out)

    def forward(self, x_BCHW: Tensor) -> Tensor:
        """See the class."""
        projected: Tensor = self.bn(self.conv(x_BCHW))
        return projected


def subsampled(site: Site) -> nn.Module:
    """The identity; where the shape changes, `Pad`. Vectors keep their shape."""
    return nn.Identity() if _keeps_shape(site) else Pad(site.num_in, site.num_out, site.stride)


def pooled(site: Site) -> nn.Module:
    """The identity; where the shape changes, `PoolPad`."""
    return nn.Identity() if _keeps_shape(site) else PoolPad(site.num_in, site.num_out, site.stride)


def unweighted(site: Site) -> nn.Module:
    """The skip of a shortcut whose paper does not say how the shape changes: without parameters, as Fixup has it
    with Fixup's scalars, and option A's with every other normaliser.
    """
    return pooled(site) if site.layers.norm == "fixup" else subsampled(site)


def projection(site: Site) -> nn.Module:
    """`Project`; under pre-activation, where a normaliser has come before, a bare 1x1 convolution."""
    return pointwise(site) if site.pre_activation else Project(site)


def pointwise(site: Site) -> nn.Conv2d:
    """A strided 1x1 convolution without bias, and nothing after it.

    Raises:
        UserError: vectors have no channels to convolve.
    """
    if not site.layers.spatial:
        raise UserError("shortcut conv1x1: is a convolution, and this family is of vectors. Choose another.")
    return nn.Conv2d(site.num_in, site.num_out, kernel_size=1, stride=site.stride, bias=False)


def _keeps_shape(site: Site) -> bool:
    assert site.keeps_shape or site.layers.spatial, "a block of vectors keeps its width"
    return site.keeps_shape
