"""What was measured in a model, as plain rows beside its structure.

One reading is (step, place, name, quantity, value). `probes` fills them, `analysis` judges them, `report`
draws them, `watch` logs them as `depth/{quantity}/{name}`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from depthscope.core.structure import Status, Structure

Place = Literal["boundary", "block", "addition", "parameter", "model"]

READINGS: Mapping[Place, Mapping[str, str]] = MappingProxyType(
    {
        "boundary": {
            "norm": "|h|: Frobenius norm over the batch",
            "mean": "mean of h",
            "std": "standard deviation of h over examples and units (biased)",
            "zeros": "fraction of entries that are exactly 0",
            "common": "part of the mean square of h that all examples share: mean over units (channels of an image) "
            "of the squared mean over examples (and positions), over the mean square",
            "nonfinite": "number of entries that are not finite",
            "grad_norm": "|dL/dh|: Frobenius norm over the batch of the gradient of the objective",
            "grad_nonfinite": "number of entries of dL/dh that are not finite",
            "rank": "effective rank: exp of the entropy of the normalised squared singular values of h centred over "
            "examples (Roy and Vetterli 2007)",
            "rank_limit": "the greatest value that the effective rank could have: min(examples - 1, units)",
            "dead": "fraction of units (channels of an image) that are 0 on every example (and position)",
            "dead_expected": "the same by chance alone in a freshly initialised He-ReLU network of this depth and "
            "number of examples: mean of simulated networks",
            "dead_expected_std": "standard deviation of it from one network to another",
            "saturated": "fraction of entries of a tanh or sigmoid within .01 of their bounds",
        },
        "block": {
            "grad_multiplier": "m = |dL/dx_{l-1}| / |dL/dx_l|: what the block does to the gradient toward the input",
            "identity_distance": "|J - I| / |I| by Frobenius: 0 for the identity",
            "jacobian_max": "largest singular value of the block's Jacobian, mean over examples; where the block mixes "
            "them (batch norm in train mode), of the Jacobian of the whole batch",
            "jacobian_mean_square": "mean squared singular value of the block's Jacobian, mean over examples",
        },
        "addition": {
            "residual_ratio": "|F|/|x|, mean over examples",
            "cosine": "cosine between F and x, mean over examples",
            "share": "<F, y>/<y, y> with y = x + F: the branch's part of the sum; that of the skip is 1 minus it",
        },
        "parameter": {
            "weight_norm": "|W|: Frobenius norm",
            "weight_grad_norm": "|dW|: Frobenius norm of its gradient, before any clipping",
            "weight_grad_ratio": "|dW|/|W|",
            "clipped_grad_norm": "|dW| as the optimiser got it, where clipping changed it",
            "trust": "cosine between its gradient in the model's dtype and that in float64",
        },
        "model": {
            "loss": "the loss, where there is one",
            "grad_multiplier": "the product of the multipliers of the blocks between stem and head: |g_0| / |g_L|",
            "grad_norm": "norm of the gradient by all parameters together, before any clipping",
            "clipped_grad_norm": "the same as the optimiser got it",
            "trust": "cosine between the gradient by all parameters in the model's dtype and that in float64",
        },
    }
)
"""Every quantity by place, with its definition. All are reduced in float64."""

Objective = Literal["loss", "model loss", "cotangent"]
"""`loss`: the user's loss_fn; `model loss`: output.loss; `cotangent`: no loss, a random direction at the output."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One measured value. What a place does not have gives no reading (never a zero).

    Attributes:
        step: updates done before it; in a watched training a skipped one counts.
        place: the sort of thing measured.
        name: which: of a boundary, block, addition or parameter; empty for the model.
        quantity: one of `READINGS[place]`.
        value: the number; one that is not finite is kept as it is.
    """

    step: int
    place: Place
    name: str
    quantity: str
    value: float

    def __post_init__(self) -> None:
        assert self.quantity in READINGS[self.place], f"{self.quantity!r} is not in READINGS[{self.place!r}]"


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Under which the readings were taken.

    Attributes:
        objective: what the gradients are of.
        data: `given` by the caller, or `noise` made up from a shape.
        batch: number of examples.
        training: whether the model was in train mode.
        dtype: of the parameters.
        device: type of the device.
        num_classes: entries of the output's last dimension, where the objective is a loss with class targets.
        loss_scale: what a GradScaler had multiplied the loss by; the readings are divided by it.
        clipped: the gradients' norms were clipped.
        skipped: why the optimiser did not step, such as `non-finite gradient in h.3.mlp`; empty where it did.
        silent: why places gave no readings, such as hooks in a compiled model; empty where all did.
    """

    objective: Objective
    data: Literal["given", "noise"] = "given"
    batch: int
    training: bool = True
    dtype: str = "float32"
    device: str = "cpu"
    num_classes: int | None = None
    loss_scale: float = 1.0
    clipped: bool = False
    skipped: str = ""
    silent: str = ""


@dataclass(frozen=True, kw_only=True)
class ModelProfile:
    """A model's structure and what was measured in it at one step or at several.

    Attributes:
        structure: see there.
        readings: in the order of measurement.
        conditions: by step.
        statuses: of each parameter, by its first name and by its aliases.
    """

    structure: Structure
    readings: tuple[Reading, ...]
    conditions: Mapping[int, Conditions]
    statuses: Mapping[str, Status] = field(default_factory=dict)

    def steps(self) -> tuple[int, ...]:
        """The steps measured, ascending."""
        return tuple(sorted(self.conditions))

    def values(self, place: Place, quantity: str, step: int | None = None) -> dict[str, float]:
        """`{name: value}` of one quantity in the order of the structure; of the last step where none is named."""
        at = self.steps()[-1] if step is None else step
        return {
            each.name: each.value
            for each in self.readings
            if each.place == place and each.quantity == quantity and each.step == at
        }

    def value(self, quantity: str, step: int | None = None) -> float:
        """A quantity of the whole model; nan where it was not measured."""
        return self.values("model", quantity, step).get("", math.nan)


@dataclass(frozen=True, kw_only=True)
class Course:
    """A watched training: all its records, and the losses that were told.

    Attributes:
        profile: of every recorded step.
        losses: (step, training loss).
        validations: (step, validation loss).
    """

    profile: ModelProfile
    losses: tuple[tuple[int, float], ...] = ()
    validations: tuple[tuple[int, float], ...] = ()
