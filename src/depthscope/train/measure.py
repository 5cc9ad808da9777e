"""What both engines share: rows of profiles, summaries, and the rule for a run that diverged."""

from __future__ import annotations

import math
from collections.abc import Iterable

from depthscope.core.profile import Profile
from depthscope.record.events import Rows
from depthscope.record.schema import LayerFacts, Outcome


def divergence_bound(num_classes: int) -> float:
    """Loss, in nats, above which a run has diverged: 1000 times ln(K), what a guess at chance costs.

    A loss that is not finite is the common sign, but a batch-normalised network at an absurd learning
    rate need not overflow: its gradients are bounded, so its loss climbs to thousands and stays there.
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


def gradient_factor(profile: Profile, step: int) -> float | None:
    """Factor of |dL/dh| a layer, toward the input: the geometric mean from the stem to the last hidden layer.

    (|dL/dh_first| / |dL/dh_last|)^(1/(number of layers between)), the head left out. Below 1 the gradient
    shrinks on its way to the input, above 1 it grows. None where there is no such gradient.
    """
    values = profile.values("dh_norm", step)
    last = len(profile.layers) - 2
    if last < 1 or 0 not in values or last not in values:
        return None
    first, final = values[0], values[last]
    if not (math.isfinite(first) and math.isfinite(final) and first > 0 and final > 0):
        return None
    return math.exp((math.log(first) - math.log(final)) / last)


def keep_factor(summary: dict[str, float], factor: float, *, at_start: bool) -> None:
    """Put the gradient's factor into a run's summary; the last call before the end is the last step's."""
    if at_start:
        summary["dh_factor_first"] = factor
    summary["dh_factor_last"] = factor
    summary["dh_factor_change"] = factor / summary["dh_factor_first"]
