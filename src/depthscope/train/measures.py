"""What a run in torch is measured by on the way, in one place: layers, the user's own probes, curvature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor, nn

from depthscope.core.depth import curvature_steps
from depthscope.core.profile import Point, Profile
from depthscope.probes.watch import Probe
from depthscope.record.events import Event
from depthscope.study.run import RunSpec
from depthscope.train.curvature import (
    SHARPNESS,
    SMOOTHNESS,
    keep_curvature,
    rate_at,
    sharpness_rows,
    smoothness_rows,
)
from depthscope.train.measure import keep_factors, layer_rows, metric_rows
from depthscope.train.network import additions_of
from depthscope.train.objective import Objective
from depthscope.train.probing import Row, keep_last, own_probes, probe_model
from depthscope.train.schedules import learning_rates
from depthscope.train.twin import probe_batch


class Measures:
    """Measures one run's network at any step, and leaves it as found.

    Args:
        spec: names the measures.
        model: the network that is trained; it is kept.
        objective: gives the loss.
        train: the training split, of which the first examples are measured on.
        points: the network's layers.
        channels_last: how copies of it lay their images out.
        num_steps: updates of the whole training.
        summary: of the run; the last figures are put there.
    """

    def __init__(
        self,
        spec: RunSpec,
        model: nn.Module,
        objective: Objective,
        train: tuple[Tensor, Tensor],
        *,
        points: Sequence[Point],
        channels_last: bool,
        num_steps: int,
        summary: dict[str, float],
    ) -> None:
        self._spec, self._model, self._objective, self._summary = spec, model, objective, summary
        x, y = train
        num = probe_batch(spec, len(y))
        self._batch = x[:num], y[:num]
        self._own = own_probes(spec)
        self._rates = learning_rates(spec, num_steps)
        self._curvature_steps = curvature_steps(num_steps, spec.measure_steps)
        self._probe = None
        if "layers" in spec.measures:
            # Kept for the whole run, so that the float64 copy is made once.
            self._probe = Probe(
                model, objective.loss, points=points, additions=additions_of(model), channels_last=channels_last
            )

    def profile(self, step: int) -> Profile | None:
        """Layer by layer; None where that is not asked for."""
        if self._probe is None:
            return None
        profile = self._probe.measure(*self._batch, step=step)
        keep_factors(self._summary, profile, step)
        return profile

    def events(self, step: int, profile: Profile | None) -> Iterator[Event]:
        """The rows of a step's profile, and of all else that is measured of the model as it stands."""
        if profile:
            yield layer_rows(self._spec.run_id, profile)
        if self._own:
            rows = probe_model(self._own, self._model, *self._batch, spec=self._spec, step=step)
            keep_last(self._summary, rows)
            if rows:
                yield metric_rows(self._spec.run_id, rows)
        rows = self._curvature(step) if step in self._curvature_steps else []
        if rows:
            keep_curvature(self._summary, rows, step)
            yield metric_rows(self._spec.run_id, rows)

    def _curvature(self, step: int) -> list[Row]:
        rows: list[Row] = []
        given = self._model, self._batch, self._objective, rate_at(self._spec, self._rates, step)
        if SMOOTHNESS in self._spec.measures:
            rows += smoothness_rows(*given, step)
        if SHARPNESS in self._spec.measures:
            rows += sharpness_rows(self._spec, *given, step)
        return rows
