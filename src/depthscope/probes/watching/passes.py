"""One forward pass of a training: what was read in it, and whether a gradient came back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from depthscope.core.structure import Structure
from depthscope.probes.measure.listener import Recorder
from depthscope.probes.trace import Follow
from depthscope.probes.trace.outputs import tensors_of


class Pass:
    """Compared by identity.

    Attributes:
        num_examples: length of the first dimension of its first tensor.
        reached: a gradient has reached its output.
        recorder: of its boundaries; None where they are not measured.
        loss: of the model itself, where its output holds one; on its device.
        mode: that follows it while it runs.
        structure: that its boundaries are of.
        silent: why it has no readings of boundaries, or not all; empty where it has, or has not begun.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.num_examples = next((each.shape[0] for each in tensors_of((args, dict(kwargs))) if each.ndim), 1)
        self.reached = False
        self.recorder: Recorder | None = None
        self.loss: Tensor | None = None
        self.mode: Follow | None = None
        self.structure: Structure | None = None
        self.silent = ""

    def ends(self, output: Any) -> None:
        """Keep the model's own loss."""
        loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
        if isinstance(loss, Tensor) and loss.numel() == 1 and loss.requires_grad:
            self.loss = loss.detach().reshape(1)
