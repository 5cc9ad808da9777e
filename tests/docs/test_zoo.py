"""docs/zoo.md: its tables are those of the records, and the records are those of the zoo."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "zoo.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_zoo", ROOT / "docs" / "make_zoo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_table_is_made_from_the_records(maker: ModuleType) -> None:
    assert maker.fill_all(PAGE, maker.tables(maker.read())) == PAGE


def test_the_records_are_those_of_the_zoo(maker: ModuleType) -> None:
    """Each member once, with its derivation; what is found is what the tests of the zoo ask for."""
    pytest.importorskip("torch")
    from tests.zoo.table import ZOO

    rows = {row["model"]: row for row in maker.read()}
    assert list(rows) == list(ZOO)
    assert len(rows) >= 60
    for name, member in ZOO.items():
        row = rows[name]
        assert (row["family"], row["known"], row["why"]) == (member.family, member.additions, member.why)
        if member.additions is not None:
            assert row["found"] == (member.additions if member.counted is None else member.counted), name


def test_what_is_not_counted_right_is_told(maker: ModuleType) -> None:
    told = PAGE.split("## What is not counted right")[1].split("## Models")[0]
    wrong = {row["model"] for row in maker.read() if row["known"] != row["found"]}
    assert {name for name in wrong if f"**{name}**" in told} == wrong
