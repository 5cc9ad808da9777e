"""Dead and saturated units, and when there are too few examples to speak of them."""

from __future__ import annotations

import torch
from torch import Tensor

from depthscope.core.structure import Structure
from depthscope.probes.demand.cost import Cost
from depthscope.probes.demand.rows import as_units

MIN_SAMPLES = 20
"""A unit of a first ReLU layer is 0 on N independent inputs with probability 2^-N: one in a million at 20."""

MARGIN = 0.01
"""How near to its bound an entry is saturated."""

BOUNDS = {"tanh": (-1.0, 1.0), "sigmoid": (0.0, 1.0)}
"""Of the activations that saturate, by `Op.name`."""


def too_few(num_samples: int) -> str:
    """Why nothing can be said of single units; empty where something can.

    Args:
        num_samples: examples, or positions of sequences.

    >>> print(too_few(4))
    dead and saturated units: wanted 20 samples or more, got 4: by chance alone 0.06 of the units of a fresh ReLU \
layer are 0 on all of them. Give a larger batch.
    >>> too_few(20)
    ''
    """
    if num_samples >= MIN_SAMPLES:
        return ""
    return (
        f"dead and saturated units: wanted {MIN_SAMPLES} samples or more, got {num_samples}: by chance alone "
        f"{2.0**-num_samples:.1g} of the units of a fresh ReLU layer are 0 on all of them. Give a larger batch."
    )


def dead_fraction(h: Tensor, *, sequence: bool = True) -> float | None:
    """Fraction of units that are 0 on every sample; of a channel, at every place too.

    Args:
        h: a boundary tensor, see `rows`: a sequence's positions are samples.
        sequence: three dimensions are [B, T, F], not [B, C, L].

    Returns:
        None where there are fewer than 20 samples, see `too_few`.
    """
    units_NUS = as_units(h.detach(), sequence=sequence)
    if too_few(len(units_NUS)) or not units_NUS.numel():
        return None
    return float((units_NUS == 0).all(dim=2).all(dim=0).double().mean().cpu())


def saturated_fraction(h: Tensor, activation: str, *, sequence: bool = True) -> float | None:
    """Fraction of entries within .01 of the bounds of the activation that made them.

    Args:
        h: the output of the activation.
        activation: its name, as in `Op.name`.
        sequence: as for `dead_fraction`.

    Returns:
        None where the activation has no bounds, or there are fewer than 20 samples.
    """
    if activation not in BOUNDS or too_few(len(as_units(h, sequence=sequence))) or not h.numel():
        return None
    low, high = BOUNDS[activation]
    # In float32 or wider: a bound that float16 rounds would leave its own neighbour out.
    values = h.detach()
    values = values.float() if torch.finfo(values.dtype).bits < 32 else values
    near = (values < low + MARGIN) | (values > high - MARGIN)
    return float(near.sum().cpu()) / near.numel()


def cost(structure: Structure) -> Cost:
    """Of dead and saturated units at every boundary, during one forward pass."""
    note = f"at {len(structure.boundaries)} boundaries; seconds of simulation, once, where layers are plain ReLU"
    return Cost(what="dead and saturated units", forwards=1, backwards=0, num_bytes=0, note=note)
