"""The command on a page: what repeats the study from where its reader is."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import depthscope

STUDY = """
name = "tiny"
title = { en = "Tiny" }
seeds = 2
[base]
backend = "numpy"
family = "mlp"
activation = "tanh"
init = "gaussian"
data = "spiral"
data_options = { points_per_arm = 8 }
width = 4
optimizer = "adam"
steps = 2
[parts.main]
axes = { depth = [2] }
arms = [{ name = "plain" }]
"""


def told(report: depthscope.Report) -> str:
    """The command, which page and findings.json have alike."""
    document = json.loads((report.folder / "findings.json").read_text())
    assert document["provenance"]["command"] == report.command
    assert report.command in report.page.read_text()
    return report.command


def test_the_folder_is_named_from_here_however_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "study.toml").write_text(STUDY)
    monkeypatch.chdir(here)
    wanted = "depthscope run out/a/study.toml --out out/a"
    assert told(depthscope.run("study.toml", out="out/a")) == wanted
    assert told(depthscope.run("study.toml", out=here / "out" / "a")) == wanted  # all done: the page anew
    assert told(depthscope.make_report(here / "out" / "a")) == wanted
    assert told(depthscope.make_report("out/a")) == wanted


def test_a_folder_elsewhere_is_not_named_by_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "study.toml").write_text(STUDY)
    monkeypatch.chdir(here)
    report = depthscope.run("study.toml", out=tmp_path / "elsewhere")
    assert told(report) == "depthscope run results/tiny/study.toml --out results/tiny"
    shutil.move(tmp_path / "elsewhere", here / "moved")
    assert told(depthscope.make_report("moved")) == "depthscope run moved/study.toml --out moved"
