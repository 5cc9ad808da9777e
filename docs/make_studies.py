"""Makes those parts of docs/elsewhere.md, docs/landscape.md and docs/speed.md that are made of studies' records.

    python docs/make_studies.py results/microgpt results/transformer results/landscape ...
    python docs/make_studies.py --docs OTHER FOLDER ...

Each folder is the `out` of a finished run; studies that are not named keep what stands on the page. Nothing there
between `<!-- made: ... -->` and `<!-- end -->` is written by hand.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from results import arm_names, content, fill, part_title, pictures, table

import depthscope
from depthscope.analysis.table import ResultRow
from depthscope.report.landscape.study import landscapes
from depthscope.report.words import Words

DOCS = Path(__file__).resolve().parent
PAGES = {
    **dict.fromkeys(("microgpt", "transformer", "deepnorm", "time", "relational", "identity"), "elsewhere.md"),
    "landscape": "landscape.md",
    "precision": "speed.md",
}
"""Of each study, the page that it stands on."""
FIGURES = {
    "microgpt": ("hero", "profile-names"),
    "transformer": ("hero", "depth-post", "profile-pre"),
    "deepnorm": ("hero", "profile-train", "lesion-lesions"),
    "time": ("hero", "profile-flow"),
    "relational": ("hero",),
    "identity": ("hero", "profile-depth"),
    "landscape": ("landscape-maps", "convexity-maps", "hero"),
    "precision": ("claims", "depth-main"),
}
"""Of each study, the figures shown: all whose names begin so."""
LONGEST = 80
"""Characters of a sample that are shown."""


def main(folders: list[Path], docs: Path = DOCS) -> None:
    """Judge each folder, draw its figures beside its page, and write."""
    for folder in folders:
        report = depthscope.make_report(folder, figures=True)
        name = report.results.study.name
        if name not in PAGES:
            raise SystemExit(f"{folder} holds study {name!r}; wanted one of {', '.join(PAGES)}")
        pieces = [
            content(report, pictures(folder, docs / "figures", name, FIGURES[name])),
            samples(report),
            directions(report),
        ]
        page = docs / PAGES[name]
        text = fill(page.read_text(encoding="utf-8"), name, "\n\n".join(piece for piece in pieces if piece))
        page.write_text(text, encoding="utf-8")


def samples(report: depthscope.Report) -> str:
    """What the networks of each part's first seed wrote, at its least depth and its greatest; empty without text."""
    results, pieces = report.results, []
    for part in results.study.parts:
        rows = [row for row in results.rows if row.cell.part == part and row.record and row.record.samples]
        if not rows:
            continue
        seed = min(row.cell.seed for row in rows)
        depths = [row.spec.depth for row in rows]
        shown = [row for row in rows if row.cell.seed == seed and row.spec.depth in (min(depths), max(depths))]
        names = arm_names(report, part)
        lines = [[names[row.cell.arm], str(row.spec.depth), _sample(row), _loss(row)] for row in shown]
        pieces += [
            f"### Samples: {part_title(report, part)}",
            f"Seed {seed}, each character drawn from the network's probabilities; ⏎ is a new line.",
            table(["arm", "depth", "sample", "train loss"], lines, words=3),
        ]
    return "\n\n".join(pieces)


def directions(report: depthscope.Report) -> str:
    """What the choice of directions changes in a study's maps, beside what a seed changes; empty without maps."""
    words = Words("en")
    told = [each for section in landscapes(report.results, words) for each in section.spread]
    return " ".join(told)


def _sample(row: ResultRow) -> str:
    """Its first texts, as many as fit, as code; at least one, cut."""
    assert row.record is not None
    text, *others = [_line(each) for each in row.record.samples]
    for other in others:
        if len(text) + len(other) + 2 > LONGEST:
            break
        text += f", {other}"
    # Characters of a language are no Markdown: two marks, for a text may hold one.
    return f"`` {text[:LONGEST]} ``"


def _line(text: str) -> str:
    return text.replace("\n", "⏎") or "(nothing)"


def _loss(row: ResultRow) -> str:
    loss = row.value("train_loss")
    return "–" if loss is None else f"{loss:.3f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="results folders of finished studies")
    parser.add_argument("--docs", type=Path, default=DOCS, help="the folder of the pages")
    told = parser.parse_args()
    main(told.folders, told.docs)
