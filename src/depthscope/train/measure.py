"""What both engines share: rows of profiles, summaries, and the rule for a run that diverged."""

from __future__ import annotations

import math
from collections.abc import Iterable

from depthscope.core.profile import Profile
from depthscope.record.events import Rows
from depthscope.record.schema import LayerFacts, Outcome

PROBE_BATCH = 128
"""Examples of the probe's batch: the first of the training set, clean, the same for every arm, seed and step."""


def divergence_bound(num_classes: int) -> float:
    """Loss, in nats, above which a run has diverged: 1000 times ln(K), what a guess at chance costs.

    A loss that is not finite is the common sign, but a batch-normalised network at an absurd learning
    rate need not overflow: its gradients are bounded, so its loss climbs to thousands and stays there.

    >>> round(divergence_bound(10), 3)
    2302.585
    """
    return 1e3 * math.log(num_classes)


def diverged_at(losses: Iterable[float], num_classes: int) -> int | None:
    """Index of the first loss that says the run has diverged; None while none does.

    >>> diverged_at([2.3, 9.0, float("nan")], num_classes=10)
    2
    """
    bound = divergence_bound(num_classes)
    return next((at for at, loss in enumerate(losses) if not loss <= bound), None)


def diverged(step: int, loss: float) -> Outcome:
    """The outcome of a run whose loss left all bounds at this step."""
    return Outcome(
        status="diverged",
        step=step,
        reason=f"training loss {loss:g} at step {step}",
        remedy="a smaller lr, a longer warm-up, or a normaliser",
    )


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
    weight has another shape) to the last hidden one; the head is left out of both.
    """
    last = len(profile.layers) - 2
    factor = profile.factor("dh_norm", step, 0, last)
    weights = profile.factor("dw_norm", step, 1, last)
    if step == 0 and factor is not None:
        summary["dh_factor_first"] = factor
    if step == 0 and weights is not None:
        summary["dw_factor_first"] = weights
    if factor is not None:
        summary["dh_factor_last"] = factor
        if "dh_factor_first" in summary:
            summary["dh_factor_change"] = factor / summary["dh_factor_first"]
