"""The nets that the diagnosis is tried on: 200 healthy and 200 broken, each from its seed, with the truth of each.

    population("held-out")     # 400 nets; `docs/diagnosis.md` reports these
    population("development")  # others, of the same law: thresholds are chosen on these alone

Committed before any threshold was set. What counts as healthy is settled here, by construction: the gain is the one
that theory or the published recipe asks for, or normalisation makes the scale cancel. What counts as broken is one
fault planted in a healthy recipe, at one block, or a wrong gain in all of them that makes the gradient over the
whole body change by at least 10^4. Depth, width, activation, batch, place and size of a fault are drawn.

A truth's place is the name of a block, or `whole` for all of them. Data are random, with a batch from 32 to 128.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from diagnosis_blocks import ACTIVATIONS, UNIT_SW2, Block, Down, Recipe, Stack, Tokens, draw, norm
from torch import Tensor, nn

NUM_EACH = 200
SALTS = {"development": 1, "held-out": 2}
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
class Net:
    """One net with its batch; the loss is cross entropy.

    Attributes:
        key: such as `held-out/broken/17`.
        kind: the family of a healthy net, or the kind of fault.
        detail: what was drawn, in words.
        model: in train mode.
        inputs: one batch.
        targets: class numbers, [B].
        truth: see there.
    """

    key: str
    kind: str
    detail: str
    model: nn.Module
    inputs: Tensor
    targets: Tensor
    truth: Truth


def population(split: str) -> Iterator[Net]:
    """The healthy nets, then the broken ones."""
    for broken in (False, True):
        for index in range(NUM_EACH):
            yield net(split, broken, index)


def net(split: str, broken: bool, index: int) -> Net:
    """One net by its number; kinds take turns, the rest is drawn. No global generator is moved."""
    from diagnosis_faults import FAULTS

    rng = np.random.default_rng([20261130, SALTS[split], int(broken), index])
    kinds: dict[str, Callable[[Rng], Built]] = dict(FAULTS if broken else HEALTHY)
    kind = list(kinds)[index % len(kinds)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        built = kinds[kind](rng)
        inputs, targets = built.batch(int(rng.choice([32, 64, 128])))
        if built.steps:
            train(built.model, inputs, targets, built.steps)
    key = f"{split}/{'broken' if broken else 'healthy'}/{index}"
    return Net(
        key=key,
        kind=kind,
        detail=built.detail,
        model=built.model.train(),
        inputs=inputs,
        targets=targets,
        truth=built.truth,
    )


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


def train(model: nn.Module, inputs: Tensor, targets: Tensor, steps: int) -> None:
    """A few updates of Adam on one batch."""
    optimizer = torch.optim.Adam([each for each in model.parameters() if each.requires_grad], lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(inputs), targets).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)


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
    """x + W2 phi(W1 LN x) with a branch of unit variance (Xiong et al. 2020)."""
    return Recipe(branch=("norm", "linear", "act", "linear"), act=act, sw2=(1.0, UNIT_SW2[act])).but(**changes)


def post_ln(act: str = "relu") -> Recipe:
    """LN(x + W2 phi(W1 x)) (Vaswani et al. 2017)."""
    return Recipe(branch=("linear", "act", "linear"), after=("norm",), act=act, sw2=(1.0, UNIT_SW2[act]))


def he2015() -> Recipe:
    """relu(x + BN W2 relu(BN W1 x)) (He et al. 2015)."""
    branch = ("linear", "norm", "act", "linear", "norm")
    return Recipe(branch=branch, after=("act",), norm="batch", sw2=(2.0, 2.0))


def preact() -> Recipe:
    """x + W2 relu BN W1 relu BN x (He et al. 2016)."""
    return Recipe(branch=("norm", "act", "linear", "norm", "act", "linear"), norm="batch", sw2=(2.0, 2.0))


def bn_first() -> Recipe:
    """x + W relu(BN x)."""
    return Recipe(branch=("norm", "act", "linear"), norm="batch", sw2=(2.0,))


def scaled(scale: float, act: str = "relu") -> Recipe:
    """x + a W2 phi(W1 x) with a branch that keeps the variance."""
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


# Healthy nets by family.


def relu_he(rng: Rng) -> Built:
    """Plain ReLU, He."""
    return built([plain("relu")] * whole(rng, 4, 20), "He-ReLU", width=width_of(rng, 64, 128, 256))


def tanh_critical(rng: Rng) -> Built:
    """Plain tanh on the critical line."""
    sb2, sw2 = [(0.0, 1.0), (0.01, 1.424205), (0.05, 1.760955)][int(rng.integers(3))]
    recipe = plain("tanh", sw2, sb2=sb2)
    return built([recipe] * whole(rng, 4, 30), f"tanh sw2 {sw2} sb2 {sb2}", width=width_of(rng, 64, 128, 256))


def orthogonal(rng: Rng) -> Built:
    """Plain, orthogonal (delta-orthogonal in conv nets)."""
    act, conv = str(pick(rng, "tanh", "relu")), bool(rng.integers(2))
    recipe = plain(act, orthogonal=True)
    depth, width = (whole(rng, 4, 20), 32) if conv else (whole(rng, 4, 40), width_of(rng))
    return built([recipe] * (min(depth, 20) if act == "relu" else depth), f"orthogonal {act}", width=width, conv=conv)


def other_activations(rng: Rng) -> Built:
    """Plain, another activation at unit gain."""
    act = str(pick(rng, "gelu", "silu", "elu", "selu", "leaky_relu"))
    return built([plain(act)] * whole(rng, 4, 10), act, width=width_of(rng, 64, 128, 256))


def shallow(rng: Rng) -> Built:
    """Few layers as they come from torch, or with batch norm."""
    if rng.integers(2):
        recipe = Recipe(branch=("linear", "norm", "act"), skip=False, norm="batch")
        return built([recipe] * whole(rng, 3, 6), "BN-ReLU", width=width_of(rng))
    recipe = Recipe(branch=("linear", "act"), skip=False, act=str(pick(rng, "relu", "tanh")))
    return built([recipe] * 3, f"torch's default {recipe.act}", width=width_of(rng))


def transformer_pre(rng: Rng) -> Built:
    """Pre-LN with unit branches."""
    act = str(pick(rng, "gelu", "relu", "silu"))
    return built([pre_ln(act)] * whole(rng, 4, 32), f"Pre-LN {act}", width=width_of(rng), final="layer")


def transformer_default(rng: Rng) -> Built:
    """Pre-LN with torch's own initialiser."""
    recipes = [pre_ln("gelu", sw2=None)] * whole(rng, 4, 32)
    return built(recipes, "Pre-LN, torch's default", width=width_of(rng), final="layer")


def transformer_post(rng: Rng) -> Built:
    """Post-LN."""
    return built([post_ln(str(pick(rng, "gelu", "relu")))] * whole(rng, 4, 24), "Post-LN", width=width_of(rng))


def gpt_like(rng: Rng) -> Built:
    """GPT-2's recipe, untrained or after a few steps."""
    num_layers, width, steps = whole(rng, 2, 6), width_of(rng, 32, 64, 128), int(pick(rng, 0, 20))
    return built(gpt(num_layers, width), "GPT-2's", width=width, tokens=0.02, final="layer", steps=steps)


def resnet_2015(rng: Rng) -> Built:
    """He 2015 with batch norm, convolutional."""
    return built([he2015()] * whole(rng, 4, 18), "He 2015", width=width_of(rng, 32, 48), conv=True)


def resnet_preact(rng: Rng) -> Built:
    """Pre-activation, convolutional."""
    recipes = [preact()] * whole(rng, 4, 18)
    return built(recipes, "pre-activation", width=width_of(rng, 32, 48), conv=True, final="batch")


def resnet_dense(rng: Rng) -> Built:
    """BN-first, fully connected."""
    return built([bn_first()] * whole(rng, 4, 32), "BN-first", width=width_of(rng), final="batch")


def zero_start(rng: Rng) -> Built:
    """ReZero, SkipInit, zero gamma and Fixup at step 0."""
    how, depth = str(pick(rng, "ReZero", "SkipInit", "zero gamma", "Fixup")), whole(rng, 4, 32)
    if how == "zero gamma":
        made = built([he2015()] * min(depth, 16), how, width=32, conv=True)
        for block in made.model.blocks:  # type: ignore[union-attr]
            nn.init.zeros_(block.branch[-1].weight)  # type: ignore[arg-type,index,union-attr]
        return made
    if how == "Fixup":  # m = 2 layers a branch: He times L^(-1/2), the last layer and the classifier 0
        made = built([scaled(1.0).but(sw2=(2.0 / depth, 0.0))] * depth, how, width=width_of(rng))
        nn.init.zeros_(made.model.head.weight)  # type: ignore[arg-type,union-attr]
        return made
    conv = how == "SkipInit"
    recipe = Recipe(branch=("linear", "act", "linear"), sw2=(2.0, 2.0), scale=0.0, learned=True)
    return built([recipe] * (min(depth, 16) if conv else depth), how, width=32 if conv else width_of(rng), conv=conv)


def scaled_branches(rng: Rng) -> Built:
    """No normalisation, every branch times 1/sqrt(L)."""
    depth = whole(rng, 6, 40)
    return built([scaled(depth**-0.5)] * depth, "branches times 1/sqrt(L)", width=width_of(rng))


def conv_plain(rng: Rng) -> Built:
    """Plain convolutions with ReLU, He; small images keep border effects in."""
    return built([plain("relu")] * whole(rng, 4, 10), "conv He-ReLU", width=width_of(rng, 32, 64), conv=True)


def trained(rng: Rng) -> Built:
    """Several families after 10 to 60 steps of Adam."""
    steps, depth = whole(rng, 10, 60), whole(rng, 4, 12)
    options: dict[str, object] = {"width": width_of(rng, 32, 64, 128), "steps": steps}
    match str(pick(rng, "pre", "post", "he", "rezero", "bn")):
        case "pre":
            return built([pre_ln()] * depth, "Pre-LN", final="layer", **options)
        case "post":
            return built([post_ln()] * depth, "Post-LN", **options)
        case "he":
            return built([plain("relu")] * depth, "He-ReLU", **options)
        case "rezero":
            recipe = Recipe(branch=("linear", "act", "linear"), sw2=(2.0, 2.0), scale=0.0, learned=True)
            return built([recipe] * depth, "ReZero", **options)
    return built([bn_first()] * depth, "BN-first", final="batch", **options)


def transfer(rng: Rng) -> Built:
    """A frozen backbone with a trainable head, frozen first blocks, or low-rank adapters beside frozen weights."""
    how, depth = str(pick(rng, "backbone", "first blocks", "adapters")), whole(rng, 4, 16)
    recipe = pre_ln(adapter=4) if how == "adapters" else pre_ln()
    made = built([recipe] * depth, f"{how} frozen", width=width_of(rng, 64, 128), final="layer")
    model = made.model
    assert isinstance(model, Stack)
    if how != "adapters":
        model.stem.requires_grad_(False)
        for block in list(model.blocks)[: depth if how == "backbone" else depth // 2]:
            block.requires_grad_(False)
    return made


def dropout(rng: Rng) -> Built:
    """Dropout in plain layers or in branches."""
    if rng.integers(2):
        recipe = plain("relu", branch=("linear", "act", "drop"), p=0.1)
        return built([recipe] * whole(rng, 4, 10), "He-ReLU, dropout .1", width=width_of(rng, 64, 128, 256))
    recipe = pre_ln(branch=("norm", "linear", "act", "linear", "drop"), p=float(rng.choice([0.1, 0.3])))
    return built([recipe] * whole(rng, 4, 24), "Pre-LN, dropout", width=width_of(rng), final="layer")


def zero_head(rng: Rng) -> Built:
    """A classifier that starts at 0: no gradient under it at step 0."""
    made = built([pre_ln()] * whole(rng, 4, 16), "zero classifier", width=width_of(rng), final="layer")
    nn.init.zeros_(made.model.head.weight)  # type: ignore[arg-type,union-attr]
    return made


def stages(rng: Rng) -> Built:
    """Two stages of a pre-activation net; the seam between them has no skip."""
    depth = whole(rng, 4, 16)
    recipes = [preact()] * depth
    return built(recipes, "two stages", width=width_of(rng, 16, 24), conv=True, final="batch", down_at=depth // 2)


HEALTHY: dict[str, Callable[[Rng], Built]] = {
    each.__name__: each
    for each in (
        relu_he,
        tanh_critical,
        orthogonal,
        other_activations,
        shallow,
        transformer_pre,
        transformer_default,
        transformer_post,
        gpt_like,
        resnet_2015,
        resnet_preact,
        resnet_dense,
        zero_start,
        scaled_branches,
        conv_plain,
        trained,
        transfer,
        dropout,
        zero_head,
        stages,
    )
}
