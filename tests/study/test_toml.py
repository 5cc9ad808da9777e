from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest
import tomli_w
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from depthscope.core.errors import FaultsError
from depthscope.study.expand import expand
from depthscope.study.study import StudySpec
from depthscope.study.toml import bundled, dump, load, parse, read_source, sizes_of

Document = dict[str, Any]

BUNDLED = [(name, size) for name in bundled() for size in sizes_of(read_source(name)[1])]


@pytest.mark.parametrize(("name", "size"), BUNDLED)
def test_bundled_studies_survive_the_round_trip(name: str, size: str) -> None:
    study = load(name, size)
    again = parse(dump(study), source="again")
    assert again == study
    assert again.digest == study.digest
    assert dump(again) == dump(study)
    planned = expand(study)
    assert list(expand(again).runs) == list(planned.runs)
    assert {cell.run_id for cell in planned.cells} == set(planned.runs)


def test_each_bundled_study_has_the_sizes_of_the_command_line() -> None:
    assert {"cifar10", "spiral"} <= set(bundled())
    for name in bundled():
        assert sizes_of(read_source(name)[1]) == ("smoke", "quick", "full")
        assert load(name).size == "quick"


# ---- Hypothesis: valid studies ----------------------------------------------------------------------

NAMES = st.from_regex(r"[a-z0-9][a-z0-9-]{0,8}", fullmatch=True)
LINES = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=12)
TEXTS = st.dictionaries(st.sampled_from(["en", "zh"]), LINES, min_size=1)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "width": st.integers(1, 64),
    "gain": st.floats(1e-3, 1e3) | st.integers(1, 3),
    "lr": st.floats(1e-9, 1e9),
    "steps": st.integers(9, 10_000_000),  # a warmup is no longer
    "shortcut": st.sampled_from(["none", "identity"]),
    "optimizer_options": st.fixed_dictionaries({}, optional={"momentum": st.floats(0, 0.99)}),
    "data_options.noise": st.floats(0, 2) | st.integers(0, 2),
    "data_options.arms": st.integers(2, 9),
    "warmup_steps": st.integers(0, 9),
    "measures": st.lists(st.sampled_from(["layers", "gradcheck"]), max_size=2),
    "precision": st.sampled_from(["float32", "float64"]),
    "activation": st.sampled_from(["tanh", "relu", "linear"]),
    "norm": st.sampled_from(["none", "batch"]),
    "init": st.sampled_from(["gaussian", "orthogonal"]),
    "stem_gain": st.floats(1e-3, 1e3),
    "data_options.validation": st.integers(0, 9),
    "data_options.without_test": st.booleans(),
    "stop_loss": st.floats(1e-6, 1),
}
OVERRIDES = st.fixed_dictionaries({}, optional={key: FIELDS[key] for key in FIELDS if key != "shortcut"})
AXES: dict[str, st.SearchStrategy[Any]] = {
    "depth": st.lists(st.integers(1, 99), min_size=1, max_size=3, unique=True),
    "width": st.lists(st.integers(1, 64), min_size=1, max_size=2, unique=True),
    "gain": st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=2, unique=True),
    "activation": st.lists(FIELDS["activation"], min_size=1, max_size=2, unique=True),
    "data_options.noise": st.lists(st.floats(0, 2), min_size=1, max_size=2, unique=True),
    "zero_last_gamma": st.builds(lambda: [False]),  # a list of its own each time: a test puts something else into it
}
# The first 10,000 numbers from 10,000 on are those of selection seeds.
NUMBERS = st.integers(0, 9_999) | st.integers(20_000, 2**31 - 1)
SEEDS = st.integers(1, 4) | st.lists(NUMBERS, min_size=1, max_size=4, unique=True)
RESOURCES = st.fixed_dictionaries(
    {},
    optional={
        "cpus": st.integers(1, 64) | st.floats(0.01, 64),
        "gpus": st.integers(0, 8) | st.floats(0, 1),
        "memory_gb": st.floats(0.1, 1e4),
    },
)
BASE = {"backend": "numpy", "family": "mlp", "depth": 4, "width": 8, "activation": "tanh", "init": "gaussian"}
BASE |= {"data": "spiral", "steps": 10}


@st.composite
def parts(draw: st.DrawFn) -> Document:
    arms = [
        {"name": name, "set": draw(st.fixed_dictionaries({"shortcut": FIELDS["shortcut"]})), "label": draw(TEXTS)}
        for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    ]
    axes = {key: draw(AXES[key]) for key in draw(st.lists(st.sampled_from(sorted(AXES)), max_size=2, unique=True))}
    part: Document = {"base": draw(OVERRIDES), "arms": arms, "axes": axes, "seeds": draw(SEEDS)}
    if draw(st.booleans()):
        part["resources"] = draw(RESOURCES)
    if draw(st.booleans()):
        part["baseline"] = arms[-1]["name"]
    return part


@st.composite
def studies(draw: st.DrawFn) -> Document:
    study: Document = {
        "name": draw(NAMES),
        "title": draw(TEXTS),
        "base": {**BASE, **draw(OVERRIDES)},
        "parts": draw(st.dictionaries(NAMES, parts(), min_size=1, max_size=2)),
        "seeds": draw(SEEDS),
        "sources": draw(st.lists(st.text(st.characters(codec="utf-8"), max_size=5), max_size=2)),
    }
    name, part = next(iter(study["parts"].items()))
    select: Document = {"arm": part["arms"][0]["name"]}
    if "depth" in part["axes"]:
        select["where"] = {"depth": draw(st.sampled_from(["min", "max", part["axes"]["depth"][0]]))}
    claim = {"kind": "level", "part": name, "metric": "train_loss", "cells": [select], "text": draw(TEXTS)}
    claim |= {
        "statistic": "median",
        "expect": "at_most",
        "than": draw(st.floats(-9, 9)),
        "confirmatory": draw(st.booleans()),
    }
    study["claims"] = [{**claim, "name": each} for each in draw(st.lists(NAMES, max_size=2, unique=True))]
    common = {key: claim[key] for key in ("part", "metric", "text", "confirmatory")}
    if len(part["axes"].get("depth", ())) > 1:
        a, b = ({**select, "where": {"depth": end}} for end in ("max", "min"))
        margin = draw(st.floats(1e-6, 9))
        study["claims"].append({**common, "kind": "no_degradation", "name": "Kept", "a": a, "b": b, "margin": margin})
        way = {"arm": select["arm"], "direction": draw(st.sampled_from(["increasing", "decreasing"]))}
        study["claims"].append(
            {**common, "kind": "monotone", "name": "One-way", **way, "within": draw(st.floats(0, 9))}
        )
    if draw(st.booleans()):
        study["resources"] = draw(RESOURCES)
    if draw(st.booleans()):
        grid = draw(st.lists(st.floats(1e-6, 1e3) | st.integers(1, 9), min_size=2, max_size=4, unique=True))
        seeds = draw(st.integers(1, 4) | st.lists(st.integers(10_000, 19_999), min_size=1, max_size=3, unique=True))
        study["tuning"] = {"grid": grid, "seeds": seeds, "validation": draw(st.integers(1, 9)), "parts": [name]}
    return study


@settings(max_examples=75, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(studies())
def test_valid_studies_survive_the_round_trip(document: Document) -> None:
    check_round_trip(document)


@pytest.mark.slow
@settings(max_examples=1_000, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(studies())
def test_a_thousand_valid_studies_survive_the_round_trip(document: Document) -> None:
    check_round_trip(document)


def check_round_trip(document: Document) -> None:
    study = StudySpec.model_validate(document)
    text = dump(study)
    again = parse(text, source="again")
    assert again == study
    assert dump(again) == text
    assert list(expand(again).runs.values()) == list(expand(study).runs.values())
    # The file as a person would have written it says the same.
    assert parse(tomli_w.dumps(document), source="mine") == study


@settings(max_examples=75, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(studies(), st.data())
def test_a_study_with_one_thing_broken_is_refused_in_our_words(document: Document, data: st.DataObject) -> None:
    holder: Any = document
    while True:  # walk to a random place, and put a random thing there
        key = data.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        if not (isinstance(holder[key], dict | list) and holder[key]) or data.draw(st.booleans()):
            break
        holder = holder[key]
    junk: Any = st.sampled_from(
        [float("nan"), True, -1, 10**30, "junk", [], {}, {"junk": 1}, [{}], [[1], "a"], {"a": {"b": []}}]
    )
    holder[key] = data.draw(junk)
    told: tuple[tuple[str, str], ...] = ()
    try:
        expand(parse(tomli_w.dumps(document), source="mine"))
    except FaultsError as error:
        told = error.faults or (("", "no fault was told"),)
    for path, message in told:
        assert path
        assert message
        assert "\n" not in message
        assert "<" not in path
        assert "[key]" not in path
        assert "pydantic" not in message


# Each of these is at fault wherever it stands: no table takes the key, and no place takes a date.
MISSPELT = "no-such-key"
DATE = datetime.date(2026, 1, 1)
OWN_KEYS = {"parts", "sizes"}
"""Tables whose keys are names that the file gives."""


def places(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(path, the table or list that holds it) of every value in a document."""
    for key in value if isinstance(value, dict) else range(len(value)):
        here = (*path, str(key))
        yield here, value
        if isinstance(value[key], dict | list):
            yield from places(value[key], here)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(studies(), st.data())
def test_a_broken_place_is_told_by_its_path(document: Document, data: st.DataObject) -> None:
    check_told(document, data)


@pytest.mark.slow
@settings(max_examples=1_000, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(studies(), st.data())
def test_a_thousand_broken_places_are_told_by_their_path(document: Document, data: st.DataObject) -> None:
    check_told(document, data)


def check_told(document: Document, data: st.DataObject) -> None:
    found = list(places(document))
    path, holder = data.draw(st.sampled_from(found))
    key: Any = int(path[-1]) if isinstance(holder, list) else path[-1]
    if isinstance(holder, dict) and path[:-1] not in {(each,) for each in OWN_KEYS} and data.draw(st.booleans()):
        holder[MISSPELT] = holder.pop(key)
        path = (*path[:-1], MISSPELT)
    else:
        holder[key] = DATE
    with pytest.raises(FaultsError) as error:
        expand(parse(tomli_w.dumps(document), source="mine"))
    broken = ".".join(path)
    told = [each for each, _ in error.value.faults]
    # At the place itself, within what was put there, or at what holds it (a list of axis values, a claim by its kind).
    assert any(f"{each}.".startswith(f"{broken}.") or f"{broken}.".startswith(f"{each}.") for each in told), told
    assert all(message and "\n" not in message for _, message in error.value.faults)
