"""docs/curvature.md: its command is the one whose words it shows, and runs from the command line."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "curvature.md").read_text(encoding="utf-8")


def test_the_words_are_those_of_the_command() -> None:
    pytest.importorskip("torch")
    from depthscope.api.curvature import _WORDS

    spec = importlib.util.spec_from_file_location("make_curvature", ROOT / "docs" / "make_curvature.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    assert maker.COMMAND in PAGE
    shown = re.search(r"<!-- made: curvature -->\n```text\n(.*?)```\n<!-- end -->", PAGE, re.DOTALL)
    assert shown
    first, *rows, _ = shown[1].splitlines()
    assert first.startswith("deep:short: curvature of the loss, 51,524 parameters, 512 examples")
    assert [row[2:34].rstrip() for row in rows] == list(_WORDS.values())
