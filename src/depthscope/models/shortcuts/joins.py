"""Joins: how a block's skip s and its branch's output f become the block's output y.

A join is a module `(s, f) -> y`, where s = skip(x) has f's shape; where the block keeps its shape s IS x, and where
it does not, a gate sees s in x's place.

What a probe measures as |F|/|x| are the two operands of the plus sign. Where a join changes an operand before it is
added, the changed one passes through a submodule of the join, which `added` names; an operand that `added` does not
name is added as it came, and is then the output of the block's own module.

Shape letters: B batch, C channels or units; "..." is H, W of images and nothing of vectors. Of a transformer's
sequences, [B, T, D], the joins that have no gate look at no dimension by itself, so any will do.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import torch
from torch import Tensor, nn

from depthscope.models.hints import ParamHint

NOTHING: Mapping[str, str] = MappingProxyType({})


class Join(nn.Module, ABC):
    """(s, f) -> y, both [B, C, ...] and so is y.

    Attributes:
        added: operand (`skip`, `branch`) -> the submodule whose output is what is really added.
    """

    added: ClassVar[Mapping[str, str]] = NOTHING

    @abstractmethod
    def forward(self, s: Tensor, f: Tensor) -> Tensor:
        """See the class."""

    def without_branch(self, s: Tensor) -> Tensor:
        """The lesion: what y is when the branch gives nothing.

        A forward hook makes it of any network, and its removal undoes it:
        `block.join.register_forward_hook(lambda join, args, y: join.without_branch(args[0]))`.
        """
        # Not self(...): the hook that asks for it would be called again.
        return self.forward(s, torch.zeros_like(s))

    def derived(self) -> dict[str, float]:
        """What the network's depth decided of it, by name."""
        return {}


class Add(Join):
    """y = f + s: He et al. 2015, and every shortcut whose skip does all the work.

    Attributes:
        inplace: y is written over f; see `models.overwrite`.
    """

    inplace: bool = False

    def forward(self, s: Tensor, f: Tensor) -> Tensor:
        """See the class."""
        # Where an axis has length 1, several strides describe the same memory. The sum of two tensors need not have
        # those of the first, and strides decide which kernel is next: other last bits.
        return f.add_(s) if self.inplace and min(f.shape) > 1 else f + s


class ConstantScaling(Join):
    """y = skip s + branch f with two constants (He et al. 2016, arXiv 1603.05027, section 3.1)."""

    added = MappingProxyType({"skip": "scaled_skip", "branch": "scaled_branch"})

    def __init__(self, *, skip: float, branch: float) -> None:
        super().__init__()
        self.skip = skip
        self.branch = branch
        self.scaled_skip = nn.Identity()
        self.scaled_branch = nn.Identity()

    def forward(self, s: Tensor, f: Tensor) -> Tensor:
        """See the class."""
        total: Tensor = self.scaled_branch(self.branch * f) + self.scaled_skip(self.skip * s)
        return total

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"skip={self.skip}, branch={self.branch}"


class Scaled(Join):
    """y = s + f / sqrt(L) in a network of L blocks (Hayou et al. 2021, arXiv 2010.12859).

    With branches that keep the variance, each block multiplies it by 1 + 1/L, and L of them by less than e.
    """

    added = MappingProxyType({"branch": "scaled_branch"})

    def __init__(self, *, num_blocks: int) -> None:
        super().__init__()
        assert num_blocks >= 1
        self.scale = 1 / math.sqrt(num_blocks)
        self.scaled_branch = nn.Identity()

    def forward(self, s: Tensor, f: Tensor) -> Tensor:
        """See the class."""
        total: Tensor = self.scaled_branch(self.scale * f) + s
        return total

    def derived(self) -> dict[str, float]:
        """The factor on each branch."""
        return {"branch_scale": self.scale}

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"scale={self.scale:.6g}"


class _LearnedScale(Join):
    """y = s + a f with one learned a that starts at 0: the untrained block gives s, whatever its branch."""

    added = MappingProxyType({"branch": "scaled_branch"})
    initial: ClassVar[Mapping[str, float]] = MappingProxyType({"a": 0.0})

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.zeros(1))
        self.scaled_branch = nn.Identity()

    def forward(self, s: Tensor, f: Tensor) -> Tensor:
        """See the class."""
        total: Tensor = self.scaled_branch(self.a * f) + s
        return total


class SkipInit(_LearnedScale):
    """y = s + a f with one learned a that starts at 0 (De & Smith 2020, arXiv 2002.10444).

    The paper puts a at the end of a branch to stand in place of batch norm, whose share it takes over: to bring the
    branch down at the start. So it belongs with norm `none`, though a study may keep both. Its formula is ReZero's,
    but a is a parameter like any other to its recipe, and weight decay applies to it.
    """


class ReZero(_LearnedScale):
    """y = s + a f with one learned a that starts at 0 (Bachlechner et al. 2021, arXiv 2003.04887).

    The paper adds a to whatever the block is, normaliser or not. It is kept out of weight decay, which would pull
    the network back to where no branch counts.
    """

    hints: ClassVar[Mapping[str, ParamHint]] = MappingProxyType({"a": ParamHint(weight_decay=False)})


class StochasticDepth(Join):
    """y = s + b f, b drawn once a batch in training; y = s + p f in evaluation (Huang et al. 2016, arXiv 1603.09382).

    b is 1 with the probability p = 1 - (l/L)(1 - survival) at block l of 1..L (linear decay), else 0. The draw is
    of torch's global generator on the CPU, so that every device drops the same blocks.

    The branch is computed also where it is dropped, and is then multiplied by 0: its weights have a gradient of 0
    rather than none, and momentum and weight decay go on, as in the paper; unlike in the paper its batch norm counts
    that batch. For the same reason |F|/|x| is that of f as it comes, undropped and unscaled: a measurement in train
    mode would otherwise tell of one draw.
    """

    def __init__(self, *, block: int, num_blocks: int, survival: float) -> None:
        super().__init__()
        assert 0 <= block < num_blocks
        assert 0 < survival <= 1
        self.survival = 1 - (block + 1) / num_blocks * (1 - survival)

    def forward(self, s: Tensor, f: Tensor) -> Tensor:
        """See the class."""
        if not self.training:
            return self.survival * f + s
        # A tensor of no dimension on the CPU multiplies one of any device without either waiting for the other.
        kept = (torch.rand((), device="cpu") < self.survival).to(f.dtype)
        return kept * f + s

    def derived(self) -> dict[str, float]:
        """The probability that this block is kept; a network tells it of its last one."""
        return {"survival_last": self.survival}

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"survival={self.survival:.6g}"


class Gate(nn.Module):
    """g(s) = sigmoid(W s + b), of s's shape: W a linear layer, or a convolution that keeps H and W.

    The bias is the gate's own, since it starts at a value that no initialiser draws.
    """

    def __init__(self, num: int, *, spatial: bool, kernel: int, bias: float) -> None:
        super().__init__()
        self.layer: nn.Module = (
            nn.Conv2d(num, num, kernel, padding=kernel // 2, bias=False) if spatial else nn.Linear(num, num, bias=False)
        )
        self.bias = nn.Parameter(torch.full((num,), float(bias)))
        self.initial = {"bias": float(bias)}

    def forward(self, s: Tensor) -> Tensor:
        """See the class."""
        bias = self.bias.view(-1, *[1] * (s.ndim - 2))
        return torch.sigmoid(self.layer(s) + bias)


class Highway(Join):
    """y = f T + s (1 - T), T = sigmoid(W_T s + b_T) (Srivastava et al. 2015, arXiv 1505.00387).

    W_T is as large as a layer of the branch: linear for vectors, a 3x3 convolution for images. b_T starts below 0, so
    that the block begins by carrying s. |F|/|x| is |f T| / |s (1 - T)|. The lesion is the paper's: T = 0, y = s.
    """

    added = MappingProxyType({"skip": "carried", "branch": "transformed"})

    def __init__(self, num: int, *, spatial: bool, bias: float) -> None:
        super().__init__()
        self.gate = Gate(num, spatial=spatial, kernel=3, bias=bias)
        self.carried = nn.Identity()
        self.transformed = nn.Identity()

    def forward(self, s: Tensor, f: Tensor) -> Tensor:
        """See the class."""
        T = self.gate(s)
        total: Tensor = self.transformed(f * T) + self.carried(s * (1 - T))
        return total

    def without_branch(self, s: Tensor) -> Tensor:
        """The gate shut, T = 0: what came in is carried on."""
        return s


class ExclusiveGate(Join):
    """y = g f + (1 - g) s, g = sigmoid(W_g s + b_g) (He et al. 2016, arXiv 1603.05027, section 3.1).

    The highway of a convolutional network, where W_g is a 1x1 convolution. The paper tells why it is worse than a
    plain plus sign: where g is near 0 the branch counts for nothing, where it is not the skip is weakened. It
    searched b_g from 0 down to -10. |F|/|x| is |g f| / |(1 - g) s|. The lesion is the highway's: g = 0, y = s.
    """

    added = MappingProxyType({"skip": "carried", "branch": "transformed"})

    def __init__(self, num: int, *, spatial: bool, bias: float) -> None:
        super().__init__()
        self.gate = Gate(num, spatial=spatial, kernel=1, bias=bias)
        self.carried = nn.Identity()
        self.transformed = nn.Identity()

    def forward(self, s: Tensor, f: Tensor) -> Tensor:
        """See the class."""
        g = self.gate(s)
        total: Tensor = self.transformed(g * f) + self.carried((1 - g) * s)
        return total

    def without_branch(self, s: Tensor) -> Tensor:
        """The gate shut, g = 0: what came in is carried on."""
        return s


class ShortcutGate(Join):
    """y = f + (1 - g) s, g = sigmoid(W_g s + b_g): the gate on the shortcut alone (He et al. 2016, section 3.1).

    W_g is a 1x1 convolution. |F|/|x| is |f| / |(1 - g) s|. The lesion takes f out and leaves the gate.
    """

    added = MappingProxyType({"skip": "carried"})

    def __init__(self, num: int, *, spatial: bool, bias: float) -> None:
        super().__init__()
        self.gate = Gate(num, spatial=spatial, kernel=1, bias=bias)
        self.carried = nn.Identity()

    def forward(self, s: Tensor, f: Tensor) -> Tensor:
        """See the class."""
        total: Tensor = f + self.carried((1 - self.gate(s)) * s)
        return total
