"""Code of the user's that would take the process along: the results lie where they were asked for, the exit says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.train.own import package

Call = Callable[..., Any]

CODE = """
import os

def ends(step):
    os.chdir("/")
    if step >= 4:
        raise SystemExit(0)
    return {"a": 1.0}
"""
STUDY = """
name = "own"
title = { en = "Own" }
seeds = 2
[base]
backend = "numpy"
family = "mlp"
depth = 3
width = 4
activation = "tanh"
init = "gaussian"
data = "spiral"
data_options = { points_per_arm = 8 }
optimizer = "adam"
lr = 0.01
steps = 6
[parts.main]
arms = [{ name = "good" }, { name = "bad", set = { gain = 0.9, measures = ["NAME.code:ends"] } }]
"""


def test_a_study_whose_code_leaves_and_exits(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = package(monkeypatch, tmp_path, code=CODE)
    monkeypatch.chdir(tmp_path)
    Path("own.toml").write_text(STUDY.replace("NAME", name))
    shell = call("run", "own.toml", "--out", "out", "--workers", 1)
    assert shell.code == 1
    assert "SystemExit: 0" in shell.out + shell.err
    assert (tmp_path / "out" / "report.html").exists()
    counts = json.loads(call("status", "out", "--json").out)["counts"]
    assert counts == {"completed": 2, "diverged": 0, "failed": 2, "damaged": 0, "missing": 0}


def test_an_exit_that_nobody_caught_is_no_success(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(*args: object, **options: object) -> None:
        raise SystemExit(0)

    monkeypatch.setattr("depthscope.api.plan", leave)
    shell = call("plan", "spiral")
    assert shell.code == 1
    assert "the study's own code ended the process (SystemExit: 0)" in shell.err
