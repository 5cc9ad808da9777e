"""Fully connected networks: the torch twin of the NumPy laboratory, with every shortcut that fits vectors.

A stem (linear, normaliser, activation), `depth` square layers, a linear head. In between, by `shortcut`:

| shortcut | one unit | units | weighted layers |
| --- | --- | --- | --- |
| `none` | act(norm(W h + b)) | depth | `layers.{l}` |
| `identity_2` | h + W2 act(norm(W1 h + b1)) + b2 | depth/2 | `blocks.{l}.linear1`, `blocks.{l}.linear2` |
| `dense` | [h, act(norm(W h + b))], `growth` units more | depth | `layers.{l}`, no longer square |
| any other | join(h, act(norm(W h + b))) | depth | `layers.{l}`, as without a shortcut |

A `bare` network is the square layers alone, for tasks whose targets have the inputs' shape, such as f(x) = x.

Of `none`, `identity` and `identity_2`, with the norms `none` and `batch`, the laboratory (`lab.stacks`) has the same
tensors under the same names, so that the same streams draw the same start. Its names say that a normaliser's scale is
`{layer}.norm.weight` beside `{layer}.weight`; so what follows a weighted layer hangs on it as a child (`norm`, `act`,
`shortcut`, `join`) and is called after it, while `layers.3` by itself is that linear layer and nothing more.

Shape letters: B batch, I inputs, W width, K classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.core.profile import Addition, Point
from depthscope.models.layers.make import Layers, MakeActivation, MakeNorm
from depthscope.models.shortcuts.joins import Join
from depthscope.models.shortcuts.make import MakeShortcut, make_shortcut
from depthscope.models.site import Site, check_counts

_NONE: Mapping[str, Any] = MappingProxyType({})


def mlp(
    *,
    depth: int,
    width: int = 16,
    shortcut: str | MakeShortcut = "none",
    norm: str | MakeNorm = "none",
    activation: str | MakeActivation = "tanh",
    num_inputs: int = 2,
    num_classes: int = 3,
    shortcut_options: Mapping[str, Any] = _NONE,
    norm_options: Mapping[str, Any] = _NONE,
    norm_ends_branch: bool = False,
    bare: bool = False,
    linear_end: bool = False,
) -> MLP:
    """A fully connected network, on the current default device.

    The weights of a network for use are drawn by `models.init.build`; made by itself, it has torch's default ones.

    Args:
        depth: square layers, D; even under `identity_2`, whose blocks hold two.
        width: units of each, W.
        shortcut: what goes around a branch; see the module. It may be a function of one's own (see `make_shortcut`).
        norm: normaliser between a linear layer and its activation, or a function of one's own (see `Layers`). Weight
            standardisation (`ws`) leaves the stem alone: over the two coordinates of a point it would make every unit
            a multiple of their difference. Under `fixup` scalars stand in its place, with a multiplier at the end of
            each two-layer branch.
        activation: in the stem and in the square layers; it may be a function of one's own.
        num_inputs: numbers that describe one example.
        num_classes: outputs of the head.
        shortcut_options: of the shortcut, such as highway's `bias`.
        norm_options: of the normaliser.
        norm_ends_branch: under `identity_2`, a normaliser after W2 too, which takes over the task of b2. The
            laboratory has none there; `zero_last_gamma` wants one.
        bare: the square layers alone, without a stem and a head: `num_inputs` and `num_classes` are W.
        linear_end: the last layer of a bare network has neither a normaliser nor an activation, so that its outputs
            are bounded by nothing. The last one of `identity_2` is so already.

    Raises:
        UserError: a value that no such network has.

    >>> model = mlp(depth=8, shortcut="identity")
    >>> sum(parameter.numel() for parameter in model.parameters()), len(model.points()), len(model.additions())
    (2275, 10, 8)
    """
    check_counts(width=width, num_inputs=num_inputs, num_classes=num_classes)
    if depth < 0:
        raise UserError(f"depth: wanted 0 or more, got {depth}.")
    if shortcut == "identity_2" and depth % 2:
        raise UserError(
            f"depth {depth} is odd, and a block of shortcut 'identity_2' holds two layers. "
            f"The nearest even depths are {depth - 1} and {depth + 1}."
        )
    if norm_ends_branch and (shortcut != "identity_2" or norm not in ("batch", "layer")):
        raise UserError("norm_ends_branch: wanted shortcut identity_2, and batch or layer for norm.")
    if bare and (not depth or not width == num_inputs == num_classes or shortcut == "dense"):
        raise UserError(
            f"bare: wanted square layers alone, 1 or more, from {num_inputs} inputs to {num_classes} outputs; got "
            f"depth {depth}, width {width}, shortcut {shortcut!r}."
        )
    if linear_end and (not bare or shortcut == "identity_2"):
        raise UserError("linear_end: wanted a bare network, and another shortcut than identity_2.")
    # One activation more than a bare network has weighted layers after the first, where the last one is activated.
    path = depth + (not linear_end) if bare else depth + 2
    layers = Layers(norm=norm, activation=activation, spatial=False, depth=path, norm_options=norm_options)
    shape: dict[str, Any] = {"depth": depth, "width": width, "num_inputs": num_inputs, "num_classes": num_classes}
    ends = {"norm_ends_branch": norm_ends_branch, "bare": bare, "linear_end": linear_end}
    return MLP(layers, shortcut, shortcut_options, **shape, **ends)


class Block(nn.Module):
    """The two-layer branch of `identity_2` and its shortcut: h_BW -> join(shortcut(h), F(h)), [B, W].

    F(h) = W2 act(norm(W1 h + b1)) + b2, then a normaliser if `normalised` (W2 then has no bias), or Fixup's multiplier.
    """

    def __init__(self, site: Site, options: Mapping[str, Any], *, normalised: bool) -> None:
        super().__init__()
        layers, width = site.layers, site.num_out
        self.linear1 = layers.weighted(width, width)
        self.linear1.norm = layers.normaliser(width)
        self.act = layers.act()
        if normalised:
            self.linear2, end = layers.weighted(width, width), layers.normaliser(width, ends_branch=True)
        elif layers.norm in ("ws", "fixup"):
            self.linear2, end = layers.weighted(width, width), layers.branch_end(width)
        else:
            self.linear2, end = _linear(layers).weighted(width, width), nn.Identity()
        self.linear2.norm = end
        _hang_shortcut(self, "identity_2", site, options)

    def forward(self, h_BW: Tensor) -> Tensor:
        """See the class."""
        linear1: Any = self.linear1
        linear2: Any = self.linear2
        f = linear2.norm(linear2(self.act(linear1.norm(linear1(h_BW)))))
        return _joined(self, h_BW, f)


class MLP(nn.Module):
    """See `mlp`. x_BI -> logits_BK (of a regression, its outputs)."""

    def __init__(
        self,
        layers: Layers,
        shortcut: str | MakeShortcut,
        options: Mapping[str, Any],
        *,
        depth: int,
        width: int,
        num_inputs: int,
        num_classes: int,
        norm_ends_branch: bool,
        bare: bool,
        linear_end: bool,
    ) -> None:
        super().__init__()
        self.shortcut, self.bare = shortcut, bare
        self._makers = layers
        stem = replace(layers, norm="none") if layers.norm == "ws" else layers
        self.stem = nn.Identity() if bare else _step(stem, num_inputs, width)
        num_out = width
        if shortcut == "identity_2":
            num = depth // 2
            sites = [Site(num_in=width, num_out=width, block=at, num_blocks=num, layers=layers) for at in range(num)]
            self.blocks = nn.ModuleList(Block(site, options, normalised=norm_ends_branch) for site in sites)
        else:
            growth = int(options.get("growth", 4)) if shortcut == "dense" else 0
            self.layers = nn.ModuleList()
            for at in range(depth):
                last = linear_end and at == depth - 1
                layer = _step(_linear(layers) if last else layers, num_out, growth or width)
                if shortcut != "dense":
                    site = Site(num_in=width, num_out=width, block=at, num_blocks=depth, layers=layers)
                    _hang_shortcut(layer, shortcut, site, options)
                self.layers.append(layer)
                num_out += growth
        self.head = nn.Identity() if bare else layers.head(num_out, num_classes)

    def forward(self, x_BI: Tensor) -> Tensor:
        """See the class."""
        h = x_BI if self.bare else _activated(self.stem, x_BI)
        if self.shortcut == "identity_2":
            for block in self.blocks:
                h = block(h)
        else:
            for layer in self.layers:
                f = _activated(layer, h)
                h = _beside(h, f) if self.shortcut == "dense" else _joined(layer, h, f)
        logits_BK: Tensor = self.head(h)
        return logits_BK

    def points(self) -> tuple[Point, ...]:
        """Stem, `depth` layers, head, or the layers alone, each with where its h is found: behind the join, if any."""
        if self.shortcut == "identity_2":
            places = [
                (f"blocks.{at}.{layer}", f"blocks.{at}.{output}")
                for at in range(len(self.blocks))
                for layer, output in (("linear1", "act"), ("linear2", "join"))
            ]
        else:
            places = [
                (f"layers.{at}", f"layers.{at}.{'join' if hasattr(layer, 'join') else 'act'}")
                for at, layer in enumerate(self.layers)
            ]
        if not self.bare:
            places = [("stem", "stem.act"), *places, ("head", "head")]
        return tuple(
            Point(layer=layer, kind="linear", weight=f"{layer}.weight", output=output) for layer, output in places
        )

    def additions(self) -> tuple[Addition, ...]:
        """The residual additions in forward order; none of `none`, nor of `dense`, which adds nothing."""
        found = []
        for (*_, layer), holder in zip(self.branches(), self._holders(), strict=True):
            end = f"{layer}.norm" if self.shortcut == "identity_2" else f"{layer}.act"
            join = self.get_submodule(f"{holder}.join")
            added: Mapping[str, str] = join.added if isinstance(join, Join) else {}
            operands = {
                which: f"{holder}.join.{added[which]}" if which in added else own
                for which, own in (("branch", end), ("skip", f"{holder}.shortcut"))
            }
            # A layer's own output is that before its activation: what has the block's output is the join.
            block = holder if self.shortcut == "identity_2" else f"{holder}.join"
            found.append(Addition(block=block, layer=layer, **operands))
        return tuple(found)

    def branches(self) -> tuple[tuple[str, ...], ...]:
        """The weighted layers of each residual branch; a gate's is none of them."""
        inside = (".linear1", ".linear2") if self.shortcut == "identity_2" else ("",)
        return tuple(tuple(f"{holder}{each}" for each in inside) for holder in self._holders())

    def derived(self) -> dict[str, float]:
        """What the depth decided; of what differs from block to block, the last one's."""
        joins = [module for module in self.modules() if isinstance(module, Join)]
        return {**self._makers.derived(), **(joins[-1].derived() if joins else {})}

    def _holders(self) -> tuple[str, ...]:
        """The modules that hold a residual branch's `shortcut` and `join`."""
        name, held = ("blocks", self.blocks) if self.shortcut == "identity_2" else ("layers", self.layers)
        return tuple(f"{name}.{at}" for at, each in enumerate(held) if hasattr(each, "join"))


def _linear(layers: Layers) -> Layers:
    """The makers of a weighted layer that nothing follows."""
    return replace(layers, norm="none", activation="linear", norm_options={})


def _step(layers: Layers, num_in: int, num_out: int) -> nn.Module:
    """A weighted layer on which its normaliser and its activation hang."""
    layer = layers.weighted(num_in, num_out)
    layer.norm, layer.act = layers.normaliser(num_out), layers.act()
    return layer


def _hang_shortcut(holder: nn.Module, shortcut: str | MakeShortcut, site: Site, options: Mapping[str, Any]) -> None:
    made = make_shortcut(shortcut, site, **options)
    if made is not None:
        holder.shortcut, holder.join = made.skip, made.join


def _activated(layer: Any, h: Tensor) -> Tensor:
    """act(norm(W h + b)) of a `_step`."""
    activated: Tensor = layer.act(layer.norm(layer(h)))
    return activated


def _joined(holder: Any, h: Tensor, f: Tensor) -> Tensor:
    """join(shortcut(h), f); f itself where there is no shortcut."""
    join = holder._modules.get("join")
    joined: Tensor = f if join is None else join(holder.shortcut(h), f)
    return joined


def _beside(h: Tensor, f: Tensor) -> Tensor:
    """[h, f]: all earlier outputs and the new one, side by side."""
    return torch.cat((h, f), dim=1)
