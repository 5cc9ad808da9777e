"""Maps of recorded runs on a cluster, and with a worker that dies: the bytes of one process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from depthscope.core.errors import UserError
from depthscope.execute.driver import drive
from depthscope.execute.executor import Serial, TaskExecutor
from depthscope.execute.processes import Processes
from depthscope.execute.remaining import remaining
from depthscope.execute.run_maps import make_maps
from depthscope.record.events import MapNews
from depthscope.record.reader import read_record, read_records
from depthscope.record.run_maps import read_run_maps, standing
from depthscope.record.schema import RunRecord
from depthscope.study.expand import Plan, expand
from depthscope.study.landscape import MapSpec
from depthscope.study.toml import parse
from depthscope.train.build import Context
from depthscope.train.mapped_run import OfRun

EXTRA = "\n[landscape]\naxes = 1\npoints = 5\nexamples = 16\n"
Made = tuple[Plan, Path]


@pytest.fixture(scope="module")
def mapped(text_of: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A study of one run, done but for its map."""
    text = text_of("torch").replace("seeds = 2", "seeds = 1").replace("epochs = 12", "epochs = 1")
    plan = expand(parse(text + EXTRA, source="mapped.toml"))
    folder = tmp_path_factory.mktemp("mapped")
    drive(remaining(plan, folder)[0], folder, Context())
    return plan, folder


def copy(made: Made, folder: Path) -> Made:
    shutil.copytree(made[1], folder)
    return made[0], folder


def make(made: Made, executor: TaskExecutor, on_news: Callable[[MapNews], None] = lambda news: None) -> list[str]:
    plan, folder = made
    records, _ = read_records(folder, list(plan.runs))
    notes: list[str] = []
    left = [each for each in standing(plan, folder, records) if not each.complete]
    make_maps(left, plan, folder, Context(), executor, names={}, on_news=on_news, on_note=notes.append)
    return notes


def files(folder: Path) -> dict[str, bytes]:
    return {str(at.relative_to(folder)): at.read_bytes() for at in sorted(folder.glob("runs/*/maps/*/*.parquet"))}


@pytest.fixture(scope="module")
def alone(mapped: Made, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    made = copy(mapped, tmp_path_factory.mktemp("alone") / "out")
    make(made, Serial())
    assert len(files(made[1])) == 1
    return files(made[1])


@pytest.mark.slow
def test_a_cluster_makes_the_maps_of_one_process(mapped: Made, alone: dict[str, bytes], tmp_path: Path) -> None:
    pytest.importorskip("ray")
    from depthscope.execute.ray import Ray

    made = copy(mapped, tmp_path / "out")
    with Ray(None, 2) as ray:
        make(made, ray)
    assert files(made[1]) == alone


def test_a_worker_that_dies_costs_its_points_alone(mapped: Made, alone: dict[str, bytes], tmp_path: Path) -> None:
    made = copy(mapped, tmp_path / "out")
    with _DyingOnce() as executor:
        notes = make(made, executor)
    assert any("handed out again" in note for note in notes)
    assert files(made[1]) == alone


class _DyingOnce(Processes):  # type: ignore[misc]
    """Two processes, of which the one with the second task dies at it."""

    def __init__(self) -> None:
        super().__init__(2)
        self._num = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        self._num += 1
        return super().submit(_die, *args) if self._num == 2 else super().submit(fn, *args, **kwargs)


def _die(*_: object) -> None:
    os._exit(9)


def test_a_map_that_was_begun_on_another_device_or_by_other_code_is_made_anew(
    mapped: Made, alone: dict[str, bytes], tmp_path: Path
) -> None:
    made = copy(mapped, tmp_path / "out")

    def stop(news: MapNews) -> None:
        if news.done >= 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(made, Serial(), stop)
    (head,) = made[1].glob("runs/*/maps/*/map.json")
    head.write_text(head.read_text().replace('"device": "cpu"', '"device": "cuda"'))
    (note,) = make(made, Serial())
    assert "made anew" in note
    assert files(made[1]) == alone


def test_what_is_altered_or_gone_is_told_of_that_map(mapped: Made, tmp_path: Path) -> None:
    plan, folder = copy(mapped, tmp_path / "out")
    (run_id,) = plan.runs
    (at,) = folder.glob("runs/*/weights-3.safetensors")
    at.write_bytes(at.read_bytes()[:-1] + b"\1")
    heard: list[MapNews] = []
    make((plan, folder), Serial(), heard.append)
    (fault,) = (each.fault for each in heard if each.ended)
    assert fault is not None
    assert "weights-3.safetensors: was altered or cut short" in fault
    record = read_record(folder, run_id)
    assert isinstance(record, RunRecord)
    (found,) = read_run_maps(folder, record, plan.maps[run_id])
    assert (found.complete, found.record, found.fault) == (False, None, fault)


def test_a_run_without_record_or_weights_is_no_source(mapped: Made, tmp_path: Path) -> None:
    plan, _ = mapped
    (spec,) = plan.runs.values()
    with pytest.raises(UserError, match="has no record, so that nothing can be mapped"):
        OfRun(spec=spec, folder=tmp_path).material(MapSpec(points=3))
