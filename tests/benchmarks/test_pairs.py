"""Records of figures, and the rows that the page makes of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Load = Callable[[str], Any]


def test_a_figure_with_a_unit_is_read_as_it_was_kept(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = load("pairs")
    monkeypatch.setattr(pairs, "RECORDS", tmp_path / "records")
    facts: dict[str, float | str] = {"step, s": 2.5, "losses": "the same bits"}
    kept = pairs.figure("name", "what", [10.0, 30.0, 14.0], unit="MiB", want=15.0, clock="wall", facts=facts)
    assert pairs.read_records(tmp_path / "records") == {"name": kept}
    assert (kept.ratio, kept.unit, kept.reference_s, kept.ours_s) == (14.0, "MiB", None, None)
    assert {name: kept.facts[name] for name in facts} == facts
    assert "load" in kept.facts
    assert capsys.readouterr().out == "name: 14 MiB [10, 30] of 3, wanted at most 15\n"
    # Kept again, it takes the older one's place.
    again = pairs.figure("name", "what", [1.0], unit="MiB", want=None, clock="wall")
    assert pairs.read_records(tmp_path / "records") == {"name": again}


@pytest.mark.parametrize(
    ("unit", "want", "met"),
    [("times", 2.5, True), ("times", 2.6, False), ("MiB", 2.5, True), ("MiB", 2.4, False), ("MiB", None, None)],
)
def test_of_ratios_more_is_better_and_of_all_else_less(
    load: Load, unit: str, want: float | None, met: bool | None
) -> None:
    record = load("pairs").Record(name="a", what="a", want=want, pairs=[9.0, 2.5, 1.0], clock="wall", unit=unit)
    assert record.met is met


def test_a_ratio_is_the_references_time_over_ours(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, made = load("pairs"), load("make_speed")
    monkeypatch.setattr(pairs, "RECORDS", tmp_path)
    kept = pairs.kept("a", "a step", [(9.0, 3.0), (4.0, 2.0), (8.0, 2.0)], want=3.0, clock="processor")
    assert made.row(kept) == ["a step", "✓", "≥ 3.00x", "**3.00x**", "2.00 – 4.00", "3", "8 s", "2 s", "processor"]


def test_memory_is_a_row_in_mebibytes(load: Load) -> None:
    pairs, made = load("pairs"), load("make_speed")
    facts = {"predicted, MiB": 1084, "load": 0.5}
    record = pairs.Record(
        name="m", what="memory", want=None, pairs=[6237.4], clock="–", unit="MiB", facts=facts, machine="m"
    )
    assert made.memory({"m": record}).splitlines()[-1] == ("| memory | **6,237 MiB** | – | 1 | – | – | 1,084 MiB |")
    assert made.memory({}) == "Not measured yet."
