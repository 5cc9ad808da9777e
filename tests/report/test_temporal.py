"""Where depth is time, the page says steps; and what adds to its state is drawn as what has a shortcut."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from depthscope.report.strings import STRINGS
from depthscope.report.strings_time import TIME
from depthscope.report.temporal import adds, depth_key, key_of, temporal
from depthscope.report.words import Words
from depthscope.study.run import RunSpec


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
