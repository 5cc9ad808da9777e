"""The page of trained variants: what was found, how training went, the gradient by depth before and after."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from depthscope.analysis.fates import Fate, arms_of
from depthscope.analysis.finding import Finding
from depthscope.analysis.intervals import bounds_of, t_interval
from depthscope.analysis.model import ModelDiagnosis
from depthscope.analysis.variants import METRICS, headline
from depthscope.record.variants import Setup, VariantRun
from depthscope.report import judged, palette
from depthscope.report.model.curves import profile_block, training_block
from depthscope.report.model.places import figure
from depthscope.report.model.verdict import sentence
from depthscope.report.numbers import interval, number, percent
from depthscope.report.palette import Series
from depthscope.report.sections import pieces, symbol
from depthscope.report.sheet import Charts, fill, placed, placed_claim
from depthscope.report.strings import Lang
from depthscope.report.words import Words
from depthscope.study.claims import DifferenceClaim

Diagnoses = dict[tuple[str, int, str], ModelDiagnosis]
"""(variant, seed, `first` or `last`) -> what its profile means."""


def render_comparison(
    runs: Sequence[VariantRun],
    setup: Setup,
    findings: Sequence[Finding],
    fates: Sequence[Fate],
    diagnoses: Diagnoses,
    *,
    command: str,
    version: str,
    lang: Lang = "en",
) -> bytes:
    """The page of a comparison, as UTF-8 HTML.

    Args:
        runs: of every variant and seed.
        setup: what they had in common.
        findings: from `analysis.variants.judge_variants`.
        fates: how the runs ended.
        diagnoses: of their profiles.
        command: what repeats the comparison.
        version: of Depthscope.
        lang: `en` or `zh`.
    """
    words = Words(lang)
    charts = Charts()
    series = looks(runs)
    sentences = headline(findings, fates, lang)
    blocks = [each for each in (training_block(runs, series, words), profile_block(runs, series, words)) if each]
    cards = [judged.card(each, _claim(each), words) for each in findings]
    context: dict[str, Any] = {
        "lang": lang,
        "t": words,
        "version": version,
        "title": words("compare.versus").join(arms_of(runs)),
        "question": words("compare.question"),
        "facts": [
            words("compare.variants", n=len(series)),
            words("seeds_count", n=len(setup.seeds)),
            words("compare.steps", n=setup.steps),
        ],
        "headline": " ".join(sentences),
        "headline_sentences": [pieces(each) for each in sentences],
        "banners": [words("compare.one_seed")] if len(setup.seeds) == 1 else [],
        "claims": [placed_claim(each, charts) for each in cards],
        "counted": judged.counted(findings, words),
        "table": _table(runs, series, words),
        "probed": _probed(runs, diagnoses, words),
        "lead": _lead(setup, findings, words),
        "blocks": [placed(each, charts) for each in blocks],
        "shared": _shared(setup, runs, words),
        "failures": _failures(runs, words),
        "conditions": _conditions(setup, words),
        "command": command,
        "glossary": [(words(f"{key}"), words(f"{key}.text")) for key in _GLOSSED],
    }
    context["toc"] = [
        ("finding", words("finding")),
        *((each.key + "-section", each.heading) for each in blocks),
        ("claims", words("claims_section")),
        ("figures", words("compare.figures_section")),
        *([("probed", words("compare.probed_section"))] if context["probed"] else []),
        *([("failures", words("compare.fates_section"))] if context["failures"] else []),
        ("shared", words("compare.shared_section")),
        ("repeat", words("repeat_section")),
        ("glossary", words("glossary_section")),
    ]
    return fill("comparison.html.j2", context, charts)


_GLOSSED = ("compare.gloss.paired", "gloss.interval", "gloss.confirmatory", "gloss.effect", "model.gloss.multiplier")


def looks(runs: Sequence[VariantRun]) -> tuple[Series, ...]:
    """A colour and shape for each variant: warm without residual additions, cold with."""
    arms = arms_of(runs)
    residual = {arm: any(run.residual for run in runs if run.arm == arm) for arm in arms}
    given = palette.assign([(arm, residual[arm]) for arm in arms])
    return tuple(Series(name=arm, label=arm, color=given[arm][0], shape=given[arm][1]) for arm in arms)


def _claim(finding: Finding) -> DifferenceClaim:
    """What the cards of studies ask of a declared claim: its metric, and that it is a difference."""
    metric = finding.claim.partition(":")[0]
    return DifferenceClaim.model_construct(name=finding.claim, kind="difference", metric=f"clean.{metric}", than=0.0)


def _lead(setup: Setup, findings: Sequence[Finding], words: Words) -> str:
    validation = words("compare.validation", n=f"{setup.validated:,}") if setup.validated else ""
    level = percent(findings[0].estimates[1].level) if findings else percent(0.95)
    return words("compare.figures_lead", level=level, n=f"{setup.evaluated:,}", validation=validation)


def _table(runs: Sequence[VariantRun], series: Sequence[Series], words: Words) -> dict[str, Any]:
    metrics = [metric for metric in METRICS if any(metric in run.figures for run in runs)]
    heads = [words("arm"), words("compare.completed"), words("parameters"), words("compare.additions")]
    heads += [words.metric(f"clean.{metric}") for metric in metrics]
    rows = []
    for each in series:
        own = [run for run in runs if run.arm == each.name]
        done = sum(run.outcome.status == "completed" for run in own)
        additions = {len(run.first.structure.additions) for run in own if run.first is not None}
        cells: list[dict[str, str]] = [
            {"value": words("of_planned", done=done, planned=len(own))},
            {"value": f"{own[0].num_parameters:,}"},
            {"value": ", ".join(map(str, sorted(additions))) or "–"},
        ]
        for metric in metrics:
            unit = "accuracy" if "accuracy" in metric else ""
            made = t_interval([run.figures.get(metric) for run in own], unit=unit, bounds=bounds_of(metric))
            cells.append({"value": number(made.value, unit), "small": interval(made.low, made.high, unit)})
        rows.append({"symbol": symbol(each), "label": each.label, "cells": cells, "first": False})
    return {"heads": heads, "rows": rows}


def _probed(runs: Sequence[VariantRun], diagnoses: Diagnoses, words: Words) -> list[dict[str, str]]:
    """The verdict on each variant before and after; where seeds differ, each with how many had it."""
    told = []
    for arm in arms_of(runs):
        for when, key in (("first", "compare.probed_before"), ("last", "compare.probed_after")):
            found = [each for (name, _, at), each in diagnoses.items() if (name, at) == (arm, when)]
            verdicts = list(dict.fromkeys(each.verdict for each in found))
            counts = [sum(each.verdict == verdict for each in found) for verdict in verdicts]
            shown = [
                words(f"verdict.{verdict}") if count == len(found) else f"{words(f'verdict.{verdict}')} ({count})"
                for verdict, count in zip(verdicts, counts, strict=True)
            ]
            if found:
                rate = words("compare.probed_rate", value=_rates(found))
                text = f"{sentence(found[0], words)} {rate}" if len(verdicts) == 1 else rate
                told.append({"name": words(key, arm=arm), "kind": words("comma").join(shown), "text": text})
    return told


def _rates(found: Sequence[ModelDiagnosis]) -> str:
    """Geometric mean over seeds of the multiplier a block."""
    logs = [math.log(each.rate.value) for each in found if each.rate is not None and each.rate.value > 0]
    return figure(math.exp(sum(logs) / len(logs))) if logs else "–"


def _shared(setup: Setup, runs: Sequence[VariantRun], words: Words) -> list[dict[str, Any]]:
    told = [{"text": words("compare.batches"), "flag": False}, {"text": words("compare.draws"), "flag": False}]
    if setup.unrepeated:
        names = words("list").join(setup.unrepeated)
        told.append({"text": words("compare.unrepeated", names=names), "flag": True})
    for arm in arms_of(runs):
        why = next((run.unprofiled for run in runs if run.arm == arm and run.unprofiled), "")
        told += [{"text": words("compare.unprofiled", arm=arm, why=why), "flag": True}] if why else []
    return told


def _failures(runs: Sequence[VariantRun], words: Words) -> list[dict[str, str]]:
    return [
        {
            "status": words(f"status.{run.outcome.status}"),
            "where": f"{run.arm}, {words('compare.fate', seed=run.seed, step=run.outcome.step)}",
            "reason": run.outcome.reason or "",
        }
        for run in runs
        if run.outcome.status != "completed"
    ]


def _conditions(setup: Setup, words: Words) -> list[tuple[str, str]]:
    return [
        (words("compare.optimizer"), words("aside", text=setup.optimizer, more=words("compare.one_lr"))),
        (words("compare.loss"), setup.loss),
        (words("compare.data"), setup.data),
        (words("compare.seeds"), ", ".join(map(str, setup.seeds))),
        (words("compare.device"), setup.device),
        (words("compare.versions"), ", ".join(f"{name} {value}" for name, value in setup.versions.items())),
    ]
