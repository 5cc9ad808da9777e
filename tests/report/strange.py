"""Studies at the edges of what a page must bear, made from the synthetic ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tests.report import synthetic

from depthscope.analysis.table import Results
from depthscope.record.schema import Outcome, RunRecord
from depthscope.study.expand import expand
from depthscope.study.study import StudySpec
from depthscope.train.measure import diverged

Make = Callable[[], Results]
LONG = "a network whose authors gave it a name that does not end before the page does, and then some more"


def _of(document: dict[str, Any]) -> Results:
    return synthetic.made(expand(StudySpec.model_validate(document)))


def _document() -> dict[str, Any]:
    return synthetic.cifar().study.model_dump(mode="json")


def no_claims() -> Results:
    return _of({**_document(), "claims": []})


def one_seed() -> Results:
    return _of({**_document(), "seeds": 1})


def one_depth() -> Results:
    document = _document()
    document["parts"]["main"]["axes"] = {"depth": [20]}
    return _of({**document, "claims": []})


def all_diverged() -> Results:
    return _ended(synthetic.cifar(), diverged(17, math.inf), every=1)


def some_failed() -> Results:
    ended = Outcome(
        status="failed",
        step=3,
        reason="RuntimeError: out of memory (forward, line 40)",
        remedy="mend what the reason names; the same command does this run again",
    )
    return _ended(synthetic.cifar(), ended, every=4)


def fifty_arms() -> Results:
    document = _document()
    part = document["parts"]["main"]
    part["arms"] = [
        {
            "name": f"arm-{number}",
            "label": {"en": f"arm number {number}", "zh": f"第 {number} 组"},
            "set": {"shortcut": "A" if number % 2 else "none", "lr": 0.1 / (number + 1)},
        }
        for number in range(50)
    ]
    part |= {"baseline": "arm-0", "exclude": []}
    return _of({**document, "seeds": 1, "claims": []})


def long_labels() -> Results:
    document = _document()
    document["title"] = {"en": LONG, "zh": LONG}
    for arm in document["parts"]["main"]["arms"]:
        arm["label"] = {"en": f"{LONG}, {arm['name']}"}
    for claim in document["claims"]:
        claim["text"] = {"en": f"{claim['text']['en']}; {LONG}"}
    return _of(document)


def endless_words() -> Results:
    """Words of thousands of letters without a place to break."""
    document = _document()
    document["title"] = {"en": "T" * 1990}
    document["question"] = {"en": "Q" * 1990}
    part = document["parts"]["main"]
    part["title"] = {"en": "P" * 1990}
    for arm in part["arms"]:
        arm |= {"label": {"en": f"{arm['name']}{'L' * 1900}"}, "note": {"en": "N" * 1900}}
    for claim in document["claims"]:
        claim["text"] = {"en": "C" * 1900}
    return _of(document)


def other_axes() -> Results:
    """Parts that vary a learning rate, a number of examples, a width, and a name: none has depth as an axis."""
    document = _document()
    part = document["parts"]["main"]
    axes: dict[str, dict[str, list[Any]]] = {
        "rate": {"lr": [0.001, 0.01, 0.1]},
        "size": {"data_options.num_train": [100, 1000, 5000], "lr": [0.05, 0.1]},
        "width": {"width": [4, 8, 16]},
        "name": {"init": ["he_fan_in", "he_fan_out"]},
    }
    bare = {**part, "exclude": [], "base": {**part["base"], "depth": 20}, "arms": part["arms"][:2]}
    document["parts"] = {name: {**bare, "title": {"en": name}, "axes": each} for name, each in axes.items()}
    return _of({**document, "claims": []})


ALL = (other_axes, no_claims, one_seed, one_depth, all_diverged, some_failed, fifty_arms, long_labels, endless_words)


def _ended(results: Results, outcome: Outcome, *, every: int) -> Results:
    records: dict[str, RunRecord] = {}
    for number, (run_id, record) in enumerate(results.records.items()):
        changed = {"outcome": outcome, "summary": {}}
        records[run_id] = record if number % every else record.model_copy(update=changed)
    return Results(plan=results.plan, records=records, load_table=results.load_table)
