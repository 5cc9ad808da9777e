"""Stop and go on at every safe point: the record is, bit for bit, that of a run that never stopped."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.train.own import package
from tests.train.own import spec as own_spec
from tests.train.short import LAB, TRAINED
from tests.train.tasks import LETTERS, NUMBERS

from depthscope.core.errors import UserError
from depthscope.lab.fit import fit
from depthscope.record.checkpoint import Checkpoint, read_checkpoint
from depthscope.record.events import Ended, Progress, SafePoint, Started, State, Weights
from depthscope.record.folder import run_folder
from depthscope.record.reader import read_record
from depthscope.record.schema import Provenance, RunRecord, Timings
from depthscope.record.weights import weights_fault
from depthscope.record.writer import RunWriter
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.train.build import Context
from depthscope.train.start import portions, run_task
from depthscope.train.state import StaleStateError

NUMPY: dict[str, Any] = {**LAB, "depth": 4, "width": 12}
TORCH: dict[str, Any] = {
    **TRAINED,
    "shortcut": "A",
    "optimizer_options": {"weight_decay": 1e-3},
    "lr": 0.05,
    "warmup_steps": 2,
}
# Fields, then the numbers of updates after which the (first) run may be stopped.
CASES: dict[str, tuple[dict[str, Any], list[int]]] = {
    "numpy, seeds leave apart": (
        {**NUMPY, "steps": 300, "lr": 0.003, "stop_loss": 0.1, "measures": ["layers", "gradcheck"]},
        [0, 1, 2, 4, 8, 16, 20, 32, 40, 60, 64, 80, 100, 120, 128],
    ),
    "numpy, momentum": (
        {**NUMPY, "shortcut": "identity", "activation": "relu", "norm": "batch", "optimizer": "sgd", "steps": 70}
        | {"precision": "float64", "schedule": "step"},
        [0, 20, 40, 60],
    ),
    # The last batch of an epoch is smaller.
    "numpy, batches of points": ({**NUMPY, "steps": 47, "batch_size": 32, "measures": ["layers"]}, [0, 20, 40]),
    "numpy, a transformer": (
        {**LETTERS, "backend": "numpy", "family": "gpt", "shortcut": "identity", "norm": "layer", "init": "gaussian"}
        | {"activation": "tanh"}
        | {"schedule": "linear", "steps": 43, "measures": ["layers", "samples", "gradcheck"]},
        [0, 1, 2, 3, 4, 6, 8, 9, 12, 20, 39, 40, 42],
    ),
    "torch, momentum, augmented, layers": (
        {**TORCH, "measures": ["layers", "weights"], "measure_steps": [1, 5]},
        [1, 2, 3, 4, 5, 6],
    ),
    "torch, adam in float64": (
        {
            **TORCH,
            "optimizer": "adam",
            "optimizer_options": {},
            "precision": "float64",
            "augment": "none",
            "padding": 0,
        },
        [1, 2, 3, 4, 5, 6],
    ),
    "torch, bfloat16, ends within an epoch": (
        {**TORCH, "precision": "bfloat16", "epochs": None, "steps": 5},
        [1, 2, 3, 4, 5],
    ),
    "torch, no momentum, full batch": (
        {**TORCH, "optimizer_options": {"momentum": 0.0}, "batch_size": None, "epochs": 3},
        [1, 2, 3],
    ),
    # Groups of parameters (Fixup's scalars), adaptive clipping, further steps of measuring.
    "torch, groups, clipped": (
        {**TORCH, "norm": "fixup", "init": "fixup", "shortcut": "A_pool", "clip": "agc", "optimizer": "adam"}
        | {"optimizer_options": {}, "measures": ["layers", "smoothness"], "measure_steps": [3]},
        [1, 2, 3, 4, 5, 6],
    ),
    "torch, a shortcut that draws": (
        {**TORCH, "shortcut": "stochastic_depth", "clip": "norm", "measures": ["layers"]},
        [1, 2, 3, 4, 5, 6],
    ),
    "torch, a label for each position, samples": (
        {**LETTERS, "epochs": 2, "optimizer": "adamw", "schedule": "cosine"}
        | {"measures": ["layers", "lesion", "samples"]},
        [1, 2, 3, 4, 5, 6],
    ),
    "torch, targets, curvature": (
        {**NUMBERS, "epochs": 2, "schedule": "linear", "optimizer": "sgd", "measures": ["layers", "sharpness"]}
        | {"measure_steps": [2, 4]},
        [1, 2, 3, 4, 5, 6],
    ),
    "torch, targets that diverge from their first loss": (
        {**NUMBERS, "epochs": 3, "optimizer": "sgd", "lr": 2.0},
        [1, 2, 3, 4, 5],
    ),
    "torch, diverges within an epoch": ({**TORCH, "lr": 1e30, "warmup_steps": 0, "measures": ["weights"]}, [1, 2]),
}
FACTS = Provenance(
    depthscope="0.1", python="3.11", numpy="2.0", platform="Linux x86_64", processor="a chip", device="cpu", threads=1
)
NO_TIME = Timings(wall_s=0.0, cpu_s=0.0, started="")
Records = dict[str, RunRecord]


def task_of(fields: Mapping[str, Any]) -> Task:
    seeds = (0, 1, 2) if fields["backend"] == "numpy" else (5,)
    return Task(tuple(RunSpec.model_validate({**fields, "seed": seed}) for seed in seeds))


def work(task: Task, folder: Path, saved: Callable[[SafePoint], object] | None = None) -> Records:
    """Do what is left of a task in a folder, as a worker does; save at every safe point if anybody hears of it."""
    specs = [spec for spec in task.specs if read_record(folder, spec.run_id) is None]
    found = {spec.run_id: read_checkpoint(folder, spec) for spec in specs}
    checkpoints = {run_id: each for run_id, each in found.items() if isinstance(each, Checkpoint)}
    assert all(each is None or run_id in checkpoints for run_id, each in found.items())
    writers = {spec.run_id: RunWriter(folder, spec, FACTS, resumed=checkpoints.get(spec.run_id)) for spec in specs}
    for event in run_task(Task(tuple(specs)), Context(), {run_id: each.state for run_id, each in checkpoints.items()}):
        if isinstance(event, SafePoint):
            if saved:
                for state in event.take():
                    writers[state.run_id].save(state, NO_TIME)
                saved(event)
            continue
        assert not (isinstance(event, Started) and event.run_id in checkpoints)
        writers[event.run_id].hear(event)
        if isinstance(event, Ended):
            assert writers[event.run_id].finish(event, NO_TIME) is not None
    return records(task, folder)


def records(task: Task, folder: Path) -> Records:
    """What stands, without what tells a resumed run apart."""
    out = {}
    for spec in task.specs:
        record = read_record(folder, spec.run_id)
        assert isinstance(record, RunRecord)
        assert record.outcome.status != "failed", record.outcome.reason
        assert weights_fault(folder, spec.run_id, record.weights) is None
        out[spec.run_id] = record.model_copy(update={"provenance": FACTS, "checksum": ""})
    return out


@dataclasses.dataclass
class Stopped:
    """A case, its records without a stop, and a folder for each safe point as a kill there would leave it."""

    task: Task
    whole: Records
    points: list[SafePoint]
    folders: list[Path]


def stop_everywhere(task: Task, base: Path) -> Stopped:
    case = Stopped(task, work(task, base / "whole"), [], [])

    def keep(point: SafePoint) -> None:
        case.points.append(point)
        case.folders.append(base / str(len(case.points)))
        shutil.copytree(base / "saved", case.folders[-1])

    assert work(task, base / "saved", keep) == case.whole, "saving changed the run"
    return case


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Stopped]:
    """Each case is trained once."""
    made: dict[str, Stopped] = {}

    def make(name: str) -> Stopped:
        if name not in made:
            made[name] = stop_everywhere(task_of(CASES[name][0]), tmp_path_factory.mktemp("case"))
        return made[name]

    return make


@pytest.mark.parametrize("name", CASES)
def test_a_run_stopped_at_any_safe_point_ends_in_the_same_bits(
    name: str, stopped: Callable[[str], Stopped], tmp_path: Path
) -> None:
    case = stopped(name)
    expected = CASES[name][1]
    steps = [point.step for point in case.points]
    assert sorted(set(steps) & set(expected)) == expected
    for number, folder in enumerate(case.folders):
        here = tmp_path / str(number)
        shutil.copytree(folder, here)
        assert work(case.task, here) == case.whole, f"stopped at step {steps[number]}"
        left = {path.name for spec in case.task.specs for path in run_folder(here, spec.run_id).iterdir()}
        assert not [each for each in left if "checkpoint" in each]


def test_a_model_that_draws_and_a_probe_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = package(monkeypatch, tmp_path)
    measures = ("layers", f"{name}.probes:norms")
    spec = own_spec(name, model_options={"dropout": 0.5}, measures=measures, seed=3)
    case = stop_everywhere(Task((spec,)), tmp_path)
    assert [point.step for point in case.points] == [1, 2, 3, 4, 5, 6]
    for folder in case.folders:
        assert work(case.task, folder) == case.whole


def test_a_run_stopped_at_every_safe_point_in_turn(stopped: Callable[[str], Stopped], tmp_path: Path) -> None:
    class Stop(Exception):
        pass

    def stop(point: SafePoint) -> None:
        raise Stop

    case = stopped("torch, momentum, augmented, layers")
    for _ in case.points:
        with pytest.raises(Stop):
            work(case.task, tmp_path, stop)
    assert work(case.task, tmp_path) == case.whole


def test_members_of_a_group_that_stand_at_different_steps(stopped: Callable[[str], Stopped], tmp_path: Path) -> None:
    case = stopped("numpy, seeds leave apart")
    assert len({record.outcome.step for record in case.whole.values()}) == 3, (
        "the seeds were to stop at different steps"
    )
    ids = [spec.run_id for spec in case.task.specs]
    common = [number for number, point in enumerate(case.points) if set(point.run_ids) == set(ids)]
    early, late = common[3], common[-1]
    for name, numbers in {"two and one": (early, early, late), "one anew": (late, early, None)}.items():
        here = tmp_path / name
        for run_id, number in zip(ids, numbers, strict=True):
            if number is not None:
                shutil.copytree(run_folder(case.folders[number], run_id), run_folder(here, run_id))
        assert work(case.task, here) == case.whole
    # And each of them alone.
    for spec in case.task.specs:
        here = tmp_path / spec.run_id
        shutil.copytree(run_folder(case.folders[late], spec.run_id), run_folder(here, spec.run_id))
        alone = Task((spec,))
        assert work(alone, here) == {spec.run_id: case.whole[spec.run_id]}


def test_what_stands_at_one_step_is_trained_side_by_side() -> None:
    task = task_of(CASES["numpy, momentum"][0])
    first, second, third = task.specs
    states = {
        spec.run_id: State(run_id=spec.run_id, step=step, position={}, tensors={})
        for spec, step in ((first, 0), (third, 20))
    }
    # A run saved at step 0 has told its start: it is not the same as one that has not begun.
    assert portions(task, states) == (Task((first,)), Task((second,)), Task((third,)))
    states[first.run_id] = dataclasses.replace(states[first.run_id], step=20)
    assert portions(task, states) == (Task((first, third)), Task((second,)))


@pytest.mark.parametrize("name", ["numpy, momentum", "torch, momentum, augmented, layers"])
def test_a_state_stays_as_it_was_taken(name: str) -> None:
    taken: list[tuple[State, dict[str, bytes]]] = []
    for event in run_task(task_of(CASES[name][0]), Context()):
        if isinstance(event, SafePoint) and not taken:
            taken = [(state, {key: each.tobytes() for key, each in state.tensors.items()}) for state in event.take()]
    for state, before in taken:
        assert {key: each.tobytes() for key, each in state.tensors.items()} == before


def altered(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return value + np.ones((), value.dtype)


@pytest.mark.parametrize("name", ["numpy, seeds leave apart", "torch, momentum, augmented, layers"])
def test_nothing_in_a_state_is_idle(name: str, stopped: Callable[[str], Stopped], tmp_path: Path) -> None:
    """One value altered in the state gives another record: so each part is restored, and the comparison sees it."""
    case = stopped(name)
    # In the middle of an epoch, or where the first seed's stop rule has counted but not yet stopped it.
    number = (
        4 if name.startswith("torch") else max(at for at, point in enumerate(case.points) if len(point.run_ids) == 3)
    )
    states = {}
    for spec in case.task.specs:
        found = read_checkpoint(case.folders[number], spec)
        assert isinstance(found, Checkpoint)
        states[spec.run_id] = found.state
    spec = case.task.specs[0]
    state = states[spec.run_id]
    ends = _ends(case.task, states)
    kinds = {f"{tensor.split('.')[0]} {tensor.split('.')[-1]}": tensor for tensor in state.tensors}  # one of each
    for tensor in kinds.values():
        other = dataclasses.replace(state, tensors={**state.tensors, tensor: altered(state.tensors[tensor])})
        assert _ends(case.task, {**states, spec.run_id: other}) != ends, tensor
    for key, place in state.position.items():
        if isinstance(place, int):
            other = dataclasses.replace(state, position={**state.position, key: place + 1})
            assert _ends(case.task, {**states, spec.run_id: other}) != ends, key


def _ends(task: Task, states: Mapping[str, State]) -> list[Any]:
    found = [event for event in run_task(task, Context(), states) if not isinstance(event, SafePoint)]
    return [event for event in found if not isinstance(event, Progress | Weights)]


@pytest.mark.parametrize("name", ["numpy, momentum", "torch, momentum, augmented, layers"])
def test_a_state_of_other_code_or_data_is_refused(name: str, stopped: Callable[[str], Stopped]) -> None:
    case = stopped(name)
    spec = case.task.specs[0]
    found = read_checkpoint(case.folders[1], spec)
    assert isinstance(found, Checkpoint)
    state = dataclasses.replace(found.state, position={**found.state.position, "made_of": "0" * 16})
    with pytest.raises(StaleStateError, match=r"run \w+ was stopped at step [\d,]+, and its .* has been changed since"):
        list(run_task(Task((spec,)), Context(), {spec.run_id: state}))


@pytest.mark.parametrize("name", ["numpy, momentum", "torch, momentum, augmented, layers"])
def test_progress_counts_examples(name: str) -> None:
    task = task_of(CASES[name][0])
    heard = [event for event in run_task(task, Context()) if isinstance(event, Progress)]
    counts = [(event.step, event.examples) for event in heard if event.run_id == task.specs[0].run_id]
    # Full batches of 3 x 8 points; epochs of 64 images in 3 batches.
    assert counts == ([(0, 0), (20, 480), (40, 960), (60, 1440)] if name.startswith("numpy") else [(3, 64), (6, 128)])


def test_the_laboratory_refuses_a_memory_that_does_not_fit() -> None:
    from depthscope.lab import Adam, Memory, Momentum, Stack, init_params

    stack = Stack(depth=2, width=4, num_inputs=2, num_classes=3)
    params = init_params(stack, [0, 1])
    x, y = np.zeros((2, 5, 2)), np.zeros((2, 5), np.int64)

    def begin(setting: Any, **memory: Any) -> None:
        made = Memory(**{"step": 1, "optimizer": {}, "streak": np.zeros(2, np.int64), **memory})
        next(fit(stack, params, x, y, optimizer=setting, lr=[0.1] * 3, num_steps=3, memory=made))

    with pytest.raises(UserError, match="memory: wanted a step below num_steps"):
        begin(Adam(), step=3)
    with pytest.raises(UserError, match=r"optimiser state 'velocity': wanted float64 \(2, \d+\), got nothing"):
        begin(Momentum())
    with pytest.raises(UserError, match=r"optimiser state 'mean': wanted float64 \(2, \d+\), got float64 \(2, 1\)"):
        begin(Adam(), optimizer={"mean": np.zeros((2, 1)), "square": np.zeros((2, 1))})
