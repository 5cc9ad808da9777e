"""The gradient check of a view as a block: a panel for each arm and depth."""

from __future__ import annotations

from depthscope.analysis.checks import median_error
from depthscope.analysis.table import ResultRow, Results
from depthscope.report import charts
from depthscope.report.charts.gradcheck import METHOD_COLOR, CheckPoint
from depthscope.report.content import View, significant
from depthscope.report.palette import MUTED
from depthscope.report.shapes import Block, Legend, Panel
from depthscope.report.words import Words


def gradcheck_blocks(results: Results, view: View, words: Words) -> list[Block]:
    """One block, or none where no run was checked."""
    cells: dict[tuple[str, float], tuple[CheckPoint, ...]] = {}
    zeros = 0
    for key, rows in view.cells().items():
        points, exact = _points(results, rows)
        zeros += exact
        if points:
            cells[key] = points
    if not cells:
        return []
    values = [point.value for points in cells.values() for point in points]
    domain = (min(values) / 3, max(values) * 3)
    labels = {each.name: each.label for each in view.series}
    methods = {method: words(f"method.{method}") for method in METHOD_COLOR}
    used = {point.method for points in cells.values() for point in points}
    panels = tuple(
        _panel(
            view,
            words("comma").join((labels[arm], view.named(place, words))),
            (arm, place),
            points,
            methods,
            domain,
            words,
        )
        for (arm, place), points in cells.items()
    )
    legend = [Legend(label=name, color=METHOD_COLOR[method]) for method, name in methods.items() if method in used]
    legend += [Legend(label=words("worst"), color=MUTED, shape="dashed")]
    return [
        Block(
            kind="gradcheck",
            key=f"gradcheck-{view.key}",
            heading=words("gradcheck_section"),
            caption=words("gradcheck_caption"),
            panels=panels,
            legend=tuple(legend),
            notes=(words("gradcheck_method"), *([words("gradcheck_exact", count=zeros)] if zeros else [])),
        )
    ]


def _points(results: Results, rows: tuple[ResultRow, ...]) -> tuple[tuple[CheckPoint, ...], int]:
    found: dict[tuple[str, float, str], list[float | None]] = {}
    for row in rows:
        table = results.load_table(row.cell.run_id, "gradcheck") if row.record else None
        if table is None:
            continue
        columns = {name: table.column(name).to_pylist() for name in ("method", "h", "tensor", "median", "worst")}
        for method, h, tensor, middle, worst in zip(*columns.values(), strict=True):
            if tensor or method not in METHOD_COLOR:
                continue
            for kind, value in (("median", middle), ("worst", worst)):
                found.setdefault((method, h, kind), []).append(value)
    points = []
    zeros = 0
    for (method, h, kind), errors in sorted(found.items()):
        made = median_error(errors)
        zeros += made.median == 0
        if made.median:
            points.append(CheckPoint(method=method, h=h, kind=kind, value=significant(made.median)))
    return tuple(points), zeros


def _panel(
    view: View,
    title: str,
    cell: tuple[str, float],
    points: tuple[CheckPoint, ...],
    methods: dict[str, str],
    domain: tuple[float, float],
    words: Words,
) -> Panel:
    arm = next(each.label for each in view.series if each.name == cell[0])
    describe = words("gradcheck_describe", arm=arm, where=view.named(cell[1], words))

    def draw(*, width: int | None = None, height: int = 230) -> object:
        return charts.gradient_check(
            points,
            methods=methods,
            kinds={"median": words("median"), "worst": words("worst")},
            x_title=words("x_h"),
            y_title=words("y_error"),
            describe=describe,
            domain=domain,
            width=width,
            height=height,
        )

    return Panel(key=f"gradcheck-{view.key}-{cell[0]}-{cell[1]}", title=title, describe=describe, draw=draw)
