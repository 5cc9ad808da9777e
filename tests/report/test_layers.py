"""Layers by column give what a walk over the rows gives, to the last bit."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests.report import synthetic

from depthscope.analysis.profiles import median_and_range
from depthscope.analysis.table import ResultRow, Results
from depthscope.record.schema import TABLES
from depthscope.report import content
from depthscope.report.charts.profile import LayerValue
from depthscope.report.content import significant
from depthscope.report.layers import LAST, depth_profiles
from depthscope.report.logged import LESIONS
from depthscope.report.words import Words


def cell_naive(
    arm: str, rows: tuple[ResultRow, ...], results: Results, steps: tuple[int, ...], *, lesions: bool
) -> tuple[list[LayerValue], int]:
    """Value by value, as a page shows them."""
    seen: dict[tuple[int, str, int], list[float]] = {}
    names: dict[int, str] = {}
    left_out = 0
    for row in rows:
        table = results.load_table(row.cell.run_id, "layers") if row.record is not None else None
        found = [each for each in table.to_pylist() if (each["quantity"] in LESIONS) == lesions] if table else []
        last = max((each["step"] for each in found), default=0)
        for each in found:
            names[each["layer"]] = each["name"]
            places = [
                at for at, step in enumerate(steps) if step == each["step"] or (step == LAST and each["step"] == last)
            ]
            value = each["value"]
            if value is None or not math.isfinite(value) or value <= 0:
                left_out += bool(places)
                continue
            for at in places:
                seen.setdefault((at, each["quantity"], each["layer"]), []).append(value)
    values = []
    for (at, quantity, layer), those in sorted(seen.items()):
        made = median_and_range(those)
        low, median, high = (significant(value, 4) for value in (made.low, made.median, made.high))
        name = names[layer]
        values.append(
            LayerValue(series=arm, at=at, quantity=quantity, layer=layer, name=name, value=median, low=low, high=high)
        )
    return values, left_out


def spoilt() -> Results:
    """Two seeds more, runs that ended early, values that no log axis shows, rows in another order, a run without."""
    found = synthetic.spiral(sweep=(2, 8), seeds=4)
    kinds = {run_id: number for number, run_id in enumerate(sorted(found.records))}

    def load(run_id: str, name: str) -> pa.Table | None:
        table, number = found.load_table(run_id, name), kinds[run_id]
        if name != "layers" or table is None or number % 7 == 3:
            return None if name == "layers" else table
        rng = np.random.default_rng(number)
        rows = table.to_pylist()
        for row in rows:
            strange = (None, 0.0, -0.0, -1.0, math.nan, math.inf, 5e-324, 1e308, row["value"])
            row["value"] = strange[min(int(rng.integers(0, 60)), len(strange) - 1)]
            row["name"] += f" of {number % 3}"
        ends = sorted({row["step"] for row in rows})
        rows = [row for row in rows if row["step"] <= ends[-1 - number % 2 * (len(ends) // 2)]]
        at = [*rows, *(row | {"quantity": "lesion_loss"} for row in rows[: 40 * (number % 5)])]
        rng.shuffle(at)
        return pa.Table.from_pylist(at, schema=TABLES["layers"])

    return replace(found, load_table=load)


@pytest.mark.parametrize("lesions", [False, True])
def test_columns_give_what_rows_give(lesions: bool) -> None:
    results = spoilt()
    compared = omitted_in_all = 0
    for view in content.views(results, Words("en")):
        for profile in depth_profiles(results, view, lesions=lesions):
            values: list[LayerValue] = []
            left_out = 0
            for (arm, place), rows in view.cells().items():
                if place == profile.place:
                    some, omitted = cell_naive(arm, rows, results, profile.steps, lesions=lesions)
                    values += [each for each in some if each.quantity in profile.quantities]
                    left_out += omitted
            assert list(profile.values) == values
            assert profile.left_out == left_out
            omitted_in_all += left_out
            assert [type(each.layer) for each in profile.values[:1]] == [int]
            compared += len(values)
    assert compared > (100 if lesions else 2000)
    assert omitted_in_all > 10
