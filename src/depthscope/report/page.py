"""The page: one HTML file that needs nothing outside itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from depthscope.analysis.finding import Finding
from depthscope.analysis.headline import headline as make_headline
from depthscope.analysis.table import Results
from depthscope.report import arms, content, gallery, glossary, held, judged, ranking, recipe, sections, texts, tuned
from depthscope.report.citations import bibtex, citations
from depthscope.report.estimates import Estimates
from depthscope.report.landscape.conditions import terms
from depthscope.report.landscape.study import landscapes, placed_sections
from depthscope.report.sheet import Charts, fill, placed, placed_claim
from depthscope.report.strings import Lang
from depthscope.report.words import Words

MOST = 12
"""Lines of a list that are shown at once; the others open at a click."""


def render(
    results: Results,
    findings: Sequence[Finding],
    *,
    lang: Lang = "en",
    command: str,
) -> bytes:
    """The page of a study, as UTF-8 HTML.

    Args:
        results: plan and records; runs may be missing, and the page then says so.
        findings: from `analysis.findings.judge`.
        lang: `en` or `zh`.
        command: what repeats the study, shown with a button that copies it.

    Returns:
        One file that makes no request: a policy in its head forbids it.
    """
    words = Words(lang)
    charts = Charts()
    estimates = Estimates(results)
    hero = gallery.hero(results, estimates, words)
    shown, top = (hero.panels[0].key, hero.key) if hero else (None, None)
    parts = [
        {
            **sections.part(results, view, estimates, words),
            "id": f"part-{view.key}",
            "recipe": recipe.recipe(view, words),
            "arms": arms.arms(results, view, words),
            "blocks": [placed(each, charts) for each in gallery.blocks(results, view, estimates, words, without=shown)],
        }
        for view in content.views(results, words)
    ]
    mapped = landscapes(results, words)
    sentences = sections.sentences(
        make_headline(results, findings, lang) or words("no_headline" if findings else "no_claims"), lang
    )
    context = {
        "lang": lang,
        "t": words,
        "version": sections.version(results),
        "title": words.pick(results.study.title, results.study.name),
        "question": words.pick(results.study.question),
        "facts": sections.facts(results, words),
        "headline": " ".join(sentences),
        "headline_sentences": [sections.pieces(each) for each in sentences],
        "partial": sections.partial(results, words),
        "hero": placed(hero, charts) if hero else None,
        "rankings": [
            {**each, "block": placed(each["block"], charts) if each["block"] and each["block"].key != top else None}
            for each in ranking.ranking_sections(results, words)
        ],
        "claims": [placed_claim(each, charts) for each in judged.claims(results, findings, words)],
        "declared": judged.declared(results, words),
        "counted": judged.counted(findings, words),
        "level": estimates.level,
        "parts": parts,
        "landscapes": placed_sections(mapped, lambda block: placed(block, charts), words),
        "tuned": tuned.tuned(results, words),
        "texts": texts.texts(results, words),
        "diagnoses": sections.diagnoses(results, words),
        "controls": held.control_cards(results, words),
        "by_design": held.by_design(results, words),
        "most": MOST,
        "failures": sections.failures(results, words),
        "command": command,
        "provenance": sections.provenance(results, words),
        "glossary": [
            *glossary.glossary(results, words),
            *(terms([record for each in mapped for record in each.records], words) if mapped else []),
        ],
        "bibtex": bibtex(citations(results.plan)),
    }
    context["toc"] = _toc(context, words)
    return fill("page.html.j2", context, charts)


def _toc(context: Mapping[str, Any], words: Words) -> list[tuple[str, str]]:
    found = [("claims", words("claims_section"))] if context["claims"] else []
    found = [("ranking", words("ranking_section")), *found] if context["rankings"] else found
    found += [(part["id"], part["title"]) for part in context["parts"]]
    found += [("landscapes", words("land.section"))] if context["landscapes"] else []
    tuning = [("tuned", context["tuned"]["title"])] if context["tuned"] else []
    found = tuning + found if tuning and context["tuned"]["first"] else found + tuning
    for key, id_, name in (
        ("texts", "samples", "texts_section"),
        ("diagnoses", "diagnosis", "diagnosis_section"),
        ("controls", "control", "control_section"),
        ("failures", "failures", "failures_section"),
    ):
        found += [(id_, words(name))] if context[key] else []
    found += [("repeat", words("repeat_section")), ("glossary", words("glossary_section"))]
    return [*found, ("cite", words("cite_section"))] if context["bibtex"] else found
