"""What runs are called, by their places in the study."""

from __future__ import annotations

from depthscope.study.expand import Cell, Plan


def run_names(planned: Plan) -> dict[str, str]:
    """run_id -> the run's first place in the study: part, arm, values of the axes, seed."""
    names: dict[str, str] = {}
    for cell in planned.cells:
        names.setdefault(cell.run_id, f"{group_name(cell)} seed {cell.seed}")
    return names


def group_name(cell: Cell) -> str:
    """The place of a run without its seed."""
    return " ".join([f"{cell.part}:", cell.arm, *(f"{key} {value}" for key, value in cell.axes.items())])
