"""Every kind of fault in a study file, through the command line: named with its path, exit code 2, folder untouched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from tests.study.conftest import study_document
from tests.study.test_faults import FAULTS, put

Call = Callable[..., Any]


@pytest.mark.parametrize(("where", "value", "path", "says"), FAULTS)
def test_a_faulty_file_runs_nothing(call: Call, tmp_path: Path, where: str, value: Any, path: str, says: str) -> None:
    document = study_document()
    put(document, where, value)
    file, out = tmp_path / "mine.toml", tmp_path / "out"
    file.write_text(tomli_w.dumps(document), encoding="utf-8")
    shell = call("run", file, "--out", out)
    assert shell.code == 2
    head, fault = shell.err.strip().splitlines()
    assert head.startswith(f"depthscope: {file}")
    assert fault.startswith(f"  {path}: ")
    assert says in fault
    assert shell.out == ""
    assert not out.exists()


def test_a_folder_that_holds_the_study_already_stays_as_it_is(call: Call, tmp_path: Path) -> None:
    document = study_document()
    file, out = tmp_path / "mine.toml", tmp_path / "out"
    file.write_text(tomli_w.dumps(document), encoding="utf-8")
    assert call("run", file, "--out", out, "--workers", 1).code == 0
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    document["claims"][0]["metric"] = "train_los"
    file.write_text(tomli_w.dumps(document), encoding="utf-8")
    assert call("run", file, "--out", out, "--workers", 1).code == 2
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
