"""A relational memory: slots that attend to one another and to each element of a sequence, unrolled by hand.

At each step, of the memory M [S, W] and the element x:

    e = W_e x + b_e
    c = [M; e]                                          S + 1 rows
    `depth` times:  c = norm(c + proj(attention(qkv c)))
                    c = norm(c + down(act(up c)))
    i, f = sigmoid(U e + b + V tanh(M)), f's with 1 added
    M = i tanh(c without its last row) + f M

The memory begins as the first S rows of the identity; a linear head reads all slots after the last step. `depth` is the
number of attention blocks a step, each with weights of its own, which serve all steps: what the authors' code calls
`num_blocks`. `shortcut` none takes both plus signs out of the blocks, `norm` none both normalisers.

The gates add too, along time, whatever the shortcut (f begins near .73), and take e past all blocks. Without them
(`gated` false; the authors' `gate_style=None`) M is c without its last row: the longest path is then T `depth` blocks
in line, and without a plus sign there is no way around one.

Of the authors' code kept: all rows ask as well as answer, the tanh on what is written, the constant 1 in f. Changed:
a normaliser is of one row, theirs of all rows at once; queries, keys and values have none of their own; the heads'
outputs are mixed (proj); the head is one layer, theirs is five.

Source: Santoro et al. 2018, arXiv 1806.01822, section 3.

Shape letters: B batch, T steps, I inputs, S slots, R rows (S + 1), W width, K classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError, unknown_name
from depthscope.core.profile import Addition, Point
from depthscope.models.layers.attention import Stacked, attention
from depthscope.models.layers.make import Layers, MakeActivation
from depthscope.models.site import check_counts

SHORTCUTS = ("none", "identity")
NORMS = ("none", "layer")
BRANCHES = ("attention", "mlp")

_NONE: Mapping[str, Any] = MappingProxyType({})


def relational(
    *,
    depth: int,
    width: int = 32,
    slots: int = 8,
    heads: int = 4,
    gated: bool = True,
    shortcut: str = "identity",
    norm: str = "layer",
    activation: str | MakeActivation = "relu",
    num_inputs: int = 32,
    num_classes: int = 8,
    length: int = 8,
    shortcut_options: Mapping[str, Any] = _NONE,
    norm_options: Mapping[str, Any] = _NONE,
) -> Relational:
    """A relational memory, on the current default device.

    The weights of a network for use are drawn by `models.init.build`; made by itself, it has torch's default ones.

    Args:
        depth: blocks of attention at each step.
        width: numbers of a slot, W.
        slots: of the memory, S.
        heads: of attention.
        gated: whether the memory is kept and written through gates; see the module.
        shortcut: `identity`, or `none`: no plus sign in a block.
        norm: `layer`, over the W numbers of a row, behind each plus sign; or `none`.
        activation: between the two linear layers of a block; it may be a function of one's own.
        num_inputs: numbers that describe one element, I.
        num_classes: outputs of the head, K.
        length: elements of a sequence, T.
        shortcut_options: none.
        norm_options: none.

    Raises:
        UserError: a value that no such network has.

    >>> model = relational(depth=2)
    >>> sum(parameter.numel() for parameter in model.parameters()), len(model.points()), len(model.additions())
    (20200, 42, 32)
    """
    check_counts(depth=depth, width=width, slots=slots, heads=heads, num_inputs=num_inputs, num_classes=num_classes)
    check_counts(length=length)
    for what, name, known in (
        ("shortcut of relational", shortcut, SHORTCUTS),
        ("norm of relational", norm, NORMS),
    ):
        if name not in known:
            raise UserError(unknown_name(what, name, known))
    if width % heads:
        raise UserError(f"heads: {heads} does not divide the width, {width}.")
    if slots > width:
        raise UserError(f"slots: wanted at most the width, {width}, so that they begin unlike; got {slots}.")
    layers = Layers(norm=norm, activation=activation, spatial=False, depth=depth)
    shape = {"depth": depth, "width": width, "slots": slots, "heads": heads, "length": length}
    ends = {"num_inputs": num_inputs, "num_classes": num_classes}
    return Relational(layers, adds=shortcut == "identity", gated=gated, **ends, **shape)


class Attention(nn.Module):
    """proj(attention(qkv c)): rows [B, R, W] -> [B, R, W]."""

    def __init__(self, layers: Layers, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = Stacked(width, bias=True), nn.Linear(width, width)
        self.norm = layers.normaliser(width)

    def forward(self, c_BRW: Tensor) -> Tensor:
        """See the class."""
        f: Tensor = self.proj(attention(self.qkv(c_BRW), self.heads))
        return f


class Rowwise(nn.Module):
    """down(act(up c)): each row by itself."""

    def __init__(self, layers: Layers, width: int) -> None:
        super().__init__()
        self.up, self.act, self.down = nn.Linear(width, width), layers.act(), nn.Linear(width, width)
        self.norm = layers.normaliser(width)

    def forward(self, c_BRW: Tensor) -> Tensor:
        """See the class."""
        f: Tensor = self.down(self.act(self.up(c_BRW)))
        return f


class Gates(Stacked):
    """The maps of the two gates, one below the other."""

    parts: ClassVar[int] = 2


class Place(nn.Module):
    """One branch at one step, so that each is measured by itself: (c, F(c), norm) -> norm(c + F(c)), [B, R, W].

    A block's weights serve every step; a place is called once.
    """

    def __init__(self, *, adds: bool) -> None:
        super().__init__()
        self.adds = adds
        self.skip, self.branch = nn.Identity(), nn.Identity()

    def forward(self, c_BRW: Tensor, f_BRW: Tensor, norm: nn.Module) -> Tensor:
        """See the class."""
        total = self.skip(c_BRW) + self.branch(f_BRW) if self.adds else f_BRW
        out: Tensor = norm(total)
        return out


class Step(nn.Module):
    """The places of one step, and `memory`, which gives the memory behind it."""

    def __init__(self, depth: int, *, adds: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.ModuleDict({branch: Place(adds=adds) for branch in BRANCHES}) for _ in range(depth)
        )
        self.memory = nn.Identity()


class Relational(nn.Module):
    """See `relational`. x_BTI -> logits_BK."""

    def __init__(
        self,
        layers: Layers,
        *,
        adds: bool,
        gated: bool,
        depth: int,
        width: int,
        slots: int,
        heads: int,
        length: int,
        num_inputs: int,
        num_classes: int,
    ) -> None:
        super().__init__()
        self.adds, self.gated, self.slots = adds, gated, slots
        self.stem = nn.Linear(num_inputs, width)
        self.blocks = nn.ModuleList(
            nn.ModuleDict({"attention": Attention(layers, width, heads), "mlp": Rowwise(layers, width)})
            for _ in range(depth)
        )
        gates = {"element": Gates(width, bias=True), "memory": Gates(width, bias=False)} if gated else {}
        self.gates = nn.ModuleDict(gates)
        self.times = nn.ModuleList(Step(depth, adds=adds) for _ in range(length))
        self.head = nn.Linear(slots * width, num_classes)

    def forward(self, x_BTI: Tensor) -> Tensor:
        """See the class.

        Raises:
            UserError: sequences of another length.
        """
        if x_BTI.shape[1] != len(self.times):
            raise UserError(f"relational: wanted sequences of {len(self.times)} elements, got {x_BTI.shape[1]}.")
        e_BTW = self.stem(x_BTI)
        width = e_BTW.shape[2]
        start = torch.eye(self.slots, width, dtype=e_BTW.dtype, device=e_BTW.device)
        memory = start.expand(len(x_BTI), -1, -1)
        elements = e_BTW.split(1, dim=1)
        asked = self.gates["element"](e_BTW).split(1, dim=1) if self.gated else elements
        blocks: Any = self.blocks
        times: Any = self.times
        for time, e_B1W, asked_B1 in zip(times, elements, asked, strict=True):
            c = torch.cat((memory, e_B1W), dim=1)
            for block, places in zip(blocks, time.blocks, strict=True):
                for branch in BRANCHES:
                    layer = block[branch]
                    c = places[branch](c, layer(c), layer.norm)
            written = c[:, :-1]
            if self.gated:
                enter, keep = (asked_B1 + self.gates["memory"](memory.tanh())).chunk(2, dim=2)
                written = enter.sigmoid() * written.tanh() + (keep + 1).sigmoid() * memory
            memory = time.memory(written)
        logits_BK: Tensor = self.head(memory.flatten(1))
        return logits_BK

    def points(self) -> tuple[Point, ...]:
        """The stem; at each step the branches, behind plus sign and normaliser, and the memory; the head.

        A weight that serves every step stands at each of them.
        """
        inside: list[tuple[str, str]] = []
        for at in range(len(self.times)):
            inside += [(place, f"{layers[-1]}.weight") for place, layers in self._places(at)]
            inside.append((f"times.{at}.memory", "gates.memory.weight" if self.gated else inside[-1][1]))
        steps = (Point(layer=place, kind="step", weight=weight, output=place) for place, weight in inside)
        stem, head = (Point(layer=end, kind="linear", weight=f"{end}.weight", output=end) for end in ("stem", "head"))
        return (stem, *steps, head)

    def additions(self) -> tuple[Addition, ...]:
        """The plus signs of the blocks, at each step; the gates weight what they add and are none."""
        places = [place for at in range(len(self.times)) for place, _ in self._places(at)] if self.adds else []
        return tuple(Addition(block=at, layer=at, branch=f"{at}.branch", skip=f"{at}.skip") for at in places)

    def branches(self) -> tuple[tuple[str, ...], ...]:
        """The weighted layers of each branch, once, however many steps they serve."""
        return tuple(layers for _, layers in self._places(0)) if self.adds else ()

    def derived(self) -> dict[str, float]:
        """Nothing: no number depends on the depth."""
        return {}

    def _places(self, at: int) -> list[tuple[str, tuple[str, ...]]]:
        """(place, its weighted layers) of each branch of one step, in forward order."""
        layers = {"attention": ("qkv", "proj"), "mlp": ("up", "down")}
        return [
            (f"times.{at}.blocks.{block}.{branch}", tuple(f"blocks.{block}.{branch}.{each}" for each in layers[branch]))
            for block in range(len(self.blocks))
            for branch in BRANCHES
        ]
