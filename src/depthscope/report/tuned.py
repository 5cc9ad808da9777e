"""How a study's tuned values were chosen: which won, whether at the grid's edge, and what each value gave."""

from __future__ import annotations

from typing import Any

from depthscope.analysis.choosing import candidates
from depthscope.analysis.table import Results
from depthscope.report.numbers import number
from depthscope.report.words import Words
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
    return {
        "first": False,
        "title": words("tuned_section", field=found.field),
        "lead": words(
            "tuned_lead",
            grid=words("list").join(f"{value:g}" for value in found.grid),
            metric=words.metric(found.metric),
            seeds=len(found.seeds),
            validation=f"{found.validation:,}",
            runs=found.num_runs,
        ),
        "rows": [_row(results, found, choice, words) for choice in found.choices],
    }


def _choosing(results: Results, words: Words) -> dict[str, Any] | None:
    found, tuning = candidates(results), results.study.tuning
    if not found or tuning is None:
        return None
    lead = words(
        "choosing_lead",
        grid=words("list").join(f"{value:g}" for value in tuning.grid),
        metric=words.metric(tuning.metric),
        seeds=len(tuning.selection_seeds),
        validation=f"{tuning.validation:,}",
    )
    rows = [
        _row(results, tuning, each.choice, words)
        if each.choice
        else {
            "label": _label(results, each.part, each.arm.name, words),
            "chart": None,
            "value": words("choosing_waits", missing=each.num_missing) if each.num_missing else words("choosing_none"),
        }
        for each in found
    ]
    return {"first": True, "title": words("choosing_section", field=tuning.field), "lead": lead, "rows": rows}


def _label(results: Results, part_name: str, arm_name: str, words: Words) -> str:
    part = results.study.parts.get(part_name)
    arm = next((arm for arm in part.arms if arm.name == arm_name), None) if part else None
    label = words.pick(arm.label, arm.name) if arm else arm_name
    if part and len(results.study.parts) > 1:
        label = f"{words.pick(part.title, part_name)}{words('colon')}{label}"
    return label


def _row(results: Results, found: Tuned | Tuning, choice: Choice, words: Words) -> dict[str, Any]:
    lost, runs = (sum(getattr(score, key) for score in choice.scores) for key in ("num_lost", "num_runs"))
    unit = "accuracy" if "accuracy" in found.metric else "nats"
    scores = words("list").join(
        words("tuned_score", value=f"{score.value:g}", mean=number(score.mean, unit)) for score in choice.scores
    )
    return {
        "label": _label(results, choice.part, choice.arm, words),
        "value": f"{choice.value:g}",
        "edge": words("tuned_edge", which=words(f"tuned_edge.{choice.edge}")) if choice.edge else "",
        "inside": words("tuned_inside"),
        "lost": words("tuned_lost", lost=lost, runs=runs) if lost else "",
        "describe": words("tuned_describe", metric=words.metric(found.metric), field=found.field, scores=scores),
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
