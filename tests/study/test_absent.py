"""Claims about figures that their runs cannot have are refused by the plan, in a line."""

from __future__ import annotations

from typing import Any

import pytest

from depthscope.core.errors import FaultsError
from depthscope.study.absent import CONSTRUCTED, MEASURED
from depthscope.study.expand import expand
from depthscope.study.metrics import SUMMARY
from depthscope.study.study import StudySpec
from depthscope.study.toml import bundled, load, read_source, sizes_of

Document = dict[str, Any]
LEVEL: Document = {
    "name": "x",
    "text": {"en": "x"},
    "kind": "level",
    "part": "main",
    "statistic": "median",
    "expect": "at_most",
    "than": 0.5,
}


def study(base: Document, arms: list[Document], metric: str, *claimed: str, **claim: Any) -> StudySpec:
    """A study with one claim, on the level of a metric in some arms."""
    asked = {**LEVEL, "metric": metric, **claim, "cells": [{"arm": arm} for arm in claimed]}
    parts = {"main": {"axes": {"depth": [32, 56]}, "arms": arms}}
    return StudySpec.model_validate(
        {"name": "a", "title": {"en": "A"}, "base": base, "parts": parts, "claims": [asked]}
    )


def told(asked: StudySpec) -> list[tuple[str, str]]:
    with pytest.raises(FaultsError) as error:
        expand(asked)
    return list(error.value.faults)


ARMS: list[Document] = [
    {"name": "plain"},
    {"name": "also-plain", "set": {"gain": 1.5}},
    {"name": "residual", "set": {"shortcut": "A"}},
    {"name": "built", "set": {"init": "constructed"}},
    {"name": "unmeasured", "set": {"shortcut": "B", "measures": []}},
    {"name": "own", "set": {"family": "mine.net:make", "measures": ["lesion"]}},
]


@pytest.mark.parametrize(
    ("metric", "claimed", "says"),
    [
        (
            "lesion_loss_change",
            ("residual", "plain", "also-plain"),
            "arms 'plain', 'also-plain' cannot have 'lesion_loss_change': a network with shortcut 'none' has no branch "
            "to take out.",
        ),
        (
            "lesion_accuracy_change",
            ("unmeasured",),
            "arm 'unmeasured' cannot have 'lesion_accuracy_change': put 'lesion' among the measures of its runs.",
        ),
        (
            "construction_loss_change",
            ("built", "residual"),
            "arm 'residual' cannot have 'construction_loss_change': it is of init 'constructed' alone, not of "
            "'he_fan_in'.",
        ),
        (
            "train_accuracy_start_batch",
            ("plain",),
            "arm 'plain' cannot have 'train_accuracy_start_batch': it is of init 'constructed' alone, not of "
            "'he_fan_in'.",
        ),
        ("dh_factor_last", ("plain",), "arm 'plain' cannot have 'dh_factor_last': put 'layers' among the measures of"),
    ],
)
def test_a_figure_that_an_arm_cannot_have(
    torch_run: Document, metric: str, claimed: tuple[str, ...], says: str
) -> None:
    base = {**torch_run, "measures": ["lesion"]}
    [(path, message)] = told(study(base, ARMS, metric, *claimed))
    assert path == "claims.0.metric"
    assert message.startswith(says)
    # Where the size cannot judge the claim, nothing is asked of it.
    expand(study(base, ARMS, metric, *claimed, sizes=["other"]))


@pytest.mark.parametrize(
    ("metric", "claimed"),
    [
        ("lesion_loss_change", ("residual",)),
        ("lesion_loss_change", ("own",)),  # nobody knows whether it has branches
        ("construction_accuracy_change", ("built",)),
        ("train_loss_start", ("built",)),
        ("train_loss", ("plain", "residual", "own")),
    ],
)
def test_a_figure_that_the_arms_have(torch_run: Document, metric: str, claimed: tuple[str, ...]) -> None:
    assert expand(study({**torch_run, "measures": ["lesion"]}, ARMS, metric, *claimed)).cells


def test_an_accuracy_of_numbers(torch_run: Document) -> None:
    base = {**torch_run, "family": "mine.net:make", "data": "adding", "measures": ["lesion"]}
    arms: list[Document] = [{"name": each, "set": {"gain": 1.0 + at}} for at, each in enumerate("abc")]
    says = "what data 'adding' asks for is near or far, not right or wrong; judge a loss."
    for metric in ("test_accuracy", "lesion_accuracy_change"):
        assert told(study(base, arms, metric, "b")) == [("claims.0.metric", f"arm 'b' cannot have '{metric}': {says}")]
    asked = study(base, arms, "test_loss", "a")
    assert expand(asked).cells
    parts = {"main": asked.parts["main"].model_copy(update={"ranked": "validation_accuracy"})}
    assert told(asked.model_copy(update={"parts": parts})) == [
        ("parts.main.ranked", f"arms 'a', 'b', 'c' cannot have 'validation_accuracy': {says}")
    ]


@pytest.mark.parametrize(
    ("data", "options", "metric", "says"),
    [
        ("images", {"num_test": 0}, "test_loss", "with data_options.num_test = 0 its runs have no test examples."),
        (
            *("spiral", {"without_test": True}, "test_accuracy"),
            "with data_options.without_test = true its runs have no test examples.",
        ),
        ("images", {}, "validation_loss", "with data_options.validation = 0 its runs have no validation examples."),
        ("images", {"num_test": 1}, "test_loss", ""),
        ("spiral", {}, "test_loss", ""),
        ("images", {"validation": 8, "num_test": 0}, "validation_accuracy", ""),
        ("mine.data:make", {"num_test": 0}, "test_loss", ""),
        ("mine.data:make", {}, "validation_loss", ""),
    ],
)
def test_a_figure_of_examples_that_are_not_there(
    torch_run: Document, data: str, options: Document, metric: str, says: str
) -> None:
    base = {**torch_run, "family": "mine.net:make", "data": data, "data_options": options}
    asked = study(base, [{"name": "own"}], metric, "own")
    if says:
        assert told(asked) == [("claims.0.metric", f"arm 'own' cannot have '{metric}': {says}")]
    else:
        assert expand(asked).cells


def test_the_last_layer_of_a_transformer_alone(torch_run: Document) -> None:
    gpt = {"family": "gpt", "shortcut": "identity", "norm": "rms", "init": "gpt2", "data": "names"}
    arms: list[Document] = [
        {"name": "conv"},
        {"name": "gpt", "set": gpt},
        {"name": "own", "set": {"family": "mine.net:make"}},
    ]
    base = {**torch_run, "measures": ["layers"]}
    says = "arm 'conv' cannot have 'dw_end_log_first': it is of a transformer, family 'gpt', not of 'cifar_resnet'."
    assert told(study(base, arms, "dw_end_log_first", "conv", "gpt", "own")) == [("claims.0.metric", says)]


def test_curvature_is_measured_where_it_is_asked_for_and_has_an_edge_under_descent_alone(torch_run: Document) -> None:
    base = {**torch_run, "measures": ["sharpness"]}
    arms: list[Document] = [{"name": "sgd"}, {"name": "adam", "set": {"optimizer": "adam"}}]
    says = (
        "arm 'adam' cannot have 'sharpness_ratio_last': the bound is one of optimizer 'sgd'; 'adam' scales its "
        "gradients. Judge 'sharpness_last'."
    )
    assert told(study(base, arms, "sharpness_ratio_last", "sgd", "adam")) == [("claims.0.metric", says)]
    assert expand(study(base, arms, "sharpness_last", "sgd", "adam")).cells
    says = "arm 'sgd' cannot have 'smoothness_most': put 'smoothness' among the measures of its runs."
    assert told(study(base, arms, "smoothness_most", "sgd")) == [("claims.0.metric", says)]


def test_each_reason_has_its_line(torch_run: Document) -> None:
    faults = told(study({**torch_run, "measures": ["lesion"]}, ARMS, "lesion_loss_change", "plain", "unmeasured"))
    assert len(faults) == 2


def test_a_network_that_is_dense_adds_nothing(torch_run: Document) -> None:
    base = {**torch_run, "family": "densenet", "shortcut": "dense", "measures": ["lesion"]}
    asked = study(base, [{"name": "dense", "set": {}}], "lesion_loss_change", "dense")
    parts = {"main": asked.parts["main"].model_copy(update={"axes": {"depth": [22, 40]}})}
    [(_, message)] = told(asked.model_copy(update={"parts": parts}))
    assert "shortcut 'dense' has no branch" in message


def test_what_another_part_measures_of_the_same_run_is_there(lab: Document) -> None:
    claim = {**LEVEL, "metric": "dh_factor_first", "cells": [{"arm": "plain"}]}
    parts: Document = {
        "main": {"arms": [{"name": "plain"}]},
        "flow": {"base": {"measures": ["layers"]}, "arms": [{"name": "plain"}]},
    }
    document = {"name": "a", "title": {"en": "A"}, "base": lab, "parts": parts, "claims": [claim]}
    assert expand(StudySpec.model_validate(document)).cells
    del parts["flow"]
    assert len(told(StudySpec.model_validate(document))) == 1


def test_the_metrics_that_are_named_are_there() -> None:
    assert set(CONSTRUCTED) <= set(SUMMARY)
    for prefix in MEASURED:
        assert any(metric.startswith(prefix) for metric in SUMMARY)


@pytest.mark.parametrize("name", bundled())
def test_no_bundled_study_claims_what_cannot_be(name: str) -> None:
    for size in sizes_of(read_source(name)[1]):
        assert expand(load(name, size)).cells
