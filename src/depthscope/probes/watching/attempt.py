"""One step of a training while it is under way."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from depthscope.probes.watching.parameters import Gradients
from depthscope.probes.watching.passes import Pass


@dataclass(kw_only=True)
class Attempt:
    """What is known of a step before it is recorded; every number is still on its device.

    Attributes:
        step: its number.
        names: of the parameters, by index.
        scheduled: whether the boundaries are measured in it.
        passes: its forward passes, more than one where gradients are accumulated.
        gradients: at the end of the last backward pass so far, before any clipping, still times the loss scale.
        weights: norms of all parameters before the update.
        scale: of the loss, [1]; None where no scaler is known of.
        clipped: the gradients as each optimiser got them; None where they bear the marks of `gradients`.
        clipped_scale: what those are still multiplied by, [1]: a fused optimiser divides in its own kernel.
        found_inf: [1], what a scaler told a fused optimiser: above 0, it does not step.
        backward: a backward pass is under way.
        marks: of the gradients when it began.
        reaching: the passes whose outputs it was the first to reach.
        num_backwards: those that are over.
        sealed: the passes that count are over: what a closure runs after its first pass is a search along a line.
        searched: there was such a search, so that the gradients left at the end belong to another point.
        stepped: ids of the optimisers that have stepped.
        unseen: no pass of the model was seen to end in a backward pass.
        skipped: it ended without an update.
        note: what else limits its readings.
    """

    step: int
    scheduled: bool
    names: tuple[str, ...] = ()
    passes: list[Pass] = field(default_factory=list)
    gradients: Gradients | None = None
    weights: Tensor | None = None
    scale: Tensor | None = None
    clipped: list[Gradients] = field(default_factory=list)
    clipped_scale: Tensor | None = None
    found_inf: Tensor | None = None
    backward: bool = False
    marks: tuple[object, ...] = ()
    reaching: list[Pass] = field(default_factory=list)
    num_backwards: int = 0
    sealed: bool = False
    searched: bool = False
    stepped: set[int] = field(default_factory=set)
    unseen: bool = False
    skipped: bool = False
    note: str = ""
