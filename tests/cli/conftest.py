"""Calls the command line in this process and returns what a shell would see."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

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
