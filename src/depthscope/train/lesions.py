"""The lesion study of a run: its rows and figures after training."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from functools import partial

from torch import Tensor, nn

from depthscope.core.profile import Point
from depthscope.probes.lesion import lesions
from depthscope.record.events import Rows
from depthscope.study.run import RunSpec
from depthscope.train.measure import metric_rows
from depthscope.train.network import additions_of
from depthscope.train.objective import Objective, judged

LESION = "lesion"
"""The measure's name."""

LESION_BATCH = 256
"""Examples that are judged without each branch: the first of the training set, clean."""


def lesion_rows(
    spec: RunSpec,
    model: nn.Module,
    points: Sequence[Point],
    x: Tensor,
    y: Tensor,
    objective: Objective,
    step: int,
    summary: dict[str, float],
) -> Iterator[Rows]:
    """Rows of the table of layers, and of the intact network on the same batch; medians over branches in `summary`.

    None for a network without branches.
    """
    additions = additions_of(model)
    if not additions:
        return
    batch = x[:LESION_BATCH], y[:LESION_BATCH]
    judge = partial(judged, objective)
    found = lesions(model, *batch, judge, points=points, additions=additions, step=step)
    run_id = spec.run_id
    yield metric_rows(run_id, [(step, LESION, quantity, value) for quantity, value in found.intact.items()])
    yield Rows(
        run_id=run_id,
        table="layers",
        columns={
            "step": [row.step for row in found.rows],
            "layer": [row.layer for row in found.rows],
            "name": [points[row.layer].layer for row in found.rows],
            "quantity": [row.quantity for row in found.rows],
            "value": [row.value for row in found.rows],
        },
    )
    for quantity, value in found.intact.items():
        changes = [row.value - value for row in found.rows if row.quantity == f"lesion_{quantity}"]
        summary[f"lesion_{quantity}_change"] = statistics.median(changes)
