"""Which value of a tuned number won for each arm: the scores of a selection's runs, and the sentence about them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from depthscope.analysis.table import Results
from depthscope.analysis.wording import Lang, pick, quantity, spoken
from depthscope.study.selection import is_selection, tuned_parts
from depthscope.study.study import Arm
from depthscope.study.tuning import Choice, Score, best


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """What the values of the grid gave one arm.

    Attributes:
        part: name of the part.
        arm: the arm.
        scores: ascending by value; of the runs that have a record.
        num_missing: runs that are not done yet, without which nothing is chosen.
        choice: what won; None while runs are missing, or where no run ended with a figure.
    """

    part: str
    arm: Arm
    scores: tuple[Score, ...]
    num_missing: int
    choice: Choice | None


def candidates(results: Results) -> tuple[Candidates, ...]:
    """The arms of a selection study in its order, those alone that have runs; empty for any other study."""
    return tuple(_candidates(results)) if is_selection(results.study) else ()


def choice_sentence(results: Results, lang: Lang) -> str:
    """What won for each arm, with its score; empty for a study that is no selection."""
    found = candidates(results)
    tuning = results.study.tuning
    if not found or tuning is None:
        return ""
    metric = spoken(tuning.metric, lang)
    told = [_told(results, each, tuning.field, tuning.metric, lang) for each in found]
    if lang == "en":
        return f"Chosen for each arm by mean {metric}, {tuning.field} of: {'; '.join(told)}."
    return f"按{metric}的均值为各组选定的 {tuning.field}：{'；'.join(told)}。"


def _candidates(results: Results) -> Iterator[Candidates]:
    tuning = results.study.tuning
    assert tuning is not None
    for name, part in tuned_parts(results.study, tuning).items():
        for arm in part.arms:
            rows = [row for row in results.rows if (row.cell.part, row.cell.arm) == (name, arm.name)]
            figures: dict[Any, list[float | None]] = {}
            for row in rows:
                if row.record is not None:
                    figures.setdefault(row.cell.axes[tuning.field], []).append(row.value(tuning.metric))
            scores = tuple(_score(value, found) for value, found in sorted(figures.items()))
            num_missing = sum(row.record is None for row in rows)
            won = best(scores, tuning.metric) if not num_missing else None
            choice = Choice(part=name, arm=arm.name, value=won.value, scores=scores) if won else None
            if rows:
                yield Candidates(part=name, arm=arm, scores=scores, num_missing=num_missing, choice=choice)


def _score(value: Any, found: Sequence[float | None]) -> Score:
    known = [each for each in found if each is not None and math.isfinite(each)]
    mean = math.fsum(known) / len(known) if known else None
    return Score(value=value, mean=mean, num_runs=len(found), num_lost=len(found) - len(known))


def _told(results: Results, each: Candidates, field: str, metric: str, lang: Lang) -> str:
    label = pick(each.arm.label, lang) if each.arm.label else each.arm.name
    if len(results.study.parts) > 1:
        title = results.study.parts[each.part].title
        label = f"{pick(title, lang) if title else each.part}, {label}"
    if each.choice is None:
        if each.num_missing:
            waits = ("not chosen yet (missing runs: {k})", "尚未选定（尚缺 {k} 次运行）")
        else:
            waits = ("none, as no run ended with a figure", "无（没有一次运行得到指标）")
        english, chinese = (text.format(k=each.num_missing) for text in waits)
        return f"{label}, {english}" if lang == "en" else f"{label}，{chinese}"
    mean = next(score.mean for score in each.choice.scores if score.value == each.choice.value)
    assert mean is not None
    shown = quantity(mean, "accuracy" if "accuracy" in metric else "nats", lang)
    return f"{label}, {each.choice.value:g} ({shown})" if lang == "en" else f"{label}，{each.choice.value:g}（{shown}）"
