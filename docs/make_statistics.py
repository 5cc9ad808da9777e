"""Makes the tables and the figure of `docs/statistics.md` from simulations with fixed seeds (half a minute).

    python docs/make_statistics.py

Nothing in that page between `<!-- made: ... -->` and `<!-- end -->` is written by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert
from scipy.stats import t

sys.path.insert(0, str(Path(__file__).parent))

from calibration import (
    FAMILIES,
    LAWS,
    NUM_DRAWS,
    SIZES,
    Against,
    Rate,
    coverage,
    false_support,
    median_coverage,
    misses,
)
from calibration_ranks import ARMS, RULES, SCATTERS, SEEDS, called_different, settled
from results import fill_all

from depthscope.report.charts import configure
from depthscope.report.palette import INK, MUTED, PAPER, RULE

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "statistics.md"
FIGURE = ROOT / "docs" / "figures" / "coverage.png"
AGAINST: dict[Against, str] = {
    "none": "mean of one arm",
    "alike": "paired difference of two arms like it",
    "steady": "paired difference to an arm that never goes wrong",
}
WIDTH_SIZES = (3, 5, 6, 10, 20)
MEDIAN_SIZES = (6, 10, 20)
FIGURE_SIZES = (3, 5, 10, 20, 40)
COLORS = ("#1f63c4", "#d9481c", "#a03d78", "#0d917e")


def main() -> None:
    """Simulate, write the tables and draw the figure."""
    parts = {
        "widths": width_table(),
        "coverage": coverage_table(),
        "misses": misses_table(),
        "medians": median_table(),
        "families": family_table(),
        "rules": rule_table(),
        "ranks": rank_table(),
    }
    PAGE.write_text(fill_all(PAGE.read_text(encoding="utf-8"), parts), encoding="utf-8")
    FIGURE.write_bytes(vl_convert.vegalite_to_png(figure(), scale=2.0))


def percent(rate: Rate) -> str:
    """Such as `94.9`; of 4,000 draws one decimal is worth showing."""
    return f"{100 * rate.value:.1f}"


def lines(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table whose first column is words."""
    marks = ["---", *["---:"] * (len(heads) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, marks, *rows])


def width_table() -> str:
    """Half the width of the paired interval at 95%, in units of the standard deviation of the differences."""
    halves = [f"{t.ppf(0.975, n - 1) / n**0.5:.2f}" for n in WIDTH_SIZES]
    return lines(["seeds", *map(str, WIDTH_SIZES)], [["half the interval, in s", *halves]])


def coverage_row(name: str) -> list[str]:
    """A law's coverage in percent, by what it is compared with and the number of seeds."""
    return [name, *(percent(coverage(LAWS[name], n, against)) for against in AGAINST for n in SIZES)]


def coverage_table() -> str:
    """Coverage of the 95% t interval by law."""
    short = {"none": "mean", "alike": "alike", "steady": "steady"}
    heads = ["distribution over seeds", *(f"{short[against]}, n = {n}" for against in AGAINST for n in SIZES)]
    return lines(heads, [coverage_row(name) for name in LAWS])


def misses_table() -> str:
    """On which side the interval of a difference to a steady arm misses."""
    heads = ["distribution over seeds", *(f"{side}, n = {n}" for side in ("above", "below") for n in SIZES)]
    rows = []
    for name, law in LAWS.items():
        found = [misses(law, n, "steady") for n in SIZES]
        rows.append([name, *(percent(pair[side]) for side in (0, 1) for pair in found)])
    return lines(heads, rows)


def median_table() -> str:
    """Coverage of the interval of a median."""
    rows = []
    for name, law in LAWS.items():
        found = [median_coverage(law, n) for n in MEDIAN_SIZES]
        rows.append([name, *("none" if rate is None else percent(rate) for rate in found)])
    return lines(["distribution over seeds", *(f"n = {n}" for n in MEDIAN_SIZES)], rows)


def family_table() -> str:
    """Family-wise rate of a false `supported`: all claims false, and all but the first."""
    normal = LAWS["normal"]
    heads = ["claims of the family", *(f"all false, n = {n}" for n in SIZES), *(f"first true, n = {n}" for n in SIZES)]
    rows = []
    for name, kinds in FAMILIES.items():
        row = [name, *(percent(false_support(kinds, normal, n)) for n in SIZES)]
        held = [True] + [False] * (len(kinds) - 1)
        row += [percent(false_support(kinds, normal, n, held=held)) if len(kinds) > 1 else "" for n in SIZES]
        rows.append(row)
    return lines(heads, rows)


def rule_table() -> str:
    """Three ways to compare ten arms of three seeds: wrong calls among equal arms, and what is settled of a ladder."""
    names = list(SCATTERS)[:3]
    heads = ["rule", *(f"wrong: {name.removeprefix('normal, ')}" for name in names), "settled of a ladder"]
    rows = []
    for name, rule in RULES.items():
        wrong = [percent(called_different(scatter, 10, 3, rule)) for scatter in names]
        rows.append([name, *wrong, f"{100 * settled(10, 3, rule):.0f}"])
    return lines(heads, rows)


def rank_table() -> str:
    """How often any of several equal arms is called better than another, by the rule of `analysis.simultaneous`."""
    heads = ["distribution over seeds", *(f"{k} arms, n = {n}" for n in SEEDS for k in ARMS)]
    return lines(heads, [rank_row(name) for name in SCATTERS])


def rank_row(name: str) -> list[str]:
    """A row of that table."""
    return [name, *(percent(called_different(name, k, n)) for n in SEEDS for k in ARMS)]


def figure() -> dict[str, Any]:
    """Coverage against the number of seeds, a panel for each comparison and a line for each law."""
    panels: list[Any] = []
    for at, (against, title) in enumerate(AGAINST.items()):
        rows = [
            {"law": name, "n": n, "coverage": coverage(law, n, against).value}
            for name, law in LAWS.items()
            for n in FIGURE_SIZES
        ]
        x = alt.X(
            "n:Q",
            scale=alt.Scale(type="log", domain=[2.6, 46], nice=False),
            axis=alt.Axis(title="seeds", values=list(FIGURE_SIZES), format="d", grid=False),
        )
        axis = alt.Axis(title=None, format=".0%", labels=at == 0)
        y = alt.Y("coverage:Q", scale=alt.Scale(domain=[0.0, 1.0], nice=False), axis=axis)
        color = alt.Color(
            "law:N",
            scale=alt.Scale(domain=list(LAWS), range=list(COLORS)),
            legend=alt.Legend(title=None, orient="bottom", columns=4),
        )
        shape = alt.Shape("law:N", scale=alt.Scale(domain=list(LAWS)), legend=None)
        points = alt.Chart(alt.Data(values=rows)).encode(x=x, y=y, color=color)
        band = alt.Chart(alt.Data(values=[{"low": 0.94, "high": 0.96}])).mark_rect(color=RULE, opacity=1)
        level = alt.Chart(alt.Data(values=[{"at": 0.95}])).mark_rule(color=MUTED, strokeDash=[4, 3])
        panel = alt.layer(
            band.encode(y=alt.Y("low:Q"), y2="high:Q"),
            level.encode(y="at:Q"),
            points.mark_line(strokeWidth=2.5),
            points.mark_point(filled=True, size=75, opacity=1).encode(shape=shape),
        )
        name = alt.TitleParams(text=title, fontSize=13, fontWeight=600, anchor="start", color=INK)
        panels.append(panel.properties(width=290, height=260, title=name))
    heading = alt.TitleParams(
        text="An interval of 95% is one of 95% where runs do not collapse now and then",
        subtitle=f"how often it covers the true value: {NUM_DRAWS:,} simulated experiments a point, band at 94% to 96%",
    )
    spec: dict[str, Any] = (
        alt.hconcat(*panels, spacing=26).resolve_scale(color="shared").properties(title=heading, padding=20).to_dict()
    )
    return {**spec, "config": configure(background=PAPER)}


if __name__ == "__main__":
    main()
