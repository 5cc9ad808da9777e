"""Cells: the places of a study's table, and which of them a claim speaks of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from depthscope.study.claims import Select


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One place in a study's table: an arm of a part, at values of the axes, with one seed.

    Two cells may be the same run (`run_id`); it is then done once.
    """

    part: str
    arm: str
    axes: Mapping[str, Any]
    seed: int
    run_id: str


def matching(cells: Sequence[Cell], part: str, select: Select) -> list[Cell]:
    """The cells that a claim's selection means, with `"min"` and `"max"` resolved among the arm's own."""
    mine = [cell for cell in cells if cell.part == part and cell.arm == select.arm]
    for key, wanted in select.where.items():
        value = _extreme(wanted, [cell.axes.get(key) for cell in mine])
        # In Python True == 1: a study file means what it says.
        mine = [
            cell
            for cell in mine
            if cell.axes.get(key) == value and isinstance(cell.axes.get(key), bool) == isinstance(value, bool)
        ]
    return mine


def _extreme(wanted: Any, present: list[Any]) -> Any:
    numbers = [each for each in present if isinstance(each, int | float)]
    if wanted not in ("min", "max") or not present or len(numbers) < len(present):
        return wanted
    return min(numbers) if wanted == "min" else max(numbers)
