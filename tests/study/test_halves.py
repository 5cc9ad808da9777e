"""Half a repair is run, with one remark: what its paper has with it, and what is there."""

from __future__ import annotations

from typing import Any

import pytest
import tomli_w

from depthscope.study.catalog import CATALOG
from depthscope.study.expand import expand
from depthscope.study.halves import half_repairs
from depthscope.study.run import RunSpec
from depthscope.study.toml import bundled, load, parse

BASE = {
    "backend": "torch",
    "family": "cifar_resnet",
    "depth": 8,
    "width": 4,
    "shortcut": "A_pool",
    "norm": "batch",
    "activation": "relu",
    "init": "he_fan_in",
    "data": "images",
    "optimizer": "sgd",
    "lr": 0.1,
    "steps": 1,
}


def remark(**arms: dict[str, Any]) -> str | None:
    document = {
        "name": "mine",
        "title": {"en": "Mine"},
        "seeds": 2,
        "base": BASE,
        "parts": {"main": {"arms": [{"name": name, "set": fields} for name, fields in arms.items()]}},
    }
    return half_repairs(expand(parse(tomli_w.dumps(document), source="mine.toml")))


def test_one_remark_names_every_arm_and_what_is_missing() -> None:
    missing = "norm 'fixup' goes with init 'fixup' in its paper (Zhang 2019); here init is"
    assert remark(
        whole={"norm": "fixup", "init": "fixup"},
        x={"norm": "fixup"},
        y={"norm": "fixup", "lr": 0.2},
        z={"init": "tat", "norm": "none"},
    ) == (
        f"Half a repair? Arms x, y: {missing} 'he_fan_in'; arm z: init 'tat' goes with activation 'tat' in its paper "
        "(Zhang 2022); here activation is 'relu'. It runs as it is."
    )


@pytest.mark.parametrize(
    "whole",
    [
        {},
        {"norm": "fixup", "init": "fixup"},
        {"shortcut": "skipinit"},
        {"shortcut": "none", "norm": "none", "init": "tat", "activation": "tat"},
        {"family": "nfnet", "shortcut": "nfnet", "norm": "scaled_ws", "clip": "agc"},
        {"family": "mlp", "data": "spiral", "shortcut": "identity_2", "norm": "fixup", "init": "fixup"},
        {"norm": "my_norms:mine"},
    ],
)
def test_a_whole_one_has_none(whole: dict[str, Any]) -> None:
    assert remark(arm=whole) is None


def test_of_several_values_those_of_the_family_are_named() -> None:
    told = remark(arm={"family": "mlp", "data": "spiral", "shortcut": "rezero", "norm": "fixup"})
    assert told is not None
    assert "goes with shortcut 'identity_2' in its paper" in told


@pytest.mark.parametrize("name", sorted({*bundled()} - {"transformer"}))
def test_ours_have_whole_ones(name: str) -> None:
    """Of `transformer` one arm is half a repair, to show that it is one: its note says so."""
    assert half_repairs(expand(load(name))) is None


def test_what_goes_together_can_be_had() -> None:
    for kind, entries in CATALOG.items():
        for name, entry in entries.items():
            for field, values in entry.goes_with.items():
                assert field in RunSpec.model_fields, (kind, name)
                assert set(values) <= set(CATALOG[field]), (kind, name)  # type: ignore[index]
                assert entry.sources, (kind, name)
