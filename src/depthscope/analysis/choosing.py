"""Which value of a tuned number won for each arm, or for each at each depth: the scores, and the sentence of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from depthscope.analysis.places import written
from depthscope.analysis.table import ResultRow, Results
from depthscope.analysis.units import unit_in
from depthscope.analysis.wording import Lang, pick, quantity, spoken
from depthscope.study.selection import is_selection, tuned_parts
from depthscope.study.study import Arm
from depthscope.study.tuning import Choice, Score, Tuning, best

MOST = 8
"""Choices that the sentence tells one by one; of more it tells how many there are and how they lie."""


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """What the values of the grid gave one arm, or one arm at one place where the choices are made apart.

    Attributes:
        part: name of the part.
        arm: the arm.
        at: the values of the axes that the choice is for; empty where it is for all.
        scores: ascending by value; of the runs that have a record.
        num_missing: runs that are not done yet, without which nothing is chosen.
        choice: what won; None while runs are missing, or where no run ended with a figure.
    """

    part: str
    arm: Arm
    scores: tuple[Score, ...]
    num_missing: int
    choice: Choice | None
    at: Mapping[str, Any] = field(default_factory=dict)


def candidates(results: Results) -> tuple[Candidates, ...]:
    """What is chosen in a selection study, in its order, where there are runs; empty for any other study."""
    return tuple(_candidates(results)) if is_selection(results.study) else ()


def choice_sentence(results: Results, lang: Lang) -> str:
    """What won for each arm, with its score; empty for a study that is no selection."""
    found = candidates(results)
    tuning = results.study.tuning
    if not found or tuning is None:
        return ""
    metric = spoken(tuning.metric, lang)
    if len(found) > MOST:
        return _together(found, tuning, metric, lang)
    told = [_told(results, each, tuning.field, tuning.metric, lang) for each in found]
    if lang == "en":
        return f"Chosen for each arm by mean {metric}, {tuning.field} of: {'; '.join(told)}."
    return f"按{metric}的均值为各组选定的 {tuning.field}：{'；'.join(told)}。"


def _candidates(results: Results) -> Iterator[Candidates]:
    tuning = results.study.tuning
    assert tuning is not None
    for name, part in tuned_parts(results.study, tuning).items():
        by = [axis for axis in tuning.by if axis in part.axes]
        for arm in part.arms:
            places: dict[str, tuple[dict[str, Any], list[ResultRow]]] = {}
            for row in results.rows:
                if (row.cell.part, row.cell.arm) == (name, arm.name):
                    at = {axis: row.cell.axes[axis] for axis in by}
                    places.setdefault(repr(at), (at, []))[1].append(row)
            yield from (_at(name, arm, at, rows, tuning) for at, rows in places.values())


def _at(part: str, arm: Arm, at: dict[str, Any], rows: Sequence[ResultRow], tuning: Tuning) -> Candidates:
    figures: dict[Any, list[float | None]] = {}
    for row in rows:
        if row.record is not None:
            figures.setdefault(row.cell.axes[tuning.field], []).append(row.value(tuning.metric))
    scores = tuple(_score(value, found) for value, found in sorted(figures.items()))
    num_missing = sum(row.record is None for row in rows)
    won = best(scores, tuning.metric) if not num_missing else None
    choice = Choice(part=part, arm=arm.name, at=at, value=won.value, scores=scores) if won else None
    return Candidates(part=part, arm=arm, scores=scores, num_missing=num_missing, choice=choice, at=at)


def _score(value: Any, found: Sequence[float | None]) -> Score:
    known = [each for each in found if each is not None and math.isfinite(each)]
    mean = math.fsum(known) / len(known) if known else None
    return Score(value=value, mean=mean, num_runs=len(found), num_lost=len(found) - len(known))


def _together(found: Sequence[Candidates], tuning: Tuning, metric: str, lang: Lang) -> str:
    """Of many choices: how many each value of the grid won, how many are not made."""
    values = [each.choice.value for each in found if each.choice]
    waiting = sum(each.choice is None and each.num_missing > 0 for each in found)
    none = len(found) - len(values) - waiting
    won = [(value, values.count(value)) for value in tuning.grid if value in values]
    if lang == "en":
        what = f"arm at each {' and '.join(tuning.by)}" if tuning.by else "arm"
        told = "; ".join(f"{value:g} won {count}" for value, count in won)
        told += f"{'; ' if won else ''}{waiting} not chosen yet" if waiting else ""
        told += f"; none fit for {none}" if none else ""
        return f"Chosen for each {what} by mean {metric}, {tuning.field} of {len(found)}: {told}."
    what = f"各组在每个{'、'.join(_axis(axis, lang) for axis in tuning.by)}上" if tuning.by else "各组"
    told = "；".join(f"{value:g} 胜出 {count} 次" for value, count in won)
    told += f"{'；' if won else ''}{waiting} 个尚未选定" if waiting else ""
    told += f"；{none} 个无可用值" if none else ""
    return f"按{metric}的均值为{what}选定的 {tuning.field}（共 {len(found)} 个）：{told}。"


def _told(results: Results, each: Candidates, field: str, metric: str, lang: Lang) -> str:
    label = pick(each.arm.label, lang) if each.arm.label else each.arm.name
    if len(results.study.parts) > 1:
        title = results.study.parts[each.part].title
        label = f"{pick(title, lang) if title else each.part}, {label}"
    if each.at:
        place = ", ".join(f"{_axis(axis, lang)} {written(value)}" for axis, value in each.at.items())
        label = f"{label} at {place}" if lang == "en" else f"{label}（{place}）"
    if each.choice is None:
        if each.num_missing:
            waits = ("not chosen yet (missing runs: {k})", "尚未选定（尚缺 {k} 次运行）")
        else:
            waits = ("none, as no run ended with a figure", "无（没有一次运行得到指标）")
        english, chinese = (text.format(k=each.num_missing) for text in waits)
        return f"{label}, {english}" if lang == "en" else f"{label}，{chinese}"
    mean = next(score.mean for score in each.choice.scores if score.value == each.choice.value)
    assert mean is not None
    shown = quantity(mean, unit_in([row for row in results.rows if row.cell.part == each.part], metric), lang)
    return f"{label}, {each.choice.value:g} ({shown})" if lang == "en" else f"{label}，{each.choice.value:g}（{shown}）"


def _axis(axis: str, lang: Lang) -> str:
    return "深度" if (axis, lang) == ("depth", "zh") else axis
