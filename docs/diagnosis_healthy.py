"""The healthy nets of `diagnosis_nets`, by family. Twenty families take turns."""

from __future__ import annotations

from collections.abc import Callable

from diagnosis_blocks import Recipe, Stack
from diagnosis_recipes import (
    Built,
    Rng,
    bn_first,
    built,
    gpt,
    he2015,
    pick,
    plain,
    post_ln,
    pre_ln,
    preact,
    scaled,
    whole,
    width_of,
)
from torch import nn


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
