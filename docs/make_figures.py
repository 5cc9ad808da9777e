"""Makes the pictures and the tables of the README from the records of the two quick studies.

    python docs/make_figures.py results        # runs what is missing under results/, then writes

Nothing in the README between `<!-- made: ... -->` and `<!-- end -->` is written by hand.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

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


def fill(text: str, study: str, content: str) -> str:
    """The text with what stands between a study's marks replaced."""
    pattern = re.compile(rf"(<!-- made: {study} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"README.md has no place for {study!r}: wanted <!-- made: {study} --> ... <!-- end -->")
    return pattern.sub(lambda found: f"{found[1]}{content}\n{found[2]}", text)


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


def cell(text: str) -> str:
    """Text that a Markdown table bears."""
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "results"), sys.argv[2:] or list(PICTURES))
