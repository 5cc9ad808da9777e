"""How long runs will take: a few real steps of each kind of run, timed, and the rest by proportion."""

from __future__ import annotations

import heapq
import itertools
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from depthscope.core.depth import curvature_steps, profile_steps
from depthscope.core.hashing import digest
from depthscope.record.events import Ended, Rows, SafePoint, Started
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.train.build import Context, load_data
from depthscope.train.shapes import data_shape
from depthscope.train.start import portions, run_task
from depthscope.train.twin import eval_batch, steps_of_epoch

Clock = Callable[[], float]

MAX_INTERVALS = 8
"""Intervals between safe points that are timed at most; a step of a millisecond needs no two seconds."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Seconds of the runs that are trained side by side.

    Attributes:
        setup: to make data, network and optimiser.
        step: of an update, the median of those timed.
        low: their lower quartile.
        high: their upper quartile.
        once: of what is measured before training alone (the gradient check).
        probe: of measuring once on the way, curvature aside.
        evaluate: of the clean passes at the end.
        num_steps: updates of a whole run.
        num_probes: measurements on its way.
        curve: of measuring curvature once, which is done at fewer steps.
        num_curves: measurements of it.
    """

    setup: float
    step: float
    low: float
    high: float
    once: float
    probe: float
    evaluate: float
    num_steps: int
    num_probes: int
    curve: float = 0.0
    num_curves: int = 0

    def seconds(self, step: float | None = None) -> float:
        """Of the whole, at this time an update."""
        steps = self.num_steps * (self.step if step is None else step)
        measuring = self.num_probes * self.probe + self.num_curves * self.curve
        return self.setup + self.once + steps + measuring + self.evaluate


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Of a study.

    Attributes:
        seconds: from the first task's start to the last one's end. The start of the workers, a download and the
            making of the page come on top.
        low: with every update at the lower quartile of those timed.
        high: with every update at the upper quartile.
        work: seconds of all tasks one after the other.
        workers: how many share them.
        at_most: whether runs may stop early, so that it will take less.
        runs: run_id -> seconds, of a run's equal share where several are trained side by side.
    """

    seconds: float
    low: float
    high: float
    work: float
    workers: int
    at_most: bool
    runs: dict[str, float]


def calibrate(
    tasks: Iterable[Task],
    context: Context,
    *,
    workers: int,
    budget_s: float = 2.0,
    on_kind: Callable[[int, int], None] = lambda done, total: None,
    clock: Clock = time.perf_counter,
) -> Estimate:
    """Time a few steps of each kind of run in this process, and estimate the whole.

    Runs of one kind differ in nothing that decides the time of a step. A kind takes about `budget_s`, and more where
    a single step does.

    Args:
        tasks: what is to do.
        context: device, data and threads, as for the runs themselves.
        workers: processes that will share the work.
        budget_s: seconds a kind.
        on_kind: hears how many kinds are timed, and of how many.
        clock: seconds, ascending.
    """
    ready = [portion for task in tasks for portion in portions(task)]
    kinds = {_kind(portion): portion for portion in ready}
    timed: dict[str, Timing] = {}
    for number, (kind, portion) in enumerate(kinds.items()):
        on_kind(number, len(kinds))
        timed[kind] = time_task(portion, context, budget_s=budget_s, clock=clock)
    on_kind(len(kinds), len(kinds))
    found = [(portion, _for_length(timed[_kind(portion)], portion.specs[0], context)) for portion in ready]
    return Estimate(
        seconds=makespan([timing.seconds() for _, timing in found], workers),
        low=makespan([timing.seconds(timing.low) for _, timing in found], workers),
        high=makespan([timing.seconds(timing.high) for _, timing in found], workers),
        work=sum(timing.seconds() for _, timing in found),
        workers=workers,
        at_most=any(portion.specs[0].stop_loss is not None for portion, _ in found),
        runs={
            spec.run_id: timing.seconds() / len(portion.specs) for portion, timing in found for spec in portion.specs
        },
    )


def makespan(seconds: Iterable[float], workers: int) -> float:
    """Time until all is done, where each free worker takes the longest task that is left.

    >>> makespan([5.0, 4.0, 3.0, 3.0], 2)
    8.0
    """
    busy = [0.0] * workers
    for each in sorted(seconds, reverse=True):
        heapq.heapreplace(busy, busy[0] + each)
    return max(busy)


_NO_MATTER = ("seed", "init", "gain", "stem_gain", "zero_last_gamma", "lr", "schedule", "schedule_options")
_LENGTH = ("epochs", "steps", "warmup_steps", "stop_loss")


def _kind(task: Task) -> str:
    """Equal for tasks whose steps take equally long."""
    spec = task.specs[0]
    fields = spec.model_dump(mode="json", exclude={*_NO_MATTER, *_LENGTH})
    untrained = spec.steps == 0
    return digest({**fields, "group": len(task.specs), "untrained": untrained})


def _for_length(timing: Timing, spec: RunSpec, context: Context) -> Timing:
    num_steps, num_probes, num_curves = _length(spec, context)
    return replace(timing, num_steps=num_steps, num_probes=num_probes, num_curves=num_curves)


_CURVATURE = ("sharpness", "smoothness")


def _length(spec: RunSpec, context: Context) -> tuple[int, int, int]:
    """(updates, measurements on the way, those of curvature) of a run."""
    num = data_shape(spec, context.data_root).num_train
    per_epoch = -(-num // min(spec.batch_size or num, num))
    num_steps = spec.steps if spec.steps is not None else (spec.epochs or 0) * per_epoch
    measured = set(spec.measures) - {"gradcheck", *_CURVATURE}
    steps = profile_steps(num_steps, steps_of_epoch(spec, per_epoch), spec.measure_steps)
    curved = curvature_steps(num_steps, spec.measure_steps) if set(_CURVATURE) & set(spec.measures) else ()
    return num_steps, len(steps) if measured else 0, len(curved)


def time_task(task: Task, context: Context, *, budget_s: float, clock: Clock = time.perf_counter) -> Timing:
    """Time a portion of a task: the start, some updates, one measurement, one evaluation.

    Raises:
        UserError: bad input, as a run would tell it.
    """
    spec = task.specs[0]
    num_steps, num_probes, num_curves = _length(spec, context)
    load_data(spec, context)  # shared by the runs of a process, and no part of a second one's start
    plain = _Watch(_changed(task, measures=(), stop_loss=None), context, clock, budget_s)
    once = probe = curve = 0.0
    if "gradcheck" in spec.measures:
        alone = _Watch(_changed(Task(task.specs[:1]), measures=("gradcheck",)), context, clock, 0.0)
        once = alone.gradcheck * len(task.specs)
    if num_probes:
        others = tuple(name for name in spec.measures if name not in ("gradcheck", *_CURVATURE))
        first = _Watch(_changed(task, measures=others, stop_loss=None), context, clock, 0.0)
        # In torch the first safe point comes after the measurements of steps 0 and 1, in NumPy after that of step 0.
        probe = max(0.0, (first.begun - plain.begun) / (2 if spec.backend == "torch" and num_steps else 1))
    if num_curves:
        names = tuple(name for name in spec.measures if name in _CURVATURE)
        first = _Watch(_changed(task, measures=names, measure_steps=(), stop_loss=None), context, clock, 0.0)
        # At step 0; the first safe point comes after the first update, which may be the last.
        curve = max(0.0, (first.begun - plain.begun) / (2 if num_steps == 1 else 1))
    steps = plain.steps or [0.0]
    low, middle, high = statistics.quantiles(steps, n=4) if len(steps) > 1 else steps * 3
    return Timing(
        setup=plain.setup,
        step=middle,
        low=low,
        high=high,
        once=once,
        probe=probe,
        evaluate=_evaluation(spec, context, middle, clock),
        num_steps=num_steps,
        num_probes=num_probes,
        curve=curve,
        num_curves=num_curves,
    )


def _changed(task: Task, **changes: Any) -> Task:
    return Task(tuple(spec.model_copy(update=changes) for spec in task.specs))


class _Watch:
    """Times of the events of a task, which is left as soon as enough of it was seen.

    Args:
        task: the runs.
        context: as for the runs themselves.
        clock: seconds.
        budget_s: seconds of updates; 0 leaves at the first safe point or gradient check.

    Attributes:
        setup: seconds until the last run has begun.
        gradcheck: seconds of the first gradient check.
        begun: seconds until the first safe point (or the end, of a run without updates).
        steps: seconds an update, between safe points, without those that warm up.
    """

    def __init__(self, task: Task, context: Context, clock: Clock, budget_s: float) -> None:
        self.setup = self.gradcheck = self.begun = 0.0
        self.steps: list[float] = []
        self._sync = _synchroniser(context.device)
        begin = clock()
        points: list[tuple[int, float]] = []
        stream: Any = run_task(task, context)
        for event in stream:
            now = self._now(clock) - begin
            if isinstance(event, Started):
                self.setup = now
            elif isinstance(event, Rows) and event.table == "gradcheck":
                self.gradcheck = now - self.setup
                break
            elif isinstance(event, Ended):
                self.begun = self.begun or now
            elif isinstance(event, SafePoint):
                self.begun = self.begun or now
                points.append((event.step, now))
                enough = len(points) > MAX_INTERVALS or (now - self.begun > budget_s and len(points) > 2)
                if enough or budget_s == 0:
                    break
        stream.close()
        spans = [(late - early) / (to - at) for (at, early), (to, late) in itertools.pairwise(points) if to > at]
        warm = min(2, len(spans) // 2)
        self.steps = spans[warm:]

    def _now(self, clock: Clock) -> float:
        self._sync()
        return clock()


def _synchroniser(device: str) -> Callable[[], None]:
    """Waits until a GPU has done what it was given, so that a time is that of the work."""
    if device in ("cuda", "mps"):
        import torch

        return torch.cuda.synchronize if device == "cuda" else torch.mps.synchronize
    return lambda: None


def _evaluation(spec: RunSpec, context: Context, step: float, clock: Clock) -> float:
    """Seconds of the clean passes over all splits after training."""
    shape = data_shape(spec, context.data_root)
    num = shape.num_train + shape.num_held
    if spec.backend == "numpy":
        # A forward pass is about a third of an update, and takes twice as long in float64.
        batch = min(spec.batch_size or shape.num_train, shape.num_train)
        return step * num / batch * (2 / 3 if spec.precision == "float32" else 1 / 3)
    from depthscope.train.count import time_forward

    examples = eval_batch(spec, shape.num_train)
    return time_forward(spec, context, examples, clock) * num / examples
