"""The tables of a page: by column, to the letter what a walk over the rows gives."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from depthscope.report.sheet import _columns

Rows = list[dict[str, Any]]


def columns_naive(rows: Rows) -> dict[str, Any]:
    fields = []
    for row in rows:
        fields += [key for key in row if key not in fields]
    columns: list[list[Any]] = []
    texts: list[list[str] | None] = []
    for name in fields:
        column = [row.get(name) for row in rows]
        known = list(dict.fromkeys(value for value in column if value is not None))
        if any(isinstance(value, str) for value in column):
            columns.append([None if value is None else known.index(value) for value in column])
            texts.append(known)
        else:
            is_whole = [isinstance(value, float) and value == round(value) and abs(value) < 1e15 for value in column]
            columns.append([int(value) if whole else value for value, whole in zip(column, is_whole, strict=True)])  # type: ignore[arg-type]
            texts.append(None)
    return {"fields": fields, "columns": columns, "texts": texts}


numbers = (
    st.none() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([2.0, 1e15])
)
values = {"a": st.sampled_from(["x", "y", "z"]), "b": numbers, "c": st.none() | st.sampled_from(["x", "w"])}
whole = st.lists(st.fixed_dictionaries(values), max_size=12)
holed = st.lists(st.fixed_dictionaries({}, optional=values), max_size=12)


@given(whole | holed)
def test_columns_are_the_rows_turned(rows: Rows) -> None:
    before = json.dumps(rows)
    assert json.dumps(_columns(rows)) == json.dumps(columns_naive(rows))
    assert json.dumps(rows) == before


def test_columns_by_hand() -> None:
    assert _columns([]) == {"fields": [], "columns": [], "texts": []}
    rows: Rows = [{"a": "x", "b": 2.0}, {"b": 0.5}, {"a": "y"}, {"a": "x", "b": None}]
    assert _columns(rows) == {
        "fields": ["a", "b"],
        "columns": [[0, None, 1, 0], [2, 0.5, None, None]],
        "texts": [["x", "y"], None],
    }
