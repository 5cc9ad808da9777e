"""The report of a study's folder: findings, tidy table, figures, page."""

from __future__ import annotations

import io
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.csv

from depthscope.analysis.finding import Finding
from depthscope.analysis.findings import findings_document, judge
from depthscope.analysis.headline import headline
from depthscope.analysis.table import Results
from depthscope.core.errors import UserError, unknown_name
from depthscope.core.files import write_bytes, write_json
from depthscope.record.folder import default_folder, read_study
from depthscope.record.landscape import MapRecord
from depthscope.record.reader import read_records, read_table
from depthscope.record.run_maps import RunMap, read_run_maps, standing
from depthscope.record.schema import RunRecord
from depthscope.study.expand import Plan, expand
from depthscope.study.study import with_seeds
from depthscope.study.toml import bundled, load

KEPT_BYTES = 256 * 2**20
"""Of tables, kept in memory for the figures that ask for one again; the first that come, as all are asked in turn."""

Lang = Literal["en", "zh"]
LANGS: tuple[Lang, ...] = ("en", "zh")


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a study has shown so far.

    Attributes:
        folder: the study's folder.
        lang: language of headline and page.
        results: the plan joined with its records.
        findings: its claims, judged.
        page: path of the offline page.
        command: what repeats the study.
        maps: where each map of its completed runs stands.
    """

    folder: Path
    lang: Lang
    results: Results
    findings: tuple[Finding, ...]
    page: Path
    command: str
    maps: tuple[RunMap, ...] = ()

    @cached_property
    def headline(self) -> str:
        """The finding in a sentence or two, made from the estimates."""
        return headline(self.results, self.findings, self.lang)

    @property
    def failed(self) -> bool:
        """Whether a run failed, or a map could not be made; the same command tries it again."""
        runs = any(row.record is not None and row.record.outcome.status == "failed" for row in self.results.rows)
        return runs or any(each.fault is not None for each in self.maps)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The content of findings.json."""
        return findings_document(self.results, self.findings, _provenance(self.results, self.command))


def results(folder: str | Path) -> Results:
    """The plan of a study's folder joined with the records that stand.

    Raises:
        UserError: the folder holds no study.
    """
    at = Path(folder)
    plan = expand(read_study(at))
    records, _ = read_records(at, list(plan.runs))
    return joined(plan, at, records)


def joined(plan: Plan, at: Path, records: Mapping[str, RunRecord]) -> Results:
    """The plan of the study in folder `at`, joined with records that were read from there."""
    kept: dict[tuple[str, str], pa.Table] = {}
    room = KEPT_BYTES

    def load_table(run_id: str, table: str) -> pa.Table | None:
        nonlocal room
        if (run_id, table) in kept:
            return kept[run_id, table]
        # What lies beside a record without being named in it is none of its tables.
        found = read_table(at, run_id, table) if table in records[run_id].tables else None
        if found is not None and found.nbytes <= room:
            room -= found.nbytes
            kept[run_id, table] = found
        return found

    def load_maps(run_id: str) -> tuple[MapRecord, ...]:
        record, specs = records.get(run_id), plan.maps.get(run_id, ())
        if record is None or record.outcome.status != "completed":
            return ()
        return tuple(each.record for each in read_run_maps(at, record, specs) if each.record is not None)

    return Results(plan=plan, records=records, load_table=load_table, load_maps=load_maps)


def make_report(
    folder: str | Path, *, lang: str = "en", figures: bool = False, named: str | Path | None = None
) -> Report:
    """Judge a folder's claims from its records and write findings.json, table.csv and the page.

    Args:
        folder: the `out` of a `run`, finished or not.
        lang: en or zh.
        figures: also write each figure as SVG and PNG into figures/.
        named: the folder as the command that repeats the study names it; None takes `folder`.

    Raises:
        UserError: the folder holds no study, or cannot be written.
    """
    chosen = check_lang(lang)
    at = Path(folder)
    return report_of(results(at), at, lang=chosen, figures=figures, named=named)


def report_of(
    found: Results, at: Path, *, lang: Lang, figures: bool = False, named: str | Path | None = None
) -> Report:
    """See `make_report`: of records that were read already."""
    # Drawing is loaded here: a study that is only planned or watched needs no altair.
    from depthscope.report.export import figures as draw
    from depthscope.report.export import png, svg
    from depthscope.report.page import render

    made = Report(
        folder=at,
        lang=lang,
        results=found,
        findings=judge(found),
        page=at / "report.html",
        command=command(found, Path(named if named is not None else at)),
        maps=standing(found.plan, at, found.records),
    )
    sink = io.BytesIO()
    pyarrow.csv.write_csv(found.tidy(), sink)
    write_bytes(at / "table.csv", sink.getvalue())
    write_json(at / "findings.json", made.document)
    page = render(found, made.findings, lang=lang, command=made.command)
    write_bytes(made.page, page)
    if figures:
        for name, spec in draw(found, made.findings, lang=lang).items():
            write_bytes(at / "figures" / f"{name}.svg", svg(spec))
            write_bytes(at / "figures" / f"{name}.png", png(spec))
    return made


def command(found: Results, folder: Path | None = None) -> str:
    """The command that repeats a study: by name where it is a bundled one, else from the folder's study.toml.

    Args:
        found: the study with its records.
        folder: where it lies; None takes the default.
    """
    study = found.study
    at = (default_folder(study) if folder is None else _from_here(folder, default_folder(study))).as_posix()
    out = f"--out {shlex.quote(at)}"
    if study.name in bundled():
        size = f" --size {study.size}" if study.size else ""
        original = load(study.name, study.size or None)
        if study == original:
            return f"depthscope run {study.name}{size} {out}"
        if study == with_seeds(original, study.seeds):
            seeds = study.seeds if isinstance(study.seeds, int) else ",".join(map(str, study.seeds)) + ","
            return f"depthscope run {study.name}{size} --seeds {seeds} {out}"
    return f"depthscope run {shlex.quote(f'{at}/study.toml')} {out}"


def _from_here(folder: Path, default: Path) -> Path:
    """The folder from where we are. What lies elsewhere and was named from the root is this machine's: the default."""
    if not folder.is_absolute():
        return folder
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else default


def _provenance(found: Results, told: str) -> dict[str, Any]:
    """What the records say of where they come from: every value that occurs, by field."""
    seen: dict[str, list[Any]] = {}
    for record in found.records.values():
        for field, value in record.provenance.model_dump().items():
            values = seen.setdefault(field, [])
            if value is not None and value not in values:
                values.append(value)
    return {"command": told, "study_digest": found.study.digest, **seen}


def check_lang(lang: str) -> Lang:
    """The language, if the page has it.

    Raises:
        UserError: it has not.
    """
    for known in LANGS:
        if lang == known:
            return known
    raise UserError(unknown_name("language", lang, LANGS))
