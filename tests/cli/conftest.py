"""Calls the command line in this process and returns what a shell would see."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.small import SMALL

import depthscope
from depthscope.cli.main import main


@dataclass(frozen=True)
class Shell:
    """Exit code and output of one call."""

    code: int
    out: str
    err: str


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Shell]:
    def run(*arguments: object) -> Shell:
        monkeypatch.setattr(sys, "argv", ["depthscope", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return Shell(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small study that has been run, beside its file `small.toml`. Nobody changes its runs."""
    at = tmp_path_factory.mktemp("small")
    (at / "small.toml").write_text(SMALL, encoding="utf-8")
    depthscope.run(at / "small.toml", out=at / "out", workers=1)
    return at / "out"
