"""What a verb found: tables for people, JSON for programs, on stdout."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from depthscope.api import Report, StudyInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

_MARKS = {"supported": ("✓", "green"), "refuted": ("✗", "red"), "undecided": ("?", "yellow")}


def console() -> Console:
    """Where text for people goes."""
    # A pipe has no width of its own: give it enough that no figure is cut.
    # Words from a study are words: never markup.
    return Console(width=None if sys.stdout.isatty() else 160, markup=False, highlight=False)


def _json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def report(found: Report, lang: str, *, as_json: bool) -> None:
    """The findings as a table, the finding in a sentence, and where the page is."""
    if as_json:
        _json({"folder": str(found.folder), "page": str(found.page), "headline": found.headline, **found.document})
        return
    screen = console()
    title = found.results.study.title
    table = Table(
        title=Text({str(key): words for key, words in title.items()}.get(lang) or next(iter(title.values()))),
        title_justify="left",
    )
    for column in ("", "claim", "what was found"):
        table.add_column(column, overflow="fold")
    for finding in found.findings:
        mark, colour = _MARKS[finding.verdict]
        words = finding.text.get(lang) or next(iter(finding.text.values()))
        star = " (confirmatory)" if finding.confirmatory else ""
        table.add_row(
            Text(f"{mark} {finding.verdict}", style=colour),
            Text(words + star),
            Text(finding.reasons.get(lang, finding.reason)),
        )
    screen.print(table)
    screen.print(Text(found.headline))
    failed = [row for row in found.results.rows if row.record is not None and row.record.outcome.status == "failed"]
    for row in failed[:3]:
        assert row.record is not None
        screen.print(
            Text(f"failed: {row.cell.part}, {row.cell.arm}, seed {row.cell.seed}: {row.record.outcome.reason}")
        )
    if failed:
        screen.print(f"{len(failed)} of {len(found.results.rows)} runs failed; the same command tries them again.")
    unfinished = [row for row in found.results.rows if row.record is None]
    if unfinished:
        screen.print(f"{len(unfinished)} of {len(found.results.rows)} runs are missing; the same command continues.")
    screen.print(Text(f"page: {found.page}"), soft_wrap=True)


def plan(planned: Any, costs: Mapping[str, Any] | None, *, as_json: bool) -> None:
    """A row for each arm at each value of the axes: runs, parameters, FLOPs."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for cell in planned.cells:
        axes = {key: str(value) for key, value in cell.axes.items()}
        key = (cell.part, cell.arm, *axes.values())
        row = rows.setdefault(key, {"part": cell.part, "arm": cell.arm, "axes": dict(cell.axes), "run_ids": []})
        row["run_ids"].append(cell.run_id)
        counted = costs.get(cell.run_id) if costs else None
        row["parameters"] = counted.parameters if counted else None
        row["train_flops_per_run"] = counted.train_flops if counted else None
    if as_json:
        study = planned.study
        _json({"study": study.name, "size": study.size, "num_runs": len(planned.runs), "rows": list(rows.values())})
        return
    screen = console()
    size = f", size {planned.study.size}" if planned.study.size else ""
    table = Table(title=Text(f"{planned.study.name}{size}: {len(planned.runs)} runs"), title_justify="left")
    for column in ("part", "arm", "at", "seeds", "parameters", "training FLOPs a run"):
        table.add_column(
            column, justify="right" if column in ("seeds", "parameters", "training FLOPs a run") else "left"
        )
    for row in rows.values():
        flops = row["train_flops_per_run"]
        table.add_row(
            row["part"],
            row["arm"],
            ", ".join(f"{key} {value}" for key, value in row["axes"].items()),
            str(len(row["run_ids"])),
            f"{row['parameters']:,}" if row["parameters"] is not None else "needs torch",
            f"{flops:.2e}" if flops else "–",
        )
    screen.print(table)
    total = sum(len(row["run_ids"]) * (row["train_flops_per_run"] or 0.0) for row in rows.values())
    if total:
        screen.print(f"{total:.2e} training FLOPs in all (a multiply and an add are two).")


def studies(found: tuple[StudyInfo, ...], *, as_json: bool) -> None:
    """Name, title and sizes of each bundled study."""
    if as_json:
        _json(
            [
                {"name": each.name, "title": each.title, "question": each.question, "sizes": list(each.sizes)}
                for each in found
            ]
        )
        return
    table = Table()
    for column in ("study", "what it asks", "sizes"):
        table.add_column(column)
    for each in found:
        question = each.question or each.title
        table.add_row(each.name, question.get("en") or next(iter(question.values())), ", ".join(each.sizes))
    console().print(table)
