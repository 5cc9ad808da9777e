"""Measures the zoo of `tests/zoo` and writes the tables of `docs/zoo.md` (five minutes on one core).

    python docs/make_zoo.py            # measures all, writes docs/zoo.jsonl
    python docs/make_zoo.py --tables   # the tables alone, from the records
    python docs/make_zoo.py NAME ...   # measures these anew

It needs the checkout, torch and transformers: all of the `dev` extra.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from results import fill_all

HERE = Path(__file__).resolve().parent
PAGE, RECORDS = HERE / "zoo.md", HERE / "zoo.jsonl"
sys.path.insert(0, str(HERE.parent))
Row = Mapping[str, Any]
COLUMNS = ("Model", "Parameters", "Blocks", "Additions found / known", "Concatenations", "Gates", "Verdict")


def main(arguments: Sequence[str]) -> None:
    """Measure, then write the tables."""
    if "--tables" not in arguments:
        import torch
        from tests.zoo.row import profile_of, row_of
        from tests.zoo.table import ZOO

        torch.set_num_threads(1)
        warnings.simplefilter("ignore")
        known = {row["model"]: row for row in read()} if RECORDS.exists() else {}
        for name in arguments or ZOO:
            known[name] = row_of(name, profile_of(name))
            print(name, file=sys.stderr)
        lines = [json.dumps(known[name], ensure_ascii=False) for name in ZOO if name in known]
        RECORDS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    PAGE.write_text(fill_all(PAGE.read_text(encoding="utf-8"), tables(read())), encoding="utf-8")


def read() -> list[dict[str, Any]]:
    """The records, in order."""
    return [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Every generated part by its mark."""
    return {"summary": _summary(rows), "zoo": _zoo(rows), "derivations": _derivations(rows)}


def _summary(rows: Sequence[Row]) -> str:
    known = [row for row in rows if row["known"] is not None]
    wrong = [row["model"] for row in known if row["found"] != row["known"]]
    verdicts: dict[str, int] = {}
    for row in rows:
        verdicts[row["verdict"]] = verdicts.get(row["verdict"], 0) + 1
    told = ", ".join(f"{word} {count}" for word, count in sorted(verdicts.items(), key=lambda each: -each[1]))
    return (
        f"{len(rows)} models in {len({row['family'] for row in rows})} families, all measured. The number of additions "
        f"is known of {len(known)} and counted right in {len(known) - len(wrong)}; not in {', '.join(wrong)}. "
        f"Verdicts: {told}."
    )


def _zoo(rows: Sequence[Row]) -> str:
    lines = []
    for family in dict.fromkeys(row["family"] for row in rows):
        lines += ["", f"### {family[0].upper()}{family[1:]}", ""]
        lines += [f"| {' | '.join(COLUMNS)} |", "| --- | ---: | ---: | ---: | ---: | ---: | --- |"]
        for row in rows:
            if row["family"] == family:
                known = "not known" if row["known"] is None else row["known"]
                cells = [row["model"], f"{row['parameters']:,}", row["blocks"], f"{row['found']} / {known}"]
                cells += [row["concatenations"], row["gates"], row["verdict"]]
                lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines[1:])


def _derivations(rows: Sequence[Row]) -> str:
    models: dict[str, list[str]] = {}
    for row in rows:
        models.setdefault(row["why"], []).append(row["model"])
    lines = ["| Derivation | Models |", "| --- | --- |"]
    return "\n".join([*lines, *(f"| {why} | {', '.join(names)} |" for why, names in models.items())])


if __name__ == "__main__":
    main(sys.argv[1:])
