"""A study's run as the source of a map: the network that it trained, and the training examples that it saw first."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import final

import torch

from depthscope.core.errors import UserError
from depthscope.record.landscape import MapSource
from depthscope.record.reader import read_record
from depthscope.record.schema import RunRecord
from depthscope.record.weights import read_weights, steps_of
from depthscope.study.catalog import is_user_code
from depthscope.study.landscape import MapSpec
from depthscope.study.run import RunSpec
from depthscope.train.build import Context, load_data
from depthscope.train.feed import taken
from depthscope.train.layout import lay_out
from depthscope.train.mapping import Material
from depthscope.train.network import make_network
from depthscope.train.objective import judged, objective_of
from depthscope.train.twin import is_twin


@final
@dataclass(frozen=True, kw_only=True)
class OfRun:
    """A recorded run of a study, by where it lies: see `mapping.Source`.

    The examples are the first of the training set, without augmentation, in the data set's order; all of it where it
    has fewer. They make one batch where the run's norms see all of them at once (`twin`), or where they are asked
    unequal numbers of answers, which a mean over batches would weigh by examples.

    Attributes:
        spec: the run.
        folder: the study's; workers need it at the same path.
        context: device, data and threads.
        name: of the run, for people.
    """

    spec: RunSpec
    folder: Path
    context: Context = field(default_factory=Context)
    name: str = ""

    def named(self) -> MapSource:
        """See `mapping.Source`."""
        spec, data = self.spec, load_data(self.spec, self.context)
        return MapSource(
            kind="run",
            model=self.name or f"{spec.family} of depth {spec.depth}",
            data=spec.data,
            loss="squared error" if data.task == "regression" else "cross entropy",
            run_id=spec.run_id,
            step=steps_of(self._record().weights)[-1],
        )

    def material(self, spec: MapSpec) -> Material:
        """See `mapping.Source`.

        Raises:
            UserError: the run has no record or no weights, or they were altered.
        """
        record, run, device = self._record(), self.spec, self.context.device
        data = load_data(run, self.context)
        objective = objective_of(data)
        dtype = torch.float64 if run.precision == "float64" else torch.float32
        model, _ = make_network(run, data, device=device, dtype=dtype)
        if data.train.x.ndim == 4 and not is_user_code(run.family):
            model = lay_out(model, device)  # as it was trained
        steps = steps_of(record.weights)
        read = steps if spec.directions == "trajectory" else steps[-1:]
        snapshots = [
            {name: torch.from_numpy(value) for name, value in read_weights(self.folder, record, step).items()}
            for step in read
        ]
        model.load_state_dict(snapshots[-1])
        x, y = (each.to(device) for each in taken(run, data, data.train, spec.examples))
        x, y = (each.to(dtype) if each.is_floating_point() else each for each in (x, y))
        asked = {int(objective.num(y[at : at + 1])) for at in range(len(y))}
        size = spec.batch_size if len(asked) == 1 and not is_twin(run) else len(y)
        return Material(
            model=model,
            batches=[(x[at : at + size], y[at : at + size]) for at in range(0, len(y), size)],
            judge=partial(judged, objective),
            loss_fn=objective.loss,
            snapshots=snapshots if spec.directions == "trajectory" else (),
            steps=steps if spec.directions == "trajectory" else (),
        )

    def _record(self) -> RunRecord:
        found = read_record(self.folder, self.spec.run_id)
        if not isinstance(found, RunRecord):
            why = "has no record" if found is None else found.reason
            raise UserError(f"run {self.spec.run_id} {why}, so that nothing can be mapped. Run the study again.")
        if not found.weights:
            raise UserError(f"run {self.spec.run_id} kept no weights. Put 'weights' among the measures of its runs.")
        return found
