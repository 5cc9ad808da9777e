"""A run in PyTorch, as a generator of events."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from depthscope.core.depth import profile_steps
from depthscope.probes.numbers import tensor_digest, weights_digest
from depthscope.record.events import Ended, Event, Progress, SafePoint, Started, State
from depthscope.record.schema import Digests, LayerFacts, Outcome
from depthscope.study.catalog import is_user_code
from depthscope.study.run import RunSpec
from depthscope.train.build import Context, load_data
from depthscope.train.clip import clipper
from depthscope.train.exact import exact
from depthscope.train.feed import Feed
from depthscope.train.forward_backward import ForwardBackward
from depthscope.train.gradients import Gradients
from depthscope.train.graphs import Passes, Replayed, recorder
from depthscope.train.keeping import WEIGHTS, kept_steps, weights_of
from depthscope.train.layout import lay_out
from depthscope.train.lesions import LESION, lesion_rows
from depthscope.train.measure import diverged, diverged_at, layer_facts, metric_rows
from depthscope.train.measures import Measures
from depthscope.train.network import derived_of, draws_of_step, make_network, points_of
from depthscope.train.objective import Objective, objective_of
from depthscope.train.optim import make_optimizer, set_rate
from depthscope.train.passes import clean_pass
from depthscope.train.samples import SAMPLES, written_by
from depthscope.train.schedules import learning_rates
from depthscope.train.state import Standing, check_made_of, made_of, new_state, summary_of
from depthscope.train.tally import Tally
from depthscope.train.torch_state import restore, tensors_of
from depthscope.train.twin import steps_of_epoch
from depthscope.train.usercode import code_digests, network_targets

_DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.float32}


Prepare = Callable[[nn.Module, Feed, Objective], Mapping[str, float]]
"""Changes the initial tensors of a model in place; gives figures for the run's summary."""


def run(
    specs: Sequence[RunSpec],
    context: Context,
    states: Mapping[str, State],
    standing: Standing,
    *,
    prepare: Prepare | None = None,
) -> Iterator[Event | SafePoint]:
    """The events of runs that differ only in their seed, one run after the other; those with a state go on from it.

    Args:
        specs: the runs.
        context: device, data and threads.
        states: run_id -> state.
        standing: is told of each update.
        prepare: is lent the model of a run that begins, after it is initialised and before it is measured.
    """
    with exact(context.threads):
        for spec in specs:
            yield from Run(spec, context, states.get(spec.run_id), standing, prepare).events()


class Run:
    """One run; `events` trains it."""

    def __init__(
        self,
        spec: RunSpec,
        context: Context,
        state: State | None,
        standing: Standing,
        prepare: Prepare | None = None,
    ) -> None:
        self.spec, self.id, self.device, self.standing = spec, spec.run_id, context.device, standing
        self.data = load_data(spec, context)
        dtype = _DTYPES[spec.precision]
        self.feed = Feed(self.data, spec, self.device, dtype)
        self.model, self.init = make_network(spec, self.data, device=self.device, dtype=dtype)
        self.code = code_digests(spec)
        # A model of the user's may call `view` on its images, which bears no other layout.
        channels_last = self.data.train.x.ndim == 4 and not is_user_code(spec.family)
        if channels_last:
            self.model = lay_out(self.model, self.device)
        self.objective = objective_of(self.data)
        self.num_steps = spec.steps if spec.steps is not None else (spec.epochs or 0) * self.feed.steps_per_epoch
        keeps, per_epoch = WEIGHTS in spec.measures, self.feed.steps_per_epoch
        self.kept = kept_steps(self.num_steps, per_epoch, spec.measure_steps) if keeps else frozenset()
        self.optimizer = make_optimizer(spec, self.model)
        self.summary: dict[str, float] = {}
        self.step, self.tally = 0, Tally()
        self.gradients, self.clip = Gradients(self.model, self.device), clipper(spec, self.model)
        self.made_of = made_of(self.init, self.data.digest, self.code)
        self.resumed, self.prepare = state is not None, prepare
        if state:
            self._resume(state)
        # None of this refers to the run itself: a cycle would keep its data until the collector comes by.
        plain, record = ForwardBackward(spec, self.model, self.objective, self.device), recorder(spec, context)
        self.passes: Passes = Replayed(self.model, plain, record, self.feed.batch_size) if record else plain
        self.points = points_of(self.model, self.feed.train[0])
        self.measures = Measures(
            spec,
            self.model,
            self.objective,
            self.feed.train,
            points=self.points,
            channels_last=channels_last,
            num_steps=self.num_steps,
            summary=self.summary,
        )

    def _resume(self, state: State) -> None:
        check_made_of(state, self.made_of)
        restore(self.model, self.optimizer, state.tensors)
        self.step, self.summary = state.step, summary_of(state)
        self.gradients.restore(state.tensors)
        self.tally = Tally.of(state)

    def _safe_point(self, *, epoch_end: bool) -> SafePoint:
        return SafePoint(run_ids=(self.id,), step=self.step, epoch_end=epoch_end, take=lambda: (self._state(),))

    def _state(self) -> State:
        return new_state(
            self.id,
            self.step,
            made_of=self.made_of,
            summary=self.summary,
            tensors={**tensors_of(self.model, self.optimizer), **self.tally.tensors(), **self.gradients.tensors()},
            epoch_hits=self.tally.num_hits(),
        )

    def events(self) -> Iterator[Event | SafePoint]:
        """All of them; the model is then what training made of it."""
        if not self.resumed:
            yield from self._begin()
        outcome = yield from self._train()
        if outcome.status == "completed":
            outcome = yield from self._evaluate(outcome)
        if outcome.status == "completed" and LESION in self.spec.measures:
            yield from lesion_rows(
                self.spec, self.model, self.points, *self.feed.train, self.objective, self.step, self.summary
            )
        final = weights_digest(self.model.state_dict()) if outcome.status == "completed" else None
        samples: tuple[str, ...] = ()
        if outcome.status == "completed" and SAMPLES in self.spec.measures:
            draws_of_step(self.spec, self.device, "samples")
            samples = written_by(self.model, self.data, self.spec, self.device)
        yield Ended(run_id=self.id, outcome=outcome, summary=self.summary, final=final, samples=samples)

    def _begin(self) -> Iterator[Event]:
        draws_of_step(self.spec, self.device, 0)
        if self.prepare is not None:
            self.summary |= self.prepare(self.model, self.feed, self.objective)
            self.init = {name: tensor_digest(each) for name, each in self.model.state_dict().items()}
        first = self.measures.profile(0)
        yield Started(
            run_id=self.id,
            layers=layer_facts(first) if first else self._points(),
            parameters=sum(parameter.numel() for parameter in self.model.parameters()),
            digests=self._digests(),
            num_steps=self.num_steps,
            derived=derived_of(self.spec, self.model),
            chance_loss=self.data.chance_loss,
        )
        yield from self.measures.events(0, first)
        yield from self._weights()

    def _train(self) -> Generator[Event | SafePoint, None, Outcome]:
        rates = learning_rates(self.spec, self.num_steps)
        steps_per_epoch = steps_of_epoch(self.spec, self.feed.steps_per_epoch)
        wanted = set(profile_steps(self.num_steps, steps_per_epoch, self.spec.measure_steps))
        while self.step < self.num_steps:
            epoch, batch = divmod(self.step, self.feed.steps_per_epoch)
            begin, seen = self.step - batch, epoch * self.feed.num_examples
            end = min(begin + self.feed.steps_per_epoch, self.num_steps)
            tally = self.tally
            if not self.model.training or network_targets(self.spec):  # whose modules may go their own ways
                self.model.train()
            for x_B, y_B in self.feed.epoch(epoch, first=batch):
                loss, hits = self._update(x_B, y_B, rates[self.step])
                self.step += 1
                self.standing.step = self.step
                tally.losses.append(loss)
                if hits is not None:
                    tally.hits.append(hits)
                tally.counts.append(self.objective.num(y_B))
                if self.step in wanted:
                    yield from self.measures.events(self.step, self.measures.profile(self.step))
                yield from self._weights()
                if self.step == end:
                    break
                if self.step % 20 == 0:
                    yield self._progress(seen + self.feed.num_seen(self.step - begin))
                yield self._safe_point(epoch_end=False)
            self.tally = Tally()
            values = tally.values()
            yield metric_rows(self.id, [(at + 1, "schedule", "lr", rates[at]) for at in range(begin, end)])
            start = self.summary.get("train_loss_first", values[0])  # of the run, in whatever epoch it goes on
            bad = diverged_at(values, self.objective.bound(start))
            if bad is not None:
                return self._diverged(begin + bad, values[bad])  # of the weights before the batch's update
            nums = tally.nums()
            mean = sum(value * num for value, num in zip(values, nums, strict=True)) / sum(nums)
            found = {"loss": mean}
            if self.data.task == "classification":
                found["accuracy"] = tally.num_hits() / sum(nums)
            self.summary |= {f"train_{quantity}_running": value for quantity, value in found.items()}
            self.summary |= {"train_loss_first": start, "train_loss_change": mean - start}
            yield metric_rows(self.id, [(end, "train_running", *figure) for figure in found.items()])
            text = ", ".join(f"{quantity} {value:.3f}" for quantity, value in found.items())
            yield self._progress(seen + self.feed.num_seen(end - begin), f"epoch {epoch + 1}: {text}")
            yield self._safe_point(epoch_end=True)
        return Outcome(status="completed", step=self.step)

    def _progress(self, examples: int, text: str = "") -> Progress:
        return Progress(run_id=self.id, step=self.step, num_steps=self.num_steps, text=text, examples=examples)

    def _update(self, x_B: Tensor, y_B: Tensor, lr: float) -> tuple[Tensor, Tensor | None]:
        draws_of_step(self.spec, self.device, self.step + 1)
        set_rate(self.optimizer, lr)
        self.optimizer.zero_grad(set_to_none=True)
        found = self.passes(x_B, y_B)
        self.gradients.see(self.step)  # before clipping: a joint norm that is not finite spreads to all of them
        if self.clip is not None:
            self.clip()
        self.optimizer.step()
        return found

    def _diverged(self, step: int, loss: float) -> Outcome:
        return diverged(step, loss, self.gradients.overflow(self.points), spec=self.spec, model=self.model)

    def _evaluate(self, outcome: Outcome) -> Generator[Event, None, Outcome]:
        """A clean pass over each split in eval mode. The test set is looked at here and nowhere else.

        Weights that the last update made infinite show here first: then there is no accuracy to speak of.
        """
        draws_of_step(self.spec, self.device, "evaluation")
        splits = {"train": self.feed.train, "validation": self.feed.validation, "test": self.feed.test}
        rows = []
        for name, split in splits.items():
            if split is not None:
                found = clean_pass(self.model, *split, self.spec, self.objective)
                if name == "train" and not math.isfinite(found["loss"]):
                    return self._diverged(self.num_steps, found["loss"])
                self.summary |= {f"{name}_{quantity}": value for quantity, value in found.items()}
                rows += [(self.num_steps, name, quantity, value) for quantity, value in found.items()]
        yield metric_rows(self.id, rows)
        return outcome

    def _weights(self) -> Iterator[Event]:
        if self.step in self.kept:
            yield weights_of(self.id, self.step, self.model)

    def _points(self) -> tuple[LayerFacts, ...]:
        return tuple(
            LayerFacts(index=index, name=point.layer, kind=point.kind, weight=point.weight)
            for index, point in enumerate(self.points)
        )

    def _digests(self) -> Digests:
        return Digests(init=self.init, data=self.data.digest, code=self.code, **self.feed.digests(self.num_steps))
