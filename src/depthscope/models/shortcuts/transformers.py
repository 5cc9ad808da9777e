"""Joins of transformers, whose branches come in pairs: attention and feed-forward.

Shape letters: B batch, T positions, D width; s, f and y are [B, T, D].
"""

from __future__ import annotations

from types import MappingProxyType

from torch import Tensor, nn

from depthscope.core.depth import deepnorm
from depthscope.models.shortcuts.joins import Join, ReZero


class DeepNorm(Join):
    """y = alpha s + f, to be normalised by what follows (Wang et al. 2022, arXiv 2203.00555, section 4).

    The lesion leaves alpha s, which the normaliser that follows brings back to s's size.
    """

    added = MappingProxyType({"skip": "scaled_skip"})

    def __init__(self, *, num_layers: int) -> None:
        super().__init__()
        self.alpha, _ = deepnorm(num_layers)
        self.scaled_skip = nn.Identity()

    def forward(self, s: Tensor, f: Tensor) -> Tensor:
        """See the class."""
        total: Tensor = f + self.scaled_skip(self.alpha * s)
        return total

    def derived(self) -> dict[str, float]:
        """The factor on each skip."""
        return {"deepnorm_alpha": self.alpha}

    def extra_repr(self) -> str:
        """What `print(model)` shows."""
        return f"alpha={self.alpha:.6g}"


class SharedReZero(Join):
    """y = s + a f with the a of another branch: ReZero's transformer has one a block for attention and feed-forward.

    Source: Bachlechner et al. 2021, arXiv 2003.04887, section 5.
    """

    added = MappingProxyType({"branch": "scaled_branch"})

    def __init__(self, owner: ReZero) -> None:
        super().__init__()
        # In a tuple, the owner is no submodule: its a is one parameter with one name, and moves where the owner moves.
        self._owner = (owner,)
        self.scaled_branch = nn.Identity()

    def forward(self, s: Tensor, f: Tensor) -> Tensor:
        """See the class."""
        total: Tensor = self.scaled_branch(self._owner[0].a * f) + s
        return total
