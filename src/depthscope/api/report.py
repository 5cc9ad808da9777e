"""The report of a study's folder: findings, tidy table, figures, page."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import pyarrow.csv

from depthscope.analysis.finding import Finding
from depthscope.analysis.table import Results
from depthscope.core.files import write_bytes
from depthscope.record.folder import read_study
from depthscope.record.reader import read_records, read_table
from depthscope.study.expand import expand


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a study has shown so far.

    Attributes:
        folder: the study's folder.
        results: the plan joined with its records.
        findings: its claims, judged.
        headline: the finding in a sentence made from the estimates.
        page: path of the offline page.
    """

    folder: Path
    results: Results
    findings: tuple[Finding, ...]
    headline: str
    page: Path


def results(folder: str | Path) -> Results:
    """The plan of a study's folder joined with the records that stand.

    Raises:
        UserError: the folder holds no study.
    """
    at = Path(folder)
    plan = expand(read_study(at))
    records, _ = read_records(at, list(plan.runs))
    return Results(plan=plan, records=records, load_table=lambda run_id, table: read_table(at, run_id, table))


def report(folder: str | Path, *, lang: str = "en") -> Report:
    """Judge a folder's claims from its records and write findings, table, figures and page.

    Raises:
        UserError: the folder holds no study, or cannot be written.
    """
    at = Path(folder)
    found = results(at)
    sink = io.BytesIO()
    pyarrow.csv.write_csv(found.tidy(), sink)
    write_bytes(at / "table.csv", sink.getvalue())
    return Report(folder=at, results=found, findings=(), headline="", page=at / "report.html")
