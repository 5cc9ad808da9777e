"""The page: one HTML file that needs nothing outside itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from depthscope.analysis.finding import Finding
from depthscope.analysis.headline import headline as make_headline
from depthscope.analysis.table import Results
from depthscope.report import content, gallery, glossary, held, judged, palette, recipe, sections, tuned
from depthscope.report.charts import FONT, configure, rename_tables
from depthscope.report.citations import bibtex, citations
from depthscope.report.estimates import Estimates
from depthscope.report.shapes import Block
from depthscope.report.strings import Lang
from depthscope.report.words import Words

MOST = 12
"""Lines of a list that are shown at once; the others open at a click."""
_ASSETS = resources.files("depthscope.report") / "assets"


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
    shown = hero.panels[0].key if hero else None
    parts = [
        {
            **sections.part(results, view, estimates, words),
            "id": f"part-{view.key}",
            "recipe": recipe.recipe(view, words),
            "blocks": [_block(each, charts) for each in gallery.blocks(results, view, estimates, words, without=shown)],
        }
        for view in content.views(results, words)
    ]
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
        "hero": _block(hero, charts) if hero else None,
        "claims": [_claim(each, charts) for each in judged.claims(results, findings, words)],
        "declared": judged.declared(results, words),
        "counted": judged.counted(findings, words),
        "level": estimates.level,
        "parts": parts,
        "tuned": tuned.tuned(results, words),
        "diagnoses": sections.diagnoses(results, words),
        "controls": held.control_cards(results, words),
        "by_design": held.by_design(results, words),
        "most": MOST,
        "failures": sections.failures(results, words),
        "command": command,
        "provenance": sections.provenance(results, words),
        "glossary": glossary.glossary(results, words),
        "bibtex": bibtex(citations(results.plan)),
    }
    context["toc"] = _toc(context, words)
    context["data"] = Markup(charts.to_json())
    context["css"] = Markup(_variables() + _asset("page.css"))
    context["js"] = Markup(_asset("page.js"))
    context["vega"] = Markup(_vega())
    return _environment().get_template("page.html.j2").render(context).encode("utf-8")


class Charts:
    """The charts of a page: specifications without data, and each table once, by column."""

    def __init__(self) -> None:
        self._charts: dict[str, dict[str, Any]] = {}
        self._tables: dict[str, dict[str, Any]] = {}

    def add(self, key: str, chart: Any, dark: Mapping[str, str]) -> str:
        """Take a chart in and return its id."""
        spec = chart.to_dict(validate=False)  # the tests validate every figure; rows by the thousand take seconds
        spec.pop("$schema", None)
        spec["config"] = configure()
        tables = []
        names = {}
        for old, rows in spec.pop("datasets", {}).items():
            packed = _columns(rows)
            name = "t" + hashlib.sha256(json.dumps(packed).encode()).hexdigest()[:10]
            self._tables.setdefault(name, packed)
            names[old] = name
            tables.append(name)
        rename_tables(spec, names)
        self._charts[key] = {"spec": spec, "tables": tables, "dark": dict(dark)}
        return key

    def to_json(self) -> str:
        """For a script element: no `<` is left that could close it."""
        document = {"charts": self._charts, "tables": self._tables, "dark": dict(palette.DARK)}
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    fields = list(dict.fromkeys(key for row in rows for key in row))
    columns: list[list[Any]] = []
    texts: list[list[str] | None] = []
    for name in fields:
        column = [row.get(name) for row in rows]
        if any(isinstance(value, str) for value in column):
            known = {
                text: index for index, text in enumerate(dict.fromkeys(each for each in column if each is not None))
            }
            columns.append([None if value is None else known[value] for value in column])
            texts.append(list(known))
        else:
            columns.append([int(v) if isinstance(v, float) and v.is_integer() and abs(v) < 1e15 else v for v in column])
            texts.append(None)
    return {"fields": fields, "columns": columns, "texts": texts}


def _block(block: Block, charts: Charts) -> dict[str, Any]:
    """A block as the template wants it; its charts are taken in."""
    panels = []
    for panel in block.panels:
        chart = panel.draw()
        charts.add(panel.key, chart, panel.dark)
        full = list(panel.dark)[-1] if panel.dark else None
        panels.append(
            {
                "id": panel.key,
                "title": panel.title,
                "height": chart.height,
                "css": css_color(full) if full else None,
            }
        )
    return {
        "id": block.key,
        "kind": block.kind,
        "heading": block.heading,
        "caption": block.caption,
        "notes": block.notes,
        "controls": block.controls,
        "legend": [
            {"label": each.label, "shape": each.shape, "css": _pale(css_color(each.color), each.strength)}
            for each in block.legend
        ],
        "panels": panels,
        "tagged": block.tagged,
        "columns": 1
        if block.controls and block.controls.depths
        else {2: 2, 4: 2}.get(len(panels), min(len(panels), 3)),
    }


def _claim(claim: dict[str, Any], charts: Charts) -> dict[str, Any]:
    chart = claim.pop("draw")
    if chart is None:
        return claim
    drawn = chart()
    return {**claim, "chart": charts.add(f"claim-{claim['claim']}", drawn, {}), "height": drawn.height}


def _toc(context: Mapping[str, Any], words: Words) -> list[tuple[str, str]]:
    found = [("claims", words("claims_section"))] if context["claims"] else []
    found += [(part["id"], part["title"]) for part in context["parts"]]
    tuning = [("tuned", context["tuned"]["title"])] if context["tuned"] else []
    found = tuning + found if tuning and context["tuned"]["first"] else found + tuning
    for key, id_, name in (
        ("diagnoses", "diagnosis", "diagnosis_section"),
        ("controls", "control", "control_section"),
        ("failures", "failures", "failures_section"),
    ):
        found += [(id_, words(name))] if context[key] else []
    found += [("repeat", words("repeat_section")), ("glossary", words("glossary_section"))]
    return [*found, ("cite", words("cite_section"))] if context["bibtex"] else found


def css_color(color: str) -> str:
    """The colour as a CSS variable, so that the style sheet can swap it for dark paper."""
    return f"var(--c{color[1:]})" if color in palette.DARK else color


def _pale(color: str, strength: float) -> str:
    return color if strength == 1.0 else f"color-mix(in srgb, {color} {round(100 * strength)}%, var(--paper))"


def _variables() -> str:
    names = {
        "ink": palette.INK,
        "muted": palette.MUTED,
        "rule": palette.RULE,
        "paper": palette.PAPER,
        "wash": palette.WASH,
        "supported": palette.SUPPORTED,
        "refuted": palette.REFUTED,
        "undecided": palette.UNDECIDED,
        "accent": "#1f63c4",
        **{f"c{color[1:]}": color for color in palette.DARK},
    }
    light = ";".join(f"--{name}:{color}" for name, color in names.items())
    dark = ";".join(f"--{name}:{palette.DARK[color]}" for name, color in names.items())
    fixed = f"--font:{FONT}"
    return (
        f":root{{{light};--line:#cfd4da;{fixed}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root{{{dark};--line:#3d454f}}}}\n"
    )


@cache
def _environment() -> jinja2.Environment:
    loader = jinja2.FunctionLoader(_asset)
    return jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)


@cache
def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


@cache
def _vega() -> str:
    """Vega, Vega-Lite and vega-embed as one script, from the package that also draws the SVG files."""
    import vl_convert

    # Its stub wants a snippet; without one it assigns vegaEmbed to the window.
    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")
