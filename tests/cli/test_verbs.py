"""What each verb prints, for people and for programs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.small import SMALL

import depthscope

Call = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(copy_of_spiral: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_spiral(tmp_path_factory.mktemp("cli") / "spiral")


def test_run_prints_every_claim_with_its_verdict_and_where_the_page_is(call: Call, folder: Path) -> None:
    shell = call("run", "spiral", "--size", "smoke", "--out", folder)
    assert shell.code == 0
    verdicts = sum(
        shell.out.count(f"{mark} {word}")
        for mark, word in zip("✓✗?", ("supported", "refuted", "undecided"), strict=True)
    )
    assert verdicts == len(json.loads((folder / "findings.json").read_text())["findings"])
    assert f"page: {folder / 'report.html'}" in shell.out


def test_run_as_json_is_one_document(call: Call, small: Path) -> None:
    document = json.loads(call("run", small.parent / "small.toml", "--out", small, "--json").out)
    assert [finding["verdict"] for finding in document["findings"]] == ["supported", "refuted", "undecided"]
    assert document["findings"] == json.loads((small / "findings.json").read_text())["findings"]
    assert document["page"] == str(small / "report.html")


def test_report_writes_the_figures_on_request(call: Call, small: Path) -> None:
    assert call("report", small, "--figures", "--lang", "zh").code == 0
    stems = ("hero", "claims", "curves-main", "depth-main", "profile-main", "gradcheck-gradcheck")
    names = {path.name for path in (small / "figures").iterdir()}
    assert names == {f"{stem}.{ending}" for stem in stems for ending in ("svg", "png")}
    assert (small / "figures" / "hero.png").read_bytes()[:4] == b"\x89PNG"


def test_status(call: Call, folder: Path) -> None:
    shell = call("status", folder)
    assert shell.code == 0
    assert "spiral, size smoke" in shell.out
    counts = json.loads(call("status", folder, "--json").out)["counts"]
    assert counts["completed"] > 0
    assert counts["missing"] == counts["failed"] == counts["damaged"] == 0


def test_plan(call: Call) -> None:
    shell = call("plan", "spiral", "--size", "full", "--seeds", "0,3")
    assert shell.code == 0
    assert "sweep" in shell.out
    document = json.loads(call("plan", "spiral", "--size", "full", "--seeds", "0,3", "--json").out)
    # A tanh stack of 48 layers of 16: 2 x 16 + 16, 48 times 16 x 16 + 16, 16 x 3 + 3.
    (row,) = [r for r in document["rows"] if (r["part"], r["arm"], r["axes"]) == ("sweep", "plain", {"depth": 48})]
    assert row["parameters"] == 48 + 48 * 272 + 51
    assert len(row["run_ids"]) == 2


def test_plan_shows_the_published_counts(call: Call) -> None:
    pytest.importorskip("torch")
    shell = call("plan", "cifar10", "--size", "full")
    for count, times in (("269,722", 2), ("853,018", 2), ("272,474", 1), ("855,770", 1)):
        assert shell.out.count(count) == times


def test_studies(call: Call) -> None:
    shell = call("studies")
    assert "spiral" in shell.out
    assert "smoke, quick, full" in shell.out
    files = (Path(depthscope.__file__).parent / "study" / "named").glob("*.toml")
    assert [each["name"] for each in json.loads(call("studies", "--json").out)] == sorted(file.stem for file in files)


def test_no_arguments_show_the_help(call: Call) -> None:
    shell = call()
    assert "Usage" in shell.out + shell.err
    assert shell.code == 2
    assert "depthscope:" not in shell.out + shell.err


def test_code_beside_the_study_is_found_by_name(tmp_path: Path) -> None:
    (tmp_path / "random.py").write_text("raise SystemExit('not the one of the standard library')")
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "def points(seed, root):\n"
        "    x = np.eye(4)\n"
        "    return {'x_train': x, 'y_train': [0, 1, 0, 1], 'x_test': x, 'y_test': [0, 1, 0, 1]}\n"
    )
    study = """
name = "mine"
title = { en = "Mine" }
seeds = 1
[base]
backend = "numpy"
family = "mlp"
depth = 2
width = 4
activation = "tanh"
init = "gaussian"
data = "mine:points"
steps = 3
[parts.main]
arms = [{ name = "plain" }]
"""
    (tmp_path / "mine.toml").write_text(study)
    # The installed command: Python itself puts the folder of a script on the path, not the one it is started in.
    command: list[object] = [
        Path(sys.executable).with_name("depthscope"),
        "run",
        "mine.toml",
        "--out",
        "out",
        "--workers",
        "1",
    ]
    done = subprocess.run([str(each) for each in command], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_failed_runs_are_told_and_end_with_code_1(
    call: Call, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from depthscope.train import numpy_loop

    monkeypatch.setattr(numpy_loop, "fit", lambda *args, **kwargs: 1 / 0)
    study = small.parent / "small.toml"
    shell = call("run", study, "--seeds", 1, "--out", tmp_path / "out", "--workers", 1)
    assert shell.code == 1
    assert "ZeroDivisionError" in shell.out
    assert "runs failed; the same command tries them again" in shell.out


def test_words_of_a_study_are_never_markup(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(SMALL.replace('en = "Small"', 'en = "Mine [/b] [red]x"'), encoding="utf-8")
    shell = call("run", path, "--out", tmp_path / "out", "--workers", 1)
    assert shell.code == 0
    assert "Mine [/b] [red]x" in shell.out


def test_a_terminal_without_the_letters_is_no_failure(small: Path) -> None:
    import os

    code = f"import sys; from depthscope.cli.main import main; sys.argv = ['', 'report', {str(small)!r}]; main()"
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr


def test_an_interruption_says_what_to_do(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from depthscope.api import study

    def interrupt(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "drive", interrupt)
    shell = call("run", "spiral", "--size", "smoke", "--out", tmp_path / "out", "--workers", 1)
    assert shell.code == 130
    assert "the same command continues" in shell.err
    assert "Traceback" not in shell.err


HALF = """
name = "half"
title = { en = "Half a repair" }
seeds = 1
[base]
backend = "torch"
family = "mlp"
depth = 2
width = 4
norm = "batch"
activation = "tanh"
init = "lsuv"
data = "spiral"
optimizer = "adam"
lr = 0.01
steps = 1
[[parts.main.arms]]
name = "x"
set = {}
"""


def test_half_a_repair_is_remarked_and_run(call: Call, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "half.toml").write_text(HALF, encoding="utf-8")
    remark = "arm x: init 'lsuv' goes with norm 'none' in its paper (Mishkin 2016); here norm is 'batch'"
    told = json.loads(call("plan", tmp_path / "half.toml", "--json").out)["remark"]
    assert remark in told.replace("Arm x", "arm x")
    shell = call("plan", tmp_path / "half.toml")
    assert (shell.code, " ".join(shell.out.split()).count(told)) == (0, 1)
    shell = call("run", tmp_path / "half.toml", "--out", tmp_path / "out", "--workers", "1")
    assert (shell.code, " ".join(shell.err.split()).count(told)) == (0, 1)
