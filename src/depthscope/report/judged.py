"""Claims for the page: what was claimed, when, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from depthscope.analysis.finding import Estimate, Finding
from depthscope.analysis.table import ResultRow, Results
from depthscope.analysis.units import temporal
from depthscope.analysis.verdict_words import alternative
from depthscope.analysis.verdicts import CHANGES
from depthscope.analysis.wording import quantity, spoken, spoken_method, spoken_note, with_spread
from depthscope.report import charts
from depthscope.report.charts.claims import wanted_range
from depthscope.report.named import metric_of
from depthscope.report.numbers import interval, number, percent
from depthscope.report.paired import pairing_lines
from depthscope.report.words import Words
from depthscope.study.claims import Claim, LevelClaim, TheoryClaim

MAX_SQUARES = 400
"""Seeds that a claim about every seed shows one by one."""
STRIP = 220
"""Pixels of the small interval in the list of exploratory claims."""


def claims(results: Results, findings: Sequence[Finding], words: Words) -> list[dict[str, Any]]:
    """A card a finding: verdict, text, figure, reason, and the estimates behind it."""
    declared = {claim.name: claim for claim in results.study.claims}
    return [
        card(finding, claim, words, rows=rows_of(results, claim))
        for finding in findings
        for claim in (declared.get(finding.claim),)
    ]


def rows_of(results: Results, claim: Claim | None) -> tuple[ResultRow, ...]:
    """The rows of the part that a claim is about."""
    return tuple(row for row in results.rows if claim is not None and row.cell.part == claim.part)


def declared(results: Results, words: Words) -> str:
    """Whether the claims stood before the runs, as far as the records tell."""
    records = {row.cell.run_id: row.record for row in results.rows if row.record is not None}
    if not records:
        return words("declared.no_runs")
    digests = [record.claims_digest for record in records.values()]
    total, unknown = len(digests), digests.count(None)
    now = results.study.claims_digest
    changed = sum(each is not None and each != now for each in digests)
    if not unknown and not changed:
        return words("declared.before")
    told = [words("declared.changed", changed=changed, total=total)] if changed else []
    return " ".join([*told, *([words("declared.unknown", unknown=unknown, total=total)] if unknown else [])])


def counted(findings: Sequence[Finding], words: Words) -> str:
    """How the exploratory claims came out."""
    verdicts = [finding.verdict for finding in findings if not finding.confirmatory]
    kinds = dict.fromkeys(("supported", "refuted", "undecided"))
    told = [
        words("claims_counted", count=verdicts.count(kind), verdict=words(f"verdict.{kind}"))
        for kind in kinds
        if kind in verdicts
    ]
    return words("comma").join(told)


def judged_estimates(finding: Finding) -> tuple[Estimate, ...]:
    """Those estimates that the verdict was made from; the others are what they were made of."""
    return finding.estimates[: finding.num_judged]


def draw_claim(
    finding: Finding, claim: Claim | None, words: Words, *, rows: Sequence[ResultRow] = ()
) -> Callable[..., Any] | None:
    """What makes the claim's figure, or None where no estimate has a value; `rows`: see `card`."""
    judged = [each for each in judged_estimates(finding) if each.value is not None]
    if not judged:
        return None
    metric = claim.metric if claim else ""
    labels = [spoken(each.name.removeprefix(f"{metric}: "), words.lang) for each in judged]
    if finding.kind == "some_difference":  # all have the same side behind the minus sign
        labels = [alternative(each, words.lang) for each in judged]
    unit = judged[0].unit
    shares = unit in ("accuracy", "fraction")
    described = describe(finding, judged[0], words)
    margin = words(f"margin.{finding.expect}", margin=number(finding.margin, unit))

    title = metric_of(rows, metric, words)
    if finding.kind == "no_degradation":
        title = words("worsening_of", metric=title)
    elif _is_change(claim):
        title = words("difference_of", metric=title)
    if _is_change(claim) and unit == "accuracy":
        title = words("in_points", title=title)
    elif isinstance(claim, TheoryClaim):
        title = words("over_theory")
    elif unit == "fraction":
        title = words("share_of_runs")
    elif isinstance(claim, LevelClaim) and claim.statistic == "median":
        title = words("of_seeds.median", metric=title)

    def draw(*, width: int | None = None) -> Any:
        return charts.claim_interval(
            finding,
            list(zip(labels, judged, strict=True)),
            describe=described,
            words={
                "margin": margin,
                **{key: words(key) for key in ("estimate", "each_seed")},
                **{key: words(key, level=percent(judged[0].level)) for key in ("low", "high")},
            },
            x_title=title,
            percent=shares,
            zero=_is_change(claim),
            possible=possible(claim, unit),
            width=width,
        )

    return draw


def describe(finding: Finding, estimate: Estimate, words: Words) -> str:
    """The claim for those who cannot see its figure."""
    return words(
        "claim_describe",
        text=words.pick(finding.text),
        verdict=words(f"verdict.{finding.verdict}"),
        value=number(estimate.value, estimate.unit),
        margin=words(f"margin.{finding.expect}", margin=number(finding.margin, estimate.unit)),
    )


def card(finding: Finding, claim: Claim | None, words: Words, *, rows: Sequence[ResultRow] = ()) -> dict[str, Any]:
    """What the template shows of a finding, with what draws its figure.

    Args:
        finding: judged.
        claim: as the study declares it; None where it no longer does.
        words: language.
        rows: the runs that it is about, which tell the unit of their loss and what depth counts.
    """
    first = finding.estimates[0] if finding.estimates else None
    squares = first is not None and first.unit == "fraction" and 0 < len(first.values) <= MAX_SQUARES
    judged = [each for each in judged_estimates(finding) if each.value is not None]
    return {
        "claim": finding.claim,
        "confirmatory": finding.confirmatory,
        "short": _short(judged, claim, words),
        "strip": None if squares or not judged else _strip(finding, judged, claim),
        "text": words.pick(finding.text),
        "verdict": finding.verdict,
        "verdict_word": words(f"verdict.{finding.verdict}"),
        "tag": words("tag_confirmatory" if finding.confirmatory else "tag_exploratory"),
        "waffle": [bool(value) for value in first.values] if squares and first else [],
        "describe": describe(finding, first, words) if first else "",
        "draw": None if squares else draw_claim(finding, claim, words, rows=rows),
        "chart": None,
        "height": 0,
        "reason": finding.reasons.get(words.lang) or finding.reason,
        "rows": [_row(each, words, in_time=temporal(rows)) for each in finding.estimates],
        "aside": _aside(finding, judged, words),
        "pairing": pairing_lines(finding, words),
    }


def _is_change(claim: Claim | None) -> bool:
    return claim is not None and claim.kind in CHANGES


def possible(claim: Claim | None, unit: str) -> tuple[float, float]:
    """Where an estimate of the claim can lie at all: shares in 0 to 1, their changes as far as that allows."""
    shares = unit in ("accuracy", "fraction")
    if claim is not None and _is_change(claim):
        reach = (2.0 if claim.kind == "difference_in_differences" else 1.0) if shares else math.inf
        return -reach, reach
    return 0.0, 1.0 if shares else math.inf  # losses, errors, factors and ratios of them are never negative


def _short(judged: Sequence[Estimate], claim: Claim | None, words: Words) -> str:
    """The judged estimates in a line: in full where it is one, else their values."""
    if len(judged) == 1:
        return with_spread(judged[0], words.lang, change=_is_change(claim))
    if _is_change(claim):
        shown = (
            quantity(each.value, each.unit, words.lang, change=True, signed=True)
            for each in judged
            if each.value is not None
        )
        return words("comma").join(shown)
    return words("comma").join(number(each.value, each.unit) for each in judged)


def _strip(finding: Finding, judged: Sequence[Estimate], claim: Claim | None) -> dict[str, Any]:
    """The claim's figure in small: places along a strip of `STRIP` pixels."""
    wanted = wanted_range(finding, judged[0].unit)
    low, high = charts.extent(wanted, judged, zero=_is_change(claim), possible=possible(claim, judged[0].unit))

    def place(value: float) -> float:
        return round(STRIP * (min(max(value, low), high) - low) / (high - low), 1)

    rows = [
        {
            "value": place(each.value),
            "low": place(each.value if each.low is None else each.low),
            "high": place(each.value if each.high is None else each.high),
        }
        for each in judged
        if each.value is not None
    ]
    edges = [place(edge) for edge in wanted if low <= edge <= high]
    return {"rows": rows, "wash": [place(edge) for edge in wanted], "edges": edges, "width": STRIP}


def _aside(finding: Finding, judged: Sequence[Estimate], words: Words) -> str:
    """The effect size of a claim on one difference, and the coverage that a family of claims leaves it."""
    told = [effect(judged[0], words)] if len(judged) == 1 else []
    text = told[0][:1].upper() + told[0][1:] + words("full_stop") if told and told[0] else ""
    if finding.kind == "monotone" and judged and finding.num_judged > 1 and finding.verdict != "supported":
        text += " " * bool(text) + words("bonferroni", count=finding.num_judged, level=percent(judged[0].level))
    if finding.kind == "some_difference" and judged and finding.verdict != "refuted":
        key = "holm_of" if finding.num_met else "bonferroni_of"
        text += " " * bool(text) + words(key, count=finding.num_judged, level=percent(judged[0].level))
    if finding.family > 1 and judged:
        text += " " * bool(text) + words("family", count=finding.family, level=percent(judged[0].level))
    return text


def effect(estimate: Estimate, words: Words) -> str:
    """The effect size of a paired difference, or why it has none; empty for other estimates."""
    size = estimate.effect
    if size is None:
        return ""
    if size.value is None:
        return spoken_note(size.note, words.lang)
    value, low, high = (
        f"{each:.2f}".replace("-", "−") for each in (size.value, size.low, size.high) if each is not None
    )
    return words("effect", value=value, low=low, high=high)


def _row(estimate: Estimate, words: Words, *, in_time: bool) -> dict[str, str]:
    shown = [number(value, estimate.unit) for value in estimate.values[:20]]
    if len(estimate.values) > len(shown):
        shown.append("…")
    ends = interval(estimate.low, estimate.high, estimate.unit)
    return {
        "name": spoken(estimate.name, words.lang, in_time=in_time),
        "value": number(estimate.value, estimate.unit) if estimate.value is not None else words("not_estimated"),
        "interval": ends or spoken_note(estimate.note, words.lang) or words("no_interval"),
        "n": str(estimate.n) if estimate.n else "",
        # Judged estimates may be wider than those they were made from, so each says its own coverage.
        "method": f"{spoken_method(estimate.method, words.lang)}{words('comma')}{percent(estimate.level)}"
        if estimate.method
        else "",
        "effect": effect(estimate, words),
        "values": "" if estimate.unit == "fraction" else "  ".join(shown),
    }
