"""Maps of a study's runs, from end to end: interrupted, resumed, spread, failed, counted, and figures of their runs."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

import depthscope
from depthscope.analysis.landscape import map_figures
from depthscope.core.errors import UserError
from depthscope.record.events import MapNews
from depthscope.record.landscape import MapRecord, read_map
from depthscope.record.run_maps import MADE_OF, map_folder

pytest.importorskip("torch")

STUDY = """
name = "mapped"
title = { en = "Mapped" }
seeds = 2
[base]
backend = "torch"
family = "cifar_resnet"
depth = 8
width = 4
activation = "relu"
norm = "batch"
init = "he_fan_in"
data = "images"
data_options = { num_train = 32, num_test = 8 }
epochs = 2
batch_size = 16
lr = 0.05
measures = ["weights"]
[parts.main]
arms = [{ name = "A", set = { shortcut = "A" } }]
[landscape]
points = 3
planes = 2
examples = 16
batch_size = 8
"""


def run(folder: Path, text: str = STUDY, **options: Any) -> Any:
    path = folder.parent / f"{folder.name}.toml"
    path.write_text(text, encoding="utf-8")
    return depthscope.run(path, out=folder, **{"executor": "serial", **options})


def files(folder: Path) -> dict[str, bytes]:
    """What must be equal, however the maps came about."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob("runs/*/maps/*/*.parquet")}


def times(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/maps/*/*")}


def map_folders(folder: Path) -> list[Path]:
    plan = depthscope.status(folder).plan
    return [map_folder(folder, run_id, spec.map_id) for run_id, specs in plan.maps.items() for spec in specs]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "out"
    heard: list[MapNews] = []
    report = run(folder, watcher=depthscope.Watcher(on_map=heard.append))
    assert not report.failed
    assert [(each.number, each.of) for each in heard if each.ended] == [(at, 4) for at in (1, 2, 3, 4)]
    assert all(each.points == 9 for each in heard if not each.ended)
    return folder


def test_each_run_has_its_maps_and_the_centre_is_the_run_itself(whole: Path) -> None:
    maps = [read_map(at) for at in map_folders(whole)]
    assert len(maps) == 4
    assert all(each.complete for each in maps)
    assert len({each.loss.tobytes() for each in maps}) == 4, "each plane of each run is another"
    for first, second in ((0, 1), (2, 3)):
        assert maps[first].centre_loss == maps[second].centre_loss
    results = depthscope.results(whole)
    shown = [results.load_maps(run_id) for run_id in results.plan.runs]
    assert [len(each) for each in shown] == [2, 2]
    assert [each.spec.seed for each in shown[0]] == [0, 1]


def test_the_centre_is_the_training_loss_where_the_map_has_all_examples(tmp_path: Path) -> None:
    text = STUDY.replace("seeds = 2", "seeds = 1").replace("planes = 2", "axes = 1").replace("examples = 16", "")
    report = run(tmp_path / "out", text)
    ((record,),) = (report.results.load_maps(run_id) for run_id in report.results.plan.runs)
    (row,) = report.results.rows
    # 512 examples are asked for, and there are 32: all of them, in float32 as in the evaluation after training.
    assert record.centre_loss == pytest.approx(row.value("train_loss"), rel=1e-6)
    assert record.accuracy is not None
    assert float(record.accuracy[1]) == row.value("train_accuracy")


def test_figures_of_the_maps_are_figures_of_the_run(whole: Path) -> None:
    results = depthscope.results(whole)
    for row in results.rows:
        each = [map_figures(found)["landscape_roughness"] for found in results.load_maps(row.cell.run_id)]
        assert row.value("landscape_roughness") == pytest.approx(sum(each) / 2)
    with (whole / "table.csv").open() as file:
        written = [float(row["landscape_roughness"]) for row in csv.DictReader(file)]
    assert written == [row.value("landscape_roughness") for row in results.rows]


def test_status_and_plan_count_them(whole: Path) -> None:
    found = depthscope.status(whole)
    assert found.map_counts == {"completed": 4, "failed": 0, "in part": 0, "missing": 0}
    assert (found.num_maps, found.complete, found.maps_left) == (4, True, ())
    assert [len(specs) for specs in found.plan.maps.values()] == [2, 2]


@pytest.mark.parametrize("words", [1, 7, 13])
def test_maps_that_were_interrupted_end_in_the_same_bytes(words: int, whole: Path, tmp_path: Path) -> None:
    folder, heard = tmp_path / "out", 0

    def stop(news: MapNews) -> None:
        nonlocal heard
        heard += 1
        if heard == words:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(folder, watcher=depthscope.Watcher(on_map=stop))
    found = depthscope.status(folder)
    assert found.counts["completed"] == 2
    assert not found.complete
    assert sum(found.map_counts.values()) == 4
    assert found.map_counts["completed"] < 4
    assert depthscope.make_report(folder).page.exists()  # half done as it is
    before = {at: stamp for at, stamp in times(folder).items() if at.name == "loss.parquet"}
    report = run(folder)
    assert not report.failed
    assert files(folder) == files(whole)
    assert {at: at.stat().st_mtime_ns for at in before} == before, "what was whole was not made again"


def test_two_processes_make_the_same_bytes_and_a_second_run_makes_nothing(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    run(folder, executor="processes", workers=2)
    assert files(folder) == files(whole)
    before = times(folder)
    heard: list[MapNews] = []
    run(folder, watcher=depthscope.Watcher(on_map=heard.append))
    assert times(folder) == before
    assert not heard


def test_a_map_that_cannot_be_made_is_told_and_tried_again(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from depthscope.train.mapped_run import OfRun

    folder, material = tmp_path / "out", OfRun.material

    def faulty(self: OfRun, spec: Any) -> Any:
        if self.spec.seed == 1 and spec.seed == 0:
            raise UserError("the examples are gone.")
        return material(self, spec)

    heard: list[MapNews] = []
    with monkeypatch.context() as patch:
        patch.setattr(OfRun, "material", faulty)
        report = run(folder, watcher=depthscope.Watcher(on_map=heard.append))
    assert report.failed
    assert [each.fault for each in heard if each.fault] == ["the examples are gone."]
    found = depthscope.status(folder)
    assert found.map_counts == {"completed": 3, "failed": 1, "in part": 0, "missing": 0}
    assert [each.fault for each in found.maps_left] == ["the examples are gone."]
    values = [row.value("landscape_roughness") for row in report.results.rows]
    assert values[0] is not None
    assert values[1] is None, "of half its planes a run has no figure"
    before = times(folder)
    assert not run(folder).failed
    assert files(folder) == files(whole)
    kept = {at for at in before if at.exists()}
    assert {at: at.stat().st_mtime_ns for at in kept} == {at: before[at] for at in kept}


def test_a_map_of_other_weights_is_none_of_the_run_and_is_made_anew(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    run(folder)
    at = map_folders(folder)[0]
    head = json.loads((at / "map.json").read_text())
    head["facts"][MADE_OF] = "0" * 16
    (at / "map.json").write_text(json.dumps(head))
    assert depthscope.status(folder).map_counts["missing"] == 1
    first = next(iter(depthscope.status(folder).plan.runs))
    assert [each.spec.seed for each in depthscope.results(folder).load_maps(first)] == [1]
    run(folder)
    assert files(folder) == files(whole)
    assert depthscope.status(folder).complete


def test_runs_without_the_measure_are_done_again_for_it_and_their_numbers_stay(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    plain = STUDY.partition("[landscape]")[0].replace('measures = ["weights"]\n', "").replace("seeds = 2", "seeds = 1")
    (row,) = run(folder, plain).results.rows
    assert row.record is not None
    (again,) = run(folder, STUDY.replace("seeds = 2", "seeds = 1").replace("planes = 2", "axes = 1")).results.rows
    assert again.record is not None
    assert (again.record.run_id, again.record.digests) == (row.record.run_id, row.record.digests)
    assert again.record.weights
    assert not row.record.weights
    assert isinstance(again.figures["landscape_roughness"], float)


def test_a_trajectory_is_the_plane_of_the_weights_that_were_kept(tmp_path: Path) -> None:
    text = STUDY.replace("planes = 2", 'directions = "trajectory"').replace("seeds = 2", "seeds = 1")
    report = run(tmp_path / "out", text)
    assert not report.failed, [each.fault for each in report.maps]
    ((record,),) = (report.results.load_maps(run_id) for run_id in report.results.plan.runs)
    assert isinstance(record, MapRecord)
    path = record.head.trajectory
    assert path is not None
    assert path.steps == (0, 2, 4)
    assert path.path[-1] == (0.0, 0.0)
    assert sum(path.explained) == pytest.approx(1), "three points lie in a plane"
