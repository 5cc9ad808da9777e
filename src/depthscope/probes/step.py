"""Along the step: how far the loss and its gradient hold on the way that the gradient points.

At weights w with the gradient g of a batch's loss L, the network is looked at with the weights w' = w - eta g for a
range of eta. Three figures of it: the range of L(w'), the range of |g(w') - g(w)|, and the effective smoothness, the
largest |g(w') - g(w)| / |w' - w|. On a quadratic with Hessian H they have closed forms:
L - eta |g|^2 + eta^2 g^T H g / 2, eta |H g|, and |H g| / |g| at every eta.

Source: Santurkar et al. 2018 (arXiv 1805.11604, section 3.1 and figure 4). Their networks trained at the rate .1, and
eta ended at .4, four times that, since a network without batch norm does worse for more. So here too eta goes to four
times the learning rate, from half of it (`FACTORS`).

Shape letters: B batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.probes.guard import undisturbed
from depthscope.probes.norms import norms, total
from depthscope.probes.shadow import bare_copy

FACTORS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
"""Times the learning rate: the eta that are looked at."""


@dataclass(frozen=True, kw_only=True)
class Along:
    """A way from w against its gradient. What overflowed on it stands as it is.

    Attributes:
        loss: L(w).
        gradient_norm: |g(w)|.
        etas: in the order that was asked for.
        losses: L(w') at each.
        changes: |g(w') - g(w)| at each.
        distances: |w' - w| at each, of the weights as they were rounded.
    """

    loss: float
    gradient_norm: float
    etas: tuple[float, ...]
    losses: tuple[float, ...]
    changes: tuple[float, ...]
    distances: tuple[float, ...]

    @property
    def loss_range(self) -> tuple[float, float]:
        """(smallest, largest) loss on the way; not a number where one of them is none."""
        return _range(self.losses)

    @property
    def change_range(self) -> tuple[float, float]:
        """(smallest, largest) change of the gradient on the way."""
        return _range(self.changes)

    @property
    def smoothness(self) -> float:
        """The largest |g(w') - g(w)| / |w' - w|; not a number where no step moves the weights, as where g is 0."""
        pairs = zip(self.changes, self.distances, strict=True)
        ratios = [change / distance for change, distance in pairs if distance > 0]
        return _range(ratios)[1] if ratios else math.nan


def along_step(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    loss_fn: Callable[[Tensor, Tensor], Tensor],
    *,
    etas: Sequence[float],
    dtype: torch.dtype | None = None,
) -> Along:
    """Loss and gradient of one batch at w and at each w - eta g, in training mode, on a copy of the model.

    A batch norm normalises by the batch's own statistics, as it does where the gradient of an update comes from; its
    running ones are the copy's. What draws (dropout) draws the same at each point. The model is only read, and the
    global generators are left as found. Norms are taken in float64, over all parameters that are trained.

    Args:
        model: whose loss it is.
        inputs: [B, ...], as the model takes them.
        targets: [B, ...], as `loss_fn` takes them.
        loss_fn: `(output, targets) -> scalar`.
        etas: positive and finite; an eta is a learning rate, and `FACTORS` are of one.
        dtype: of the copy and of inputs and targets that are of floating point; None leaves them.

    Raises:
        UserError: an eta that is no positive number; nothing to train; see also `shadow.bare_copy`.
    """
    wrong = [eta for eta in etas if not (math.isfinite(eta) and eta > 0)]
    if wrong or not etas:
        raise UserError(f"along the step: wanted positive numbers for eta, got {wrong[0] if wrong else 'none'}.")
    with undisturbed(inputs.device):
        copy = bare_copy(model).train()
        if dtype is not None:
            copy = copy.to(dtype)
            inputs, targets = (each.to(dtype) if each.is_floating_point() else each for each in (inputs, targets))
        trained = [each for each in copy.parameters() if each.requires_grad]
        if not trained:
            raise UserError("along the step: the model has no parameter that is trained.")
        begin = [each.detach().clone() for each in trained]

        def look() -> tuple[float, list[Tensor]]:
            cuda = [inputs.device] if inputs.device.type == "cuda" else []
            with torch.random.fork_rng(devices=cuda):  # each pass begins with the same draws
                loss = loss_fn(copy(inputs), targets)
            found = torch.autograd.grad(loss, trained, allow_unused=True)
            pairs = zip(found, trained, strict=True)
            return float(loss.detach()), [torch.zeros_like(w) if g is None else g.detach() for g, w in pairs]

        first, gradient = look()
        losses, changes, distances = [], [], []
        for eta in etas:
            with torch.no_grad():
                for w, start, g in zip(trained, begin, gradient, strict=True):
                    w.copy_(start - eta * g)
            loss, there = look()
            losses.append(loss)
            changes.append(_distance(there, gradient))
            distances.append(_distance(trained, begin))
    return Along(
        loss=first,
        gradient_norm=total(norms(gradient).tolist()),
        etas=tuple(etas),
        losses=tuple(losses),
        changes=tuple(changes),
        distances=tuple(distances),
    )


@torch.no_grad()
def _distance(a: Sequence[Tensor], b: Sequence[Tensor]) -> float:
    return total(norms([one - other for one, other in zip(a, b, strict=True)]).tolist())


def _range(values: Sequence[float]) -> tuple[float, float]:
    """Smallest and largest; both are no number where one of the values is none (Python's own would depend on order)."""
    if any(math.isnan(each) for each in values):
        return math.nan, math.nan
    return min(values), max(values)
