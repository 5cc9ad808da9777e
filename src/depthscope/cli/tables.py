"""What a verb found: tables for people, JSON for programs, on stdout."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from depthscope.api import Report, StudyInfo

_MARKS = {"supported": ("✓", "green"), "refuted": ("✗", "red"), "undecided": ("?", "yellow")}


def console() -> Console:
    """Where text for people goes."""
    # A pipe has no width of its own: give it enough that no figure is cut.
    # Words from a study are words: never markup.
    return Console(width=None if sys.stdout.isatty() else 160, markup=False, highlight=False)


def print_json(value: object) -> None:
    """A document for programs."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def document(found: Report) -> dict[str, Any]:
    """The findings for programs, with where the page is."""
    return {"folder": str(found.folder), "page": str(found.page), "headline": found.headline, **found.document}


def report(found: Report, lang: str, *, as_json: bool) -> None:
    """The findings as a table, the finding in a sentence, and where the page is."""
    if as_json:
        print_json(document(found))
        return
    screen = console()
    title = found.results.study.title
    name = Text({str(key): words for key, words in title.items()}.get(lang) or next(iter(title.values())))
    screen.print(_findings(found, lang, name) if found.findings else name)
    screen.print(Text(found.headline or "No claim is declared; the page shows what was measured."))
    failed = [row for row in found.results.rows if row.record is not None and row.record.outcome.status == "failed"]
    for row in failed[:3]:
        assert row.record is not None
        screen.print(
            Text(f"failed: {row.cell.part}, {row.cell.arm}, seed {row.cell.seed}: {row.record.outcome.reason}")
        )
    if failed:
        screen.print(f"{len(failed)} of {len(found.results.rows)} runs failed; the same command tries them again.")
    unmapped = [each for each in found.maps if each.fault is not None]
    for each in unmapped[:3]:
        screen.print(Text(f"no map: {each.fault}"))
    if unmapped:
        screen.print(f"{len(unmapped)} of {len(found.maps)} maps could not be made; the same command tries them again.")
    unfinished = [row for row in found.results.rows if row.record is None]
    if unfinished:
        screen.print(f"{len(unfinished)} of {len(found.results.rows)} runs are missing; the same command continues.")
    partly = sum(not each.complete and each.fault is None for each in found.maps)
    if partly:
        screen.print(f"{partly} of {len(found.maps)} maps are missing; the same command continues.")
    screen.print(Text(f"page: {found.page}"), soft_wrap=True)


def _findings(found: Report, lang: str, title: Text) -> Table:
    table = Table(title=title, title_justify="left")
    for column in ("", "claim", "what was found"):
        table.add_column(column, overflow="fold")
    for finding in found.findings:
        mark, colour = _MARKS[finding.verdict]
        words = finding.text.get(lang) or next(iter(finding.text.values()))
        star = " (confirmatory)" if finding.confirmatory else " (exploratory)"
        table.add_row(
            Text(f"{mark} {finding.verdict}", style=colour),
            Text(words + star),
            Text(finding.reasons.get(lang, finding.reason)),
        )
    return table


def studies(found: tuple[StudyInfo, ...], *, as_json: bool) -> None:
    """Name, title and sizes of each bundled study."""
    if as_json:
        print_json(
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
