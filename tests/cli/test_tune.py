"""`depthscope tune` and `depthscope schema`, as a shell sees them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.api.test_tuning import ALONE, STUDY

Call = Callable[..., Any]


def test_tune_tells_what_it_chose_and_then_the_study_runs(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(STUDY, encoding="utf-8")
    shell = call("tune", "mine.toml", "--workers", 1, "--grid", "0.02,0.1,1e5,", "--seeds", "1")
    assert shell.code == 0, shell.err
    assert "lr by validation_accuracy: mean over 1 seed and all axes" in shell.out
    assert "2 lost" in shell.out
    assert "12 runs on 30 held-out examples; the test set was not opened." in shell.out
    assert "Next: depthscope run mine-tuned.toml" in shell.out
    assert {path.name for path in Path().iterdir()} == {"mine.toml", "mine-tuned.toml", "results"}
    assert [path.name for path in Path("results").iterdir()] == ["mine-tuning"]

    again = call("tune", "mine.toml", "--workers", 1, "--grid", "0.02,0.1,1e5,", "--seeds", "1", "--json")
    told = json.loads(again.out)
    assert told["study"] == "mine-tuned.toml"
    assert told["num_runs"] == 12
    assert [choice["arm"] for choice in told["choices"]] == ["plain", "skip"]
    for choice in told["choices"]:
        assert choice["edge"] == ("low" if choice["value"] == 0.02 else None)
        assert f"{choice['value']:g}" in shell.out


def test_one_command_chooses_at_each_depth_and_runs_the_study(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(ALONE, encoding="utf-8")
    shell = call("tune", "mine.toml", "--run", "--workers", 1)
    assert shell.code == 0, shell.err
    assert "lr by validation_accuracy: mean over 1 seed and all other axes" in shell.out
    rows = [[cell.strip() for cell in line.split("│")[1:4]] for line in shell.out.splitlines() if "│ main" in line]
    assert rows == [["main", "plain", "2"], ["main", "skip", "4"]]
    assert "Next:" not in shell.out
    assert [line for line in shell.out.splitlines() if line.startswith("page: ")] == [
        f"page: {tmp_path / 'results' / name / 'report.html'}" for name in ("mine-tuning", "mine-tuned")
    ]
    assert "mine-tuning: 6 runs to do" in shell.err
    assert "mine-tuned: 6 runs to do" in shell.err
    told = json.loads(call("tune", "mine.toml", "--run", "--workers", 1, "--json").out)
    assert [choice["at"] for choice in told["choices"]] == [{"depth": 2}, {"depth": 4}, {"depth": 4}]
    assert told["report"]["study"]["name"] == "mine-tuned"


def test_that_lr_is_not_tuned_is_said_beside_the_json(call: Call, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(ALONE, encoding="utf-8")
    shell = call("run", tmp_path / "mine.toml", "--seeds", 1, "--workers", 1, "--out", tmp_path / "out", "--json")
    assert json.loads(shell.out)["study"]["name"] == "mine"
    assert " ".join(shell.err.split()).startswith("lr is not tuned: the runs have what the study file says. To choose")


@pytest.mark.parametrize("grid", ["fast", "", "0.1,x", "nan,1", "0.1;0.2"])
def test_a_grid_that_is_none(call: Call, tmp_path: Path, grid: str) -> None:
    shell = call("tune", "spiral", f"--grid={grid}", "--validation", 30, "--out", tmp_path / "out")
    assert shell.code == 2
    assert shell.err.startswith("depthscope: --grid: wanted numbers such as 0.01,0.03,0.1; got ")
    assert not any(tmp_path.iterdir())


def test_the_schema_is_printed(call: Call) -> None:
    shell = call("schema")
    assert shell.code == 0
    assert shell.out == (Path(__file__).resolve().parents[2] / "docs" / "study.schema.json").read_text(encoding="utf-8")
