"""What is one step of a training, found out from outside of its loop.

With an optimiser, a step is one call of its `step`, with all backward passes since the call before; several
optimisers that step after the same backward pass (one for matrices, one for vectors) make one step together. Without
an optimiser, it is all backward passes between two clearings of the gradients.

Gradients that are cleared although no optimiser has taken them were either skipped, because they were not finite
(a GradScaler does so, and a careful loop): that is a step too; or they were not meant for this model, as those
that a generator's loss leaves in the discriminator: that is none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, cast

import torch
from torch import Tensor
from torch.amp.grad_scaler import GradScaler
from torch.optim import Optimizer

from depthscope.probes.watching.attempt import Attempt
from depthscope.probes.watching.parameters import Parameters
from depthscope.probes.watching.passes import Pass

NOT_GIVEN = "a GradScaler is in use that watch was not given; it was found when it called the optimiser's step"
UNKNOWN = (
    "if a GradScaler skipped this step, gradients hold its factor here, since watch was not given it: "
    "watch(..., scaler=scaler)"
)


class Steps:
    """Follows one training, from what a `Tap` tells.

    Args:
        parameters: of the model.
        optimizers: empty where the loop's are not known.
        scaler: the GradScaler of the loop, where it is known.
        begin: makes the attempt with a number.
        done: is given each attempt when it is over, whether or not it led to an update.
    """

    def __init__(
        self,
        parameters: Parameters,
        optimizers: Sequence[Optimizer],
        scaler: Any,
        *,
        begin: Callable[[int], Attempt],
        done: Callable[[Attempt], None],
    ) -> None:
        self._parameters = parameters
        self._scaler = scaler
        self._everyone = {id(each) for each in optimizers}
        self._begin = begin
        self._done = done
        self._attempt: Attempt | None = None
        self._in_closure = False
        self.step = 0
        self.note = ""

    @property
    def current(self) -> int:
        """The step that a loss known now belongs to: the one under way, else the last."""
        return self.step if self._attempt is not None else max(self.step - 1, 0)

    @property
    def is_scheduled(self) -> bool:
        """Whether the step under way measures boundaries."""
        return self._attempt is not None and self._attempt.scheduled

    def pass_begins(self, a_pass: Pass) -> Attempt | None:
        """A training pass begins; None where it does not count."""
        attempt = self._open()
        if attempt.sealed:
            attempt.searched = True
            return None
        attempt.backward = False
        if attempt.num_backwards and self._is_over(attempt):
            self._close(attempt)
            attempt = self._open()
        attempt.passes.append(a_pass)
        return attempt

    def gradient_begins(self, a_pass: Pass) -> bool:
        """The gradient has reached the output of a pass; True for the first of a backward pass."""
        attempt = self._attempt
        if attempt is None or attempt.sealed or a_pass not in attempt.passes:
            return False
        if attempt.backward:
            _reaches(attempt, a_pass)
            return False
        if attempt.num_backwards and self._is_over(attempt):
            # That was not to be seen before: the loop clears the gradients between its forward and backward pass.
            waiting = [each for each in attempt.passes if not each.reached]
            attempt.passes = [each for each in attempt.passes if each.reached]
            self._close(attempt)
            attempt = self._open()
            attempt.passes = waiting
        attempt.backward, attempt.marks, attempt.reaching = True, self._parameters.marks(), []
        _reaches(attempt, a_pass)
        return True

    def backward_over(self) -> None:
        """All gradients of a backward pass have arrived: take their norms, before anything clips them.

        One that left every `.grad` as it was is `torch.autograd.grad` on the way to the loss (a gradient penalty).
        """
        attempt = self._attempt
        if attempt is None or not attempt.backward:
            return
        attempt.backward = False
        counts = self._parameters.marks() != attempt.marks
        for each in attempt.passes:
            if each.recorder is not None:
                each.recorder.backward_over(counts=counts)
        if not counts:
            for each in attempt.reaching:
                each.reached = False
            return
        attempt.num_backwards += 1
        attempt.gradients = self._parameters.gradients()
        attempt.scale = self._scale()
        if not self._everyone or (self._in_closure and attempt.weights is None):
            attempt.weights = self._parameters.weights()
        attempt.sealed = self._in_closure

    def step_begins(self, optimizer: Optimizer, closure: bool) -> None:
        """An optimiser is about to update the weights."""
        attempt = self._open()
        if attempt.weights is None:
            attempt.weights = self._parameters.weights()
        self._in_closure = closure
        if self._scaler is None and (found := scaler_above()) is not None:
            self._scaler = found
            self.note = NOT_GIVEN
            attempt.scale = self._scale()
        if not closure:
            self._take(attempt, optimizer)

    def step_ends(self, optimizer: Optimizer) -> None:
        """It has. The gradients are still there."""
        attempt = self._attempt
        if attempt is None:
            return
        if self._in_closure:
            self._in_closure = False
            self._take(attempt, optimizer)  # only now: Lightning clips inside of the closure
        attempt.stepped.add(id(optimizer))
        if attempt.stepped >= self._everyone:
            self._finish(attempt)

    def mark(self) -> None:
        """The loop says itself that a step is over."""
        attempt = self._open()
        if attempt.gradients is None:
            attempt.unseen = True
            attempt.gradients = self._parameters.gradients()
        if attempt.weights is None:
            attempt.weights = self._parameters.weights()
        self._finish(attempt)

    def close(self) -> None:
        """The training is over: what is still under way ends as it would at the next pass."""
        attempt = self._attempt
        if attempt is not None and attempt.num_backwards:
            self._close(attempt)
        self._attempt = None

    def _open(self) -> Attempt:
        if self._attempt is None:
            self._attempt = self._begin(self.step)
        return self._attempt

    def _is_over(self, attempt: Attempt) -> bool:
        """Before a new pass: another optimiser is not going to join, or the gradients were cleared."""
        return bool(attempt.stepped) or attempt.gradients is None or self._parameters.cleared(attempt.gradients)

    def _close(self, attempt: Attempt) -> None:
        """End an attempt that not every optimiser, or none, has made a step of."""
        if attempt.stepped or not self._everyone:
            self._finish(attempt)
        elif attempt.gradients is not None and not bool(torch.isfinite(attempt.gradients.values).all()):
            attempt.skipped = True
            attempt.note = "" if self._scaler is not None else UNKNOWN
            if attempt.weights is None:
                attempt.weights = self._parameters.weights()
            self._finish(attempt)
        else:
            self._attempt = None  # not meant for this model: the number is given to the next

    def _finish(self, attempt: Attempt) -> None:
        self._attempt = None
        self.step += 1
        attempt.note = attempt.note or self.note
        self._done(attempt)

    def _take(self, attempt: Attempt, optimizer: Optimizer) -> None:
        """The gradients as an optimiser gets them, where they are not known to be those of the backward pass."""
        own = self._parameters.indices_of(each for group in optimizer.param_groups for each in group["params"])
        scale = getattr(optimizer, "grad_scale", None)  # set on a fused optimiser for the time of its step
        attempt.clipped_scale = None if scale is None else _kept(scale)
        found_inf = getattr(optimizer, "found_inf", None)
        attempt.found_inf = None if found_inf is None else _kept(found_inf)
        if attempt.gradients is None:
            attempt.unseen = True
            attempt.gradients = self._parameters.gradients()
            attempt.scale = attempt.clipped_scale
            return
        # A write through `.data` bears no mark: on scheduled steps the norms are taken in any case.
        if not attempt.searched and (attempt.scheduled or self._parameters.changed(attempt.gradients, own)):
            clipped = self._parameters.gradients(own)
            if clipped is not None:
                attempt.clipped.append(clipped)

    def _scale(self) -> Tensor | None:
        # `get_scale` would wait for the device.
        scale = getattr(self._scaler, "_scale", None)
        return _kept(scale) if isinstance(scale, Tensor) else None


def _reaches(attempt: Attempt, a_pass: Pass) -> None:
    if not a_pass.reached:
        a_pass.reached = True
        attempt.reaching.append(a_pass)


def _kept(number: Tensor | float) -> Tensor:
    return torch.as_tensor(number).detach().clone().reshape(1)


def scaler_above() -> GradScaler | None:
    """The GradScaler that is calling the optimiser's step, where one is.

    An optimiser does not hold its scaler, but while it steps the scaler stands above it on the stack.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code in _STEPS_OF_A_SCALER:
            return cast(GradScaler, frame.f_locals["self"])
        frame = frame.f_back
    return None


_STEPS_OF_A_SCALER = {GradScaler.step.__code__}
