"""Maps: however they are stopped, gone on with and spread, each number is the same in every bit."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from tests.small_net import NAME, write

from depthscope.core.errors import UserError
from depthscope.execute.executor import Serial, TaskExecutor
from depthscope.execute.mapping import MapFault, MapJob, map_points
from depthscope.execute.points import prepare, release
from depthscope.execute.processes import Processes
from depthscope.execute.tell import MapProgress
from depthscope.record.landscape import MapRecord, chunks, read_map
from depthscope.record.map_writer import open_map
from depthscope.study.landscape import MapSpec
from depthscope.train.mapping import OfCode, OfObject, Source

SPEC = MapSpec(points=7, examples=40, batch_size=16, hessian_points=3, hessian_examples=10)
OWN = OfCode(factory=f"{NAME}:model", data=f"{NAME}:data", loss="cross_entropy")
SLOW = OfCode(factory=f"{NAME}:Slow", data=f"{NAME}:data", loss="cross_entropy")


@pytest.fixture(scope="module", autouse=True)
def _code(tmp_path_factory: pytest.TempPathFactory) -> None:
    write(tmp_path_factory.mktemp("code"))


@pytest.fixture(autouse=True)
def _released() -> Iterator[None]:
    yield
    release()


def go_on(
    source: Source,
    folder: Path,
    executor: TaskExecutor | None = None,
    *,
    spec: MapSpec = SPEC,
    on_progress: Callable[[MapProgress], None] = lambda at: None,
    **settings: Any,
) -> MapRecord | MapFault:
    head, _ = prepare(source, spec, 1)
    job = MapJob(source=source, head=open_map(folder, head), folder=folder)
    (found,) = map_points([job], executor, on_progress=on_progress, **settings)
    return found


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def whole(_code: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    found = go_on(OWN, folder)
    assert isinstance(found, MapRecord)
    assert found.complete
    assert sorted(files(folder)) == ["hessian.parquet", "loss.parquet", "map.json"]
    return files(folder)


@pytest.mark.parametrize("seed", range(2))
def test_a_map_stopped_at_random_equals_the_one_that_was_not(
    seed: int, whole: dict[str, bytes], tmp_path: Path
) -> None:
    draw = random.Random(seed)
    stops = 0
    while True:
        left = draw.randrange(1, 5)

        def stop(at: MapProgress) -> None:
            nonlocal left
            left -= at.seconds > 0
            if not left:
                raise KeyboardInterrupt

        try:
            go_on(OWN, tmp_path, on_progress=stop, chunk_s=0.02)
            break
        except KeyboardInterrupt:
            stops += 1
        kept = [path for kind in ("loss", "hessian") for path in chunks(tmp_path, kind)]
        if kept and stops < 20:
            chosen = draw.choice(kept)
            match draw.choice(["leave", "delete", "cut", "alter"]):
                case "delete":
                    chosen.unlink()
                case "cut":
                    chosen.write_bytes(chosen.read_bytes()[: draw.randrange(chosen.stat().st_size)])
                case "alter":
                    content = bytearray(chosen.read_bytes())
                    content[draw.randrange(4, 40)] ^= 0xFF
                    chosen.write_bytes(bytes(content))
    assert stops > 2
    assert files(tmp_path) == whole


def test_over_two_processes_of_which_one_is_killed(tmp_path: Path) -> None:
    go_on(SLOW, tmp_path / "whole")
    notes: list[str] = []
    killed = threading.Event()
    with Processes(2) as pool:

        def kill(at: MapProgress) -> None:
            if at.done > 4 and not killed.is_set():
                killed.set()
                os.kill(pool._slots[0].process.pid or 0, signal.SIGKILL)

        found = go_on(SLOW, tmp_path / "spread", pool, on_progress=kill, on_note=notes.append, chunk_s=0.2)
    assert isinstance(found, MapRecord)
    assert files(tmp_path / "spread") == files(tmp_path / "whole")
    assert all("handed out again" in each for each in notes)
    assert len(notes) == 1


def test_a_chunk_that_kills_every_worker_is_given_up_and_the_next_map_is_made(tmp_path: Path) -> None:
    from concurrent.futures import Future

    from depthscope.execute.executor import WorkerLostError

    deadly = tmp_path / "deadly"
    other = tmp_path / "other"

    class Dying(TaskExecutor):
        slots = 1

        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            if args[0].head.spec.seed:
                return Serial().submit(fn, *args, **kwargs)
            future: Future[Any] = Future()
            future.set_exception(WorkerLostError("its worker process died (signal 9, SIGKILL)", -9))
            return future

        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            del wait, cancel_futures

    jobs = []
    for folder, spec in ((deadly, SPEC), (other, SPEC.model_copy(update={"seed": 1}))):
        head, _ = prepare(OWN, spec, 1)
        jobs.append(MapJob(source=OWN, head=open_map(folder, head), folder=folder))
    fault, made = map_points(jobs, Dying())
    assert isinstance(fault, MapFault)
    assert "the worker died 3 times" in fault.reason
    assert isinstance(made, MapRecord)
    assert made.complete


def test_the_centre_is_the_network_itself_and_the_corners_are_not(whole: dict[str, bytes], tmp_path: Path) -> None:
    for name, content in whole.items():
        (tmp_path / name).write_bytes(content)
    found = read_map(tmp_path)
    code = __import__(NAME)
    net, (x, y) = code.model().eval(), code.data()
    parts = [
        (len(x[at : at + 16]), net(x[at : at + 16]).detach().double(), y[at : at + 16]) for at in range(0, len(x), 16)
    ]
    losses = [(num, float(torch.nn.functional.cross_entropy(output, to))) for num, output, to in parts]
    assert found.centre_loss == pytest.approx(sum(num * loss for num, loss in losses) / 40, rel=1e-6)
    right = sum(int((output.argmax(1) == to).sum()) for _, output, to in parts)
    assert found.accuracy is not None
    assert found.accuracy[3, 3] == pytest.approx(right / 40)
    assert len(np.unique(found.loss)) == 49
    assert found.hessian is not None
    assert (found.hessian.lambda_max > found.hessian.lambda_min).all()


def test_what_is_infinite_stays_so(tmp_path: Path) -> None:
    source = OfCode(factory=f"{NAME}:model", data=f"{NAME}:data", loss=f"{NAME}:cliff")
    found = go_on(source, tmp_path, spec=SPEC.model_copy(update={"hessian_points": 0, "extent": 3.0}))
    assert isinstance(found, MapRecord)
    assert 0 < np.isinf(found.loss).sum() < 49
    assert (read_map(tmp_path).loss == found.loss).all()


def test_a_model_of_this_process_and_its_surroundings_stay_as_they_are(tmp_path: Path) -> None:
    code = __import__(NAME)
    net = code.model().train()
    net[0].weight.grad = torch.ones_like(net[0].weight)
    before = {name: each.clone() for name, each in net.state_dict().items()}
    drawn: Any = np.random.get_state()  # noqa: NPY002
    states = torch.get_rng_state(), drawn[1].copy(), random.getstate()
    threads = torch.get_num_threads()

    def stop(at: MapProgress) -> None:
        if at.seconds:
            raise KeyboardInterrupt

    source = OfObject(model=net, data=code.data(), loss_fn=torch.nn.functional.cross_entropy)
    with pytest.raises(KeyboardInterrupt):
        go_on(source, tmp_path, on_progress=stop)
    assert isinstance(go_on(source, tmp_path), MapRecord)
    assert all(torch.equal(each, before[name]) for name, each in net.state_dict().items())
    assert net.training
    assert torch.equal(net[0].weight.grad, torch.ones_like(net[0].weight))
    drawn = np.random.get_state()  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (drawn[1] == states[1]).all()
    assert random.getstate() == states[2]
    assert torch.get_num_threads() == threads


def test_a_factory_that_gives_other_weights_each_time_is_refused(tmp_path: Path) -> None:
    source = OfCode(factory=f"{NAME}:by_chance", data=f"{NAME}:data", loss="cross_entropy")
    head, _ = prepare(source, SPEC, 1)
    release()
    (found,) = map_points([MapJob(source=source, head=open_map(tmp_path, head), folder=tmp_path)])
    assert isinstance(found, MapFault)
    assert "gives other weights each time" in found.reason
    with pytest.raises(UserError, match="other weights"):
        go_on(source, tmp_path)


def test_a_model_whose_code_changed_does_not_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = __import__(NAME)

    def stop(at: MapProgress) -> None:
        if at.done > 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go_on(OWN, tmp_path, on_progress=stop, chunk_s=0.02)
    kept = files(tmp_path)
    release()
    changed = code.model
    monkeypatch.setattr(code, "model", lambda: torch.nn.Sequential(*changed(), torch.nn.Tanh()))
    with pytest.raises(UserError, match="code of the model or of the loss has changed"):
        go_on(OWN, tmp_path)
    assert files(tmp_path) == kept


@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_a_loss_that_is_no_mean_is_refused(reduction: str) -> None:
    code = __import__(NAME)
    source = OfObject(model=code.model(), data=code.data(), loss_fn=torch.nn.CrossEntropyLoss(reduction=reduction))
    with pytest.raises(UserError, match=f"landscape: loss_fn: wanted a mean.*{reduction}"):
        prepare(source, SPEC, 1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_over_ray(whole: dict[str, bytes], tmp_path: Path) -> None:
    pytest.importorskip("ray")
    from depthscope.execute.ray import Ray

    with Ray(None, 2) as pool:
        go_on(OWN, tmp_path, pool, chunk_s=0.2)
    assert files(tmp_path) == whole
