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


def agrees(axes: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    """Whether the values of a part's axes are those wanted, on all axes that are named."""
    return all(key in axes and same(axes[key], wanted) for key, wanted in where.items())


def same(one: Any, other: Any) -> bool:
    """Whether two values of a study file are the same. In Python True == 1: a study file means what it says.

    >>> same(1, True), same(4, 4.0)
    (False, True)
    """
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def matching(cells: Sequence[Cell], part: str, select: Select) -> list[Cell]:
    """The cells that a claim's selection means, with `"min"` and `"max"` resolved among the arm's own."""
    mine = [cell for cell in cells if cell.part == part and cell.arm == select.arm]
    for key, wanted in select.where.items():
        value = _extreme(wanted, [cell.axes.get(key) for cell in mine])
        mine = [cell for cell in mine if same(cell.axes.get(key), value)]
    return mine


def _extreme(wanted: Any, present: list[Any]) -> Any:
    numbers = [each for each in present if isinstance(each, int | float)]
    if wanted not in ("min", "max") or not present or len(numbers) < len(present):
        return wanted
    return min(numbers) if wanted == "min" else max(numbers)
