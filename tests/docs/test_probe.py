"""docs/probe.md: its tables are those of the code, and its README section shows what the command gives."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "probe.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_probe", ROOT / "docs" / "make_probe.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_tables_are_those_of_the_code(maker: ModuleType) -> None:
    assert maker.fill_all(PAGE, maker.tables()) == PAGE
    with pytest.raises(SystemExit, match="no place for 'other'"):
        maker.fill(PAGE, "other", "")


def test_the_fields_of_the_json_are_those_that_stand_in_the_document() -> None:
    torch = pytest.importorskip("torch")
    import depthscope

    net = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(4)))
    document = depthscope.probe(net, torch.ones(4, 4)).document()
    table = PAGE.split("### The JSON")[1].split("The fields of a condition")[0]
    rows = dict(re.findall(r"^\| (`.*?`) \| (.*) \|$", table, re.MULTILINE))
    assert {name for cell in rows for name in re.findall(r"`(\w+)`", cell)} | {"schema"} == set(document)
    for field in ("diagnosis", "structure", "expected"):
        named = set(re.findall(r"`(\w+)`", rows[f"`{field}`"])) - {"value", "low", "high"}
        assert named <= set(document[field]), field
    assert set(re.findall(r"`(\w+)`", rows["`diagnosis`"])) | {"step"} == set(document["diagnosis"])


def test_the_readme_shows_the_verdict_of_its_command(maker: ModuleType) -> None:
    pytest.importorskip("torch")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- made: probe -->\n```text\n(.*?)```\n<!-- end -->", readme, re.DOTALL)
    assert shown
    words, picture = maker.shown()
    assert maker.COMMAND in readme
    # Other processors round otherwise in the last digit: the words before the first number must be the same.
    assert shown[1].splitlines()[0] == words.splitlines()[0]
    assert len(shown[1].splitlines()) == len(words.splitlines())
    assert picture.startswith(b"\x89PNG")
