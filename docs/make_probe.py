"""Makes the generated parts of docs/probe.md and docs/watch.md, and of the README 'Your own model' with its picture.

    python docs/make_probe.py            # writes
    python docs/make_probe.py --check    # says whether the tables are those of the code

The picture and the words come from `COMMAND`, run in docs/examples.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from results import cell, fill, fill_all

ROOT = Path(__file__).resolve().parents[1]
PAGE, WATCH, README = ROOT / "docs" / "probe.md", ROOT / "docs" / "watch.md", ROOT / "README.md"
PICTURE = ROOT / "docs" / "figures" / "probe-multiplier.png"
COMMAND = "depthscope probe deep:short --data deep:data --loss cross_entropy --html page.html"


def tables() -> dict[str, str]:
    """Name of a generated part of docs/probe.md -> its text."""
    from depthscope.analysis.model import CAUSES, VERDICTS
    from depthscope.analysis.model.thresholds import MEANINGS, THRESHOLDS
    from depthscope.api.model import CHECKUP_SCHEMA
    from depthscope.core.readings import READINGS, Conditions

    readings = ["| place | quantity | what it is |", "|---|---|---|"]
    for place, quantities in READINGS.items():
        readings += [f"| {place} | `{name}` | {cell(text)} |" for name, text in quantities.items()]
    conditions = ["| field | type |", "|---|---|", "| `step` | updates done before |"]
    conditions += [f"| `{each.name}` | `{cell(str(each.type))}` |" for each in dataclasses.fields(Conditions)]
    causes = ["| cause | meaning |", "|---|---|"]
    causes += [f"| `{code}` | {cell(text)} |" for code, text in CAUSES.items() if code]
    thresholds = ["| threshold | value | what it bounds |", "|---|---|---|"]
    thresholds += [f"| `{name}` | {value:g} | {cell(MEANINGS[name])} |" for name, value in THRESHOLDS.items()]
    verdicts = ["| verdict | meaning |", "|---|---|"]
    verdicts += [f"| `{name}` | {cell(text)} |" for name, text in VERDICTS.items()]
    return {
        "schema": f"`schema` is {CHECKUP_SCHEMA}.",
        "readings": "\n".join(readings),
        "conditions": "\n".join(conditions),
        "verdicts": "\n".join(verdicts),
        "causes": "\n".join(causes),
        "thresholds": "\n".join(thresholds),
    }


def shown() -> tuple[str, bytes]:
    """The words of the checkup in the README and its picture."""
    sys.path.insert(0, str(ROOT / "docs" / "examples"))
    from depthscope import api
    from depthscope.report.charts import configure
    from depthscope.report.export import png
    from depthscope.report.model import Shown
    from depthscope.report.model.pictures import pictures
    from depthscope.report.palette import PAPER
    from depthscope.report.words import Words

    checkup = api.probe_named("deep:short", data="deep:data", loss="cross_entropy")
    drawn = pictures(Shown(profile=checkup.profile, expectation=checkup.expected), Words("en"))
    (panel,) = next(each for each in drawn if each.key == "multiplier").panels
    chart = panel.draw(width=820, height=230).properties(
        title={
            "text": "What each block does to the gradient",
            "subtitle": "Dots: measured multiplier. Dashes: mean-field theory, with the band in which they agree.",
        }
    )
    return str(checkup), png({**chart.to_dict(validate=False), "config": configure(background=PAPER)})


def blocks(text: str) -> list[str]:
    """The Python blocks of a document."""
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def watched(folder: Path) -> str:
    """What the first loop of docs/watch.md prints; its page is written into the folder."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.chdir(folder):
        exec(compile(blocks(WATCH.read_text(encoding="utf-8"))[0], str(WATCH), "exec"), {})
    return said.getvalue().rstrip()


def main() -> None:
    """Write, or check."""
    page = PAGE.read_text(encoding="utf-8")
    made = fill_all(page, tables())
    if "--check" in sys.argv[1:]:
        raise SystemExit(0 if made == page else "docs/probe.md is not what the code says: python docs/make_probe.py")
    PAGE.write_text(made, encoding="utf-8")
    words, picture = shown()
    PICTURE.write_bytes(picture)
    readme = README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        said = watched(Path(folder))
    WATCH.write_text(fill(WATCH.read_text(encoding="utf-8"), "watch", f"```text\n{said}\n```"), encoding="utf-8")
    README.write_text(fill(readme, "probe", f"```text\n{words}\n```"), encoding="utf-8")


if __name__ == "__main__":
    main()
