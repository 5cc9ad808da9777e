"""The blocks of a GPT: a branch of attention and one of two linear layers, each with its normaliser and its join.

Shape letters: B batch, T positions, D width.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from depthscope.models.layers.attention import Stacked, causal_attention
from depthscope.models.layers.make import Layers
from depthscope.models.shortcuts.joins import ReZero
from depthscope.models.shortcuts.make import MakeShortcut, make_shortcut
from depthscope.models.shortcuts.transformers import SharedReZero
from depthscope.models.site import Site


class Branch(nn.Module):
    """One branch with its normaliser and what goes around it: x_BTD -> x_BTD, see `models.gpt`."""

    weighted: tuple[str, str]

    def __init__(
        self, site: Site, shortcut: str | MakeShortcut, options: Mapping[str, Any], *, pre: bool, bias: bool
    ) -> None:
        super().__init__()
        self.pre = pre
        self.norm = normaliser(site.layers, site.num_in, bias)
        self._make(site, bias)
        made = make_shortcut(shortcut, site, **options)
        self.shortcut = made.skip if made else None
        self.join = made.join if made else None

    def _make(self, site: Site, bias: bool) -> None:
        """Make the branch's own layers."""
        raise NotImplementedError

    def branch(self, x_BTD: Tensor) -> Tensor:
        """F(x), [B, T, D]."""
        raise NotImplementedError

    def forward(self, x_BTD: Tensor) -> Tensor:
        """See the class."""
        f = self.branch(self.norm(x_BTD) if self.pre else x_BTD)
        y = f if self.shortcut is None or self.join is None else self.join(self.shortcut(x_BTD), f)
        out: Tensor = y if self.pre else self.norm(y)
        return out


class Attention(Branch):
    """The branch of causal attention."""

    weighted = ("qkv", "proj")

    def __init__(
        self, site: Site, shortcut: str | MakeShortcut, options: Mapping[str, Any], *, heads: int, pre: bool, bias: bool
    ) -> None:
        super().__init__(site, shortcut, options, pre=pre, bias=bias)
        self.heads = heads

    def _make(self, site: Site, bias: bool) -> None:
        self.qkv = Stacked(site.num_in, bias=bias)
        self.proj = nn.Linear(site.num_in, site.num_out, bias=bias)

    def branch(self, x_BTD: Tensor) -> Tensor:
        """proj(attention(qkv x))."""
        f: Tensor = self.proj(causal_attention(self.qkv(x_BTD), self.heads))
        return f


class FeedForward(Branch):
    """The branch of two linear layers, the inner one four times as wide."""

    weighted = ("up", "down")

    def _make(self, site: Site, bias: bool) -> None:
        self.up = nn.Linear(site.num_in, 4 * site.num_in, bias=bias)
        self.act = site.layers.act()
        self.down = nn.Linear(4 * site.num_in, site.num_out, bias=bias)

    def branch(self, x_BTD: Tensor) -> Tensor:
        """down(act(up x))."""
        f: Tensor = self.down(self.act(self.up(x_BTD)))
        return f


class Block(nn.Module):
    """Attention, then the feed-forward branch: x_BTD -> x_BTD."""

    def __init__(self, attention: Attention, mlp: FeedForward) -> None:
        super().__init__()
        self.attention = attention
        self.mlp = mlp
        if isinstance(attention.join, ReZero):
            mlp.join = SharedReZero(attention.join)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """See the class."""
        out: Tensor = self.mlp(self.attention(x_BTD))
        return out


def normaliser(layers: Layers, width: int, bias: bool) -> nn.Module:
    """A normaliser of D units, without a shift where there is to be no bias."""
    made = layers.normaliser(width)
    if not bias and isinstance(made, nn.LayerNorm):
        made.register_parameter("bias", None)
    return made
