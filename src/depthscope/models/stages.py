"""What the CIFAR families have in common: stages of blocks, and what a network tells of itself by its blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from torch import nn

from depthscope.core.profile import Addition, Point
from depthscope.models.layers.make import Layers
from depthscope.models.shortcuts.joins import Join
from depthscope.models.site import Site


class Block(Protocol):
    """A block computes `join(shortcut(x), F(x))`, or F(x) where it has none.

    Attributes:
        weighted: own names of F's weighted layers, in forward order.
        branch_end: own name of the module whose output is F(x).
        outputs: of each weighted layer, own name of the module whose output is its h; "" for the block itself.
        shortcut: x -> s; None in a plain network.
        join: (s, f) -> y; None in a plain network.
    """

    weighted: tuple[str, ...]
    branch_end: str
    outputs: tuple[str, ...]
    shortcut: nn.Module | None
    join: Join | None


def stage_sites(
    *, blocks: Sequence[int], widths: Sequence[int], num_in: int, layers: Layers, pre_activation: bool = False
) -> Iterator[Site]:
    """The places of a network's blocks in forward order; each stage but the first begins with stride 2.

    Args:
        blocks: of each stage.
        widths: channels that go out of the blocks of each stage.
        num_in: channels that come into the first block.
        layers: how the network's layers are made.
        pre_activation: of all blocks.

    >>> sites = stage_sites(blocks=(1, 2), widths=(4, 8), num_in=4, layers=Layers())
    >>> [(site.num_in, site.num_out, site.stride) for site in sites]
    [(4, 4, 1), (4, 8, 2), (8, 8, 1)]
    """
    index = 0
    for stage, (count, num_out) in enumerate(zip(blocks, widths, strict=True)):
        for position in range(count):
            yield Site(
                num_in=num_in,
                num_out=num_out,
                stride=2 if stage > 0 and position == 0 else 1,
                block=index,
                num_blocks=sum(blocks),
                layers=layers,
                pre_activation=pre_activation,
            )
            num_in = num_out
            index += 1


def points(blocks: Iterable[Block], *, stem_output: str) -> tuple[Point, ...]:
    """The weighted layers from `stem.conv` over each block's to `head`, with where the h of each is found.

    h of a block's last layer is what the block makes of it, after the addition where there is one: plain and residual
    arms so have the same positions. Projections and gates lie beside the path that depth counts, and are no points.
    """
    found = [conv_point("stem.conv", stem_output)]
    for index, block in enumerate(blocks):
        for layer, output in zip(block.weighted, block.outputs, strict=True):
            found.append(
                conv_point(f"blocks.{index}.{layer}", f"blocks.{index}.{output}" if output else f"blocks.{index}")
            )
    return (*found, Point(layer="head", kind="linear", weight="head.weight", output="head"))


def additions(blocks: Iterable[Block]) -> tuple[Addition, ...]:
    """The residual additions in forward order, one a block; none in a plain network."""
    found = []
    for index, block in enumerate(blocks):
        if block.join is not None:
            inside = {operand: f"join.{name}" for operand, name in block.join.added.items()}
            found.append(
                Addition(
                    block=f"blocks.{index}",
                    branch=f"blocks.{index}.{inside.get('branch', block.branch_end)}",
                    skip=f"blocks.{index}.{inside.get('skip', 'shortcut')}",
                    layer=f"blocks.{index}.{block.weighted[-1]}",
                )
            )
    return tuple(found)


def branches(blocks: Iterable[Block]) -> tuple[tuple[str, ...], ...]:
    """Names of the weighted layers in each residual branch, in forward order; empty without shortcuts."""
    return tuple(
        tuple(f"blocks.{index}.{layer}" for layer in block.weighted)
        for index, block in enumerate(blocks)
        if block.join is not None
    )


def derived(blocks: Sequence[Block], layers: Layers) -> dict[str, float]:
    """What the depth decided, of the layers and of the last block's join."""
    join = blocks[-1].join
    return {**layers.derived(), **(join.derived() if join is not None else {})}


def conv_point(layer: str, output: str) -> Point:
    """The point of a convolution `layer` whose h is the output of the module `output`."""
    return Point(layer=layer, kind="conv", weight=f"{layer}.weight", output=output)
