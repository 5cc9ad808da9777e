"""Tries the diagnosis on the held-out nets and writes the tables of `docs/diagnosis.md` (ten minutes on one core).

    python docs/make_diagnosis.py            # goes on where it stopped; --again starts anew
    python docs/make_diagnosis.py --tables   # the tables alone, from the records

The trainings that the rules on curves are judged by take minutes more. Each net is a line of `docs/diagnosis.jsonl`,
each training one of `docs/diagnosis_trainings.jsonl`: what was the matter with it, and what was said of it. Nothing
between `<!-- made: ... -->` and `<!-- end -->` in the page is written by hand.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import torch
from diagnosis_faults import FAULTS
from diagnosis_healthy import HEALTHY
from diagnosis_nets import NUM_EACH, Net, net
from diagnosis_trainings import NUM_CLASSES, PLANS, training
from results import fill_all
from scipy.stats import beta
from torch.nn.functional import cross_entropy

from depthscope.analysis.model import CAUSES, VERDICTS, diagnose
from depthscope.analysis.model.thresholds import MEANINGS, THRESHOLDS
from depthscope.probes.measure.profile import profile_model

HERE = Path(__file__).resolve().parent
PAGE, RECORDS, TRAININGS = HERE / "diagnosis.md", HERE / "diagnosis.jsonl", HERE / "diagnosis_trainings.jsonl"
UNTRAINED = 0.9
"""Last validation loss over ln K at or above which a training learnt nothing."""
SPLIT = "held-out"
NO_ALARM = ("healthy", "cannot tell")
Row = Mapping[str, Any]


def main(arguments: Sequence[str]) -> None:
    """Judge what is not judged yet, then write the tables."""
    torch.set_num_threads(1)
    if "--again" in arguments:
        RECORDS.unlink(missing_ok=True)
        TRAININGS.unlink(missing_ok=True)
    if "--tables" not in arguments:
        known = {row["net"] for row in read()} if RECORDS.exists() else set()
        with RECORDS.open("a", encoding="utf-8") as file:
            for broken in (False, True):
                for index in range(NUM_EACH):
                    key = f"{SPLIT}/{'broken' if broken else 'healthy'}/{index}"
                    if key not in known:
                        file.write(json.dumps(judged(net(SPLIT, broken, index))) + "\n")
                        file.flush()
                        print(f"\r{key}   ", end="", file=sys.stderr, flush=True)
        trained = {row["training"] for row in read(TRAININGS)} if TRAININGS.exists() else set()
        with TRAININGS.open("a", encoding="utf-8") as file:
            for kind, plan in PLANS.items():
                for index in range(plan.number):
                    if f"{SPLIT}/{kind}/{index}" not in trained:
                        file.write(json.dumps(watched(kind, index)) + "\n")
                        file.flush()
    PAGE.write_text(fill_all(PAGE.read_text(encoding="utf-8"), tables(read())), encoding="utf-8")


def judged(one: Net) -> dict[str, Any]:
    """The record of one net."""
    found = diagnose(profile_model(one.model, (one.inputs, one.targets), cross_entropy))
    return {
        "net": one.key,
        "kind": one.kind,
        "detail": one.detail,
        "place": one.truth.place,
        "truth": one.truth.cause,
        "verdict": found.verdict,
        "cause": found.cause,
        "where": list(found.where[:1]),
    }


def watched(kind: str, index: int) -> dict[str, Any]:
    """The record of one training."""
    found = training(SPLIT, kind, index)
    return {
        "training": f"{SPLIT}/{kind}/{index}",
        "kind": kind,
        "detail": found.detail,
        "untrained": not found.validation < UNTRAINED * math.log(NUM_CLASSES),
        "verdict": found.diagnosis.verdict,
        "cause": found.diagnosis.cause,
    }


def read(path: Path = RECORDS) -> list[dict[str, Any]]:
    """The records, in order."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def is_broken(row: Row) -> bool:
    """Whether a fault was planted."""
    return bool(row["truth"])


def alarmed(row: Row) -> bool:
    """Whether a fault was told."""
    return row["verdict"] not in NO_ALARM


def right_place(row: Row) -> bool:
    """The planted block, or a module in it; no place for a fault of the whole body."""
    place, where = row["place"], row["where"]
    if place == "whole":
        return not where
    return bool(where) and (where[0] == place or where[0].startswith((f"{place}.", f"{place}:")))


def caught(row: Row) -> bool:
    """The right cause at the right place."""
    return bool(row["cause"] == row["truth"] and right_place(row))


def interval(count: int, total: int) -> tuple[float, float]:
    """Clopper-Pearson at 95%."""
    low = beta.ppf(0.025, count, total - count + 1) if count else 0.0
    high = beta.ppf(0.975, count + 1, total - count) if count < total else 1.0
    return float(low), float(high)


def rate(count: int, total: int) -> str:
    """Such as `0 of 200, 0.0% [0.0, 1.8]`."""
    low, high = interval(count, total)
    return f"{count} of {total}, {100 * count / total:.1f}% [{100 * low:.1f}, {100 * high:.1f}]"


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """All tables of the page."""
    healthy, broken = [row for row in rows if not is_broken(row)], [row for row in rows if is_broken(row)]
    return {
        "rates": lines(
            ["", "nets", "wanted"],
            [
                ["false alarms among the healthy", rate(sum(map(alarmed, healthy)), len(healthy)), "at most 2%"],
                ["*cannot tell* among the healthy", rate(_silent(healthy), len(healthy)), ""],
                ["some fault told among the broken", rate(sum(map(alarmed, broken)), len(broken)), ""],
                ["right block and right cause", rate(sum(map(caught, broken)), len(broken)), "at least 95%"],
            ],
        ),
        "kinds": lines(
            ["planted", "nets, right block and cause"],
            [[name.replace("_", " "), _caught_of(broken, name)] for name in FAULTS],
        ),
        "confusion": confusion(rows),
        "errors": errors(rows),
        "families": lines(
            ["healthy family", "nets without an alarm"],
            [[_first_line(maker.__doc__), _quiet(healthy, name)] for name, maker in HEALTHY.items()],
        ),
        "trainings": of_trainings(read(TRAININGS)),
        "verdicts": lines(["verdict", "meaning"], [[f"*{name}*", cell(text)] for name, text in VERDICTS.items()]),
        "causes": lines(["code", "meaning"], [[code, words] for code, words in CAUSES.items() if code]),
        "thresholds": lines(
            ["threshold", "value", "what it bounds"],
            [[f"`{name}`", f"{value:g}", cell(MEANINGS[name])] for name, value in THRESHOLDS.items()],
        ),
    }


def confusion(rows: Sequence[Row]) -> str:
    """Planted cause against verdict."""
    counts = Counter((row["truth"], row["verdict"]) for row in rows)
    verdicts = [each for each in VERDICTS if any(row["verdict"] == each for row in rows)]
    truths = ["", *(code for code in CAUSES if code and any(row["truth"] == code for row in rows))]
    heads = ["truth", *verdicts, "right cause and block"]
    body = []
    for truth in truths:
        own = [row for row in rows if row["truth"] == truth]
        right = sum(map(caught, own)) if truth else sum(not alarmed(row) for row in own)
        cells = [str(counts[truth, verdict]) if counts[truth, verdict] else "" for verdict in verdicts]
        body.append([truth or "healthy", *cells, f"{right} of {len(own)}"])
    return lines(heads, body)


def errors(rows: Sequence[Row]) -> str:
    """Every false alarm and every miss."""
    wrong = [row for row in rows if (not caught(row) if is_broken(row) else alarmed(row))]
    if not wrong:
        return "None."
    return lines(
        ["net", "what it is", "truth", "told"],
        [
            [row["net"], row["detail"], row["truth"] or "healthy", f"{row['verdict']}, {row['cause']}, {row['where']}"]
            for row in wrong
        ],
    )


def of_trainings(rows: Sequence[Row]) -> str:
    """Sort of training against what was said first."""
    body = []
    for kind, plan in PLANS.items():
        own = [row for row in rows if row["kind"] == kind]
        if kind == "too fast":  # some survive it: whether it did harm is seen in validation, which no rule looked at
            harmed = [row for row in own if row["untrained"]]
            body.append([f"{kind}, learnt nothing", plan.what, plan.cause, _told(harmed, plan.cause)])
            own = [row for row in own if not row["untrained"]]
            body.append(
                [f"{kind}, learnt all the same", plan.what, "none, or learning rate", _told(own, "", plan.cause)]
            )
            continue
        body.append([kind, plan.what, plan.cause or "none", _told(own, plan.cause)])
    return lines(["trainings", "what they are", "cause wanted", "told so"], body)


def _told(rows: Sequence[Row], *causes: str) -> str:
    return rate(sum(row["cause"] in causes for row in rows), len(rows)) if rows else "none"


def cell(text: str) -> str:
    """Text that does not end a cell of a table."""
    return text.replace("|", "\\|")


def _silent(rows: Sequence[Row]) -> int:
    return sum(row["verdict"] == "cannot tell" for row in rows)


def _caught_of(rows: Sequence[Row], kind: str) -> str:
    own = [row for row in rows if row["kind"] == kind]
    return rate(sum(map(caught, own)), len(own))


def _quiet(rows: Sequence[Row], kind: str) -> str:
    own = [row for row in rows if row["kind"] == kind]
    return f"{sum(not alarmed(row) for row in own)} of {len(own)}"


def _first_line(text: str | None) -> str:
    return (text or "").splitlines()[0].rstrip(".")


def lines(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [heads, ["---"] * len(heads), *rows])


if __name__ == "__main__":
    main(sys.argv[1:])
