"""What every page is made with: its charts, their colours, the style sheet, the script and the templates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from operator import itemgetter
from typing import Any

import altair as alt
import jinja2
from altair.utils.schemapi import debug_mode
from markupsafe import Markup

from depthscope.core.cache import kept_text
from depthscope.report import palette
from depthscope.report.charts import FONT, configure, rename_tables
from depthscope.report.shapes import Block

_ASSETS = resources.files("depthscope.report") / "assets"


def fill(template: str, context: Mapping[str, Any], charts: Charts) -> bytes:
    """A page as UTF-8 HTML that makes no request: a policy in its head forbids it.

    Args:
        template: name of a file in assets/.
        context: what the template names, without charts, styles and scripts.
        charts: those that the page draws.
    """
    shared = {
        "data": Markup(charts.to_json()),
        "css": Markup(_variables() + _asset("page.css")),
        "js": Markup(_asset("page.js")),
        "vega": Markup(_vega()),
    }
    return _environment().get_template(template).render({**context, **shared}).encode("utf-8")


class Charts:
    """The charts of a page: specifications without data, and each table once, by column."""

    def __init__(self) -> None:
        self._charts: dict[str, dict[str, Any]] = {}
        self._tables: dict[str, dict[str, Any]] = {}

    def add(self, key: str, chart: Any, dark: Mapping[str, str]) -> str:
        """Take a chart in and return its id."""
        # Without its rows: Altair would look at each value of each, by the thousand, which takes seconds. The tests
        # validate every figure whole.
        datasets, chart.datasets = chart.datasets, alt.Undefined
        try:
            spec = chart.to_dict(validate=False)
        finally:
            chart.datasets = datasets
        spec.pop("$schema", None)
        spec["config"] = configure()
        tables = []
        names = {}
        for old, rows in chart.datasets.items():
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
    # There are tens of thousands of rows, with few sets of fields and few types among them.
    kinds_of_row = dict.fromkeys(map(tuple, rows))
    fields = list(dict.fromkeys(key for keys in kinds_of_row for key in keys))
    columns: list[list[Any]] = []
    texts: list[list[str] | None] = []
    for name in fields:
        column = list(map(itemgetter(name), rows)) if len(kinds_of_row) == 1 else [row.get(name) for row in rows]
        kinds = set(map(type, column))
        if any(issubclass(kind, str) for kind in kinds):
            known = {
                text: index for index, text in enumerate(each for each in dict.fromkeys(column) if each is not None)
            }
            columns.append(list(map(known.get, column)))
            texts.append(list(known))
        else:
            columns.append(_shortest(column) if any(issubclass(kind, float) for kind in kinds) else column)
            texts.append(None)
    return {"fields": fields, "columns": columns, "texts": texts}


def _shortest(column: list[Any]) -> list[Any]:
    """Whole numbers without their `.0`."""
    return [int(v) if isinstance(v, float) and v.is_integer() and abs(v) < 1e15 else v for v in column]


def _drawn(draw: Callable[[], Any]) -> Any:
    """A figure, of whose parts Altair does not check each against its schema: the tests validate every figure whole."""
    with debug_mode(False):
        return draw()


def placed(block: Block, charts: Charts) -> dict[str, Any]:
    """A block as the template wants it; its charts are taken in."""
    scale = None
    if block.scale is not None:
        chart = _drawn(block.scale.draw)
        scale = {"id": charts.add(block.scale.key, chart, block.scale.dark), "height": chart.height}
    panels = []
    for panel in block.panels:
        chart = _drawn(panel.draw)
        charts.add(panel.key, chart, panel.dark)
        full = list(panel.dark)[-1] if panel.dark else None
        panels.append(
            {
                "id": panel.key,
                "title": panel.title,
                "height": None if panel.square else chart.height,
                "css": css_color(full) if full else None,
            }
        )
    return {
        "id": block.key,
        "kind": block.kind,
        "heading": block.heading,
        "caption": block.caption,
        "about": block.about,
        "notes": block.notes,
        "controls": block.controls,
        "legend": [
            {"label": each.label, "shape": each.shape, "css": _pale(css_color(each.color), each.strength)}
            for each in block.legend
        ],
        "panels": panels,
        "scale": scale,
        "tagged": block.tagged,
        "columns": block.columns
        or (
            1
            if block.stacked or (block.controls and block.controls.depths)
            else {2: 2, 4: 2}.get(len(panels), min(len(panels), 3))
        ),
    }


def placed_claim(claim: dict[str, Any], charts: Charts) -> dict[str, Any]:
    """A card of `judged` as the template wants it; its chart is taken in."""
    chart = claim.pop("draw")
    if chart is None:
        return claim
    drawn = _drawn(chart)
    return {**claim, "chart": charts.add(f"claim-{claim['claim']}", drawn, {}), "height": drawn.height}


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
    try:
        made_by = version("vl-convert-python")
    except PackageNotFoundError:  # nothing tells which one it is
        bundle = _bundle()
    else:
        # Putting it together takes more than a second, and holds the interpreter's lock: no thread would help.
        bundle = kept_text(f"vega-{made_by}.js", _bundle)
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _bundle() -> str:
    import vl_convert

    # Its stub wants a snippet; without one it assigns vegaEmbed to the window.
    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    return bundle
