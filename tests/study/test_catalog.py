from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

from depthscope.study.catalog import CATALOG, USER_KINDS, Entry, Kind, check_name, fill_options, is_user_code
from depthscope.study.faults import FieldFaults
from depthscope.study.run import OPTION_FIELDS, RunSpec
from depthscope.study.schema import study_schema

ENTRIES = [(kind, name, entry) for kind, entries in CATALOG.items() for name, entry in entries.items()]
TARGETS = [
    pytest.param(kind, name, backend, target, id=f"{kind}-{name}-{backend}")
    for kind, name, entry in ENTRIES
    for backend, target in entry.targets.items()
]
OTHER_SPELLING = {
    # torch.optim.Adam takes both as `betas`; train/torch_loop puts them together.
    ("adam", "torch"): {"beta1", "beta2"},
    ("adamw", "torch"): {"beta1", "beta2"},
    # The laboratory's momentum has no weight decay; RunSpec lets only 0 through.
    ("sgd", "numpy"): {"weight_decay"},
}


def found(target: str) -> Any:
    module, _, name = target.partition(":")
    if module.startswith(("torch", "depthscope.models", "depthscope.probes")):
        pytest.importorskip("torch")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize(("kind", "name", "backend", "target"), TARGETS)
def test_every_target_is_there(kind: Kind, name: str, backend: str, target: str) -> None:
    thing = found(target)
    assert callable(thing)
    if kind in ("data", "schedule", "optimizer"):
        wanted = set(CATALOG[kind][name].options) - OTHER_SPELLING.get((name, backend), set())
        assert wanted <= set(inspect.signature(thing).parameters)


@pytest.mark.parametrize(("kind", "name", "backend", "target"), [each for each in TARGETS if "data-" in str(each.id)])
def test_defaults_of_a_data_set_are_those_of_its_code(kind: Kind, name: str, backend: str, target: str) -> None:
    parameters = inspect.signature(found(target)).parameters
    options = CATALOG[kind][name].options
    own = {key: each.default for key, each in parameters.items() if each.kind is inspect.Parameter.KEYWORD_ONLY}
    follows = CATALOG[kind][name].follows
    assert {key: own[key] for key in options} == {**options, **dict.fromkeys(follows)}


@pytest.mark.parametrize(("kind", "name", "entry"), ENTRIES, ids=lambda each: each if isinstance(each, str) else "")
def test_every_entry_is_told_and_keeps_its_own_limits(kind: Kind, name: str, entry: Entry) -> None:
    assert entry.summary
    assert entry.targets
    assert set(entry.limits) <= set(entry.options)
    assert {*entry.follows, *(other for other, _ in entry.follows.values())} <= set(entry.options)
    assert all(entry.options[option] in choices for option, choices in entry.choices.items())
    assert fill_options(kind, name, {}) == dict(entry.options)
    assert fill_options(kind, name, entry.options) == dict(entry.options)
    built_of = kind in ("shortcut", "norm", "activation", "init")
    assert bool(entry.families) == built_of
    assert set(entry.families) <= set(CATALOG["family"])
    assert set(entry.closed) <= set(entry.accepts) & set(USER_KINDS)
    for field, values in entry.accepts.items():
        assert field in RunSpec.model_fields
        known = CATALOG.get(field)  # type: ignore[call-overload]
        assert known is None or set(values) <= set(known)


def test_a_word_that_is_none_of_an_options_choices() -> None:
    assert fill_options("family", "gpt", {"placement": "post"})["placement"] == "post"
    with pytest.raises(FieldFaults) as error:
        fill_options("family", "gpt", {"placement": "past"})
    said = "unknown placement of gpt 'past'. Did you mean 'post'? Known: post, pre."
    assert list(error.value.faults) == [("placement", said)]
    assert study_schema()["$defs"]["Run"]["properties"]["model_options.placement"]["enum"] == ["pre", "post"]


def test_windows_that_are_not_numbered_are_all_that_there_are() -> None:
    def filled(**given: int) -> tuple[int, int]:
        options = fill_options("data", "shakespeare", given)
        return options["num_train"], options["num_test"]

    assert filled() == filled(length=64) == (15_685, 1_742)
    assert filled(length=128) == (7_842, 871)
    assert filled(length=32, num_test=800) == (31_370, 800)
    assert filled(length=100_000) == (10, 1)
    with pytest.raises(FieldFaults, match="length"):
        filled(length=0)


def test_filled_options_are_no_window_into_the_catalogue() -> None:
    filled = fill_options("schedule", "step", {})
    filled["milestones"].append(0.9)
    assert fill_options("schedule", "step", {})["milestones"] == [0.5, 0.75]


def test_every_kind_is_a_field_of_a_run() -> None:
    assert {kind for kind in CATALOG if kind != "measure"} <= set(RunSpec.model_fields)
    assert set(OPTION_FIELDS) <= set(RunSpec.model_fields)


@pytest.mark.parametrize(
    ("name", "is_code"),
    [("a:b", True), ("a.b.c:d", True), ("a", False), ("a:", False), (":b", False), ("a b:c", False), ("a..b:c", False)],
)
def test_user_code(name: str, is_code: bool) -> None:
    assert is_user_code(name) == is_code

    for kind in USER_KINDS:
        if is_code:
            assert check_name(kind, name) == name
        else:
            with pytest.raises(ValueError, match=f"^unknown {kind} "):
                check_name(kind, name)
    with pytest.raises(ValueError, match=r"^unknown optimizer "):
        check_name("optimizer", name)
