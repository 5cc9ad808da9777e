"""Rules that depend on depth."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from depthscope.core.errors import UserError


def cifar_blocks_per_stage(depth: int) -> int:
    """The n of the CIFAR layout with 6n+2 weighted layers: a stem, 3 stages of n two-layer blocks, a head.

    Source: He et al. 2015, arXiv 1512.03385, section 4.2.

    Raises:
        UserError: no n gives `depth`; the nearest two depths that have one are named.

    >>> [cifar_blocks_per_stage(depth) for depth in (8, 20, 56, 110)]
    [1, 3, 9, 18]
    """
    blocks, rest = divmod(depth - 2, 6)
    if depth < 8:
        raise UserError(f"depth {depth} is not 6n+2 with n of 1 or more. The smallest are 8 and 14.")
    if rest:
        low = 6 * blocks + 2
        raise UserError(f"depth {depth} is not 6n+2. The nearest are {low} and {low + 6}.")
    return blocks


def bottleneck_blocks_per_stage(depth: int) -> int:
    """The n of the CIFAR layout with 9n+2 weighted layers: a stem, 3 stages of n three-layer blocks, a head.

    Source: He et al. 2016, arXiv 1603.05027, section 4 (ResNet-164 and ResNet-1001).

    Raises:
        UserError: no n gives `depth`; the nearest two depths that have one are named.

    >>> [bottleneck_blocks_per_stage(depth) for depth in (11, 164, 1001)]
    [1, 18, 111]
    """
    blocks, rest = divmod(depth - 2, 9)
    if depth < 11:
        raise UserError(f"depth {depth} is not 9n+2 with n of 1 or more. The smallest are 11 and 20.")
    if rest:
        low = 9 * blocks + 2
        raise UserError(f"depth {depth} is not 9n+2. The nearest are {low} and {low + 9}.")
    return blocks


def densenet_layers_per_block(depth: int) -> tuple[int, int, int]:
    """Bottleneck layers (of two convolutions) in the three dense blocks: stem, 2 transitions and head take 4.

    The paper's depths are 6n+4, with blocks alike; any other even depth gives what is left over to the first ones.

    Source: Huang et al. 2017, arXiv 1608.06993, section 3.

    Raises:
        UserError: an odd depth, or one below 10.

    >>> densenet_layers_per_block(100), densenet_layers_per_block(20)
    ((16, 16, 16), (3, 3, 2))
    """
    if depth < 10:
        raise UserError(f"depth {depth} leaves a dense block empty. The smallest are 10 and 12.")
    if depth % 2:
        raise UserError(f"depth {depth} is odd, and layers of a DenseNet-BC have two convolutions. Try {depth + 1}.")
    each, rest = divmod((depth - 4) // 2, 3)
    return each + (rest > 0), each + (rest > 1), each


def family_blocks(family: str, depth: int, **options: Any) -> tuple[int, ...] | None:
    """Blocks of each stage of a network; None where the family has no stages, or is not one of ours.

    Args:
        family: name in the catalogue.
        depth: weighted layers.
        options: of the family; `bottleneck` decides.

    Raises:
        UserError: the family has no network of this depth.

    >>> family_blocks("cifar_resnet", 56), family_blocks("preact_resnet", 164, bottleneck=True)
    ((9, 9, 9), (18, 18, 18))
    """
    if family == "densenet":
        return densenet_layers_per_block(depth)
    if family in ("cifar_resnet", "preact_resnet", "nfnet"):
        rule = bottleneck_blocks_per_stage if options.get("bottleneck") else cifar_blocks_per_stage
        return (rule(depth),) * 3
    return None


TAT_SIMILARITY = 0.9
"""What orthogonal inputs' cosine becomes at the end of a tailored network."""


@lru_cache(maxsize=256)
def tat_slope(depth: int) -> float:
    """The slope a of the tailored leaky ReLU, by which `depth` - 1 activations in a row take a cosine of 0 to .9.

    One activation between wide Gaussian (or orthogonal) layers takes the cosine c of two inputs to
    C(c) = c + (1-a)^2/(pi (1+a^2)) (sqrt(1-c^2) - c arccos c). A larger a moves it less: at a = 1, linear, not at all.
    Each weighted layer but the head is followed by one activation. Where there are residual additions the path is
    taken as if there were none; it then moves the cosine less than .9.

    Source: Zhang et al. 2022, arXiv 2203.08120, section 4.

    Args:
        depth: weighted layers on the longest path, from the stem to the head.

    Raises:
        UserError: no slope from 0 (ReLU) to 1 does it, since ReLU itself ends below .9: 12 activations at most.

    >>> [round(tat_slope(depth), 5) for depth in (21, 51, 101)]
    [0.18138, 0.43052, 0.57044]
    """
    num_activations = depth - 1
    if tat_end(0.0, num_activations) < TAT_SIMILARITY:
        raise UserError(
            f"activation tat: no slope exists at {depth} weighted layers, where the cosine of two inputs stays below "
            f"{TAT_SIMILARITY} with ReLU already. Choose relu, or 14 weighted layers or more."
        )
    low, high = 0.0, 1.0
    for _ in range(53):
        middle = (low + high) / 2
        low, high = (middle, high) if tat_end(middle, num_activations) > TAT_SIMILARITY else (low, middle)
    return (low + high) / 2


def tat_end(slope: float, num_activations: int) -> float:
    """The C map of `tat_slope` composed `num_activations` times, from 0.

    >>> round(tat_end(0.0, 12), 4)
    0.8971
    """
    cosine = 0.0
    step = (1 - slope) ** 2 / (math.pi * (1 + slope * slope))
    for _ in range(num_activations):
        cosine = min(1.0, cosine + step * (math.sqrt(1 - cosine * cosine) - cosine * math.acos(cosine)))
    return cosine


def fixup_scale(num_branches: int, num_layers: int) -> float:
    """Fixup's factor L^(-1/(2m-2)) on the weights inside of a residual branch, all but its last layer.

    Source: Zhang et al. 2019, arXiv 1901.09321, section 3.

    Args:
        num_branches: L, the residual branches of the network.
        num_layers: m, the weighted layers of the branch.

    Raises:
        UserError: a branch of one layer, which the rule says nothing of.

    >>> round(fixup_scale(27, 2), 4), round(fixup_scale(54, 3), 4)
    (0.1925, 0.3689)
    """
    assert num_branches >= 1
    if num_layers < 2:
        raise UserError(f"fixup: wants branches of 2 or more weighted layers, and here is one of {num_layers}.")
    return float(num_branches ** (-1 / (2 * num_layers - 2)))


def deepnorm(num_layers: int) -> tuple[float, float]:
    """DeepNorm's (alpha, beta) = ((2 N)^(1/4), (8 N)^(-1/4)) of an encoder alone of N layers, or a decoder alone.

    LayerNorm(alpha x + F(x)) keeps what came in larger than what a branch adds, and beta scales the first weights of a
    branch: feed-forward, value and output projections; never queries and keys. So one update changes the output by a
    bounded amount at every depth.

    Source: Wang et al. 2022, arXiv 2203.00555, table in figure 2.

    Args:
        num_layers: blocks of attention and feed-forward, N or M.

    >>> [[round(value, 4) for value in deepnorm(layers)] for layers in (12, 100)]
    [[2.2134, 0.3195], [3.7606, 0.188]]
    """
    assert num_layers >= 1
    return float((2 * num_layers) ** 0.25), float((8 * num_layers) ** -0.25)


def gpt2_scale(num_branches: int) -> float:
    """GPT-2's factor 1/sqrt(L) on the weights that end its L residual branches, two a block.

    Source: Radford et al. 2019, section 2.3 ("1/sqrt(N) where N is the number of residual layers").

    >>> round(0.02 * gpt2_scale(24), 6)
    0.004082
    """
    assert num_branches >= 1
    return float(num_branches**-0.5)


def profile_steps(num_steps: int, steps_per_epoch: int | None, further: Iterable[int] = ()) -> tuple[int, ...]:
    """The steps at which layers are logged: 0, 1, 2, 4, 8, ... and the end of each epoch; and those asked for.

    Step t is the state after t updates, so 0 is the untrained network and `num_steps` the trained one.

    >>> profile_steps(10, 4), profile_steps(10, None, further=(3, 5, 20))
    ((0, 1, 2, 4, 8, 10), (0, 1, 2, 3, 4, 5, 8, 10))
    """
    assert num_steps >= 0
    steps = {0, num_steps, *(step for step in further if step <= num_steps)}
    power = 1
    while power < num_steps:
        steps.add(power)
        power *= 2
    if steps_per_epoch:
        steps.update(range(steps_per_epoch, num_steps + 1, steps_per_epoch))
    return tuple(sorted(steps))


def curvature_steps(num_steps: int, further: Iterable[int] = ()) -> tuple[int, ...]:
    """The steps at which curvature is measured: the first, the last, and those asked for.

    Not those between at which layers are: both ends of a Hessian cost hundreds of passes.

    >>> curvature_steps(100, (10, 300))
    (0, 10, 100)
    """
    assert num_steps >= 0
    return tuple(sorted({0, num_steps, *(step for step in further if step <= num_steps)}))
