"""The broken nets of `diagnosis_nets`: one fault in a healthy recipe. Six kinds take turns."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from diagnosis_blocks import Recipe
from diagnosis_recipes import (
    Built,
    Rng,
    Truth,
    bn_first,
    gpt,
    he2015,
    pick,
    plain,
    post_ln,
    pre_ln,
    preact,
    scaled,
    stack,
    whole,
    width_of,
)
from torch import nn

LEAST_CHANGE = 1e4
"""By which factor a wrong gain of all layers changes the gradient over the body, at least."""


def made(recipes: list[Recipe], cause: str, at: int | None, detail: str, **options: object) -> Built:
    """A net with a fault at block `at`, or in all."""
    model, shape = stack(recipes, **options)  # type: ignore[arg-type]
    place = "whole" if at is None else f"blocks.{at}"
    words = f"{detail} at {place}, {len(recipes)} blocks of width {options['width']}"
    return Built(model=model, shape=shape, detail=words, truth=Truth(place=place, cause=cause))


def residual(rng: Rng, *families: str) -> tuple[str, list[Recipe], dict[str, object]]:
    """A healthy residual net of 6 to 20 blocks: family, blocks, options of `stack`."""
    family, depth = str(pick(rng, *families)), whole(rng, 6, 20)
    options: dict[str, object] = {"width": width_of(rng, 64, 128)}
    match family:
        case "Pre-LN":
            return family, [pre_ln(str(pick(rng, "gelu", "relu")))] * depth, options | {"final": "layer"}
        case "Post-LN":
            return family, [post_ln()] * depth, options
        case "BN-first":
            return family, [bn_first()] * depth, options | {"final": "batch"}
        case "scaled":
            return family, [scaled(depth**-0.5)] * depth, options
        case "He 2015":
            return family, [he2015()] * min(depth, 14), {"width": 32, "conv": True}
        case "pre-activation":
            return family, [preact()] * min(depth, 14), {"width": 32, "conv": True, "final": "batch"}
    options |= {"tokens": 0.02, "final": "layer"}
    return family, gpt(whole(rng, 3, 6), int(str(options["width"]))), options


def swap(recipes: list[Recipe], at: int, **changes: object) -> list[Recipe]:
    """The blocks with one changed."""
    return [recipe.but(**changes) if index == at else recipe for index, recipe in enumerate(recipes)]


def inner(rng: Rng, recipes: list[Recipe]) -> int:
    """A block that is neither the first nor the last."""
    return whole(rng, 1, len(recipes) - 2)


def gain(rng: Rng) -> Built:
    """A wrong spread of the weights, in all plain layers or in one."""
    act, width = str(pick(rng, "relu", "tanh")), width_of(rng, 64, 128, 256)
    match str(pick(rng, "default", "small", "large", "one small", "one large")):
        case "default":  # torch's uniform(+-1/sqrt(n)): sw2 1/3, a factor .41 a layer with ReLU, .58 with tanh
            depth = whole(rng, 18, 36)
            recipe = Recipe(branch=("linear", "act"), skip=False, act=act)
            return made([recipe] * depth, "gain too small", None, f"torch's default {act}", width=width)
        case "small":
            factor = float(rng.uniform(0.3, 0.7))
            depth = whole(rng, math.ceil(math.log(LEAST_CHANGE) / -math.log(factor)), 40)
            recipe = plain(act, factor**2 * (2.0 if act == "relu" else 1.0))
            return made([recipe] * depth, "gain too small", None, f"{act} gain x{factor:.2f}", width=width)
        case "large":  # ReLU only: tanh saturates, and its gradient then grows slowly
            factor = float(rng.uniform(1.5, 3.0))
            depth = whole(rng, math.ceil(math.log(LEAST_CHANGE) / math.log(factor)), 30)
            recipe = plain("relu", factor**2 * 2.0)
            return made([recipe] * depth, "gain too large", None, f"relu gain x{factor:.2f}", width=width)
        case "one small":
            factor = float(np.exp(rng.uniform(math.log(0.01), math.log(0.1))))
            recipes = [plain("relu")] * whole(rng, 6, 16)
            at = inner(rng, recipes)
            recipes = swap(recipes, at, sw2=(2.0 * factor**2,))
            return made(recipes, "gain too small", at, f"relu gain x{factor:.3f}", width=width)
    factor = float(np.exp(rng.uniform(math.log(10), math.log(100))))
    recipes = [plain("relu")] * whole(rng, 6, 16)
    at = inner(rng, recipes)
    recipes = swap(recipes, at, sw2=(2.0 * factor**2,))
    return made(recipes, "gain too large", at, f"relu gain x{factor:.1f}", width=width)


def missing_skip(rng: Rng) -> Built:
    """One block of a residual net lost its addition."""
    families = ("Pre-LN", "Post-LN", "BN-first", "scaled", "He 2015", "pre-activation", "GPT")
    family, recipes, options = residual(rng, *families)
    at = inner(rng, recipes)
    return made(swap(recipes, at, skip=False), "missing skip", at, f"{family} without +", **options)


def wrong_norm(rng: Rng) -> Built:
    """Deep plain batch norm; one block without its normaliser, or with it on the trunk."""
    match str(pick(rng, "plain BN", "missing", "trunk")):
        case "plain BN":  # 1.211^(2 x 30) = 10^5, so that 50 layers change the gradient by LEAST_CHANGE
            recipe = Recipe(branch=("linear", "norm", "act"), skip=False, norm="batch")
            depth = whole(rng, 49, 60)
            return made([recipe] * depth, "plain batch norm", None, "BN-ReLU", width=width_of(rng, 64, 128))
        case "missing":
            family, recipes, options = residual(rng, "Pre-LN", "BN-first", "He 2015", "pre-activation")
            at = inner(rng, recipes)
            parts = list(recipes[at].branch)
            del parts[len(parts) - 1 - parts[::-1].index("norm")]
            recipes = swap(recipes, at, branch=tuple(parts))
            return made(recipes, "missing norm", at, f"{family} with a norm less", **options)
    family, recipes, options = residual(rng, "Pre-LN", "GPT", "pre-activation")
    at = inner(rng, recipes)
    return made(swap(recipes, at, before=("norm",)), "norm on the trunk", at, f"{family}, norm on the trunk", **options)


def dead_layer(rng: Rng) -> Built:
    """A layer whose units are off on every example, or that is zero."""
    if rng.integers(2):
        recipes = [plain("relu")] * whole(rng, 6, 16)
        at, how = inner(rng, recipes), str(pick(rng, "bias", "zero"))
        found = made(recipes, "dead layer", at, f"He-ReLU, {how}", width=width_of(rng, 64, 128, 256))
    else:
        family, recipes, options = residual(rng, "Pre-LN", "Post-LN", "scaled")
        recipes = [recipe.but(act="relu") for recipe in recipes]
        at, how = inner(rng, recipes), str(pick(rng, "bias", "zero"))
        found = made(recipes, "dead layer", at, f"{family}, {how}", **options)
    linear = [each for each in found.model.blocks[at].branch if isinstance(each, nn.Linear)]  # type: ignore[index,union-attr]
    with torch.no_grad():
        if how == "bias":
            linear[0].bias.fill_(-float(rng.uniform(10, 100)))
        else:  # all of a branch: one whose last layer alone is 0 would train, as zero initialisation does
            for layer in linear:
                layer.weight.zero_()
    return found


def frozen_block(rng: Rng) -> Built:
    """One block between trained ones does not train: requires_grad is off, or it runs under no_grad."""
    how = str(pick(rng, "frozen", "branch", "block"))
    if how != "branch" and rng.integers(2):
        recipes, options = [plain("relu")] * whole(rng, 6, 16), {"width": width_of(rng, 64, 128)}
        family = "He-ReLU"
    else:
        family, recipes, options = residual(rng, "Pre-LN", "Post-LN", "He 2015", "pre-activation", "GPT")  # type: ignore[assignment]
    at = inner(rng, recipes)
    changes = {} if how == "frozen" else {"blocked": how}
    words = f"{family}, {'requires_grad off' if how == 'frozen' else f'no_grad around the {how}'}"
    cause = "frozen block" if how == "frozen" else "gradient cut"
    found = made(swap(recipes, at, **changes), cause, at, words, **options)
    if how == "frozen":
        found.model.blocks[at].requires_grad_(False)  # type: ignore[index,operator,union-attr]
    return found


def branch_scale(rng: Rng) -> Built:
    """One branch 10 to 100 times too large; or all too large for a deep net without normalisation."""
    if rng.integers(4) == 0:  # a naive skip: |h| and the gradient grow by sqrt(2) a block, 2^(27/2) = 10^4
        recipes = [scaled(1.0)] * whole(rng, 27, 40)
        return made(recipes, "unscaled branches", None, "unit branches", width=width_of(rng, 64, 128))
    family, recipes, options = residual(rng, "Pre-LN", "Post-LN", "BN-first", "scaled", "He 2015", "GPT")
    at, factor = inner(rng, recipes), float(np.exp(rng.uniform(math.log(10), math.log(100))))
    recipes = swap(recipes, at, scale=recipes[at].scale * factor)
    return made(recipes, "branch scale", at, f"{family}, branch x{factor:.1f}", **options)


FAULTS: dict[str, Callable[[Rng], Built]] = {
    each.__name__: each for each in (gain, missing_skip, wrong_norm, dead_layer, frozen_block, branch_scale)
}
