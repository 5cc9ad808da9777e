"""Makes the pictures and the tables of the README from the records of the two quick studies.

    python docs/make_figures.py results        # runs what is missing under results/, then writes

Nothing in the README between `<!-- made: ... -->` and `<!-- end -->` is written by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from results import cell, fill

import depthscope

ROOT = Path(__file__).resolve().parents[1]
PICTURES = {"spiral": ("hero", "profile-flow"), "cifar10": ("hero", "profile-main")}


def main(out: Path, studies: list[str]) -> None:
    """Run, draw and write."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    for study in studies:
        folder = out / study
        depthscope.run(study, size="quick", out=folder, figures=True)
        report = depthscope.make_report(folder)
        for name in PICTURES[study]:
            picture = (folder / "figures" / f"{name}.png").read_bytes()
            (ROOT / "docs" / "figures").mkdir(exist_ok=True)
            (ROOT / "docs" / "figures" / f"{study}-{name}.png").write_bytes(picture)
        text = fill(text, study, table(report))
    readme.write_text(text, encoding="utf-8")


def table(report: depthscope.Report) -> str:
    """The finding in a sentence, where it was measured, and the verdicts; the page has the estimates."""
    facts = report.document["provenance"]
    versions = ", ".join(f"{name} {'/'.join(map(str, facts[name]))}" for name in ("numpy", "torch") if facts.get(name))
    seconds = sum(record.timings.cpu_s for record in report.results.records.values())
    where = f"{'/'.join(facts['processor'])}, {versions}; {len(report.results.records)} runs, {seconds:.0f} s of CPU"
    lines = [
        report.headline,
        "",
        f"*Measured on {where}.*",
        "",
        "| verdict | claim |",
        "|---|---|",
    ]
    for finding in report.findings:
        mark = {"supported": "✓", "refuted": "✗", "undecided": "?"}[finding.verdict]
        star = " **(confirmatory)**" if finding.confirmatory else ""
        lines.append(f"| {mark} {finding.verdict} | {cell(finding.text['en'])}{star} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"), sys.argv[2:] or list(PICTURES))
