"""A small GPT after the published design of GPT-2 and nanoGPT, with what its depth hangs on left open.

Tokens and positions are looked up in two tables and added; then `depth` blocks, each of two branches:

    attention: F(x) = proj(causal attention(qkv(x)))       [3 D, D] and [D, D]
    mlp:       F(x) = down(act(up(x)))                     [4 D, D] and [D, 4 D]

    placement "pre":  x <- join(x, F(norm(x)))     a normaliser before the head too (`norm_end`)
    placement "post": x <- norm(join(x, F(x)))     none before the head: the last block ends in one

and a linear head, tied to the table of tokens or its own. Without a shortcut `join` is gone and F alone remains: all
else, and every tensor, is the same. `deepnorm` is a join for "post"; `rezero` is meant for norm `none`, and has one
scalar a block, at `blocks.{l}.attention.join.a`.

| tensor | shape |
| --- | --- |
| `tokens.weight`, `positions.weight` | [V, D], [T, D] |
| `norm_embedding.weight`, `.bias` | [D], with `norm_embedding` |
| `blocks.{l}.attention.norm.weight`, `.bias` | [D] |
| `blocks.{l}.attention.qkv.weight`, `.bias` | [3 D, D], [3 D] |
| `blocks.{l}.attention.proj.weight`, `.bias` | [D, D], [D] |
| `blocks.{l}.mlp.norm.weight`, `.bias` | [D] |
| `blocks.{l}.mlp.up.weight`, `.bias` | [4 D, D], [4 D] |
| `blocks.{l}.mlp.down.weight`, `.bias` | [D, 4 D], [D] |
| `norm.weight`, `.bias` | [D], with `norm_end` and placement "pre" |
| `head.weight` | [V, D], where it is not tied |

microgpt (4,192 parameters) is depth 1, width 16, norm `rms` with `scale = false` (no learned scale), activation `relu`,
and `heads = 4, tied = false, bias = false, norm_embedding = true, norm_end = false` over 27 tokens and 16 positions.

Sources: Radford et al. 2019 (GPT-2); Xiong et al. 2020, arXiv 2002.04745 (placements).

Shape letters: B batch, T positions, D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError, unknown_name
from depthscope.core.profile import Addition, Point
from depthscope.models.gpt_blocks import Attention, Block, FeedForward, normaliser
from depthscope.models.layers.attention import Table, TiedHead
from depthscope.models.layers.make import Layers, MakeActivation, MakeNorm
from depthscope.models.shortcuts.joins import Join
from depthscope.models.shortcuts.make import MakeShortcut
from depthscope.models.site import Site, check_counts

_NONE: Mapping[str, Any] = MappingProxyType({})

PLACEMENTS = ("pre", "post")
"""Where a block's normalisers stand: at the head of each branch, or after each addition."""


def gpt(
    *,
    depth: int,
    width: int = 64,
    shortcut: str | MakeShortcut = "identity",
    norm: str | MakeNorm = "layer",
    activation: str | MakeActivation = "gelu",
    num_inputs: int,
    num_classes: int,
    length: int,
    shortcut_options: Mapping[str, Any] = _NONE,
    norm_options: Mapping[str, Any] = _NONE,
    heads: int = 4,
    placement: str = "pre",
    tied: bool = True,
    bias: bool = True,
    norm_embedding: bool = False,
    norm_end: bool = True,
) -> GPT:
    """A decoder-only transformer, on the current default device.

    The weights of a network for use are drawn by `models.init.build`; made by itself, it has torch's default ones.

    Args:
        depth: blocks, of two branches each.
        width: D, units of each position.
        shortcut: what goes around a branch; a name of `models.shortcuts.make.SHORTCUTS`, or a function of one's own.
        norm: `layer`, `rms` or `none`, or a function of one's own.
        activation: of the feed-forward branch.
        num_inputs: V, tokens that it knows.
        num_classes: tokens that it may answer.
        length: T, positions at most.
        shortcut_options: of the shortcut.
        norm_options: of the normaliser.
        heads: of the attention; they share D.
        placement: `pre` or `post`, see the module.
        tied: the head's weight is the table of tokens.
        bias: of the linear layers but the head, and the shift of `layer`.
        norm_embedding: a normaliser between the tables and the first block.
        norm_end: a normaliser before the head; only in `pre`.

    Raises:
        UserError: an unknown name, a count below 1, heads that do not divide the width, a tied head for other answers
            than there are tokens.

    >>> with torch.device("meta"):
    ...     model = gpt(depth=12, width=768, heads=12, num_inputs=50257, num_classes=50257, length=1024)
    >>> sum(parameter.numel() for parameter in model.parameters()), len(model.additions())
    (124439808, 24)
    """
    counts: dict[str, Any] = {"width": width, "num_inputs": num_inputs, "num_classes": num_classes, "length": length}
    check_counts(depth=depth, heads=heads, **counts)
    if placement not in PLACEMENTS:
        raise UserError(unknown_name("placement", placement, PLACEMENTS))
    if width % heads:
        raise UserError(
            f"heads: {heads} heads do not divide a width of {width}. Choose a divisor of {width} for heads, or a "
            f"width that {heads} divides."
        )
    if tied and num_inputs != num_classes:
        raise UserError(
            f"tied: a head that is the table of {num_inputs} tokens gives {num_inputs} outputs, and {num_classes} are "
            "wanted. Set tied = false."
        )
    layers = Layers(norm=norm, activation=activation, spatial=False, depth=4 * depth + 2, norm_options=norm_options)
    sites = [
        Site(num_in=width, num_out=width, block=at, num_blocks=2 * depth, layers=layers) for at in range(2 * depth)
    ]
    shape: dict[str, Any] = {"pre": placement == "pre", "bias": bias}
    blocks = [
        Block(
            Attention(first, shortcut, shortcut_options, heads=heads, **shape),
            FeedForward(second, shortcut, shortcut_options, **shape),
        )
        for first, second in zip(sites[::2], sites[1::2], strict=True)
    ]
    norms: dict[str, Any] = {
        "norm_embedding": normaliser(layers, width, bias) if norm_embedding else None,
        "norm": normaliser(layers, width, bias) if norm_end and placement == "pre" else None,
    }
    return GPT(blocks, layers, tied=tied, **counts, **norms)


class GPT(nn.Module):
    """See `gpt`. tokens_BT, int64, T up to `length` -> logits [B, T, V]: at each position, of what follows it."""

    def __init__(
        self,
        blocks: list[Block],
        layers: Layers,
        *,
        width: int,
        num_inputs: int,
        num_classes: int,
        length: int,
        tied: bool,
        norm_embedding: nn.Module | None,
        norm: nn.Module | None,
    ) -> None:
        super().__init__()
        self.tokens = Table(num_inputs, width)
        self.positions = Table(length, width)
        self.norm_embedding = norm_embedding or nn.Identity()
        self.embedding = nn.Identity()
        self.blocks = nn.ModuleList(blocks)
        self.norm = norm or nn.Identity()
        self.tied = tied
        self.head: nn.Module = TiedHead() if tied else nn.Linear(width, num_classes, bias=False)
        self._layers = layers

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """See the class.

        Raises:
            UserError: more positions than the table has.
        """
        num = tokens_BT.shape[1]
        if num > self.positions.num_embeddings:
            raise UserError(
                f"gpt: wanted {self.positions.num_embeddings} tokens at most, its positions, got {num}. Shorten the "
                "text, or make the network with a greater length."
            )
        at_T = torch.arange(num, device=tokens_BT.device)
        h = self.embedding(self.norm_embedding(self.tokens(tokens_BT) + self.positions(at_T)))
        for block in self.blocks:
            h = block(h)
        h = self.norm(h)
        logits_BTV: Tensor = self.head(h, self.tokens.weight) if self.tied else self.head(h)
        return logits_BTV

    def points(self) -> tuple[Point, ...]:
        """The table of tokens, the end of each branch, the head; h of a branch's end is what the block goes on with."""
        return (
            Point(layer="tokens", kind="embedding", weight="tokens.weight", output="embedding"),
            *(
                Point(layer=ends[-1], kind="linear", weight=f"{ends[-1]}.weight", output=holder)
                for holder, ends in zip(self._holders(), self.sublayers(), strict=True)
            ),
            Point(layer="head", kind="linear", weight=f"{'tokens' if self.tied else 'head'}.weight", output="head"),
        )

    def additions(self) -> tuple[Addition, ...]:
        """The residual additions in forward order, two a block; none without a shortcut."""
        found = []
        for holder, (*_, layer) in zip(self._holders(), self.branches(), strict=False):
            join = self.get_submodule(f"{holder}.join")
            added: Mapping[str, str] = join.added if isinstance(join, Join) else {}
            operands = {
                which: f"{holder}.join.{added[which]}" if which in added else own
                for which, own in (("branch", layer), ("skip", f"{holder}.shortcut"))
            }
            found.append(Addition(block=holder, layer=layer, **operands))
        return tuple(found)

    def branches(self) -> tuple[tuple[str, ...], ...]:
        """The weighted layers of each residual branch; empty without a shortcut."""
        return self.sublayers() if getattr(self.get_submodule(self._holders()[0]), "join", None) is not None else ()

    def sublayers(self) -> tuple[tuple[str, ...], ...]:
        """The weighted layers of each branch, whether it is added to anything or not: initialisers go by them."""
        return tuple(
            tuple(f"{holder}.{each}" for each in inside)
            for holder, inside in zip(
                self._holders(), (Attention.weighted, FeedForward.weighted) * len(self.blocks), strict=True
            )
        )

    def derived(self) -> dict[str, float]:
        """What the depth decided; of what differs from branch to branch, the last one's."""
        joins = [module for module in self.modules() if isinstance(module, Join)]
        return {**self._layers.derived(), **(joins[-1].derived() if joins else {})}

    def _holders(self) -> tuple[str, ...]:
        """The modules of the branches, in forward order."""
        return tuple(f"blocks.{at}.{each}" for at in range(len(self.blocks)) for each in ("attention", "mlp"))
