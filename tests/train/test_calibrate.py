"""The estimate of time: its arithmetic, by a clock that ticks at each look; packing against all packings."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from tests.train.short import LAB, NET

from depthscope.record.events import Ended
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.train.build import Context
from depthscope.train.calibrate import calibrate, makespan, time_task
from depthscope.train.start import run_task

NUMPY: dict[str, Any] = {**LAB, "steps": 400}
TORCH: dict[str, Any] = {**NET, "data_options": {"num_train": 64, "num_test": 32}, "batch_size": 16, "epochs": 3}


def ticking() -> Callable[[], float]:
    ticks = itertools.count()
    return lambda: float(next(ticks))


def spec(values: dict[str, Any], **changes: Any) -> RunSpec:
    return RunSpec.model_validate({**values, **changes})


def best(seconds: list[float], workers: int) -> float:
    """The shortest packing of all."""
    spans = []
    for places in itertools.product(range(workers), repeat=len(seconds)):
        loads = [
            sum(each for each, at in zip(seconds, places, strict=True) if at == worker) for worker in range(workers)
        ]
        spans.append(max(loads))
    return min(spans)


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("seconds", [[5.0], [3.0, 3.0, 2.0, 2.0, 2.0], [9.0, 1.0, 1.0, 1.0], [7.0, 6.0, 5.0, 4.0, 3.0]])
def test_longest_first_keeps_grahams_bound(seconds: list[float], workers: int) -> None:
    """Graham 1969: longest first takes at most 4/3 - 1/(3m) of the shortest time."""
    shortest = best(seconds, workers)
    assert shortest <= makespan(seconds, workers) <= shortest * (4 / 3 - 1 / (3 * workers)) + 1e-12


def test_time_grows_with_updates_and_measurements_alone() -> None:
    """Steps 0, 1, 2, 4, ... and the last: 11 measurements in 400 updates, 13 in 1,600."""
    first, longer = spec(NUMPY, measures=("layers",)), spec(NUMPY, measures=("layers",), steps=1600)
    found = calibrate([Task((first,)), Task((longer,))], Context(), workers=1, clock=ticking())
    timing = time_task(Task((first,)), Context(), budget_s=2.0, clock=ticking())
    assert (timing.num_steps, timing.num_probes) == (400, 11)
    assert timing.step > 0
    difference = found.runs[longer.run_id] - found.runs[first.run_id]
    assert difference == pytest.approx(1200 * timing.step + 2 * timing.probe)
    assert found.work == pytest.approx(found.seconds)
    assert found.low <= found.seconds <= found.high


def test_curvature_is_timed_once_and_counted_at_its_own_steps() -> None:
    pytest.importorskip("torch")
    fields = {**NET, "data_options": {"num_train": 16, "num_test": 8, "image_size": 8}, "batch_size": 8, "steps": 16}
    plain, curved = spec(fields), spec(fields, measures=("smoothness",), measure_steps=(3, 4))
    timing = time_task(Task((curved,)), Context(), budget_s=0.0, clock=ticking())
    assert (timing.num_steps, timing.num_probes, timing.num_curves) == (16, 0, 4)
    # Each look at the clock is a tick: the rows of step 0 are one event more before the first safe point.
    assert (timing.probe, timing.curve) == (0.0, 1.0)
    bare = time_task(Task((plain,)), Context(), budget_s=0.0, clock=ticking())
    assert timing.seconds() - bare.seconds() == pytest.approx(4.0)
    both = spec(fields, measures=("layers", "smoothness"))
    assert time_task(Task((both,)), Context(), budget_s=0.0, clock=ticking()).probe > 0


def test_what_cannot_change_the_time_is_timed_once() -> None:
    kinds: list[tuple[int, int]] = []
    specs = [spec(NUMPY), spec(NUMPY, init="orthogonal"), spec(NUMPY, lr=0.1), spec(NUMPY, steps=40)]
    other = spec(NUMPY, depth=4)
    tasks = [Task((each,)) for each in (*specs, other)]
    found = calibrate(tasks, Context(), workers=2, clock=ticking(), on_kind=lambda *told: kinds.append(told))
    assert kinds == [(0, 2), (1, 2), (2, 2)]
    assert set(found.runs) == {each.run_id for each in (*specs, other)}


def test_seeds_side_by_side_share_their_time_and_torchs_do_not() -> None:
    pytest.importorskip("torch")
    group = Task(tuple(spec(NUMPY, seed=seed) for seed in range(4)))
    found = calibrate([group], Context(), workers=4, clock=ticking())
    assert sum(found.runs.values()) == pytest.approx(found.seconds)
    one_by_one = Task(tuple(spec(TORCH, seed=seed) for seed in range(4)))
    found = calibrate([one_by_one], Context(), workers=4, clock=ticking())
    assert found.seconds == pytest.approx(found.work / 4)


def test_a_run_that_may_stop_early_is_bounded_from_above() -> None:
    found = calibrate([Task((spec(NUMPY, stop_loss=0.1),))], Context(), workers=1, clock=ticking())
    assert found.at_most
    assert not calibrate([Task((spec(NUMPY),))], Context(), workers=1, clock=ticking()).at_most


def test_untrained_runs_and_gradient_checks_have_a_time() -> None:
    untrained = spec(NUMPY, steps=0, measures=("gradcheck", "layers"), data_options={"points_per_arm": 2})
    timing = time_task(Task((untrained,)), Context(), budget_s=2.0, clock=ticking())
    assert (timing.num_steps, timing.num_probes) == (0, 1)
    assert timing.once > 0


def test_timing_leaves_no_trace_in_the_runs() -> None:
    pytest.importorskip("torch")
    one = spec(TORCH, measures=("layers",))

    def final() -> str | None:
        return next(event.final for event in run_task(Task((one,)), Context()) if isinstance(event, Ended))

    before = final()
    calibrate([Task((one,))], Context(), workers=1, clock=ticking())
    assert final() == before
