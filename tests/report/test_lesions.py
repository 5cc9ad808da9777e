"""Branches and whole blocks that were taken out: in a picture of their own, and nothing else where nothing else is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from tests.report.test_guess import GPT, results_of

from depthscope.analysis.table import Results
from depthscope.report import content
from depthscope.report.layers import depth_profiles, intact
from depthscope.report.profiles import profile_blocks
from depthscope.report.shapes import Block
from depthscope.report.strings import Lang
from depthscope.report.words import Words
from depthscope.study.cells import Cell

INTACT = 2.0
BRANCHES = [(1, "lesion_loss", 2.5), (1, "lesion_accuracy", 0.4), (2, "lesion_loss", 3.0), (2, "lesion_accuracy", 0.3)]
BLOCK = (2, "block_lesion_loss", 3.5)
GRADIENT = (1, "dh_norm", 0.1)
Rows = list[tuple[int, str, float]]


def measured(rows: Rows, base: dict[str, Any] = GPT) -> Results:
    """Two depths and two seeds, each with these (layer, quantity, value) after the last step."""
    layers = pa.table(
        {
            "step": [10] * len(rows),
            "layer": [layer for layer, _, _ in rows],
            "name": [f"blocks.0.{layer}" for layer, _, _ in rows],
            "quantity": [quantity for _, quantity, _ in rows],
            "value": [value for _, _, value in rows],
        }
    )
    splits = {"split": ["lesion", "lesion"], "quantity": ["loss", "accuracy"], "value": [INTACT, 0.5]}
    tables = {"layers": layers, "metrics": pa.table(splits)}
    return replace(results_of(base, lambda cell: None), load_table=lambda run_id, name: tables.get(name))


def blocks_of(results: Results, lang: Lang = "en") -> list[Block]:
    words = Words(lang)
    (view,) = content.views(results, words)
    return profile_blocks(results, view, words)


@pytest.mark.parametrize(
    ("rows", "kinds"),
    [
        ([*BRANCHES, BLOCK], ["lesion"]),
        ([GRADIENT, *BRANCHES, BLOCK], ["profile", "lesion"]),
        ([GRADIENT], ["profile"]),
        ([(1, "of_another_version", 1.0)], []),
    ],
    ids=["lesions alone", "beside layers", "layers alone", "none that is known"],
)
def test_a_picture_is_of_what_was_measured(rows: Rows, kinds: list[str]) -> None:
    found = blocks_of(measured(rows))
    assert [block.key.partition("-")[0] for block in found] == kinds
    note = Words("en")("lesion_blocks")
    assert [note in block.notes for block in found] == [kind == "lesion" for kind in kinds]


def test_a_whole_block_stands_where_its_last_branch_ends_beside_the_intact_network() -> None:
    results = measured([*BRANCHES, BLOCK])
    (view,) = content.views(results, Words("en"))
    for profile in depth_profiles(results, view, lesions=True):
        assert profile.quantities == ("lesion_loss", "lesion_accuracy", "block_lesion_loss")
        found = {(each.quantity, each.layer): each.value for each in profile.values}
        assert found == {(quantity, layer): value for layer, quantity, value in [*BRANCHES, BLOCK]}
        levels = {each.quantity: each.value for each in intact(results, view, profile)}
        assert levels == {"lesion_loss": INTACT, "lesion_accuracy": 0.5, "block_lesion_loss": INTACT}
    assert depth_profiles(results, view) == ()


def test_without_blocks_of_several_branches_no_line_is_drawn_for_them() -> None:
    results = measured(BRANCHES)
    (view,) = content.views(results, Words("en"))
    assert not any(Words("en")("lesion_blocks") in block.notes for block in blocks_of(results))
    for profile in depth_profiles(results, view, lesions=True):
        assert {each.quantity for each in intact(results, view, profile)} == {"lesion_loss", "lesion_accuracy"}


def levels_of(reached: Callable[[Cell], list[float | None]]) -> dict[float, list[float]]:
    """The intact networks' losses that are drawn, by depth, where each run of a cell reached these."""
    found = measured(BRANCHES)
    tables = {
        cell.run_id: pa.table(
            {
                "split": ["lesion"] * len(reached(cell)) + ["train"],
                "quantity": ["loss"] * (len(reached(cell)) + 1),
                "value": [*reached(cell), 77.0],  # that of the whole training set is another
            }
        )
        for cell in found.plan.cells
    }

    def load(run_id: str, name: str) -> pa.Table | None:
        return tables[run_id] if name == "metrics" else found.load_table(run_id, name)

    results = replace(found, load_table=load)
    (view,) = content.views(results, Words("en"))
    return {
        profile.place: [each.value for each in intact(results, view, profile)]
        for profile in depth_profiles(results, view, lesions=True)
    }


def test_the_line_is_the_median_of_the_seeds_of_one_depth() -> None:
    assert levels_of(lambda cell: [cell.axes["depth"] + 0.5 * cell.seed]) == {2: [2.25], 8: [8.25]}


def test_what_a_log_axis_cannot_show_has_no_line() -> None:
    assert levels_of(lambda cell: [0.0]) == {2: [], 8: []}
    assert levels_of(lambda cell: [math.nan, None, math.inf]) == {2: [], 8: []}
    # A seed that has none leaves the line to the others.
    assert levels_of(lambda cell: [math.nan] if cell.seed else [3.0]) == {2: [3.0], 8: [3.0]}


def dashed(chart: Any) -> list[list[dict[str, Any]]]:
    """The rows of each dashed rule of a figure."""
    drawn = chart.to_dict()
    rules = [each for each in drawn["layer"] if each["mark"].get("strokeDash") == [5, 4]]
    return [drawn["datasets"][each["data"]["name"]] for each in rules]


def test_the_figure_has_the_line_of_the_quantity_that_is_chosen_and_the_legend_names_it() -> None:
    profile, lesion = blocks_of(measured([GRADIENT, *BRANCHES]))
    for panel in lesion.panels:
        (rows,) = dashed(panel.draw())
        assert {(row["quantity"], row["value"]) for row in rows} == {("lesion_loss", INTACT), ("lesion_accuracy", 0.5)}
        assert {row["series"] for row in rows} == {"plain"}
    for panel in profile.panels:
        assert dashed(panel.draw()) == []
    line = Words("en")("intact_line")
    assert [line in [each.label for each in block.legend] for block in (profile, lesion)] == [False, True]


def test_without_a_figure_of_the_intact_network_there_is_no_line() -> None:
    results = measured(BRANCHES)
    bare = replace(
        results, load_table=lambda run_id, name: results.load_table(run_id, name) if name == "layers" else None
    )
    (lesion,) = blocks_of(bare)
    assert all(dashed(panel.draw()) == [] for panel in lesion.panels)
    assert Words("en")("intact_line") not in [each.label for each in lesion.legend]


@pytest.mark.parametrize(("lang", "name"), [("en", "training loss without this block"), ("zh", "去掉该块后的训练损失")])
def test_it_has_a_name_in_both_languages(lang: Lang, name: str) -> None:
    (block,) = blocks_of(measured([*BRANCHES, BLOCK]), lang)
    assert block.controls is not None
    assert dict(block.controls.quantities)["block_lesion_loss"].startswith(name)
    for panel in block.panels:
        panel.draw(quantity="block_lesion_loss")
