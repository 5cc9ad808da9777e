"""What a page of docs says of a finished study: its finding, where it was measured, verdicts, tables and pictures.

All of it is made from records; `fill` puts it between the marks `<!-- made: NAME -->` and `<!-- end -->` of a page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import depthscope
from depthscope.analysis.finding import Estimate
from depthscope.analysis.ranking import RankedArm, Ranking, rankings
from depthscope.analysis.summarise import CellSummary, summarise
from depthscope.report.named import metric_of
from depthscope.report.numbers import interval, number
from depthscope.report.sections import excess
from depthscope.report.words import Words

USUAL = ("train_accuracy", "train_loss", "test_accuracy")
"""Metrics that are told of a part that trains, beside those that its claims are about."""


def fill(text: str, name: str, made: str) -> str:
    """The text with what stands between the marks of this name replaced."""
    pattern = re.compile(rf"(<!-- made: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"the page has no place for {name!r}: wanted <!-- made: {name} --> ... <!-- end -->")
    return pattern.sub(lambda found: f"{found[1]}{made}\n{found[2]}", text)


def fill_all(text: str, parts: Mapping[str, str]) -> str:
    """The text with each of these parts filled: name -> what is made of it."""
    for name, made in parts.items():
        text = fill(text, name, made)
    return text


def cell(text: str) -> str:
    """Text that a Markdown table bears."""
    return text.replace("|", "\\|").replace("\n", " ")


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, words: int) -> str:
    """A Markdown table; its first columns, `words` of them, are words, and the others numbers."""
    marks = ["---"] * words + ["---:"] * (len(heads) - words)
    lines = [[cell(head) for head in heads], marks, *([cell(each) for each in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def pictures(folder: Path, to: Path, study: str, wanted: Sequence[str]) -> dict[str, str]:
    """The study's figures whose names begin with one of `wanted`, copied to `to`.

    Returns:
        Name of a figure -> its path from the page, which lies beside `to`; in the order wanted.
    """
    to.mkdir(exist_ok=True)
    drawn = sorted((folder / "figures").glob("*.png"))
    chosen = [each for start in wanted for each in drawn if each.stem.startswith(start)]
    for each in chosen:
        (to / f"{study}-{each.name}").write_bytes(each.read_bytes())
    return {each.stem: f"{to.name}/{study}-{each.name}" for each in chosen}


def content(report: depthscope.Report, pictures: Mapping[str, str]) -> str:
    """All that is made of one study: finding, where it was measured, verdicts, and a table for each part.

    Each part stands with its pictures; of a study that ranks nothing, those of no part stand first.

    Args:
        report: of the study.
        pictures: name of a figure -> its path from the page.
    """
    pieces = [report.headline, measured(report)]
    if report.findings:
        pieces.append(verdicts(report))
    found = rankings(report.results)
    for at, each in enumerate(found):
        title = part_title(report, each.part)
        if each.further:
            title += " (" + ", ".join(f"{axis} = {value}" for axis, value in each.further.items()) + ")"
        pieces.append(f"### {title}")
        slice_ = f"-{sum(other.part == each.part for other in found[:at])}" if each.further else ""
        picture = pictures.get(f"ranking-{each.part}{slice_}")
        if picture:
            pieces.append(f"![{title}: each arm at each depth, in the order of their rank]({picture})")
        pieces.append(ranks(report, each))
    if not found:
        of_parts = {name: part for name in pictures for part in report.results.study.parts if name.endswith(f"-{part}")}
        pieces += [f"![{_title(report)}]({path})" for name, path in pictures.items() if name not in of_parts]
        for part in report.results.study.parts:
            title = part_title(report, part)
            pieces.append(f"### {title}")
            for name, path in pictures.items():
                if of_parts.get(name) == part:
                    pieces.append(f"![{title}: {name.removesuffix(f'-{part}')}]({path})")
            pieces += [each for each in (chance(report, part), cells(report, part)) if each]
    return "\n\n".join(pieces)


def part_title(report: depthscope.Report, part: str) -> str:
    """What a part of the study is called."""
    return (report.results.study.parts[part].title or {}).get("en", part)


def measured(report: depthscope.Report) -> str:
    """Where and with what: of the records, which also say how many there are and what they cost."""
    facts = report.document["provenance"]
    versions = ", ".join(
        f"{name} {'/'.join(map(str, facts[name]))}"
        for name in ("depthscope", "python", "numpy", "torch")
        if facts[name]
    )
    study, records = report.results.study, report.results.records.values()
    missing = len(report.results.plan.runs) - len(records)
    lost = [record.outcome.status for record in records if record.outcome.status != "completed"]
    seconds = sum(record.timings.cpu_s for record in records)
    told = [f"{len(records)} runs", f"{seconds:.0f} s of CPU" if seconds < 300 else f"{seconds / 60:.0f} min of CPU"]
    told += [f"{lost.count(status)} {status}" for status in ("diverged", "failed") if status in lost]
    told += [f"{missing} missing"] if missing else []
    told += [f"beside them {study.tuned.num_runs} runs of the selection"] if study.tuned else []
    size = f", size `{study.size}`" if study.size else ""
    return (
        f"*Study `{study.name}`{size}: {', '.join(told)}. Measured on {'/'.join(facts['processor'])} "
        f"({'/'.join(facts['device'])}), {versions}. Repeat: `{report.document['provenance']['command']}`.*"
    )


def verdicts(report: depthscope.Report) -> str:
    """The claims with their verdicts and what was found."""
    lines = ["| verdict | claim | found |", "|---|---|---|"]
    for finding in report.findings:
        star = " **(confirmatory)**" if finding.confirmatory else ""
        lines.append(f"| {finding.verdict} | {cell(finding.text['en'])}{star} | {cell(finding.reason)} |")
    return "\n".join(lines)


def ranks(report: depthscope.Report, found: Ranking) -> str:
    """The ranked table: intervals in brackets, differences paired by seed, parameters beside the baseline's."""
    names = arm_names(report, found.part)
    what = found.metric.replace("_", " ")
    heads = ["rank", "possible", "arm", *(f"{what}, depth {depth}" for depth in found.depths or ())]
    heads += [] if found.depths else [what]
    heads += ["change with depth"] if len(found.depths) > 1 else []
    heads += [f"minus {names[found.baseline]}", "minus the best", "parameters", "beside the baseline"]
    tuned = report.results.study.tuned
    heads += [tuned.field] if tuned else []
    heads += ["lost runs", "n"]
    rows = [["---:", "---", "---", *["---:"] * (len(heads) - 3)]]
    for arm in found.arms:
        by_depth = {each.depth: each for each in arm.cells}
        row = [str(arm.place), f"{arm.low}–{arm.high}" if arm.low < arm.high else "settled", names[arm.arm]]
        row += [_mean(by_depth[depth].estimate) if depth in by_depth else "–" for depth in found.depths or (None,)]
        row += [_difference(arm.change)] if len(found.depths) > 1 else []
        row += [_difference(arm.from_baseline), _difference(arm.from_best)]
        deepest = arm.deepest
        row += ["–" if deepest.parameters is None else f"{deepest.parameters:,}", excess(deepest.excess) or "–"]
        row += [", ".join("–" if each.tuned is None else f"{each.tuned:g}" for each in arm.cells)] if tuned else []
        row += [_lost(arm), str(deepest.estimate.n)]
        rows.append([cell(each) for each in row])
    return "\n".join("| " + " | ".join(row) + " |" for row in [[cell(head) for head in heads], *rows])


def cells(report: depthscope.Report, part: str) -> str:
    """The table of a part that is not ranked: each cell's mean and interval, of what its claims are about first."""
    own = [claim.metric for claim in report.results.study.claims if claim.part == part]
    rows = [row for row in report.results.rows if row.cell.part == part]
    trains = any(row.spec.steps for row in rows)
    metrics = tuple(dict.fromkeys([*own, *(USUAL if trains else ())]))
    found: list[CellSummary] = [each for each in summarise(report.results, metrics) if each.part == part]
    shown = [metric for metric in metrics if any(metric in each.estimates for each in found)]
    names = arm_names(report, part)
    heads = ["arm", "at", "n", "parameters", *(metric_of(rows, metric, Words("en")) for metric in shown)]
    lines = []
    for each in found:
        at = ", ".join(f"{axis} {value}" for axis, value in each.axes.items()) or "–"
        count = "–" if each.parameters is None else f"{each.parameters:,}"
        lines.append([names[each.arm], at, f"{each.n} of {each.num_runs}", count])
        lines[-1] += [_mean(each.estimates[metric]) if metric in each.estimates else "–" for metric in shown]
    return table(heads, lines, words=2)


def chance(report: depthscope.Report, part: str) -> str:
    """What the best answer costs that does not look at the inputs; empty where nothing was trained, or none tells."""
    rows = [row for row in report.results.rows if row.cell.part == part and row.spec.steps]
    found = [row.record.chance_loss for row in rows if row.record and row.record.chance_loss is not None]
    if not found:
        return ""
    low, high = (f"{end:.3f}" for end in (min(found), max(found)))
    told = low if low == high else f"{low} to {high}, by run"
    return f"The best answer that does not look at the inputs has a training loss of {told}."


def arm_names(report: depthscope.Report, part: str) -> dict[str, str]:
    """Arm -> what a reader calls it."""
    return {arm.name: (arm.label or {}).get("en", arm.name) for arm in report.results.study.parts[part].arms}


def _title(report: depthscope.Report) -> str:
    study = report.results.study
    return (study.title or {}).get("en", study.name)


def _mean(made: Estimate) -> str:
    ends = interval(made.low, made.high, made.unit)
    return number(made.value, made.unit) + (f" [{ends}]" if ends else "")


def _difference(made: Estimate | None) -> str:
    """A paired difference with its interval; of accuracies in points."""
    if made is None or made.value is None:
        return "–"
    scale, form = (100, "+.1f") if made.unit == "accuracy" else (1, "+.3g")
    value, *ends = (
        f"{scale * each:{form}}".replace("-", "−") for each in (made.value, made.low, made.high) if each is not None
    )
    return value + (f" [{' – '.join(ends)}]" if ends else "")


def _lost(arm: RankedArm) -> str:
    told = [f"{each.num_lost} of {each.census.total} at {each.depth}" for each in arm.cells if each.num_lost]
    return ", ".join(told) or "–"
