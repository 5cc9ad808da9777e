"""Findings: every claim of a study, judged from its records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from depthscope.analysis.diagnosis import diagnose
from depthscope.analysis.finding import FINDINGS_SCHEMA, Estimate, Finding, Pairing
from depthscope.analysis.headline import headline as headline
from depthscope.analysis.holm import holm
from depthscope.analysis.intervals import has_no_spread, least_equal
from depthscope.analysis.judging import judge_claim
from depthscope.analysis.notes import BETWEEN, key_of, note
from depthscope.analysis.pairing import pairings
from depthscope.analysis.table import Results
from depthscope.analysis.units import temporal
from depthscope.analysis.verdict_words import some_of
from depthscope.analysis.verdicts import CHANGES, Judgement
from depthscope.analysis.wording import LANGS, VERDICTS, Lang, quantity, scale_of, spoken, with_spread
from depthscope.study.claims import Claim, TheoryClaim, confirmatory_at, judged_at

LEVEL = 0.95
EQUAL_FEW: dict[Lang, str] = {
    "en": "values that are all equal have no interval with fewer than {least} seeds; run {least} or more",
    "zh": "数值全部相同时，少于 {least} 个种子便没有区间；请运行 {least} 个或更多",
}
"""What an undecided claim says whose values are all equal and too few."""
ONE_SEED: dict[Lang, str] = {
    "en": "one seed has no interval; run 3 or more",
    "zh": "一个种子没有区间；请运行 3 个或更多",
}
NO_POWER: dict[Lang, str] = {
    "en": "a worsening beyond the margin is not ruled out, and lack of power is no evidence that there is none",
    "zh": "不能排除超过界值的变差；功效不足并不证明没有变差",
}
"""What an undecided claim of no degradation says."""


def judge(results: Results) -> tuple[Finding, ...]:
    """A finding for each claim that this size of the study can judge, in the study's order.

    Several confirmatory claims are Holm-corrected, so that the chance of deciding any of them wrongly
    is at most 5%: with k of them left, each is tried with intervals of coverage 1 - .05/k; those that
    are decided leave, and the rest is tried again; when none is decided, all that are left are
    undecided at that coverage. The intervals shown are those that decided, so that none is clear of
    its bound beside the word undecided. (A claim on every seed is a count, at any coverage the same;
    it is a member of the family nevertheless.) Source: Holm 1979, Scandinavian Journal of Statistics 6.
    """
    size = results.study.size
    claims = [claim for claim in results.study.claims if judged_at(claim, size)]
    judged = {claim.name: judge_claim(results, claim, LEVEL) for claim in claims if not confirmatory_at(claim, size)}
    confirmatory = {claim.name: claim for claim in claims if confirmatory_at(claim, size)}
    judged |= holm(list(confirmatory), lambda name, level: judge_claim(results, confirmatory[name], level), LEVEL)
    family = len(confirmatory)
    return tuple(
        _finding(
            claim,
            judged[claim.name],
            family if confirmatory_at(claim, size) else 0,
            pairings(results, claim),
            in_time=temporal(row for row in results.rows if row.cell.part == claim.part),
        )
        for claim in claims
    )


def findings_document(results: Results, findings: tuple[Finding, ...], provenance: Mapping[str, Any]) -> dict[str, Any]:
    """The content of `findings.json`, ready for `json.dumps`.

    Args:
        results: what was judged.
        findings: from `judge`.
        provenance: where and with what, as the caller knows it.
    """
    study = results.study
    return {
        "schema": FINDINGS_SCHEMA,
        "study": {"name": study.name, "size": study.size, "digest": study.digest},
        "provenance": dict(provenance),
        "findings": [finding.model_dump(mode="json") for finding in findings],
        "diagnoses": [
            {
                "part": each.part,
                "arm": each.arm,
                "axes": dict(each.axes),
                "shallow": each.shallow,
                "deep": each.deep,
                **each.diagnosis.model_dump(mode="json"),
            }
            for each in diagnose(results)
        ],
    }


def _finding(claim: Claim, judgement: Judgement, family: int, paired: tuple[Pairing, ...], *, in_time: bool) -> Finding:
    """The finding; `family` is the number of confirmatory claims, 0 where this is none of them."""
    reasons: dict[str, str] = {lang: _reason(claim, judgement, lang, in_time=in_time) for lang in LANGS}
    return Finding(
        claim=claim.name,
        text={str(lang): text for lang, text in claim.text.items()},
        kind=claim.kind,
        confirmatory=family > 0,
        family=max(family, 1),
        verdict=judgement.verdict,
        margin=claim.tolerance if isinstance(claim, TheoryClaim) else claim.than,
        expect="within" if isinstance(claim, TheoryClaim) else claim.expect,
        estimates=tuple(_as_shown(estimate) for estimate in judgement.estimates),
        num_judged=judgement.num_judged,
        num_met=judgement.num_met,
        pairing=paired,
        reason=reasons["en"],
        reasons=reasons,
    )


def _as_shown(estimate: Estimate) -> Estimate:
    """The estimate without the width-0 interval of values that are all equal: the values and the note say it."""
    counted = estimate.method == "Clopper-Pearson"  # an interval of a share, which equal answers do have
    flat = has_no_spread(estimate) and not counted
    return estimate.model_copy(update={"low": None, "high": None}) if flat else estimate


def _reason(claim: Claim, judgement: Judgement, lang: Lang, *, in_time: bool) -> str:
    """The judgement in a sentence: what was found, what was asked, the verdict, what is absent."""
    said = partial(spoken, lang=lang, in_time=in_time)
    english = lang == "en"
    judged = judgement.estimates[: judgement.num_judged]
    change = claim.kind in CHANGES
    equals, between = (" = ", "; ") if english else ("：", "；")
    if claim.kind == "no_degradation":
        found = _worsening(judged[0], lang, said)
    elif claim.kind == "some_difference":
        found = some_of(judged, judgement.num_met, lang, said)
    else:
        found = between.join(
            f"{said(estimate.name)}{equals}{with_spread(estimate, lang, change=change)}" for estimate in judged
        )
    notes = [*judgement.census.notes(lang), *(note(each, lang) for each in judgement.said)]
    if any(estimate.note == note("no_closed_form") for estimate in judgement.estimates):
        notes.append("theory has no closed form for such a run" if english else "理论对此没有闭式解")
    if judgement.verdict == "undecided":
        notes += _why_undecided(claim, judged, lang)
    verdict = VERDICTS[lang][judgement.verdict]
    if english:
        because = f" ({', '.join(notes)})" if notes else ""
        return f"{found}. Asked: {_asked(claim, change, lang)}. So: {verdict}{because}."
    because = f"（{'，'.join(notes)}）" if notes else ""
    return f"{found}。要求：{_asked(claim, change, lang)}。结论：{verdict}{because}。"


def _why_undecided(claim: Claim, judged: Sequence[Estimate], lang: Lang) -> Iterator[str]:
    """The true cause: no interval, as values are equal and few or there is one; else, of no degradation, no power."""
    reasons = {key_of(phrase): each for each in judged for phrase in (each.note or "").split(BETWEEN)}
    bare = [key for key in ("equal_few", "one_pair", "one_value") if key in reasons]
    if "equal_few" in bare:
        yield EQUAL_FEW[lang].format(least=least_equal(reasons["equal_few"].level))
    elif bare:
        yield ONE_SEED[lang]
    elif claim.kind == "no_degradation" and judged[0].low is not None:
        yield NO_POWER[lang]


def _worsening(judged: Estimate, lang: Lang, said: Callable[[str], str]) -> str:
    """A worsening with what was taken from what, and in words where it is an improvement."""
    metric, _, sides = judged.name.partition(": ")
    shown = with_spread(judged, lang, change=True)
    gain = ""
    if judged.value is not None and judged.value < 0:
        gain = quantity(-judged.value, judged.unit, lang, change=True, scale=scale_of(judged))
    if lang == "en":
        first, minus, second = sides.partition(" minus ")
        name = f"worsening ({said(metric)} of {first}{minus}{'that of ' if minus else ''}{second})"
        return f"{name} = {shown}" + (f": that is, better by {gain}" if gain else "")
    return f"变差幅度（{said(judged.name)}）：{shown}" + (f"，即改善了 {gain}" if gain else "")


def _asked(claim: Claim, change: bool, lang: Lang) -> str:
    if isinstance(claim, TheoryClaim):
        tolerance = f"{100.0 * claim.tolerance:g}%"
        return f"within {tolerance} of 1" if lang == "en" else f"与 1 相差不超过 {tolerance}"
    bound = quantity(claim.than, claim.unit, lang, change=change)
    if claim.kind == "no_degradation":
        return f"worse by at most {bound} (the margin)" if lang == "en" else f"变差不超过 {bound}（界值）"
    words = {
        "en": {"at_least": "at least", "at_most": "at most"},
        "zh": {"at_least": "不小于", "at_most": "不大于"},
    }
    every = ""
    if claim.kind == "some_difference":
        every = f"for any of the {len(claim.a)} " if lang == "en" else f"{len(claim.a)} 个中至少有一个"
    if claim.kind == "monotone":
        every = "every step " if lang == "en" else "每一步都"
    if claim.kind == "level" and claim.statistic == "every_seed":
        every = "every run " if lang == "en" else "每次运行都"
    return f"{every}{words[lang][claim.expect]} {bound}"
