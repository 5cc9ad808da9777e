"""The page of one loss landscape, and its figures: one file that needs nothing else, or Vega-Lite with its data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from depthscope.analysis.landscape import LARGE, curvature_ratios
from depthscope.record.landscape import MapRecord
from depthscope.report.charts import Look
from depthscope.report.citations import LANDSCAPE_SOURCES, bibtex
from depthscope.report.landscape.conditions import norm, terms, way
from depthscope.report.landscape.figures import Shown, convexity_block, loss_scale, map_block
from depthscope.report.landscape.sections import Line, curve_block
from depthscope.report.numbers import number
from depthscope.report.palette import Series
from depthscope.report.shapes import Block
from depthscope.report.sheet import Charts, fill, placed
from depthscope.report.still import finished_block
from depthscope.report.strings import Lang
from depthscope.report.words import Words


def render_landscape(record: MapRecord, *, title: str, command: str, version: str, lang: Lang = "en") -> bytes:
    """The page of a map, whole or in part, as UTF-8 HTML.

    Args:
        record: from `record.landscape.read_map`.
        title: what the network is called.
        command: what makes the map again.
        version: of Depthscope.
        lang: `en` or `zh`.
    """
    words = Words(lang)
    charts = Charts()
    drawn = blocks(record, words)
    sentences = told(record, words)
    missing = len(record.missing) + (len(record.hessian.missing) if record.hessian else 0)
    total = record.loss.size + (record.hessian.lambda_max.size if record.hessian else 0)
    context: dict[str, Any] = {
        "lang": lang,
        "t": words,
        "version": version,
        "title": title,
        "question": words("land.question"),
        "facts": [_points(record, words), words("land.examples", n=f"{record.spec.examples:,}"), record.spec.precision],
        "headline": " ".join(sentences),
        "sentences": sentences,
        "partial": words("land.partial", missing=f"{missing:,}", total=f"{total:,}") if missing else "",
        "blocks": [placed(each, charts) for each in drawn],
        "conditions": facts(record, words),
        "glossary": terms([record], words),
        "bibtex": bibtex(LANDSCAPE_SOURCES),
        "command": command,
    }
    context["toc"] = [
        ("finding", words("finding")),
        *((f"{each.key}-section", each.heading) for each in drawn),
        ("conditions", words("land.conditions")),
        ("repeat", words("repeat_section")),
        ("glossary", words("glossary_section")),
        ("cite", words("cite_section")),
    ]
    return fill("landscape.html.j2", context, charts)


def landscape_figures(record: MapRecord, *, title: str, lang: Lang = "en") -> dict[str, Look]:
    """The figures of a map by name, `landscape` and where there are eigenvalues `convexity`, as Vega-Lite.

    Args:
        record: from `record.landscape.read_map`.
        title: what the network is called.
        lang: `en` or `zh`.
    """
    words = Words(lang)
    return {each.key: finished_block(each, title, "", words) for each in blocks(record, words)}


def blocks(record: MapRecord, words: Words) -> list[Block]:
    """The figures of one map: the loss, and where the Hessian's eigenvalues were found their ratio."""
    if record.spec.axes == 1:
        series = (Series(name="network", label=words("loss"), color="#1f63c4", shape="circle"),)
        line = Line(series="network", name=words("land.plane", seed=record.spec.seed), record=record)
        found = curve_block({("", ""): [line]}, series, words, key="landscape", heading=words("land.curves"))
        return [found] if found else []
    shown = [Shown(key="map", title="", record=record)]
    scale = loss_scale(shown)
    maps = []
    if scale is not None:
        maps.append(map_block(shown, words, key="landscape", heading=words("land.maps"), scale=scale))
    curved = convexity_block(shown, words, key="convexity", heading=words("land.convexity"))
    return [*maps, *([curved] if curved else [])]


def told(record: MapRecord, words: Words) -> list[str]:
    """What the map shows, in sentences."""
    finite = np.isfinite(record.loss)
    if not finite.any():
        return [words("land.told_none")]
    low, high = float(record.loss[finite].min()), float(record.loss[finite].max())
    centre, points = record.centre_loss, int(finite.sum())
    if math.isfinite(centre) and centre <= low:
        sentences = [words("land.told_lowest", centre=_told(centre), points=f"{points:,}", high=_told(high))]
    else:
        at = record.grid.at(int(np.flatnonzero((record.loss == low).ravel())[0]))
        place = words("list").join(f"{name} = {number(value)}" for name, value in zip("ab", at, strict=False))
        sentences = [
            words(
                "land.told_lower",
                centre=_told(centre),
                points=f"{points:,}",
                low=_told(low),
                place=place,
                high=_told(high),
            )
        ]
    odd = int((~finite).sum()) - len(record.missing)
    if odd:
        sentences.append(words("land.odd" if record.spec.axes == 2 else "land.gaps", count=odd))
    return [*sentences, *_curvature(record, words)]


def _told(value: float) -> str:
    """A loss with four digits, so that those of two points near each other differ."""
    if math.isnan(value):
        return "NaN"
    return f"{value:.4g}".replace("-", "−") if abs(value) < 1e3 else number(value)


def _curvature(record: MapRecord, words: Words) -> list[str]:
    hessian = record.hessian
    if hessian is None:
        return []
    ends = [float(each.flat[hessian.grid.centre]) for each in (hessian.lambda_max, hessian.lambda_min)]
    found = curvature_ratios(hessian)
    known = ~np.isnan(found)
    sentences = []
    if all(map(math.isfinite, ends)):
        sentences.append(words("land.told_curvature", largest=number(ends[0]), smallest=number(ends[1])))
    if known.any():
        count = int((found[known] > LARGE).sum())
        sentences.append(words("land.told_convex", count=f"{count:,}", points=f"{int(known.sum()):,}"))
    return sentences


def _points(record: MapRecord, words: Words) -> str:
    spec = record.spec
    key = "land.points_plane" if spec.axes == 2 else "land.points_line"
    return words(key, num=spec.points, extent=f"{spec.extent:g}")


def facts(record: MapRecord, words: Words) -> list[tuple[str, str]]:
    """(name, value): all that decides the map."""
    spec, head = record.spec, record.head
    source, made = head.source, head.provenance
    found = [(words("land.model"), source.model), (words("land.loss_of"), source.loss)]
    if source.kind != "object":  # whose class names no data
        found.insert(1, (words("land.data"), source.data))
    if source.run_id is not None:
        at = words("land.run_at", run=source.run_id, step=source.step) if source.step is not None else source.run_id
        found.append((words("land.run_step"), at))
    if "parameters" in head.facts:
        found.append((words("parameters"), f"{int(head.facts['parameters']):,}"))
    found += [
        (words("land.points"), _points(record, words)),
        (words("land.directions"), way(record, words)),
        (words("land.norm"), norm(record, words)),
        (words("land.examples_of"), words("land.batches", n=f"{spec.examples:,}", batch=f"{spec.batch_size:,}")),
        (words("land.precision"), spec.precision),
    ]
    if spec.hessian_points:
        key = "land.hessian_at" if spec.axes == 2 else "land.hessian_line"
        told_at = words(key, num=spec.hessian_points, n=f"{spec.hessian_examples:,}")
        found.append((words("land.hessian"), told_at))
    found.append((words("land.digests"), words("land.digests_of", weights=head.weights[:16], data=head.data[:16])))
    versions = [f"Depthscope {made.depthscope}", f"torch {made.torch}" if made.torch else f"NumPy {made.numpy}"]
    found.append((words("land.machine"), ", ".join([*versions, made.platform, made.gpu or made.device])))
    return found
