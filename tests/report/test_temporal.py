"""Where depth is time, the page says steps; and what adds to its state is drawn as what has a shortcut."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from tests.analysis.conftest import record_of

from depthscope.analysis.findings import judge
from depthscope.analysis.table import Results
from depthscope.analysis.units import temporal
from depthscope.record.schema import TABLES
from depthscope.report import content, judged, sections
from depthscope.report.estimates import Estimates
from depthscope.report.layers import depth_profiles
from depthscope.report.strings import STRINGS
from depthscope.report.strings_time import TIME
from depthscope.report.temporal import adds, depth_key, key_of
from depthscope.report.words import Words
from depthscope.study.expand import expand
from depthscope.study.run import RunSpec
from depthscope.study.study import StudySpec


def row(**fields: Any) -> Any:
    base = {"backend": "torch", "family": "recurrent", "depth": 100, "width": 8, "activation": "tanh"}
    base |= {"init": "gaussian", "data": "adding", "steps": 0}
    return SimpleNamespace(spec=RunSpec.model_validate({**base, **fields}))


def spiral() -> Any:
    return row(family="mlp", data="spiral")


def test_depth_is_time_where_the_data_is_as_long_as_the_network_is_deep() -> None:
    assert temporal([row(), row(data="copy", model_options={"readout": "each"})])
    assert not temporal([row(), spiral()])
    assert key_of([row()], "x_layer") == "x_layer.time"
    assert key_of([spiral()], "x_layer") == "x_layer"


def test_figures_say_what_depth_counts() -> None:
    relational = row(family="relational", data="nth_farthest", activation="relu")
    gpt = row(family="gpt", data="names", activation="relu")
    found = {
        depth_key(rows, "layers_deep"): Words("en")(depth_key(rows, "layers_deep"), depth=12)
        for rows in ([gpt], [gpt, relational], [row()], [spiral(), gpt])
    }
    assert found == {
        "layers_deep.blocks": "12 blocks",
        "layers_deep.time": "12 steps in time",
        "layers_deep": "12 layers",  # where runs differ in it
    }
    assert Words("en")(depth_key([gpt], "x_depth")) == "depth (blocks)"


FLOW: dict[str, Any] = {
    "name": "flow",
    "title": {"en": "Flow"},
    "seeds": 3,
    "base": {"backend": "torch", "depth": 3, "width": 4, "activation": "tanh", "init": "gaussian", "steps": 0}
    | {"measures": ["layers"]},
}
CELLS = [{"name": cell, "set": {"model_options.cell": cell}} for cell in ("rnn", "gru")]
NETS = [{"name": name, "set": {"shortcut": name}} for name in ("none", "identity")]
LEVEL = {
    "kind": "level",
    "name": "x",
    "part": "main",
    "metric": "dh_factor_first",
    "statistic": "median",
    "expect": "at_most",
    "than": 2.0,
} | {"text": {"en": "x"}}


def flow(arms: list[dict[str, Any]], **base: Any) -> Results:
    """Of each run |dL/dh| and |dW|, and claims on what they are by step or layer."""
    document = {**FLOW, "base": {**FLOW["base"], **base}, "parts": {"main": {"arms": arms}}}
    document["claims"] = [{**LEVEL, "cells": [{"arm": arms[0]["name"]}]}]
    plan = expand(StudySpec.model_validate(document))
    figures = {"dh_factor_first": 1.5, "dw_factor_first": 1.2}
    records = {run_id: record_of(spec, figures) for run_id, spec in plan.runs.items()}
    quantities = ("h_norm", "dh_norm", "dw_norm", "w_norm")
    columns = {
        "step": [0] * 12,
        "layer": [layer for layer in range(3) for _ in quantities],
        "name": [f"step.{layer}" for layer in range(3) for _ in quantities],
        "quantity": [*quantities] * 3,
        "value": [1.0] * 12,
    }
    table = pa.table(columns, schema=TABLES["layers"])
    return Results(plan=plan, records=records, load_table=lambda run_id, name: table if name == "layers" else None)


@pytest.mark.parametrize(
    ("made", "of_weights", "a_layer", "zh"),
    [
        (lambda: flow(CELLS, family="recurrent", data="adding"), False, "a step in time", "逐时间步"),
        (lambda: flow(NETS, family="mlp", data="spiral"), True, "a layer", "逐层"),
    ],
)
def test_a_factor_in_time_is_a_steps_and_no_gradient_of_weights_is_shown(
    made: Callable[[], Results], of_weights: bool, a_layer: str, zh: str
) -> None:
    """All steps share one weight: its gradient has no factor from one to the next, and the page leaves it away."""
    results, words = made(), Words("en")
    (view,) = content.views(results, words)
    heads = sections.part(results, view, Estimates(results), words)["table"]["heads"]
    assert any("|dL/dh|" in head for head in heads)
    assert any("|dW|" in head for head in heads) is of_weights
    (profile,) = depth_profiles(results, view)
    assert {"h_norm", "dh_norm"} <= set(profile.quantities)
    assert ("dw_norm" in profile.quantities) is ("w_norm" in profile.quantities) is of_weights
    (found,) = judge(results)
    name = f"factor of |dL/dh| {a_layer}, untrained"
    assert found.reason.startswith(f"{name}: median of ")
    assert f"|dL/dh| 的{zh}因子" in found.reasons["zh"]
    (shown,) = judged.claims(results, judge(results), words)
    assert [each["name"].partition(":")[0] for each in shown["rows"]] == [name]


def test_every_form_in_time_is_the_form_of_a_string_with_the_same_braces() -> None:
    for key in TIME:
        if key.endswith(".time"):
            assert key.removesuffix(".time") in STRINGS["en"], key


@pytest.mark.parametrize(
    ("cell", "plus"), [("rnn", False), ("residual_rnn", True), ("gru", True), ("lstm", True), ("lstm_no_forget", True)]
)
def test_cells_that_add_to_what_they_carry(cell: str, plus: bool) -> None:
    assert adds(row(model_options={"cell": cell}).spec) is plus
    assert not adds(spiral().spec)
    assert adds(row(family="mlp", data="spiral", shortcut="identity").spec)
