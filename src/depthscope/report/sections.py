"""The parts of the page that are words and numbers: facts, the table of arms, diagnosis, failures, provenance."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from depthscope.analysis.diagnosis import diagnose
from depthscope.analysis.table import ResultRow, Results
from depthscope.analysis.units import temporal
from depthscope.report import content
from depthscope.report.content import View
from depthscope.report.estimates import Estimates
from depthscope.report.named import metric_of
from depthscope.report.numbers import duration, interval, number
from depthscope.report.palette import Series
from depthscope.report.strings import Lang
from depthscope.report.translate import phrases
from depthscope.report.words import Words

TABLE_METRICS = (
    "train_accuracy",
    "train_accuracy_running",
    "train_loss",
    "train_loss_running",
    "test_accuracy",
    "test_loss",
    "validation_accuracy",
    "validation_loss",
    "train_accuracy_start",
    "train_loss_start",
    "train_accuracy_start_batch",
    "train_loss_start_batch",
    "construction_accuracy_change",
    "construction_loss_change",
    "train_loss_first",
    "train_loss_change",
    "lesion_accuracy_change",
    "lesion_loss_change",
    "smoothness_last",
    "smoothness_most",
    "sharpness_last",
    "sharpness_most",
    "sharpness_ratio_last",
    "smoothness_first",
    "sharpness_first",
    "dh_factor_first",
    "dw_factor_first",
    "dw_end_log_first",
    "dh_factor_last",
    "dh_factor_change",
    "gradcheck_complex_median",
    "gradcheck_central_median",
    "gradcheck_five_point_median",
)
_OF_TRAINING = {*TABLE_METRICS[:23], "dh_factor_last", "dh_factor_change"}
MAX_METRICS = 6
"""Columns of figures: more would not fit beside the arms' names; the rest stands in the tables of the folder.
What a claim is judged by is shown whatever their number."""
MEASURED_FOR = ("lesion_accuracy_change", "lesion_loss_change", "smoothness_most", "sharpness_last")
"""Shown whatever the number of columns: what the run was measured for."""
OF_WEIGHTS = ("dw_factor_first", "dw_end_log_first")
MAX_MISSING = 12
"""Cells whose missing runs are listed."""


def facts(results: Results, words: Words) -> list[str]:
    """The line above the title: size, runs, seeds."""
    done = sum(row.record is not None for row in results.rows)
    found = [words("size", size=results.study.size)] if results.study.size else []
    found.append(words("runs_count", done=done, total=len(results.rows)))
    counts = {len(results.study.seeds_of(part)) for part in results.study.parts.values()}
    if len(counts) == 1:
        found.append(words("seeds_count", n=counts.pop()))
    return found


def partial(results: Results, words: Words) -> str:
    """What to say of missing runs; empty where none is."""
    missing = sum(row.record is None for row in results.rows)
    return words("partial", missing=missing, total=len(results.rows)) if missing else ""


def sentences(text: str, lang: Lang) -> list[str]:
    """A text cut after its full stops (a stop inside a number is none)."""
    cut = re.split(r"(?<=。)" if lang == "zh" else r"(?<=[.!?])\s+(?=[A-Z0-9“])", text)
    return [each for each in (piece.strip() for piece in cut) if each]


def pieces(sentence: str) -> list[tuple[str, bool]]:
    """A sentence as (text, whether it is an interval in brackets), so that the page can set intervals smaller.

    >>> pieces("lost 23 points [95% CI 19 to 27].")
    [('lost 23 points ', False), ('[95% CI 19 to 27]', True), ('.', False)]
    """
    cut = re.split(r"(\[[^\]]*\])", sentence)
    return [(text, index % 2 == 1) for index, text in enumerate(cut) if text]


def part(results: Results, view: View, estimates: Estimates, words: Words) -> dict[str, Any]:
    """Title and table of one view."""
    claimed = {claim.metric for claim in results.study.claims if claim.part == view.part}
    declared = results.study.parts[view.part]
    baseline = declared.baseline or declared.arms[0].name
    return {"title": view.title, "table": _table(view, estimates, claimed, baseline, words)}


def symbol(series: Series) -> dict[str, str]:
    """An arm's sign, for the template."""
    return {"shape": series.shape, "css": f"var(--c{series.color[1:]})"}


def excess(share: float | None) -> str:
    """Parameters beyond those of the baseline, as a share of them; empty where there are none or it is not known.

    >>> excess(0.0123), excess(-0.5), excess(0.0002), excess(0.0)
    ('+1.2%', '−50.0%', '+0.02%', '')
    """
    if not share:
        return ""
    digits = 1 if abs(share) >= 5e-4 else 2 if abs(share) >= 5e-5 else 4
    return f"{100 * share:+.{digits}f}%".replace("-", "−")


def _table(view: View, estimates: Estimates, claimed: set[str], baseline: str, words: Words) -> dict[str, Any]:
    cells = {key: estimates.cell(view, *key) for key in view.cells()}
    present = {metric for cell in cells.values() for metric in cell.estimates}
    metrics = [each for each in TABLE_METRICS if each in present and (view.trained or each not in _OF_TRAINING)]
    # Along time one weight is shared by all steps: its gradient has no factor from one to the next.
    metrics = [each for each in metrics if each not in OF_WEIGHTS] if temporal(view.rows) else metrics
    metrics = [
        each
        for each in TABLE_METRICS
        if each in {*metrics[:MAX_METRICS], *(claimed & present), *(set(MEASURED_FOR) & set(metrics))}
    ]
    heads = [words("arm"), words.axis(view.axis), words("seeds"), words("parameters")]
    heads += [metric_of(view.rows, metric, words) for metric in metrics]
    heads.append(words("time"))
    looks = {series.name: series for series in view.series}
    rows = []
    last = None
    for (arm, place), cell in cells.items():
        planned = cell.num_runs
        done = str(cell.n) if cell.n == planned else words("of_planned", done=cell.n, planned=planned)
        line = [{"value": content.number_of(place)}, {"value": done}]
        standard = cells[baseline, place].parameters if (baseline, place) in cells else None
        beyond = cell.parameters / standard - 1.0 if cell.parameters is not None and standard else None
        shown = f"{cell.parameters:,}" if cell.parameters is not None else "–"
        line.append({"value": shown, "small": excess(beyond)})
        for metric in metrics:
            made = cell.estimates.get(metric)
            unit = made.unit if made else ""
            # An error over decades has no use for an interval that may reach below zero.
            bare = made is None or metric.startswith("gradcheck_")
            small = interval(made.low, made.high, unit) if made and not bare else ""
            line.append({"value": number(made.value if made else None, unit), "small": small})
        recorded = cell.num_runs - cell.num_missing
        seconds = cell.wall_s / recorded if cell.wall_s is not None and recorded else None
        line.append({"value": duration(seconds, words) if seconds is not None else "–"})
        series = looks[arm]
        rows.append({"label": series.label, "symbol": symbol(series), "cells": line, "first": arm != last})
        last = arm
    return {"heads": heads, "rows": rows}


def diagnoses(results: Results, words: Words) -> list[dict[str, str]]:
    """What depth did to each arm, told apart from overfitting and divergence."""
    found = []
    for each in diagnose(results):
        arm = results.study.parts[each.part].arm(each.arm)
        name = words.pick(arm.label, arm.name)
        if len(results.study.parts) > 1:
            name = f"{words.pick(results.study.parts[each.part].title, each.part)} · {name}"
        tail = words("comma").join(
            [f"{each.shallow} → {each.deep}", *(f"{key} = {value}" for key, value in each.axes.items())]
        )
        text = each.diagnosis.text
        kind, colon, rest = re.split(r"([:：])\s*", text.get(words.lang) or text["en"], maxsplit=1)
        found.append({"name": f"{name}{words('comma')}{tail}", "kind": kind + colon, "text": rest})
    return found


def by_status(results: Results) -> list[tuple[str, list[ResultRow]]]:
    """Runs that did not complete: (status, rows), missing ones last."""

    def status(row: ResultRow) -> str:
        return row.record.outcome.status if row.record else "missing"

    order = {"diverged": 0, "failed": 1, "missing": 2}
    rows = sorted((row for row in results.rows if status(row) in order), key=lambda row: order[status(row)])
    return [(name, list(group)) for name, group in groupby(rows, key=status)]


def failures(results: Results, words: Words) -> list[dict[str, str]]:
    """Runs that did not complete. Missing ones are told cell by cell, not one by one."""
    found = []
    for status, rows in by_status(results):
        if status == "missing":
            places: dict[str, list[int]] = {}
            for row in rows:
                places.setdefault(_place(results, row, words), []).append(row.cell.seed)
            for place, seeds in list(places.items())[:MAX_MISSING]:
                where = _seeds(place, seeds, words)
                found.append({"status": words("status.missing"), "where": where, "reason": "", "remedy": ""})
            if len(places) > MAX_MISSING:
                rest = words("and_more", count=sum(len(seeds) for seeds in list(places.values())[MAX_MISSING:]))
                found.append({"status": words("status.missing"), "where": rest, "reason": "", "remedy": ""})
            continue
        alike: dict[tuple[str, int, str, str], list[int]] = {}
        for row in rows:
            assert row.record is not None
            ended = row.record.outcome
            told = (phrases(ended.reason, words.lang), phrases(ended.remedy, words.lang))
            alike.setdefault((_place(results, row, words), ended.step, *told), []).append(row.cell.seed)
        for (place, step, reason, remedy), seeds in alike.items():
            where = words("comma").join((_seeds(place, seeds, words), words("at_step", step=step)))
            found.append({"status": words(f"status.{status}"), "where": where, "reason": reason, "remedy": remedy})
    return found


def _seeds(place: str, seeds: list[int], words: Words) -> str:
    return f"{place}{words('comma')}{words('seed')} {words('list').join(map(str, seeds))}"


def _place(results: Results, row: ResultRow, words: Words) -> str:
    arm = results.study.parts[row.cell.part].arm(row.cell.arm)
    axes = words("comma").join(f"{words.axis(key)} {value}" for key, value in row.cell.axes.items())
    place = words.pick(arm.label, arm.name) + (f"{words('comma')}{axes}" if axes else "")
    if len(results.study.parts) > 1:
        place = f"{words.pick(results.study.parts[row.cell.part].title, row.cell.part)}{words('colon')}{place}"
    return place


def provenance(results: Results, words: Words) -> list[tuple[str, str]]:
    """Where and with what the runs were done; several values where runs differ."""
    records = list({row.cell.run_id: row.record for row in results.rows if row.record is not None}.values())
    found = []
    for name in ("depthscope", "python", "numpy", "torch", "platform", "processor", "device", "threads"):
        values = dict.fromkeys(str(value) for each in records if (value := getattr(each.provenance, name)) is not None)
        if values:
            found.append((words(f"prov.{name}"), ", ".join(values)))
    if records:
        starts = [moment(each.timings.started) for each in sorted(records, key=lambda each: each.timings.started)]
        span = starts[0] if starts[0] == starts[-1] else f"{starts[0]} – {starts[-1]}"
        found.append((words("prov.started"), span))
        # Runs go side by side: their wall clocks overlap and have no sum.
        total = sum(each.timings.cpu_s for each in records)
        found.append((words("prov.total_time"), duration(total, words)))
    found.append((words("prov.study_digest"), results.study.digest))
    return found


def moment(iso: str) -> str:
    """An ISO 8601 time in UTC as a reader wants it.

    >>> moment("2026-01-05T09:30:12.345+00:00")
    '2026-01-05 09:30 UTC'
    """
    return f"{datetime.fromisoformat(iso).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def version(results: Results) -> str:
    """The version of Depthscope that made the records, or nothing where there are none."""
    versions = sorted({record.provenance.depthscope for record in results.records.values()})
    return versions[-1] if versions else ""
