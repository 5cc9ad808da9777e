"""At which values of a part's further axes its lead and its main figure speak."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from depthscope.analysis.table import Results
from depthscope.study.claims import confirmatory_at, selects


def held(results: Results, part: str, along: str = "depth") -> dict[str, Any]:
    """The value of each axis other than `along`: that of the part's confirmatory claim, else the first.

    A claim that names several values of an axis, or none, leaves the first: such as one that compares them.
    """
    axes = {axis: values for axis, values in results.study.parts[part].axes.items() if axis != along}
    found: dict[str, Any] = {}
    for claim in results.study.claims:
        if claim.part != part or not confirmatory_at(claim, results.study.size):
            continue
        rows = [row for select in selects(claim) for row in results.select(part, select)]
        for axis in axes:
            named = [row.cell.axes[axis] for row in rows if axis in row.cell.axes]
            if named and all(value == named[0] for value in named):
                found.setdefault(axis, named[0])
    return {axis: found.get(axis, values[0]) for axis, values in axes.items()}


def told(results: Results, part: str, values: Mapping[str, Any]) -> str:
    """The values of those axes that have several, such as `lr = 0.001`; empty where none has."""
    axes = results.study.parts[part].axes
    return ", ".join(f"{axis} = {written(value)}" for axis, value in values.items() if len(axes[axis]) > 1)


def written(value: Any) -> str:
    """A value of an axis as a reader wants it.

    >>> written(0.001), written(50_000), written("adam")
    ('0.001', '50000', 'adam')
    """
    return f"{value:.4g}" if isinstance(value, float) else str(value)
