"""Every repair trains: at depth 56 the loss falls within 15 steps on the full batch of a few tiny images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from depthscope.record.events import Ended, Rows
from depthscope.study.catalog import CATALOG, Kind
from depthscope.study.expand import Task, expand
from depthscope.study.run import RunSpec
from depthscope.study.toml import load
from depthscope.train.build import Context
from depthscope.train.network import make_module
from depthscope.train.start import run_task

STEPS = 15
TINY: dict[str, Any] = {
    "width": 8,
    "data": "images",
    "data_options": {"num_train": 64, "num_test": 16, "image_size": 8},
    "augment": "none",
    "padding": 0,
    "batch_size": None,
    "epochs": None,
    "steps": STEPS,
    "seed": 0,
    "schedule": "constant",
    "schedule_options": {},
    "warmup_steps": 0,
    "lr": 0.01,
    "measures": (),
}
NET: dict[str, Any] = {
    "backend": "torch",
    "family": "cifar_resnet",
    "depth": 56,
    "shortcut": "none",
    "norm": "batch",
    "activation": "relu",
    "init": "he_fan_in",
    **TINY,
}
MLP: dict[str, Any] = {
    **NET,
    "family": "mlp",
    "width": 16,
    "norm": "none",
    "activation": "tanh",
    "init": "gaussian",
    "data": "spiral",
    "data_options": {"points_per_arm": 20},
}
FURTHER: dict[str, dict[str, Any]] = {
    "A_pool": {**NET, "shortcut": "A_pool"},
    "he_fan_out": {**NET, "init": "he_fan_out", "shortcut": "A"},
    "torch": {**NET, "init": "torch", "shortcut": "A"},
    "linear": {**NET, "activation": "linear", "shortcut": "A"},
    "gelu": {**NET, "activation": "gelu", "shortcut": "A"},
    "silu": {**NET, "activation": "silu", "shortcut": "A"},
    "ws_group": {**NET, "norm": "ws_group", "shortcut": "A"},
    "ws alone": {**NET, "norm": "ws", "shortcut": "A"},
    "mlp identity": {**MLP, "shortcut": "identity"},
    "mlp identity_2": {**MLP, "shortcut": "identity_2"},
    "mlp dense": {**MLP, "shortcut": "dense"},
    "mlp rms": {**MLP, "shortcut": "identity", "norm": "rms"},
    "mlp highway": {**MLP, "shortcut": "highway"},
}
"""Names of the catalogue that no arm of the studies has."""

LR = {"looks-linear": 1e-3}
"""Arms whose untrained network is an isometry without a normaliser are trained at less: their loss is steep."""

CI = ("agc", "fixup", "rezero", "mlp identity")
EXEMPT = {
    ("init", "constructed"): "a training of its own; tests/train/test_constructed.py",
    ("init", "identity"): "the answer to the identity task, not a start for other ones; tests/models",
    ("init", "zero_branch"): "the same",
}


def _arms() -> Iterator[tuple[str, RunSpec]]:
    for name in ("repairs-cifar10", "shortcuts"):
        plan = expand(load(name, "quick"))
        for cell in plan.cells:
            spec = plan.runs[cell.run_id]
            if spec.depth == 56:
                yield cell.arm, RunSpec.model_validate({**spec.model_dump(), **TINY, "measure_steps": ()})
    for arm, fields in FURTHER.items():
        yield arm, RunSpec.model_validate(fields)


ARMS: dict[str, RunSpec] = {}
for _arm, _spec in _arms():
    if _spec not in ARMS.values():
        ARMS.setdefault(_arm, _spec.model_copy(update={"lr": LR.get(_arm, _spec.lr)}))


@pytest.mark.parametrize("arm", [pytest.param(arm, marks=[] if arm in CI else pytest.mark.slow) for arm in ARMS])
def test_the_loss_falls(arm: str) -> None:
    losses: list[float] = []
    for event in run_task(Task((ARMS[arm],)), Context()):
        if isinstance(event, Rows) and event.table == "metrics":
            rows = zip(*(event.columns[name] for name in ("split", "quantity", "value")), strict=True)
            losses += [value for split, quantity, value in rows if (split, quantity) == ("train_running", "loss")]
        if isinstance(event, Ended):
            assert event.outcome.status == "completed", event.outcome.reason
    assert len(losses) == STEPS
    assert losses[-1] < losses[0]


def _of_sequences(kind: Kind, name: str) -> bool:
    """Whether it is of transformers and recurrent networks alone, whose depth and data are others."""
    families = (name,) if kind == "family" else CATALOG[kind][name].families
    return bool(families) and all(CATALOG["family"][each].reads for each in families)


def test_every_name_of_the_catalogue_is_in_some_arm() -> None:
    kinds: tuple[Kind, ...] = ("family", "shortcut", "norm", "activation", "init", "clip")
    known = {
        (kind, name)
        for kind in kinds
        for name, entry in CATALOG[kind].items()
        if "torch" in entry.targets and not _of_sequences(kind, name)
    }
    tried = {(kind, getattr(spec, kind)) for spec in ARMS.values() for kind in kinds}
    assert known - tried == set(EXEMPT)


@pytest.mark.parametrize("study", ["repairs-spiral", "repairs-cifar10"])
@pytest.mark.parametrize("size", ["quick", "full"])
def test_the_control_of_a_highway_has_as_many_weights(study: str, size: str) -> None:
    found: dict[str, dict[int, int]] = {"highway": {}, "highway-control": {}}
    made = expand(load(study, size))
    for cell in made.cells:
        name = cell.arm.removesuffix("-wide")
        if name in found and cell.axes["depth"] not in found[name]:
            spec = made.runs[cell.run_id]
            with torch.device("meta"):
                model = make_module(spec, (2,) if spec.data == "spiral" else (3, 16, 16), 10)
            found[name][cell.axes["depth"]] = sum(each.numel() for each in model.parameters())
    for depth, count in found["highway"].items():
        assert found["highway-control"][depth] == pytest.approx(count, rel=0.05)
