"""`tune` on small studies: what it chooses and from what, what it writes, what it refuses."""

from __future__ import annotations

import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

import depthscope
from depthscope.api import TuneResult
from depthscope.core.errors import UserError
from depthscope.record.events import Ended, News
from depthscope.study.toml import dump, load

STUDY = """
name = "mine"
title = { en = "Mine" }
seeds = 2
[base]
backend = "numpy"
family = "mlp"
depth = 4
width = 8
activation = "relu"
init = "gaussian"
gain = 1.4
data = "spiral"
steps = 40
[parts.main]
axes = { depth = [2, 4] }
arms = [{ name = "plain" }, { name = "skip", set = { shortcut = "identity" } }]
[parts.flow]
base = { steps = 0, measures = ["layers"] }
arms = [{ name = "plain" }]
[tuning]
grid = [1e5, 0.02, 0.1]
validation = 30
seeds = 2
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tune") / "mine.toml"
    path.write_text(STUDY, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def result(study: Path) -> TuneResult:
    return depthscope.tune(study, out=study.parent / "out", write=study.parent / "chosen.toml", workers=1)


def recorded(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("runs/*/run.json"))]


def test_the_best_mean_wins(result: TuneResult) -> None:
    records = recorded(result.selection.folder)
    assert len(records) == result.tuned.num_runs == 2 * 2 * 3 * 2
    for choice in result.tuned.choices:
        shortcut = {"plain": "none", "skip": "identity"}[choice.arm]
        means = {}
        for lr in (0.02, 0.1):
            mine = [each for each in records if each["spec"]["lr"] == lr and each["spec"]["shortcut"] == shortcut]
            assert {(each["spec"]["seed"], each["spec"]["depth"]) for each in mine} == {
                (seed, depth) for seed in (10_000, 10_001) for depth in (2, 4)
            }
            means[lr] = statistics.mean(each["summary"]["validation_accuracy"] for each in mine)
        assert [score.mean for score in choice.scores[:2]] == pytest.approx([means[0.02], means[0.1]], rel=1e-12)
        assert choice.value == max(means, key=lambda lr: means[lr])
    assert [choice.arm for choice in result.tuned.choices] == ["plain", "skip"]


def test_a_value_that_loses_runs_is_told_and_stands_behind(result: TuneResult) -> None:
    for choice in result.tuned.choices:
        assert [score.num_lost for score in choice.scores] == [0, 0, 4]
        assert choice.scores[2].value == 1e5
        assert choice.scores[2].mean is None


def test_the_test_set_is_opened_once_and_by_the_tuned_study(result: TuneResult, tmp_path: Path) -> None:
    for record in recorded(result.selection.folder):
        assert not [name for name in record["summary"] if name.startswith("test")]
    report = depthscope.run(result.path, out=tmp_path / "out", workers=1)
    records = recorded(report.folder)
    seeds = {record["spec"]["seed"] for record in records}
    assert seeds == {0, 1}
    for record in records:
        assert "test_accuracy" in record["summary"]
        assert "validation_accuracy" not in record["summary"]
    assert report.page.stat().st_size > 100_000
    assert result.selection.page.stat().st_size > 100_000


def test_what_is_written(result: TuneResult) -> None:
    assert load(result.path) == result.study
    text = result.path.read_text(encoding="utf-8")
    assert text.startswith("# Written by `depthscope tune`")
    assert text.endswith(dump(result.study))
    lrs = [result.study.parts["main"].arm(arm).set["lr"] for arm in ("plain", "skip")]
    assert lrs == [choice.value for choice in result.tuned.choices]


def test_again_does_nothing_new_and_chooses_the_same(study: Path, result: TuneResult) -> None:
    before = result.path.read_bytes()
    ended: list[str] = []

    def hear(event: News) -> None:
        if isinstance(event, Ended):
            ended.append(event.run_id)

    watcher = depthscope.Watcher(on_event=hear)
    again = depthscope.tune(study, out=study.parent / "out", write=result.path, workers=1, watcher=watcher)
    assert ended == []
    assert again.tuned == result.tuned
    assert result.path.read_bytes() == before


def test_what_is_given_lies_over_the_file_and_loss_goes_down(study: Path, tmp_path: Path) -> None:
    path = tmp_path / "loss.toml"
    path.write_text(STUDY + 'metric = "validation_loss"\n', encoding="utf-8")
    made = depthscope.tune(
        path, grid=[1e-9, 0.1], seeds=[77], validation=20, out=tmp_path / "out", write=tmp_path / "t.toml", workers=1
    )
    assert (made.tuned.grid, made.tuned.seeds, made.tuned.validation) == ((1e-9, 0.1), (77,), 20)
    for choice in made.tuned.choices:
        assert choice.value == 0.1
        assert choice.edge == "high"
        low, high = (score.mean for score in choice.scores)
        assert low is not None
        assert high is not None
        assert high < low


def test_of_equal_values_the_smaller_wins(tmp_path: Path, study: Path) -> None:
    # Rates that change no bit of a float32 weight give equal figures.
    made = depthscope.tune(study, grid=[1e-30, 1e-28], out=tmp_path / "out", write=tmp_path / "t.toml", workers=1)
    assert [choice.value for choice in made.tuned.choices] == [1e-30, 1e-30]


def test_no_value_that_is_fit(study: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"seeds": 1, "out": tmp_path / "out", "write": tmp_path / "t.toml", "workers": 1}
    with pytest.raises(UserError, match="no value of lr is fit for any arm: of all 2 that were tried, no run ended"):
        depthscope.tune(study, grid=[1e5, 1e6], **given)
    assert not (tmp_path / "t.toml").exists()


@pytest.mark.parametrize(
    ("old", "new", "given", "says"),
    [
        ("grid = [1e5, 0.02, 0.1]", "", {}, "tuning.grid: missing"),
        (
            "[tuning]\ngrid = [1e5, 0.02, 0.1]\nvalidation = 30\nseeds = 2\n",
            "",
            {},
            "no grid to tune with. Give --grid",
        ),
        ("validation = 30", "validation = 150", {}, "validation: wanted 0 to 149 of the 150, got 150"),
        ("", "", {"grid": [0.1]}, "tuning.grid: wanted at least 2 entries"),
        ("", "", {"grid": [0.1, 0.0]}, "tuning.grid: wanted more than 0, got 0.0."),
        ("", "", {"seeds": [1]}, "tuning.seeds: seed 1 is run by part 'main'"),
        ("", "", {"seeds": 0}, "tuning.seeds: wanted 1 or more"),
        ("", "", {"validation": 0}, "tuning.validation: wanted 1 or more"),
        ("", "", {"metric": "validation_loss"}, "tune: unknown argument 'metric'."),
        ("", "", {"metric": "validation_loss"}, " It is said in the study file, under [tuning]."),
        ("", "", {"deviec": "cpu"}, "tune: unknown argument 'deviec'. Did you mean 'device'? Known: "),
        ("", "", {"write": "nowhere/t.toml"}, "its folder does not exist"),
        ("", "", {"write": "mine.toml"}, "holds the study 'mine', no tuned 'mine-tuned'"),
        ("", "", {"write": "thesis.tex"}, "is there and no tuned study"),
    ],
)
def test_refused_before_anything_is_written(
    tmp_path: Path, old: str, new: str, given: dict[str, Any], says: str
) -> None:
    assert old in STUDY
    path = tmp_path / "mine.toml"
    path.write_text(STUDY.replace(old, new) if old else STUDY, encoding="utf-8")
    (tmp_path / "thesis.tex").write_text("do not lose me", encoding="utf-8")
    given = {**given, "write": tmp_path / given.get("write", "t.toml")}
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=re.escape(says)):
        depthscope.tune(path, out=tmp_path / "out", workers=1, **given)
    assert sorted(tmp_path.rglob("*")) == before


OWN = """
import numpy as np

def points(validation=0, num_test=4, gives=None, tests=0):
    x = np.linspace(-1, 1, 40).reshape(20, 2)
    y = np.arange(20) % 2
    held = validation if gives is None else gives
    kept = {"x_train": x[held:], "y_train": y[held:]}
    if held:
        kept |= {"x_validation": x[:held], "y_validation": y[:held]}
    if num_test or tests:
        kept |= {"x_test": x[:4], "y_test": y[:4]}
    return kept
"""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("", None),
        ("gives = 0", "gave none for validation = 6; wanted a split of 6 examples"),
        ("gives = 5", "gave one of 5 examples for validation = 6; wanted a split of 6 examples"),
        ("tests = 1", "gave a test set for num_test = 0, so that the choice is not blind to it"),
    ],
)
def test_data_of_ones_own_is_seen_to_hold_out_what_it_is_told_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, says: str | None
) -> None:
    module = f"own_split_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{module}.py").write_text(OWN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    data = f'data = "{module}:points"\ndata_options = {{ {options} }}\nsteps = 20'
    path = tmp_path / "mine.toml"
    path.write_text(STUDY.replace('data = "spiral"\nsteps = 40', data).replace("validation = 30", "validation = 6"))
    given: dict[str, Any] = {"grid": [0.02, 0.1], "seeds": 1, "out": tmp_path / "out", "write": tmp_path / "t.toml"}
    if says is None:
        assert depthscope.tune(path, workers=1, **given).tuned.validation == 6
        return
    with pytest.raises(UserError, match=re.escape(f"{module}:points: {says}")):
        depthscope.tune(path, workers=1, **given)
    assert not (tmp_path / "out").exists()


def test_the_tuned_study_refuses_the_seeds_of_the_choice(result: TuneResult) -> None:
    with pytest.raises(UserError, match=r"seeds: seed 10000 was used to choose lr \(tuned.seeds\); run others"):
        depthscope.plan(result.path, seeds=[0, 10_000])


ALONE = (
    STUDY.partition("[parts.flow]")[0]
    + """
[[parts.main.exclude]]
depth = 2
arm = "skip"
[tuning]
grid = [0.02, 0.1]
validation = 30
seeds = 1
by = ["depth"]
"""
)
"""Two arms; one has one place and the other two."""


def tuned(path: Path, text: str, name: str) -> TuneResult:
    (path / f"{name}.toml").write_text(text, encoding="utf-8")
    return depthscope.tune(path / f"{name}.toml", out=path / name, write=path / f"{name}-chosen.toml", workers=1)


def test_a_choice_is_made_at_each_depth_by_its_own_runs(tmp_path: Path) -> None:
    found = tuned(tmp_path, ALONE, "by")
    records = recorded(found.selection.folder)
    assert len(records) == 3 * 2
    at = {(choice.arm, choice.at["depth"]): choice for choice in found.tuned.choices}
    assert list(at) == [("plain", 2), ("plain", 4), ("skip", 4)]
    for (arm, depth), choice in at.items():
        mine = {
            each["spec"]["lr"]: each["summary"]["validation_accuracy"]
            for each in records
            if each["spec"]["depth"] == depth and each["spec"]["shortcut"] == {"plain": "none", "skip": "identity"}[arm]
        }
        assert {score.value: score.mean for score in choice.scores} == mine
        assert choice.value == max(mine, key=lambda lr: (mine[lr], -lr))
    planned = depthscope.plan(found.path)
    assert {(cell.arm, cell.axes["depth"], planned.runs[cell.run_id].lr) for cell in planned.cells} == {
        (*place, choice.value) for place, choice in at.items()
    }


def test_by_every_axis_where_there_is_one_place_chooses_as_without(tmp_path: Path) -> None:
    text = ALONE.replace("axes = { depth = [2, 4] }", "axes = { depth = [4] }").replace("depth = 2", "depth = 3")
    by, old = tuned(tmp_path, text, "by"), tuned(tmp_path, text.replace('by = ["depth"]\n', ""), "old")
    assert [choice.at for choice in by.tuned.choices] == [{"depth": 4}, {"depth": 4}]
    assert [choice.at for choice in old.tuned.choices] == [{}, {}]
    assert [choice.model_copy(update={"at": {}}) for choice in by.tuned.choices] == list(old.tuned.choices)
    assert set(depthscope.plan(by.path).runs) == set(depthscope.plan(old.path).runs)
    # Another axis, which `by` leaves out, is averaged over.
    assert old.tuned.choices[0].scores == by.tuned.choices[0].scores


def test_an_arm_that_is_lost_at_every_value_does_not_keep_the_others_from_running(tmp_path: Path) -> None:
    # So large a start diverges at once, whatever the rate.
    arm = '{ name = "skip", set = { shortcut = "identity", gain = 1e6 } }'
    text = ALONE.replace('{ name = "skip", set = { shortcut = "identity" } }', arm).replace("seeds = 2", "seeds = 1")
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    found = depthscope.tune(tmp_path / "mine.toml", out=tmp_path / "out", then_run=True, workers=1)
    lost = found.tuned.choices[-1]
    assert (lost.arm, lost.value, lost.fit, lost.edge) == ("skip", 0.02, False, None)
    assert all(choice.fit for choice in found.tuned.choices[:-1])
    assert found.report is not None
    ended = {row.cell.arm: row.record.outcome.status for row in found.report.results.rows if row.record}
    assert ended == {"plain": "completed", "skip": "diverged"}
    assert "every run lost" in found.report.page.read_text(encoding="utf-8")


def test_one_call_chooses_and_runs_and_goes_on_from_wherever_it_was_stopped(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(ALONE, encoding="utf-8")
    ended: list[str] = []

    def call(stop: int | None = None) -> TuneResult:
        ended.clear()

        def hear(event: News) -> None:
            if isinstance(event, Ended):
                if len(ended) == stop:
                    raise KeyboardInterrupt
                ended.append(event.run_id)

        watcher = depthscope.Watcher(on_event=hear)
        return depthscope.tune(path, out=tmp_path / "o" / "sel", then_run=True, executor="serial", watcher=watcher)

    seen: set[str] = set()
    for stop in (1, 3, 2):  # twice in the choice, of 6 runs, then in the study, of 6
        with pytest.raises(KeyboardInterrupt):
            call(stop)
        assert not seen & set(ended)
        seen |= set(ended)
    assert (tmp_path / "mine-tuned.toml").exists()
    found = call()
    assert not seen & set(ended)
    assert found.report is not None
    assert found.report.folder == (tmp_path / "o" / "mine-tuned").absolute()
    assert sorted(each.name for each in (tmp_path / "o").iterdir()) == ["mine-tuned", "sel"]
    assert {row.record is not None for row in found.report.results.rows} == {True}
    # The study by itself, from the file that was written, is the same one.
    again = depthscope.run(found.path, out=found.report.folder, executor="serial")
    assert again.results.study == found.study


@pytest.mark.parametrize(
    ("out", "says"),
    [("mine-tuned", "is where the tuned study's own results go"), ("sel", "holds other files and no study")],
)
def test_where_the_study_would_go_is_seen_to_before_a_run_is_made(tmp_path: Path, out: str, says: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(ALONE, encoding="utf-8")
    (tmp_path / "mine-tuned").mkdir()
    (tmp_path / "mine-tuned" / "thesis.tex").write_text("do not lose me", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=re.escape(says)):
        depthscope.tune(path, out=tmp_path / out, then_run=True, workers=1)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_study_that_is_run_without_its_choice_says_how_to_make_it(tmp_path: Path) -> None:
    path = tmp_path / "my study.toml"
    path.write_text(ALONE, encoding="utf-8")
    notes: list[str] = []
    watcher = depthscope.Watcher(on_note=notes.append)
    depthscope.run(path, seeds=1, out=tmp_path / "out", workers=1, watcher=watcher)
    assert notes == [
        f"lr is not tuned: the runs have what the study file says. To choose it first: depthscope tune '{path}' --run"
    ]
    notes.clear()
    depthscope.tune(path, out=tmp_path / "sel", then_run=True, workers=1, watcher=watcher)
    assert notes == []
