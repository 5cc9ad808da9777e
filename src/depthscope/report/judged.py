"""Claims and controls for the page: what was claimed, what was held equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from depthscope.analysis.controls import Control, controls
from depthscope.analysis.finding import Estimate, Finding
from depthscope.analysis.table import Results
from depthscope.analysis.wording import spoken
from depthscope.report import charts
from depthscope.report.numbers import interval, number
from depthscope.report.words import Words
from depthscope.study.claims import Claim, LevelClaim, TheoryClaim

MAX_SQUARES = 400
"""Runs that a claim about every run shows one by one."""


def claims(results: Results, findings: Sequence[Finding], words: Words) -> list[dict[str, Any]]:
    """A card a finding: verdict, text, figure, reason, and the estimates behind it."""
    declared = {claim.name: claim for claim in results.study.claims}
    return [_card(finding, declared.get(finding.claim), words) for finding in findings]


def judged_estimates(finding: Finding, claim: Claim | None) -> tuple[Estimate, ...]:
    """Those estimates that the verdict was made from; the others are what they were made of."""
    if isinstance(claim, LevelClaim) and claim.statistic == "median":
        return finding.estimates
    if isinstance(claim, TheoryClaim):  # each judged ratio brings a measured and an expected value
        return finding.estimates[: len(finding.estimates) // 3]
    return finding.estimates[:1]


def draw_claim(finding: Finding, claim: Claim | None, words: Words) -> Callable[..., Any] | None:
    """What makes the claim's figure, or None where no estimate has a value."""
    judged = [each for each in judged_estimates(finding, claim) if each.value is not None]
    if not judged:
        return None
    metric = claim.metric if claim else ""
    labels = [spoken(each.name.removeprefix(f"{metric}: "), words.lang) for each in judged]
    unit = judged[0].unit
    percent = unit in ("accuracy", "fraction")
    described = describe(finding, judged[0], words)
    margin = words(f"margin.{finding.expect}", margin=number(finding.margin, unit))

    title = words.metric(metric)
    if claim is not None and claim.kind in ("difference", "difference_in_differences"):
        title = words("difference_of", metric=title)
    elif isinstance(claim, TheoryClaim):
        title = words("over_theory")
    elif unit == "fraction":
        title = words("share_of_runs")

    def draw(*, width: int | None = None) -> Any:
        return charts.claim_interval(
            finding,
            list(zip(labels, judged, strict=True)),
            describe=described,
            words={"margin": margin, **{key: words(key) for key in ("estimate", "low", "high", "each_seed")}},
            x_title=title,
            percent=percent,
            zero=claim is not None and claim.kind in ("difference", "difference_in_differences"),
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


def _card(finding: Finding, claim: Claim | None, words: Words) -> dict[str, Any]:
    first = finding.estimates[0] if finding.estimates else None
    squares = first is not None and first.unit == "fraction" and 0 < len(first.values) <= MAX_SQUARES
    return {
        "claim": finding.claim,
        "text": words.pick(finding.text),
        "verdict": finding.verdict,
        "verdict_word": words(f"verdict.{finding.verdict}"),
        "tag": words("tag_confirmatory" if finding.confirmatory else "tag_exploratory"),
        "waffle": [bool(value) for value in first.values] if squares and first else [],
        "describe": describe(finding, first, words) if first else "",
        "draw": None if squares else draw_claim(finding, claim, words),
        "chart": None,
        "height": 0,
        "reason": finding.reasons.get(words.lang) or finding.reason,
        "rows": [_row(each, words) for each in finding.estimates],
    }


def _row(estimate: Estimate, words: Words) -> dict[str, str]:
    shown = [number(value, estimate.unit) for value in estimate.values[:20]]
    if len(estimate.values) > len(shown):
        shown.append("…")
    ends = interval(estimate.low, estimate.high, estimate.unit)
    return {
        "name": spoken(estimate.name, words.lang),
        "value": number(estimate.value, estimate.unit) if estimate.value is not None else words("not_estimated"),
        "interval": ends or estimate.note or words("no_interval"),
        "n": str(estimate.n) if estimate.n else "",
        "method": estimate.method or "",
        "values": "" if estimate.unit == "fraction" else "  ".join(shown),
    }


def control_cards(results: Results, words: Words) -> list[dict[str, Any]]:
    """For each pair of arms what was the same and what was not; places of the axes that agree are told once."""
    groups: dict[tuple[str, str, str, str], list[Control]] = {}
    for each in controls(results):
        facts = (each.same_data, each.same_order, each.same_augment, each.fields, bool(each.differing))
        only = (bool(each.only_baseline), bool(each.only_arm), each.seeds)
        groups.setdefault((each.part, each.baseline, each.arm, repr((facts, only))), []).append(each)
    return [
        {
            "pair": _pair(results, group[0], words),
            "places": _places(group, words),
            "items": [item for item in _items(results, group, words) if item],
        }
        for group in groups.values()
        if group[0].seeds
    ]


def _pair(results: Results, control: Control, words: Words) -> str:
    part = results.study.parts[control.part]
    names = [words.pick(part.arm(name).label, name) for name in (control.baseline, control.arm)]
    pair = words("pair", a=names[0], b=names[1])
    return f"{words.pick(part.title, control.part)}: {pair}" if len(results.study.parts) > 1 else pair


def _places(group: Sequence[Control], words: Words) -> str:
    found = []
    for key in group[0].axes:
        values = dict.fromkeys(str(each.axes[key]) for each in group)
        found.append(f"{words('depth') if key == 'depth' else key} {', '.join(values)}")
    return "; ".join(found)


def _items(results: Results, group: Sequence[Control], words: Words) -> list[dict[str, Any] | None]:
    first = group[0]

    def span(counts: Sequence[int]) -> str:
        return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)}–{max(counts)}"

    def fact(value: bool | None, key: str) -> dict[str, Any] | None:
        if value is None:
            return None
        return {"held": value, "text": words(f"{key}.{'same' if value else 'other'}")}

    shared = span([len(each.shared) for each in group])
    items: list[dict[str, Any] | None] = []
    if any(each.shared for each in group):
        key = "control.some_shared" if first.differing else "control.shared"
        items.append({"held": True, "text": words(key, count=shared, seeds=len(first.seeds))})
    if first.differing:
        names = _some(first.differing)
        count = span([len(each.differing) for each in group])
        items.append({"held": False, "text": words("control.differing", count=count, names=names)})
    for only, key in ((first.only_arm, "only_arm"), (first.only_baseline, "only_baseline")):
        if only:
            count = span([len(getattr(each, key)) for each in group])
            items.append({"held": False, "text": words(f"control.{key}", count=count, names=_some(only))})
    items.append(fact(first.same_data, "control.data"))
    spec = next(row.spec for row in results.rows if row.cell.part == first.part)
    if spec.steps != 0 and spec.batch_size is None:
        items.append({"held": True, "text": words("control.order.full")})
    elif spec.steps != 0:
        items.append(fact(first.same_order, "control.order"))
    if spec.steps != 0 and spec.augment != "none":
        items.append(fact(first.same_augment, "control.augment"))
    if first.fields:
        items.append({"held": False, "text": words("control.fields", fields=", ".join(first.fields))})
    return items


def _some(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")
