"""How a study's tuned values were chosen: which won, whether at the grid's edge, and what each value gave.

What was chosen for each arm is a list; what was chosen for each at each depth is a table of arms by depths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from depthscope.analysis.choosing import candidates
from depthscope.analysis.places import written
from depthscope.analysis.table import Results
from depthscope.report.named import metric_of
from depthscope.report.numbers import number
from depthscope.report.words import Words
from depthscope.study.scale import unit_of
from depthscope.study.tuning import Choice, Tuned, Tuning

WIDTH, HEIGHT, PAD = 220.0, 56.0, 7.0
"""Pixels of the small figure of scores."""


def tuned(results: Results, words: Words) -> dict[str, Any] | None:
    """The section on tuning; None where nothing was tuned.

    Of a selection study it says what won, and stands `first`, before the figures of what was tried.
    """
    found = results.study.tuned
    if found is None:
        return _choosing(results, words)
    name = metric_of(results.rows, found.metric, words)
    return {
        "first": False,
        "title": words("tuned_section", field=found.field),
        "lead": words(
            "tuned_lead",
            each=_each(found, words),
            grid=words("list").join(f"{value:g}" for value in found.grid),
            metric=name,
            seeds=len(found.seeds),
            validation=f"{found.validation:,}",
            runs=found.num_runs,
        ),
        **_shown(results, [_row(found, choice, name, words) for choice in found.choices], words),
    }


def _choosing(results: Results, words: Words) -> dict[str, Any] | None:
    found, tuning = candidates(results), results.study.tuning
    if not found or tuning is None:
        return None
    name = metric_of(results.rows, tuning.metric, words)
    lead = words(
        "choosing_lead",
        each=_each(tuning, words),
        grid=words("list").join(f"{value:g}" for value in tuning.grid),
        metric=name,
        seeds=len(tuning.selection_seeds),
        validation=f"{tuning.validation:,}",
    )
    rows = [
        _row(tuning, each.choice, name, words)
        if each.choice
        else {
            "part": each.part,
            "arm": each.arm.name,
            "at": each.at,
            "chart": None,
            "value": words("choosing_waits", missing=each.num_missing) if each.num_missing else words("choosing_none"),
        }
        for each in found
    ]
    title = words("choosing_section", field=tuning.field)
    return {"first": True, "title": title, "lead": lead, **_shown(results, rows, words)}


def _each(found: Tuned | Tuning, words: Words) -> str:
    """For what a choice was made: each arm, or each at each place."""
    axes = words("list").join(map(words.axis, found.by))
    return words("tuned_each_by", axes=axes) if axes else words("tuned_each")


def _shown(results: Results, rows: Sequence[dict[str, Any]], words: Words) -> dict[str, Any]:
    """The rows of arms with one choice, and a table of arms by places for each part whose arms have several."""
    alone = [{**row, "label": _label(results, row["part"], row["arm"], words)} for row in rows if not row["at"]]
    parts = dict.fromkeys(row["part"] for row in rows if row["at"])
    return {
        "rows": alone,
        "tables": [_table(results, part, [row for row in rows if row["part"] == part], words) for part in parts],
        "note": words("tuned_note") if any(row["at"] and row.get("at_edge") for row in rows) else "",
    }


def _table(results: Results, name: str, rows: Sequence[dict[str, Any]], words: Words) -> dict[str, Any]:
    part = results.study.parts[name]
    cells = {(row["arm"], _place(row["at"], words)): row for row in rows}
    places = dict.fromkeys(place for _, place in cells)
    arms = dict.fromkeys(arm for arm, _ in cells)
    return {
        "title": words.pick(part.title, name) if len(results.study.parts) > 1 else "",
        "heads": list(places),
        "rows": [
            {
                "label": words.pick(part.arm(arm).label, arm),
                "cells": [cells.get((arm, place)) for place in places],
            }
            for arm in arms
        ],
    }


def _place(at: Mapping[str, Any], words: Words) -> str:
    return words("recipe.comma").join(f"{words.axis(axis)} {written(value)}" for axis, value in at.items())


def _label(results: Results, part_name: str, arm_name: str, words: Words) -> str:
    part = results.study.parts.get(part_name)
    arm = next((arm for arm in part.arms if arm.name == arm_name), None) if part else None
    label = words.pick(arm.label, arm.name) if arm else arm_name
    if part and len(results.study.parts) > 1:
        label = f"{words.pick(part.title, part_name)}{words('colon')}{label}"
    return label


def _row(found: Tuned | Tuning, choice: Choice, name: str, words: Words) -> dict[str, Any]:
    lost, runs = (sum(getattr(score, key) for score in choice.scores) for key in ("num_lost", "num_runs"))
    unit = unit_of(found.metric)
    scores = words("list").join(
        words("tuned_score", value=f"{score.value:g}", mean=number(score.mean, unit)) for score in choice.scores
    )
    edge = words(f"tuned_edge.{choice.edge}") if choice.edge else ""
    told = words("tuned_edge", which=edge) if edge else "" if choice.fit else words("tuned_unfit")
    return {
        "part": choice.part,
        "arm": choice.arm,
        "at": choice.at,
        "value": f"{choice.value:g}",
        "at_edge": choice.edge is not None,
        "edge": told,
        "mark": words("tuned_edge.short", which=edge) if edge else "" if choice.fit else words("tuned_unfit.short"),
        "fewer": words("tuned_lost.short", lost=lost, runs=runs) if lost and choice.fit else "",
        "inside": words("tuned_inside"),
        "lost": words("tuned_lost", lost=lost, runs=runs) if lost else "",
        "describe": words("tuned_describe", metric=name, field=found.field, scores=scores),
        "best": number(next((score.mean for score in choice.scores if score.value == choice.value), None), unit),
        "chart": _chart(choice, unit),
    }


def _chart(choice: Choice, unit: str) -> dict[str, Any]:
    """Places of the scores: one step a value of the grid, the figure upward."""
    step = (WIDTH - 2 * PAD) / max(len(choice.scores) - 1, 1)
    means = [score.mean for score in choice.scores if score.mean is not None]
    low, high = (min(means), max(means)) if means else (0.0, 1.0)
    span = high - low or 1.0
    points = [
        {
            "x": round(PAD + at * step, 1),
            "y": round(HEIGHT - PAD - (HEIGHT - 2 * PAD) * (score.mean - low) / span, 1),
            "chosen": score.value == choice.value,
            "told": f"{score.value:g}: {number(score.mean, unit)}",
        }
        for at, score in enumerate(choice.scores)
        if score.mean is not None
    ]
    lost = [round(PAD + at * step, 1) for at, score in enumerate(choice.scores) if score.mean is None]
    return {"points": points, "lost": lost, "width": WIDTH, "height": HEIGHT}
