"""Runs in the NumPy laboratory, all seeds of a task side by side, as a generator of events."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.core.depth import profile_steps
from depthscope.core.hashing import array_digest, combined_digest
from depthscope.data.batches import order_digest
from depthscope.data.dataset import Dataset
from depthscope.lab.fit import Departure, Memory, Report, StopRule, fit
from depthscope.lab.forms import layer_table, parameter_shapes
from depthscope.lab.gradcheck import STEP_SIZES, gradient_check
from depthscope.lab.judge import evaluate
from depthscope.lab.measure import profile
from depthscope.lab.optimizers import Optimizer
from depthscope.record.events import Ended, Event, Progress, Rows, SafePoint, Started, State
from depthscope.record.schema import Digests, LayerFacts, Outcome
from depthscope.study.run import RunSpec
from depthscope.train.build import Context, load_data, resolve, target_of
from depthscope.train.laboratory import Batches, derived_of, form_of, params_of, texts_of
from depthscope.train.measure import diverged, divergence_bound, keep_factors, layer_rows, metric_rows
from depthscope.train.memory import DataShape
from depthscope.train.probing import keep_last, own_probes, probe_stack
from depthscope.train.samples import SAMPLES
from depthscope.train.schedules import learning_rates
from depthscope.train.state import Standing, check_made_of, made_of, named, new_state, part, summary_of
from depthscope.train.twin import eval_batch, probe_batch, steps_of_epoch
from depthscope.train.usercode import code_digests

Array = NDArray[Any]

EVERY = 20
"""Steps between the figures of a training curve."""

_GRADCHECK_SUMMARY = {
    ("complex", 1e-20): "gradcheck_complex_median",
    ("central", 1e-4): "gradcheck_central_median",
    ("five_point", 3e-3): "gradcheck_five_point_median",
}


def run(
    specs: Sequence[RunSpec], context: Context, states: Mapping[str, State], standing: Standing
) -> Iterator[Event | SafePoint]:
    """The events of runs that differ only in their seed, trained side by side.

    Either none of them has a state to go on from, or all have, at one step.
    """
    begun = [states[spec.run_id] for spec in specs if spec.run_id in states]
    yield from _Group(specs, context, begun).events(standing)


class _Group:
    def __init__(self, specs: Sequence[RunSpec], context: Context, states: Sequence[State]) -> None:
        assert not states or len(states) == len(specs)
        self.specs, self.spec = specs, specs[0]
        self.ids = [spec.run_id for spec in specs]
        self.data: list[Dataset] = [load_data(spec, context) for spec in specs]
        train = self._split("train")
        assert train is not None
        self.x, self.y = train
        held = {name: self._split(name) for name in ("validation", "test")}
        self.held_out = {name: split for name, split in held.items() if split is not None}
        self.form = form_of(self.spec, DataShape.of(self.data[0]))
        self.params = params_of(specs, self.form)
        self.batches = Batches(specs, self.y.shape[1])
        epochs = self.spec.epochs or 0
        self.num_steps = self.spec.steps if self.spec.steps is not None else epochs * self.batches.per_epoch
        self.init = [
            {name: array_digest(value[row]) for name, value in self.params.items()} for row in range(len(specs))
        ]
        self.code, self.own_probes = code_digests(self.spec), own_probes(self.spec)
        self.made_of = [made_of(init, data.digest, self.code) for init, data in zip(self.init, self.data, strict=True)]
        self.summary: list[dict[str, float]] = [{} for _ in specs]
        self.memory: Memory | None = None
        if states:
            self._resume(states)

    def _resume(self, states: Sequence[State]) -> None:
        for state, begun in zip(states, self.made_of, strict=True):
            check_made_of(state, begun)
        (step,) = {state.step for state in states}
        models, optimizers = ([part(state.tensors, name) for state in states] for name in ("model", "optimizer"))
        self.params = {name: np.stack([model[name] for model in models]) for name in self.params}
        self.memory = Memory(
            step=step,
            optimizer={name: np.stack([each[name] for each in optimizers]) for name in optimizers[0]},
            streak=np.array([state.position["streak"] for state in states], np.int64),
            tally=np.stack([state.tensors["tally"] for state in states]) if self.spec.batch_size else None,
        )
        self.summary = [summary_of(state) for state in states]

    def _split(self, name: str) -> tuple[Array, Array] | None:
        """(x, y) of a split of all seeds; None where the data set has none."""
        splits = [getattr(data, name) for data in self.data]
        if None in splits:
            return None
        return np.stack([split.x for split in splits]), np.stack([split.y for split in splits])

    def events(self, standing: Standing) -> Iterator[Event | SafePoint]:
        if self.memory is None:
            yield from self._begin()
        measured = "layers" in self.spec.measures or self.own_probes
        per_epoch = steps_of_epoch(self.spec, self.batches.per_epoch)
        wanted = profile_steps(self.num_steps, per_epoch, self.spec.measure_steps) if measured else ()
        rates = learning_rates(self.spec, self.num_steps)
        for report in self._fit(rates, wanted):
            standing.step = report.step
            with np.errstate(all="ignore"):  # what a diverging network overflows is data, and told as such
                heard = list(self._hear(report, rates, report.step in wanted))
            yield from heard
            gone = {each.member for each in report.departures}
            if rows := [row for row, member in enumerate(report.members) if member not in gone]:
                yield SafePoint(
                    run_ids=tuple(self.ids[report.members[row]] for row in rows),
                    step=report.step,
                    epoch_end=report.step % self.batches.per_epoch == 0,
                    take=partial(self._states, report, rows),
                )

    def _states(self, report: Report, rows: Sequence[int]) -> tuple[State, ...]:
        states = []
        for row in rows:
            member = report.members[row]
            model = {name: value[row].copy() for name, value in report.params.items()}
            optimizer = {name: value[row].copy() for name, value in report.memory.optimizer.items()}
            tally = {} if report.memory.tally is None else {"tally": report.memory.tally[row].copy()}
            states.append(
                new_state(
                    self.ids[member],
                    report.step,
                    made_of=self.made_of[member],
                    summary=self.summary[member],
                    tensors={**named("model", model), **named("optimizer", optimizer), **tally},
                    streak=int(report.memory.streak[row]),
                )
            )
        return tuple(states)

    def _begin(self) -> Iterator[Event]:
        facts = tuple(
            LayerFacts(index=each.index, name=each.name, kind=each.kind, weight=each.weight, shape=each.shape)
            for each in layer_table(self.form)
        )
        count = sum(int(np.prod(shape)) for shape in parameter_shapes(self.form).values())
        for member, (run_id, data) in enumerate(zip(self.ids, self.data, strict=True)):
            yield Started(
                run_id=run_id,
                layers=facts,
                parameters=count,
                digests=self._digests(member),
                num_steps=self.num_steps,
                derived=derived_of(self.spec),
                chance_loss=data.chance_loss,
            )
        if "gradcheck" in self.spec.measures:
            yield from self._gradcheck()

    def _digests(self, member: int) -> Digests:
        epochs, seed = -(-self.num_steps // self.batches.per_epoch), self.specs[member].seed
        order = order_digest(seed, epochs, self.y.shape[1]) if self.spec.batch_size else None
        return Digests(init=self.init[member], data=self.data[member].digest, order=order, code=self.code)

    def _fit(self, rates: list[float], wanted: Sequence[int]) -> Iterator[Report]:
        options = dict(self.spec.optimizer_options)
        if self.spec.optimizer == "sgd":
            del options["weight_decay"]  # 0 for NumPy: RunSpec sees to it
        optimizer: Optimizer = resolve(target_of("optimizer", self.spec.optimizer, "numpy"))(**options)
        return fit(
            self.form,
            self.params,
            self.x,
            self.y,
            optimizer=optimizer,
            lr=rates,
            num_steps=self.num_steps,
            every=EVERY,
            at=wanted,
            stop=StopRule(loss=self.spec.stop_loss) if self.spec.stop_loss is not None else None,
            diverged_above=divergence_bound(math.log(self.data[0].num_classes)),
            memory=self.memory,
            batches=self.batches if self.spec.batch_size else None,
        )

    def _hear(self, report: Report, rates: list[float], profiled: bool) -> Iterator[Event]:
        members = list(report.members)
        leaving = {each.member: each for each in report.departures}
        for row, member in enumerate(members):
            # A report also comes when another member leaves, or to be measured: neither may show in this one's rows.
            if report.step % EVERY and member not in leaving:
                continue
            figures = [("loss", float(report.loss[row])), ("accuracy", float(report.accuracy[row]))]
            rows = [(report.step, "train_running", name, value) for name, value in figures]
            since = (report.step - 1) // EVERY * EVERY if report.step else 0
            rows += [(at + 1, "schedule", "lr", rates[at]) for at in range(since, report.step)]
            yield metric_rows(self.ids[member], rows)
        # One that stops early is measured where it stops: that is its last step.
        kept = [row for row, member in enumerate(members) if profiled or member in leaving]
        if "layers" in self.spec.measures and kept:
            yield from self._profiles(report, members, kept)
        for row in kept if self.own_probes else ():
            member, params = members[row], {name: value[row] for name, value in report.params.items()}
            x, y = self._probed([member])
            rows = probe_stack(self.own_probes, self.form, params, x[0], y[0], report.step)
            keep_last(self.summary[member], rows)
            if rows:
                yield metric_rows(self.ids[member], rows)
        if leaving:
            yield from self._leave(report, members, leaving)
        elif report.step % EVERY == 0:
            text = f"loss {float(np.median(report.loss)):.3f}, accuracy {float(np.median(report.accuracy)):.3f}"
            seen = self.batches.num_seen(report.step)
            for member in members:
                run_id = self.ids[member]
                yield Progress(run_id=run_id, step=report.step, num_steps=self.num_steps, text=text, examples=seen)

    def _profiles(self, report: Report, members: list[int], rows: list[int]) -> Iterator[Event]:
        chosen = [members[row] for row in rows]
        params = {name: value[rows] for name, value in report.params.items()}
        for member, found in zip(chosen, profile(self.form, params, *self._probed(chosen), report.step), strict=True):
            yield layer_rows(self.ids[member], found)
            keep_factors(self.summary[member], found, report.step)

    def _probed(self, members: list[int]) -> tuple[Array, Array]:
        """What layers are measured on."""
        num = probe_batch(self.spec, self.y.shape[1])
        return self.x[members, :num], self.y[members, :num]

    def _leave(self, report: Report, members: list[int], leaving: Mapping[int, Departure]) -> Iterator[Event]:
        leave = [row for row, member in enumerate(members) if member in leaving]
        chosen = [members[row] for row in leave]
        params = {name: value[leave] for name, value in report.params.items()}
        splits = {"train": (self.x, self.y), **self.held_out}
        clean = {
            name: evaluate(self.form, params, x[chosen], y[chosen], at_once=eval_batch(self.spec, y.shape[1]))
            for name, (x, y) in splits.items()
        }
        for at, member in enumerate(chosen):
            departure, summary = leaving[member], self.summary[member]
            texts: tuple[str, ...] = ()
            if departure.reason == "diverged":
                outcome = diverged(report.step, float(report.loss[leave[at]]), spec=self.specs[member])
            else:
                outcome = Outcome(status="completed", step=report.step, stopped_early=departure.reason == "stopped")
                figures = {
                    f"{split}_{name}": float(pair[index][at])
                    for split, pair in clean.items()
                    for index, name in enumerate(("loss", "accuracy"))
                }
                summary |= figures
                rows = [
                    (report.step, split, name, figures[f"{split}_{name}"])
                    for split in clean
                    for name in ("loss", "accuracy")
                ]
                yield metric_rows(self.ids[member], rows)
                if SAMPLES in self.spec.measures:
                    own = {name: value[at] for name, value in params.items()}
                    texts = texts_of(self.form, own, self.data[member], self.specs[member].seed)
            final = combined_digest({name: array_digest(value[at]) for name, value in params.items()})
            yield Ended(run_id=self.ids[member], outcome=outcome, summary=summary, final=final, samples=texts)

    def _gradcheck(self) -> Iterator[Event]:
        for member, spec in enumerate(self.specs):
            params = {name: value[member : member + 1] for name, value in self.params.items()}
            x, y = self._probed([member])
            rows = gradient_check(self.form, params, x, y, seed=spec.seed, step_sizes=STEP_SIZES)
            columns: dict[str, list[Any]] = {
                "method": [row.method for row in rows],
                "h": [row.h for row in rows],
                "tensor": [row.tensor or "" for row in rows],
                "median": [row.median for row in rows],
                "worst": [row.worst for row in rows],
                "worst_at": [f"{row.worst_tensor}{list(row.worst_index)}" for row in rows],
                "count": [row.count for row in rows],
            }
            yield Rows(run_id=self.ids[member], table="gradcheck", columns=columns)
            for row in rows:
                key = _GRADCHECK_SUMMARY.get((row.method, row.h))
                if key and row.tensor is None:
                    self.summary[member][key] = row.median
