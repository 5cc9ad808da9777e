"""What happened to a variant of the user's own that was trained beside others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from depthscope.core.readings import ModelProfile
from depthscope.record.schema import Outcome


@dataclass(frozen=True, kw_only=True)
class VariantRun:
    """One variant with one seed.

    Attributes:
        arm: name of the variant.
        seed: of its draws.
        outcome: how it ended; `step` counts updates done.
        losses: training loss at each step, before its update, as the batch came.
        figures: `train_loss`, `train_accuracy`, `validation_loss`, `validation_accuracy` in eval mode after the last
            update; an accuracy only where the targets are classes. Empty where the run did not complete.
        init: tensor name -> digest of its initial value (parameters and buffers).
        shapes: tensor name -> its shape.
        first: profile before the first update; None where it could not be taken.
        last: profile after the last one.
        unprofiled: why a profile is missing.
        num_parameters: numbers in all parameters, tied ones once.
    """

    arm: str
    seed: int
    outcome: Outcome
    losses: tuple[float, ...] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    init: Mapping[str, str] = field(default_factory=dict)
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    first: ModelProfile | None = None
    last: ModelProfile | None = None
    unprofiled: str = ""
    num_parameters: int = 0

    @property
    def residual(self) -> bool:
        """Whether the model holds a residual addition."""
        return self.first is not None and bool(self.first.structure.additions)


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What all variants of a comparison had in common.

    Attributes:
        steps: updates asked for.
        seeds: in order.
        optimizer: as a sentence.
        data: what the batches were, as a sentence.
        evaluated: how many examples the clean figures of the training data stand on.
        validated: likewise of the validation data; 0 without.
        loss: what was minimised.
        device: type of the device.
        versions: library -> version.
        unrepeated: variants whose initial values differed between two builds with one seed: their factories draw
            from something else than the global generators.
    """

    steps: int
    seeds: tuple[int, ...]
    optimizer: str
    data: str
    evaluated: int
    validated: int = 0
    loss: str
    device: str = "cpu"
    versions: Mapping[str, str] = field(default_factory=dict)
    unrepeated: tuple[str, ...] = ()
