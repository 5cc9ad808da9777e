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
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from results import cell, content, fill, measured, pictures

import depthscope
from depthscope.report.citations import BIBTEX
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
        text = fill(text, name, content(report, shown(folder, page.parent / "figures", name)))
        if name in BRIEF:
            readme = fill(readme, name, brief(report))
    page.write_text(text, encoding="utf-8")
    if page == PAGE:
        README.write_text(readme, encoding="utf-8")


def shown(folder: Path, to: Path, study: str) -> dict[str, str]:
    """The figures of the first kind that the study has: name -> path from the page."""
    return next((found for kind in FIGURES if (found := pictures(folder, to, study, (kind,)))), {})


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
            told = [cell(entry.summary), options, _families(entry), _together(kind, entry), sources]
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, help="results folders of finished studies")
    parser.add_argument("--page", type=Path, default=PAGE)
    told = parser.parse_args()
    main(told.folders, told.page)
