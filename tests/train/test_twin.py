"""The same run in both engines: a spec that differs in its backend alone has the same start and the same figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.train.short import LAB

torch = pytest.importorskip("torch")

from depthscope.data.synthetic import spiral  # noqa: E402
from depthscope.record.events import Ended, Rows, Started  # noqa: E402
from depthscope.study.expand import Task  # noqa: E402
from depthscope.study.run import RunSpec  # noqa: E402
from depthscope.train.build import Context  # noqa: E402
from depthscope.train.cost import cost  # noqa: E402
from depthscope.train.laboratory import form_of, params_of  # noqa: E402
from depthscope.train.memory import DataShape  # noqa: E402
from depthscope.train.network import make_network  # noqa: E402
from depthscope.train.start import run_task  # noqa: E402

RUN: dict[str, Any] = {
    **LAB,
    "depth": 6,
    "width": 8,
    "data_options": {},
    "precision": "float64",
    "steps": 24,
    "seed": 5,
}


def both(changes: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """The events of the run in NumPy, and in torch."""
    numpy, in_torch = (
        list(run_task(Task((RunSpec.model_validate({**RUN, **changes, "backend": backend}),)), Context()))
        for backend in ("numpy", "torch")
    )
    return numpy, in_torch


def only(kind: type[Any], events: list[Any]) -> Any:
    (found,) = [event for event in events if isinstance(event, kind)]
    return found


def layers(events: list[Any]) -> dict[tuple[int, str, str], float]:
    """(step, layer, quantity) -> value of all profiles."""
    found: dict[tuple[int, str, str], float] = {}
    for event in events:
        if isinstance(event, Rows) and event.table == "layers":
            columns = (event.columns[name] for name in ("step", "name", "quantity", "value"))
            found |= {(step, name, quantity): value for step, name, quantity, value in zip(*columns, strict=True)}
    return found


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"shortcut": "identity", "activation": "relu", "norm": "batch", "optimizer": "sgd"},
        {"shortcut": "identity_2", "norm": "batch", "init": "orthogonal", "gain": 0.8, "stem_gain": 2.0},
        {"activation": "linear", "schedule": "step", "warmup_steps": 5},
        # More than one part of an evaluation, and of a probe's batch, would hold.
        {"norm": "batch", "data_options": {"points_per_arm": 200, "validation": 40}, "steps": 4},
    ],
    ids=["plain", "identity", "identity_2", "linear", "many points"],
)
def test_a_run_is_the_same_in_both_engines(changes: dict[str, Any]) -> None:
    numpy, in_torch = both({"measures": ("layers",), **changes})
    started, twin = only(Started, numpy), only(Started, in_torch)
    assert twin.digests.init == started.digests.init
    assert (twin.parameters, twin.num_steps) == (started.parameters, started.num_steps)
    assert [(each.name, each.weight, each.shape) for each in twin.layers] == [
        (each.name, each.weight, each.shape) for each in started.layers
    ]
    ended, twin = only(Ended, numpy), only(Ended, in_torch)
    assert ended.outcome.status == twin.outcome.status == "completed"
    for name, value in ended.summary.items():
        assert twin.summary[name] == pytest.approx(value, rel=1e-9), name
    assert twin.summary.keys() >= ended.summary.keys()
    wanted, found = layers(numpy), layers(in_torch)
    assert found.keys() == wanted.keys()
    for key, value in wanted.items():
        assert found[key] == pytest.approx(value, rel=1e-8, abs=1e-13), key


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("init", ["gaussian", "orthogonal"])
def test_both_engines_draw_the_same_tensors(init: str, precision: str) -> None:
    """Bit for bit, with a gain of the stem's own."""
    changes = {"init": init, "precision": precision, "gain": 0.72, "stem_gain": 0.1, "shortcut": "identity_2"}
    spec = RunSpec.model_validate({**RUN, **changes, "backend": "torch"})
    data = spiral(spec.seed)
    model, _ = make_network(spec, data, dtype=getattr(torch, precision))
    wanted = params_of([spec], form_of(spec, DataShape.of(data)))
    assert model.state_dict().keys() == wanted.keys()
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), wanted[name][0], err_msg=name)


def test_both_engines_count_the_same_cost() -> None:
    options = {"points_per_arm": 20, "validation": 9, "without_test": True}
    found = [
        cost(RunSpec.model_validate({**RUN, "backend": backend, "data_options": options}))
        for backend in ("numpy", "torch")
    ]
    numpy, in_torch = [(each.parameters, each.forward_flops, each.num_steps, each.examples) for each in found]
    assert numpy == in_torch
    assert numpy[-1] == RUN["steps"] * (3 * 20 - 9)
