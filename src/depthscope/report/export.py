"""Every figure by itself: Vega-Lite with its data inside, SVG and PNG on light paper."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from depthscope.analysis.finding import Finding
from depthscope.analysis.table import Results
from depthscope.report import content, gallery, judged, ranking
from depthscope.report.charts import Look
from depthscope.report.estimates import Estimates
from depthscope.report.landscape.study import landscapes
from depthscope.report.still import WIDTHS, finished, finished_block, named
from depthscope.report.strings import Lang
from depthscope.report.words import Words


def figures(results: Results, findings: Sequence[Finding], *, lang: Lang = "en") -> dict[str, Look]:
    """Name -> a Vega-Lite specification that needs nothing beside it.

    Profiles stand still: step 0 beside the last step, of the greatest depth. Names are fit for files:
    `hero`, `claims`, and for each part `depth-PART`, `curves-PART`, `profile-PART`, `gradcheck-PART`, `ranking-PART`,
    `landscape-PART`, `convexity-PART`, `lines-PART`, `step-PART`, `sharpness-PART`.

    Args:
        results: plan and records; figures without data are left out.
        findings: from `analysis.findings.judge`.
        lang: `en` or `zh`.
    """
    words = Words(lang)
    estimates = Estimates(results)
    found: dict[str, Look] = {}
    hero = gallery.hero(results, estimates, words)
    if hero:
        panel = hero.panels[0].draw(width=WIDTHS[1])
        title = words.pick(results.study.title, results.study.name)
        legend = () if hero.tagged else hero.legend  # names that stand beside their lines need none
        told = [each for each in (words.pick(results.study.question), hero.about) if each]
        found["hero"] = finished([panel], title, told, legend)
    for view in content.views(results, words):
        for block in gallery.blocks(results, view, estimates, words):
            found[_file_name(block.key)] = finished_block(block, block.heading, view.title, words)
    for mapped in landscapes(results, words):
        for block in mapped.blocks:
            found[_file_name(block.key)] = finished_block(block, block.heading, mapped.view.title, words)
    for each in ranking.ranking_sections(results, words):
        block = each["block"]
        if block:
            found[_file_name(block.key)] = finished_block(block, block.heading, each["title"], words)
    strips = _strips(results, findings, words)
    if strips:
        title = words.pick(results.study.title, results.study.name)
        found["claims"] = finished(strips, words("claims_section"), title, columns=1)
    return found


def svg(spec: Look) -> bytes:
    """The figure as SVG."""
    import vl_convert

    text: str = vl_convert.vegalite_to_svg(spec)
    return text.encode("utf-8")


def png(spec: Look, *, scale: float = 2.0) -> bytes:
    """The figure as PNG, `scale` pixels a point."""
    import vl_convert

    image: bytes = vl_convert.vegalite_to_png(spec, scale=scale)
    return image


def _strips(results: Results, findings: Sequence[Finding], words: Words) -> list[Any]:
    declared = {claim.name: claim for claim in results.study.claims}
    strips = []
    for finding in findings:
        claim = declared.get(finding.claim)
        draw = judged.draw_claim(finding, claim, words, rows=judged.rows_of(results, claim))
        if draw is not None:
            verdict = words(f"verdict.{finding.verdict}")
            strips.append(named(draw(width=WIDTHS[1]), f"{verdict}: {words.pick(finding.text)}"))
    return strips


def _file_name(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", key).strip("-")
