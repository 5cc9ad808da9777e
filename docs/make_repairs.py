"""Makes the generated parts of docs/repairs.md from the records of the studies of repairs, and what the README says.

    python docs/make_repairs.py results/repairs-spiral-tuned results/repairs-cifar10-tuned results/constructed
    python docs/make_repairs.py --page other.md FOLDER ...
    python docs/make_repairs.py                # the table of names alone

Each folder is the `out` of a finished run; studies that are not named keep what stands on the page. Nothing there
between `<!-- made: ... -->` and `<!-- end -->` is written by hand, and no sentence there stands that the records do not
make.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import depthscope
from depthscope.analysis.finding import Estimate
from depthscope.analysis.ranking import RankedArm, Ranking, rankings
from depthscope.analysis.summarise import summarise
from depthscope.report.citations import BIBTEX
from depthscope.report.numbers import interval, number
from depthscope.report.sections import excess
from depthscope.study.catalog import CATALOG, Entry, Kind

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "repairs.md"
README = ROOT / "README.md"
BRIEF = ("repairs-spiral",)
"""Studies that the README tells in short."""
KINDS: dict[Kind, str] = {
    "family": "Families",
    "shortcut": "Shortcuts",
    "norm": "Normalisers",
    "activation": "Activations",
    "init": "Initialisers",
    "clip": "Clipping",
}
FIGURES = ("ranking-", "hero")
"""Figures that the page shows: all of the first kind, or the other where a study ranks nothing."""


def main(folders: list[Path], page: Path = PAGE) -> None:
    """Judge each folder, draw its figures beside the page, and write."""
    text = fill(page.read_text(encoding="utf-8"), "names", catalogue())
    readme = README.read_text(encoding="utf-8")
    for folder in folders:
        report = depthscope.make_report(folder, figures=True)
        name = report.results.study.name.removesuffix("-tuned")
        pictures = _pictures(folder, page.parent / "figures", name)
        text = fill(text, name, content(report, pictures))
        if name in BRIEF:
            readme = fill(readme, name, brief(report))
    page.write_text(text, encoding="utf-8")
    if page == PAGE:
        README.write_text(readme, encoding="utf-8")


def fill(text: str, study: str, made: str) -> str:
    """The text with what stands between a study's marks replaced."""
    pattern = re.compile(rf"(<!-- made: {re.escape(study)} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"the page has no place for {study!r}: wanted <!-- made: {study} --> ... <!-- end -->")
    return pattern.sub(lambda found: f"{found[1]}{made}\n{found[2]}", text)


def content(report: depthscope.Report, pictures: dict[str, str]) -> str:
    """All that is made of one study: finding, where it was measured, verdicts, and a ranking for each part.

    Args:
        report: of the study.
        pictures: name of a figure -> its path from the page.
    """
    pieces = [report.headline, measured(report)]
    if report.findings:
        pieces.append(verdicts(report))
    found = rankings(report.results)
    for at, each in enumerate(found):
        part = report.results.study.parts[each.part]
        title = (part.title or {}).get("en", each.part)
        if each.further:
            title += " (" + ", ".join(f"{axis} = {value}" for axis, value in each.further.items()) + ")"
        pieces.append(f"### {title}")
        slice_ = f"-{sum(other.part == each.part for other in found[:at])}" if each.further else ""
        picture = pictures.get(f"ranking-{each.part}{slice_}")
        if picture:
            pieces.append(f"![{title}: each arm at each depth, in the order of their rank]({picture})")
        pieces.append(ranks(report, each))
    if not found:
        pieces += [f"![{name}]({path})" for name, path in pictures.items()]
        pieces.append(cells(report))
    return "\n\n".join(pieces)


def brief(report: depthscope.Report) -> str:
    """What the README says of a study: what was found, and where it was measured."""
    return f"{report.headline}\n\n{measured(report)}"


def catalogue() -> str:
    """Every name of the kinds that make a repair: its options, families, what its paper has with it, and sources."""
    bibliography = {key: _paper(entry) for key, entry in BIBTEX.items()}
    pieces = []
    for kind, heading in KINDS.items():
        rows = [[f"`{kind}`", "what it is", "options", "families", "goes with", "source"]]
        for name, entry in CATALOG[kind].items():
            options = ", ".join(f"`{key} = {_toml(value)}`" for key, value in entry.options.items())
            sources = ", ".join(bibliography[key] for key in entry.sources)
            told = [_cell(entry.summary), options, _families(entry), _together(kind, entry), sources]
            rows.append([f"`{name}`", *told])
        columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
        lines = ["| " + " | ".join(row) + " |" for row in zip(*columns, strict=True)]
        pieces += [f"### {heading}", "\n".join([lines[0], "|" + "---|" * len(columns), *lines[1:]])]
    return "\n\n".join(pieces)


def _families(entry: Entry) -> str:
    return "all" if set(entry.families) == set(CATALOG["family"]) else ", ".join(f"`{each}`" for each in entry.families)


def _together(kind: Kind, entry: Entry) -> str:
    """What its paper has with it, and what alone it can be had with; of a family, what is in no table of its own."""
    told = [("", *each) for each in entry.goes_with.items()]
    for field, values in entry.accepts.items():
        if None not in values and not (kind == "family" and field in KINDS):
            told.append(("only ", field, values))
    return "; ".join(f"{only}`{field} = {'` or `'.join(map(_toml, values))}`" for only, field, values in told)


def _paper(entry: str) -> str:
    """First author and year of a BibTeX entry, linked where it has an arXiv number."""
    author, year, number_ = (
        re.search(rf"^\s*{field} = \{{(.*?)\}}", entry, re.M) for field in ("author", "year", "eprint")
    )
    assert author is not None, entry
    assert year is not None, entry
    told = f"{author[1].split(',')[0].strip('{}')} {year[1]}"
    return f"[{told}](https://arxiv.org/abs/{number_[1]})" if number_ else told


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


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
        lines.append(f"| {finding.verdict} | {_cell(finding.text['en'])}{star} | {_cell(finding.reason)} |")
    return "\n".join(lines)


def ranks(report: depthscope.Report, found: Ranking) -> str:
    """The ranked table: intervals in brackets, differences paired by seed, parameters beside the baseline's."""
    names = _names(report, found)
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
        by_depth = {cell.depth: cell for cell in arm.cells}
        row = [str(arm.place), f"{arm.low}–{arm.high}" if arm.low < arm.high else "settled", names[arm.arm]]
        row += [_mean(by_depth[depth].estimate) if depth in by_depth else "–" for depth in found.depths or (None,)]
        row += [_difference(arm.change)] if len(found.depths) > 1 else []
        row += [_difference(arm.from_baseline), _difference(arm.from_best)]
        deepest = arm.deepest
        row += ["–" if deepest.parameters is None else f"{deepest.parameters:,}", excess(deepest.excess) or "–"]
        row += [", ".join("–" if cell.tuned is None else f"{cell.tuned:g}" for cell in arm.cells)] if tuned else []
        row += [_lost(arm), str(deepest.estimate.n)]
        rows.append([_cell(each) for each in row])
    return "\n".join("| " + " | ".join(row) + " |" for row in [[_cell(head) for head in heads], *rows])


def cells(report: depthscope.Report) -> str:
    """The table of a study that ranks nothing: each cell's mean with its interval."""
    metrics = ("train_accuracy", "train_loss", "test_accuracy")
    found = summarise(report.results, metrics)
    shown = [metric for metric in metrics if any(metric in cell.estimates for cell in found)]
    heads = ["part", "arm", "at", "n", "parameters", *(metric.replace("_", " ") for metric in shown)]
    rows = [["---", "---", "---", *["---:"] * (len(heads) - 3)]]
    for cell in found:
        at = ", ".join(f"{axis} {value}" for axis, value in cell.axes.items()) or "–"
        count = "–" if cell.parameters is None else f"{cell.parameters:,}"
        rows.append([cell.part, cell.arm, at, f"{cell.n} of {cell.num_runs}", count])
        rows[-1] += [_mean(cell.estimates[metric]) if metric in cell.estimates else "–" for metric in shown]
    return "\n".join("| " + " | ".join(map(_cell, row)) + " |" for row in [heads, *rows])


def _pictures(folder: Path, to: Path, study: str) -> dict[str, str]:
    """The study's figures, copied beside the page."""
    to.mkdir(exist_ok=True)
    drawn = sorted((folder / "figures").glob("*.png"))
    chosen = next((mine for kind in FIGURES if (mine := [each for each in drawn if each.stem.startswith(kind)])), [])
    for each in chosen:
        (to / f"{study}-{each.name}").write_bytes(each.read_bytes())
    return {each.stem: f"{to.name}/{study}-{each.name}" for each in chosen}


def _names(report: depthscope.Report, found: Ranking) -> dict[str, str]:
    arms = report.results.study.parts[found.part].arms
    return {arm.name: (arm.label or {}).get("en", arm.name) for arm in arms}


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
    told = [f"{cell.num_lost} of {cell.census.total} at {cell.depth}" for cell in arm.cells if cell.num_lost]
    return ", ".join(told) or "–"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, help="results folders of finished studies")
    parser.add_argument("--page", type=Path, default=PAGE)
    told = parser.parse_args()
    main(told.folders, told.page)
