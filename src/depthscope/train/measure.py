"""What both engines share: rows of profiles, summaries, and the rule for a run that diverged."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from depthscope.core.profile import Profile
from depthscope.record.events import Rows
from depthscope.record.schema import LayerFacts, Outcome
from depthscope.study.run import RunSpec

PROBE_BATCH = 128
"""Examples of the probe's batch: the first of the training set, clean, the same for every arm, seed and step."""


DIVERGED = 1e3
"""Times the loss of a guess at chance, or of the start: above it a run has diverged."""


def divergence_bound(guess: float, first: float = 0.0) -> float:
    """Loss above which a run has diverged: 1000 times what a guess at chance costs, or the start if that is more.

    A loss that is not finite is the common sign, but a batch-normalised network at an absurd learning
    rate need not overflow: its gradients are bounded, so its loss climbs to thousands and stays there.

    The start counts where numbers are asked for. There the loss goes with the square of the output, which a network
    that carries its sum through many layers may begin with a thousand times too large, and learn: it has diverged
    if training takes it as far again. A cross entropy is at most linear in the logits, and its bound is ln K's alone.

    Args:
        guess: the loss at chance: ln K of K classes, and of targets that of their mean.
        first: the loss of the first batch, of targets.

    Returns:
        The bound; infinity where neither is above 0 (all targets alike, and told rightly at the start).

    >>> round(divergence_bound(math.log(10)), 3), divergence_bound(0.25, first=600.0)
    (2302.585, 600000.0)
    """
    return DIVERGED * max(guess, first if math.isfinite(first) else 0.0) or math.inf


def diverged_at(losses: Iterable[float], bound: float) -> int | None:
    """Index of the first loss that is not finite or above the bound; None while none is.

    >>> diverged_at([2.3, 9.0, float("nan")], bound=divergence_bound(math.log(10)))
    2
    """
    return next((at for at, loss in enumerate(losses) if not (loss <= bound and math.isfinite(loss))), None)


@dataclass(frozen=True, kw_only=True)
class Overflow:
    """The first gradients of a run whose norm was no finite number.

    Attributes:
        step: updates done when they appeared.
        parameter: of those, the one nearest to the output.
        num: how many parameters' gradients had no finite norm at that step.
        of: parameters of the model.
    """

    step: int
    parameter: str
    num: int
    of: int


def diverged(
    step: int, loss: float, overflow: Overflow | None = None, *, spec: RunSpec | None = None, model: Any = None
) -> Outcome:
    """The outcome of a run whose loss left all bounds at this step.

    Args:
        step: whose loss it is.
        loss: in nats, or a squared error.
        overflow: the first gradient without a finite norm. Where the loss itself was beyond bounds at that step, what
            came back from it tells nothing more, and it is not named.
        spec: of the run, where there is one; nothing is advised that it has.
        model: the torch network, which may have normalisers that no spec tells of.
    """
    reason = f"training loss {loss:g} at step {step}"
    if overflow is None or overflow.step >= step:
        return Outcome(status="diverged", step=step, reason=reason, remedy=_remedy(step, spec, model))
    which = f"the gradient of {overflow.parameter}"
    if overflow.num > 1:
        which = f"the gradients of {overflow.num} of {overflow.of} tensors, {overflow.parameter} nearest to the output,"
    reason += f"; at step {overflow.step} {which} had no finite norm"
    untrained = "the lr has no part in it" if overflow.step == 0 else "a smaller lr or a longer warm-up may do too"
    remedy = f"gradients that do not grow with depth: a shortcut, fewer layers, another initialiser; {untrained}"
    return Outcome(status="diverged", step=step, reason=reason, remedy=remedy)


def _remedy(step: int, spec: RunSpec | None, model: Any) -> str:
    modules = () if model is None else model.modules()
    named = any("Norm" in type(each).__name__ for each in modules)  # the user's own too
    normalised = named or (spec is not None and spec.norm != "none")
    if not step:  # nothing was learned yet
        told = ["another initialiser"] + ["a normaliser"] * (not normalised)
        told += ["branches that are scaled down"] * (spec is not None and spec.shortcut not in ("none", "dense"))
        return "; ".join([*told, "inputs and targets of a smaller scale", "the lr has no part in it"])
    if not normalised:
        return "a smaller lr, a longer warm-up, or a normaliser"
    if spec is not None and (spec.clip != "none" or spec.backend == "numpy"):  # the laboratory clips nothing
        return "a smaller lr or a longer warm-up"
    return "a smaller lr, a longer warm-up, or clipped gradients"


def layer_rows(run_id: str, profile: Profile) -> Rows:
    """The rows of a profile as an event. Values that are not finite are kept: they are what was measured."""
    names = {layer.index: layer.name for layer in profile.layers}
    return Rows(
        run_id=run_id,
        table="layers",
        columns={
            "step": [row.step for row in profile.rows],
            "layer": [row.layer for row in profile.rows],
            "name": [names[row.layer] for row in profile.rows],
            "quantity": [row.quantity for row in profile.rows],
            "value": [row.value for row in profile.rows],
        },
    )


def metric_rows(run_id: str, rows: Iterable[tuple[int, str, str, float]]) -> Rows:
    """(step, split, quantity, value) as an event."""
    step, split, quantity, value = (list(column) for column in zip(*rows, strict=True))
    columns = {"step": step, "split": split, "quantity": quantity, "value": value}
    return Rows(run_id=run_id, table="metrics", columns=columns)


def layer_facts(profile: Profile) -> tuple[LayerFacts, ...]:
    """The profile's layer table for the record."""
    return tuple(
        LayerFacts(index=layer.index, name=layer.name, kind=layer.kind, weight=layer.weight, shape=layer.shape)
        for layer in profile.layers
    )


def keep_factors(summary: dict[str, float], profile: Profile, step: int) -> None:
    """Put the factors a layer of a profile into a run's summary; the last call before the end is the last step's.

    |dL/dh| runs from the stem to the last hidden layer, |dW| from the first layer after the stem (whose
    weight has another shape) to the last hidden one; the head is left out of both. Of a transformer, whose first
    layer is a table, |dW| of the last hidden layer is kept by itself, as a logarithm: its law in depth is a power.
    """
    last = len(profile.layers) - 2
    factor = profile.factor("dh_norm", step, 0, last)
    weights = profile.factor("dw_norm", step, 1, last)
    if step == 0 and factor is not None:
        summary["dh_factor_first"] = factor
    if step == 0 and weights is not None:
        summary["dw_factor_first"] = weights
    end = profile.values("dw_norm", step).get(last, 0.0)
    if step == 0 and profile.layers[0].kind == "embedding" and 0 < end < math.inf:
        summary["dw_end_log_first"] = math.log(end)
    if factor is not None:
        summary["dh_factor_last"] = factor
        if "dh_factor_first" in summary:
            summary["dh_factor_change"] = factor / summary["dh_factor_first"]
