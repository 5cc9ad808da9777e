"""Makes the table of docs/speed.md from the records that `make bench` wrote.

    python docs/make_speed.py [--records FOLDER] [--page other.md]

Nothing on the page between `<!-- made: ... -->` and `<!-- end -->` is written by hand.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from pairs import RECORDS, Record, read_growth, read_records
from results import fill, table

PAGE = Path(__file__).resolve().parent / "speed.md"
ORDER = (
    "step-20-bfloat16",
    "step-56-bfloat16",
    "step-20-float32",
    "step-56-float32",
    "sweep",
    "quick",
    "quick-full",
    "augmentation",
    "spiral-8-residual",
    "spiral-48-plain",
    "spiral-48-residual",
    "norms",
    "point-float32",
    "point-bfloat16",
    "point-float32-plain-model",
    "memory-110-float32",
    "memory-110-float32-checkpointing",
    "memory-110-bfloat16",
    "memory-110-bfloat16-checkpointing",
    "memory-1202-float32",
    "memory-1202-float32-checkpointing",
    "memory-1202-bfloat16",
    "memory-1202-bfloat16-checkpointing",
    "import",
    "help",
)
"""First those, as far as they are there, then the others by name."""

MEMORY = "memory-"
"""How the names of the records begin that have a table of their own."""


def main(records: Path = RECORDS, page: Path = PAGE) -> None:
    """Read all records and write the page."""
    kept = read_records(records)
    names = [name for name in ORDER if name in kept] + sorted(set(kept) - set(ORDER))
    ordered = {name: kept[name] for name in names}
    text = page.read_text(encoding="utf-8")
    held = {name: each for name, each in ordered.items() if name.startswith(MEMORY)}
    timed = {name: each for name, each in ordered.items() if name not in held}
    parts = {"table": figures(timed), "memory": memory(held), "where": where(ordered), "profiles": profiles(timed)}
    for name, made in {**parts, "growth": growth(read_growth(records))}.items():
        text = fill(text, name, made)
    page.write_text(text, encoding="utf-8")


def figures(records: Mapping[str, Record]) -> str:
    """A row a record: what is wanted, what was found, how often it was measured and how far it scatters."""
    heads = ["what", "", "wanted", "measured", "least – most", "n", "reference", "ours", "clock"]
    return table(heads, [row(each) for each in records.values()], words=2)


def row(record: Record) -> list[str]:
    """See `figures`."""
    sign = "≥" if record.unit == "times" else "≤"
    return [
        record.what,
        {True: "✓", False: "✗", None: ""}[record.met],
        f"{sign} {shown(record.want, record.unit)}" if record.want is not None else "–",
        f"**{found(record)}**",
        spread(record),
        str(len(record.pairs)),
        seconds(record.reference_s),
        seconds(record.ours_s),
        record.clock,
    ]


def memory(records: Mapping[str, Record]) -> str:
    """A row a record: what training takes as a worker runs it, with pages for each tensor, and as predicted."""
    heads = ["what", "memory", "least – most", "n", "a step", "each tensor in pages of its own", "predicted"]
    rows = [
        [
            each.what,
            f"**{shown(each.ratio, each.unit)}**",
            spread(each),
            str(len(each.pairs)),
            *(_fact(each, name, unit) for name, unit in _OF_MEMORY),
        ]
        for each in records.values()
    ]
    return table(heads, rows, words=1) if rows else "Not measured yet."


_OF_MEMORY = (("step, s", "s"), ("each tensor in pages of its own, MiB", "MiB"), ("predicted, MiB", "MiB"))


def _fact(record: Record, name: str, unit: str) -> str:
    value = record.facts.get(name)
    return "–" if value is None else shown(float(value), unit)


def profiles(records: Mapping[str, Record]) -> str:
    """Further facts of each record, and where the time of ours goes of those that miss what is wanted."""
    pieces = []
    for record in records.values():
        profile = [str(value) for name, value in record.facts.items() if name.startswith("profile ")]
        others = [
            f"{name}: {number(value) if isinstance(value, float) else value}"
            for name, value in record.facts.items()
            if not name.startswith("profile ") and name != "load"
        ]
        missed = ""
        if record.met is False:
            sign = "at least" if record.unit == "times" else "at most"
            wanted = f"{sign} {shown(record.want or 0.0, record.unit)}"
            missed = f" Wanted {wanted}, measured {found(record)}."
        if others or missed:
            pieces.append(f"- **{record.what}.**{missed}" + (f" {'; '.join(others)}." if others else ""))
        if missed:
            pieces += [f"  - {each.replace(' ', ' of its time in ', 1)}" for each in profile]
    return "\n".join(pieces) or "Nothing to add."


def growth(records: Mapping[str, Mapping[str, Any]]) -> str:
    """How time, memory and the page grow, a table a record."""
    pieces = []
    for each in records.values():
        rows = [
            [
                f"{at:,}",
                seconds(took),
                f"{memory:,.0f} MiB",
                *([f"{each['page_mb'][row]:.2f} MB"] if each["page_mb"] else []),
            ]
            for row, (at, took, memory) in enumerate(
                zip(each["at"], each["processor_s"], each["memory_mib"], strict=True)
            )
        ]
        heads = [each["along"], "time of the processor", "peak memory", *(["page"] if each["page_mb"] else [])]
        pieces += [
            f"**{each['what']}.** Wanted: {each['want']}. Medians of {each['times']}.",
            table(heads, rows, words=0),
            f"*{each['machine']}; {each['when']}.*",
        ]
    return "\n\n".join(pieces) or "Not measured yet."


def where(records: Mapping[str, Record]) -> str:
    """Machine, versions, days, and how busy the machine was."""
    if not records:
        return "Not measured yet."
    machines = sorted({each.machine for each in records.values()})
    versions = sorted({f"{name} {value}" for each in records.values() for name, value in each.versions.items()})
    days = sorted({each.when for each in records.values()})
    loads = [float(each.facts["load"]) for each in records.values() if "load" in each.facts]
    busy = f" Load of the machine when a figure was done: {min(loads):g} to {max(loads):g}." if loads else ""
    return f"*{'; '.join(machines)}; {', '.join(versions)}; {' to '.join(dict.fromkeys((days[0], days[-1])))}.{busy}*"


def found(record: Record) -> str:
    """What was measured, with more digits where fewer would say what was wanted."""
    told = shown(record.ratio, record.unit)
    near = record.met is False and told == shown(record.want or 0.0, record.unit)
    return told.replace(number(record.ratio), f"{record.ratio:.4g}") if near else told


def spread(record: Record) -> str:
    """The least and the greatest of several measurements."""
    return f"{number(min(record.pairs))} – {number(max(record.pairs))}" if len(record.pairs) > 1 else "–"


def shown(value: float, unit: str) -> str:
    """A figure with its unit."""
    return f"{number(value)}x" if unit == "times" else f"{number(value)} {unit}"


def number(value: float) -> str:
    """Three digits."""
    if 0.1 <= abs(value) < 10:
        return f"{value:.2f}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def seconds(value: float | None) -> str:
    """In the unit that is read most easily."""
    if value is None:
        return "–"
    return f"{1e3 * value:.3g} ms" if value < 1 else f"{value:.3g} s"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=Path, default=RECORDS)
    parser.add_argument("--page", type=Path, default=PAGE)
    told = parser.parse_args()
    main(told.records, told.page)
