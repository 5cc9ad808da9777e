"""What the healthy and the broken nets of `diagnosis_nets` share: truths, draws, stacks, recipes of blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from diagnosis_blocks import ACTIVATIONS, UNIT_SW2, Block, Down, Recipe, Stack, Tokens, draw, norm
from torch import Tensor, nn

NUM_CLASSES = 10
Rng = np.random.Generator


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What is the matter with a net.

    Attributes:
        place: the block's name, or `whole`; empty for a healthy net.
        cause: a code; empty for a healthy net.
    """

    place: str = ""
    cause: str = ""


@dataclass(frozen=True, kw_only=True)
class Built:
    """A model before it has data."""

    model: nn.Module
    shape: tuple[int, ...]
    detail: str
    truth: Truth = Truth()
    steps: int = 0

    def batch(self, size: int) -> tuple[Tensor, Tensor]:
        """Inputs (integers where the shape has one axis under 16) and class numbers."""
        if len(self.shape) == 1 and self.shape[0] < 16:
            inputs = torch.randint(50, (size, *self.shape))
        else:
            inputs = torch.randn(size, *self.shape)
        return inputs, torch.randint(NUM_CLASSES, (size,))


def stack(
    recipes: list[Recipe],
    *,
    width: int,
    conv: bool = False,
    tokens: float = 0.0,
    final: str = "",
    down_at: int = 0,
    num_in: int = 20,
) -> tuple[Stack, tuple[int, ...]]:
    """A net and the shape of its input; `tokens` is the spread of embeddings, `down_at` the block before a seam."""
    stem: nn.Module
    if tokens:
        shape: tuple[int, ...] = (12,)
        stem = Tokens(50, 12, width, tokens)
    elif conv:
        shape = (3, 8, 8)
        stem = nn.Conv2d(3, width, 3, padding=1)
        draw(stem, 1.0, 0.0, False)
    else:
        shape = (num_in,)
        stem = nn.Linear(num_in, width)
        draw(stem, 1.0, 0.0, False)
    first = recipes[0]
    if not first.skip or "act" in first.after:  # the trunk carries activations: the stem ends in one too
        tail = [norm(first.norm, width, conv)] if "norm" in first.branch else []
        stem = nn.Sequential(stem, *tail, ACTIVATIONS[first.act]())
    blocks: list[nn.Module] = []
    for at, recipe in enumerate(recipes):
        if down_at and at == down_at:
            blocks.append(Down(width))
            width *= 2
        blocks.append(Block(recipe, width, conv))
    head = nn.Linear(width, NUM_CLASSES)
    return Stack(stem, blocks, norm(final, width, conv) if final else None, head), shape


# Recipes of healthy blocks, after their sources.


def plain(act: str, sw2: float | None = None, **changes: object) -> Recipe:
    """Linear and activation."""
    return Recipe(branch=("linear", "act"), skip=False, act=act, sw2=(UNIT_SW2[act] if sw2 is None else sw2,)).but(
        **changes
    )


def pre_ln(act: str = "gelu", **changes: object) -> Recipe:
    """Block x + W2 phi(W1 LN x) with a branch of unit variance (Xiong et al. 2020)."""
    return Recipe(branch=("norm", "linear", "act", "linear"), act=act, sw2=(1.0, UNIT_SW2[act])).but(**changes)


def post_ln(act: str = "relu") -> Recipe:
    """LN(x + W2 phi(W1 x)) (Vaswani et al. 2017)."""
    return Recipe(branch=("linear", "act", "linear"), after=("norm",), act=act, sw2=(1.0, UNIT_SW2[act]))


def he2015() -> Recipe:
    """relu(x + BN W2 relu(BN W1 x)) (He et al. 2015)."""
    branch = ("linear", "norm", "act", "linear", "norm")
    return Recipe(branch=branch, after=("act",), norm="batch", sw2=(2.0, 2.0))


def preact() -> Recipe:
    """Block x + W2 relu BN W1 relu BN x (He et al. 2016)."""
    return Recipe(branch=("norm", "act", "linear", "norm", "act", "linear"), norm="batch", sw2=(2.0, 2.0))


def bn_first() -> Recipe:
    """Block x + W relu(BN x)."""
    return Recipe(branch=("norm", "act", "linear"), norm="batch", sw2=(2.0,))


def scaled(scale: float, act: str = "relu") -> Recipe:
    """Block x + a W2 phi(W1 x) with a branch that keeps the variance."""
    return Recipe(branch=("linear", "act", "linear"), act=act, sw2=(1.0, UNIT_SW2[act]), scale=scale)


def gpt(num_layers: int, width: int) -> list[Recipe]:
    """GPT-2's blocks at its own standard deviations (Radford et al. 2019): .02, projections .02/sqrt(2L)."""
    sw2, last = width * 0.02**2, width * 0.02**2 / (2 * num_layers)
    attention = Recipe(branch=("norm", "attention"), sw2=(sw2, last))
    return [attention, pre_ln("gelu", sw2=(sw2, last))] * num_layers


def pick(rng: Rng, *values: int | str) -> int | str:
    """One of several."""
    return values[int(rng.integers(len(values)))]


def whole(rng: Rng, low: int, high: int) -> int:
    """An integer from low to high, both included."""
    return int(rng.integers(low, high + 1))


def width_of(rng: Rng, *widths: int) -> int:
    """One of several widths; by default 32, 64, 128 or 256."""
    return int(rng.choice(widths or (32, 64, 128, 256)))


def built(recipes: list[Recipe], detail: str, *, steps: int = 0, **options: object) -> Built:
    """A healthy net."""
    model, shape = stack(recipes, **options)  # type: ignore[arg-type]
    words = f"{detail}, {len(recipes)} blocks of width {options['width']}" + (f", {steps} steps" if steps else "")
    return Built(model=model, shape=shape, detail=words, steps=steps)
