"""Networks that a study compares start from the same tensors and see the same batches, and no draw ever shifts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.train.short import TRAINED

from depthscope.record.events import Started
from depthscope.record.schema import Digests
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.train.build import Context
from depthscope.train.start import run_task

BASE: dict[str, Any] = {**TRAINED, "depth": 56, "width": 16, "padding": 4, "lr": 0.02}
PINNED = {
    "stem.conv.weight": "f47ce3f4ced13ba2",
    "blocks.4.conv1.weight": "fe01308d8841b8ee",
    "blocks.26.conv2.weight": "aca3c4211126cf7e",
    "head.weight": "fa9403d32b75b540",
    "blocks.9.shortcut.conv.weight": "f0194bcd01ee19c2",
    "blocks.18.shortcut.conv.weight": "d21f4fff3a9dc233",
    "data": "f2d66e171bf0f408",
    "order": "eba360501367ceca",
    "augment": "c86be79d6a7374a3",
}


def begun(**changes: Any) -> Digests:
    """The digests of a run at its start; nothing is trained."""
    pytest.importorskip("torch")
    events = run_task(Task((RunSpec.model_validate({**BASE, **changes}),)), Context())
    started = next(event for event in events if isinstance(event, Started))
    return started.digests


@pytest.fixture(scope="module")
def plain() -> Digests:
    return begun(shortcut="none")


def test_plain_56_and_resnet_56_a_share_all_tensors(plain: Digests) -> None:
    a = begun(shortcut="A")
    assert a.init == plain.init
    assert (a.data, a.order, a.augment) == (plain.data, plain.order, plain.augment)


def test_option_b_shares_all_but_its_projections(plain: Digests) -> None:
    b = begun(shortcut="B")
    own = set(b.init) - set(plain.init)
    assert {name: digest for name, digest in b.init.items() if name not in own} == plain.init
    # A convolution and a batch norm where each of the last two stages begins: nine blocks a stage.
    trained = {
        f"blocks.{block}.shortcut.{name}" for block in (9, 18) for name in ("conv.weight", "bn.weight", "bn.bias")
    }
    assert {name for name in own if name.endswith(("weight", "bias"))} == trained
    assert {name.rpartition(".")[0] for name in own} == {name.rpartition(".")[0] for name in trained}
    assert (b.data, b.order, b.augment) == (plain.data, plain.order, plain.augment)


def test_a_network_of_20_layers_starts_as_one_of_56_where_the_shapes_are_the_same(plain: Digests) -> None:
    """Three blocks a stage against nine: blocks 0 to 2 are of the first stage in both."""
    shallow = begun(shortcut="none", depth=20)
    same = [name for name in shallow.init if name.startswith(("stem.", "blocks.0.", "blocks.1.", "blocks.2.", "head."))]
    assert len(same) > 40
    assert all(shallow.init[name] == plain.init[name] for name in same)
    assert (shallow.data, shallow.order, shallow.augment) == (plain.data, plain.order, plain.augment)


def test_a_zero_gamma_moves_the_last_scales_alone(plain: Digests) -> None:
    zero = begun(shortcut="A", zero_last_gamma=True)
    moved = {name for name in plain.init if zero.init[name] != plain.init[name]}
    assert len(moved) == 27
    assert all(name.endswith("bn2.weight") for name in moved)


def test_another_seed_is_another_draw_of_all(plain: Digests) -> None:
    other = begun(shortcut="none", seed=1)
    drawn = [name for name in plain.init if "conv" in name or name == "head.weight"]
    assert len(drawn) == 56
    assert all(other.init[name] != plain.init[name] for name in drawn)
    assert other.order != plain.order
    assert other.augment != plain.augment


def test_no_draw_has_shifted(plain: Digests) -> None:
    """Digests of this code's own draws: if one moves, count up `MATHEMATICS` in study/run.py, then pin anew.

    Initial tensors are drawn in float64 by NumPy and cast, so that they are the same bits on every machine.
    """
    b = begun(shortcut="B")
    found = {name: {**plain.init, **b.init}[name] for name in PINNED if "." in name}
    found |= {name: str(getattr(plain, name)) for name in PINNED if "." not in name}
    assert found == PINNED
