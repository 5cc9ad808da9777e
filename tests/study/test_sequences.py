"""Networks that read sequences: heads share the width, and the head reads the states that the data asks of."""

from __future__ import annotations

from typing import Any

import pytest

from depthscope.core.errors import FaultsError
from depthscope.study.expand import expand
from depthscope.study.study import StudySpec

Document = dict[str, Any]
COMMON: Document = {"backend": "torch", "width": 8, "depth": 5, "steps": 2}
GPT: Document = {
    **COMMON,
    "backend": "numpy",
    "family": "gpt",
    "shortcut": "identity",
    "norm": "rms",
    "activation": "relu",
    "init": "gpt2",
    "data": "names",
}
RECURRENT: Document = {**COMMON, "family": "recurrent", "activation": "tanh", "init": "orthogonal", "data": "adding"}
RELATIONAL: Document = {
    **COMMON,
    "family": "relational",
    "activation": "relu",
    "init": "torch",
    "data": "nth_farthest",
}
FAULTS: list[tuple[Document, Document, str, str]] = [
    (
        *(GPT, {"model_options": {"heads": 3}}, "base.model_options.heads"),
        "3 heads do not divide a width of 8. Choose a divisor of 8 for heads, or a width that 3 divides.",
    ),
    (
        *(GPT, {"backend": "torch", "model_options.heads": 16}, "base.model_options.heads"),
        "16 heads do not divide a width of 8. Choose a divisor of 8 for heads, or a width that 16 divides.",
    ),
    (
        *(GPT, {"width": 6}, "base.model_options.heads"),
        "4 heads do not divide a width of 6. Choose a divisor of 6 for heads, or a width that 4 divides.",
    ),
    (
        *(RELATIONAL, {"model_options": {"heads": 3}}, "base.model_options.heads"),
        "3 heads do not divide a width of 8. Choose a divisor of 8 for heads, or a width that 3 divides.",
    ),
    (
        *(RECURRENT, {"model_options": {"readout": "each"}}, "base.model_options.readout"),
        "data 'adding' asks for one answer, at the end; wanted 'last', got 'each'.",
    ),
    (
        *(RECURRENT, {"data": "copy"}, "base.model_options.readout"),
        "data 'copy' asks for an answer at each step; wanted 'each', got 'last'.",
    ),
    (
        *(RECURRENT, {"model_options": {"cell": "gru", "forget_bias": 2.0}}, "base.model_options.forget_bias"),
        "is of cell 'lstm' alone, not of 'gru'; leave it away.",
    ),
    (
        *(GPT, {"backend": "torch", "model_options": {"placement": "post", "norm_end": False}}),
        *("base.model_options.norm_end", "is of placement 'pre' alone, not of 'post'; leave it away."),
    ),
    *(
        (
            *(GPT, {"norm": "none", "backend": backend, "model_options": {option: value}}),
            *(f"base.model_options.{option}", "there is no normaliser to place with norm 'none'; leave it away."),
        )
        for backend in ("numpy", "torch")
        for option, value in (("placement", "post"), ("norm_embedding", True), ("norm_end", False))
    ),
    # a fault of the data is told alone
    (RECURRENT, {"data": "spiral", "model_options": {"readout": "each"}}, "base.data", "takes 'adding' or 'copy'"),
]


def study(base: Document) -> StudySpec:
    parts = {"main": {"arms": [{"name": "a"}]}}
    return StudySpec.model_validate({"name": "a", "title": {"en": "A"}, "base": base, "parts": parts})


@pytest.mark.parametrize(("base", "changes", "path", "says"), FAULTS)
def test_one_fault(base: Document, changes: Document, path: str, says: str) -> None:
    with pytest.raises(FaultsError) as error:
        expand(study({**base, **changes}))
    [(at, message)] = error.value.faults
    assert at == path
    assert says in message


@pytest.mark.parametrize(
    "base",
    [
        *(GPT, {**GPT, "model_options": {"heads": 8}}, {**GPT, "backend": "torch"}, RELATIONAL, RECURRENT),
        {**RECURRENT, "model_options": {"forget_bias": -2.0}},
        {**RECURRENT, "model_options": {"cell": "gru", "forget_bias": 1.0}},
        {**GPT, "backend": "torch", "model_options": {"placement": "post", "norm_end": True}},
        {**GPT, "norm": "none", "model_options": {"placement": "pre", "norm_embedding": False}},
        {**GPT, "norm": "mine.norms:make", "backend": "torch", "model_options": {"norm_embedding": True}},
        {**RECURRENT, "data": "copy", "model_options": {"readout": "each"}},
        {**RECURRENT, "data": "mine.data:make", "model_options": {"readout": "each"}},
        {**RECURRENT, "data": "mine.data:make"},
        {**RELATIONAL, "family": "mine.net:make", "model_options": {"heads": 3, "readout": "each"}},
    ],
)
def test_sound_ones(base: Document) -> None:
    assert expand(study(base)).cells


def test_beside_another_fault_it_is_told_too() -> None:
    with pytest.raises(FaultsError) as error:
        expand(study({**GPT, "lr": -1.0, "model_options": {"heads": 3}}))
    assert {path for path, _ in error.value.faults} == {"base.lr", "base.model_options.heads"}
