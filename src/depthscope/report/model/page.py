"""The page of one model: what was measured in it and what that means, in one file that needs nothing else."""

from __future__ import annotations

from typing import Any

from depthscope.report.model import tables
from depthscope.report.model.pictures import Shown, pictures
from depthscope.report.model.verdict import Told
from depthscope.report.sheet import Charts, fill, placed
from depthscope.report.strings import Lang
from depthscope.report.words import Words

MOST = 24
"""Rows of a table that are shown at once; a longer table opens at a click."""


def render_model(shown: Shown, told: Told, *, title: str, command: str, version: str, lang: Lang = "en") -> bytes:
    """The page of a checkup, as UTF-8 HTML.

    Args:
        shown: what was measured and expected.
        told: the diagnosis in words of this language.
        title: what the model is called.
        command: what repeats the measurement.
        version: of Depthscope.
        lang: `en` or `zh`.
    """
    words = Words(lang)
    charts = Charts()
    drawn = pictures(shown, words)
    context: dict[str, Any] = {
        "lang": lang,
        "t": words,
        "version": version,
        "title": title,
        "question": words("model.question"),
        "facts": tables.facts(shown.profile, words),
        "headline": " ".join((told.verdict, *told.sentences)),
        "banners": tables.banners(shown.profile, words),
        "verdict": told.verdict,
        "tone": told.tone,
        "sentences": told.sentences,
        "told": told.rows,
        "pictures": [placed(each, charts) for each in drawn],
        "blocks": tables.block_table(shown, words),
        "parameters": tables.parameter_table(shown.profile, words),
        "conditions": tables.conditions(shown.profile, words),
        "glossary": tables.glossary(shown, words, [each.key for each in drawn]),
        "most": MOST,
        "command": command,
    }
    context["toc"] = [
        ("finding", words("finding")),
        *((f"{each.key}-section", each.heading) for each in drawn),
        ("blocks", words("model.table_section")),
        ("parameters", words("model.parameters_section")),
        ("conditions", words("model.conditions_section")),
        ("repeat", words("repeat_section")),
        ("glossary", words("glossary_section")),
    ]
    return fill("model.html.j2", context, charts)
