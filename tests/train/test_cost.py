"""Counts against closed forms; memory against what was measured."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from depthscope.record.events import Ended
from depthscope.study.expand import Task
from depthscope.study.run import RunSpec
from depthscope.train.build import Context
from depthscope.train.cost import cost
from depthscope.train.start import run_task

NUMPY: dict[str, Any] = {
    "backend": "numpy",
    "family": "mlp",
    "depth": 6,
    "width": 64,
    "activation": "tanh",
    "init": "gaussian",
    "data": "spiral",
    "data_options": {"points_per_arm": 200},
    "optimizer": "adam",
    "steps": 4,
    "lr": 0.01,
}


def test_the_laboratory_counts_what_a_hand_does() -> None:
    found = cost(RunSpec.model_validate(NUMPY))
    # A stem 2 x 64, six layers 64 x 64, a head 64 x 3, and their biases.
    assert found.parameters == 3 * 64 + 6 * 65 * 64 + 65 * 3
    assert found.forward_flops == 2 * (2 * 64 + 6 * 64 * 64 + 64 * 3)
    assert (found.examples, found.num_steps) == (4 * 600, 4)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"depth": 24, "shortcut": "identity", "norm": "batch"},
        {"measures": ("layers",), "width": 32},
        {"precision": "float64", "optimizer": "sgd", "width": 200, "data_options": {"points_per_arm": 20}},
    ],
    ids=["adam", "residual", "layers", "wide"],
)
@pytest.mark.parametrize("group", [1, 4])
def test_the_memory_of_the_laboratory_is_what_python_measures(changes: dict[str, Any], group: int) -> None:
    specs = tuple(RunSpec.model_validate({**NUMPY, **changes, "seed": seed}) for seed in range(group))
    counted = cost(specs[0], group=group).memory.total
    tracemalloc.start()
    try:
        list(run_task(Task(specs), Context()))
        _, measured = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert counted == pytest.approx(measured, rel=0.3)


TORCH: dict[str, Any] = {
    "backend": "torch",
    "family": "cifar_resnet",
    "depth": 14,
    "width": 8,
    "norm": "batch",
    "activation": "relu",
    "init": "he_fan_in",
    "data": "images",
    "data_options": {"num_train": 256, "num_test": 64, "image_size": 16},
    "batch_size": 128,
    "steps": 2,
}


def torch_peak(spec: RunSpec) -> int:
    """Most bytes that torch's CPU allocator held at once, by its own account."""
    import torch

    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        (ended,) = [event for event in run_task(Task((spec,)), Context()) if isinstance(event, Ended)]
    assert ended.outcome.status == "completed"
    results: Any = profiler.profiler
    events = [each for each in results.kineto_results.events() if each.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda each: each.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"shortcut": "B", "optimizer": "adam"},
        {"augment": "crop_flip", "padding": 4, "precision": "float64"},
        {"measures": ("layers",)},
        {"batch_size": 8},
        {"width": 48, "depth": 8, "batch_size": 4, "optimizer": "adam"},
        # Its first segment is its fullest, since images are large there.
        {"depth": 50, "model_options": {"checkpointing": True}},
    ],
    ids=["plain", "adam", "float64", "layers", "small batch", "heavy weights", "checkpointing"],
)
def test_the_memory_of_torch_is_what_its_allocator_measures(changes: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    spec = RunSpec.model_validate({**TORCH, **changes})
    counted, measured = cost(spec).memory.total, torch_peak(spec)
    assert counted == pytest.approx(measured, rel=0.3)


@pytest.mark.parametrize("changes", [{}, {"precision": "float64", "norm": "none"}])
def test_the_memory_of_a_product_with_the_hessian(monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]) -> None:
    """Lanczos' vectors are NumPy's, which torch's account knows nothing of."""
    pytest.importorskip("torch")
    from depthscope.probes.curvature import Extremes

    def one_product(hessian: Any, **_: Any) -> Extremes:
        hessian.matvec(np.ones(hessian.size))
        return Extremes(largest=1.0, smallest=0.0, residual_largest=0.0, residual_smallest=0.0, num_products=1)

    monkeypatch.setattr("depthscope.probes.curvature.extremes", one_product)
    spec = RunSpec.model_validate({**TORCH, "measures": ("sharpness",), "steps": 0, **changes})
    counted = cost(spec).memory
    assert counted.total - counted.copies == pytest.approx(torch_peak(spec), rel=0.3)
    assert counted.copies >= 32 * 8 * cost(spec).parameters


def test_the_family_of_the_paper_has_its_published_counts() -> None:
    """He et al. 2015, table 6: ResNet-20 to 110 have 0.27M, 0.46M, 0.66M, 0.85M and 1.7M parameters."""
    pytest.importorskip("torch")
    wanted = {20: 0.27, 32: 0.46, 44: 0.66, 56: 0.85, 110: 1.7}
    for depth, millions in wanted.items():
        found = cost(RunSpec.model_validate({**TORCH, "depth": depth, "width": 16, "shortcut": "A"}))
        assert round(found.parameters / 1e6, 2 if millions < 1 else 1) == millions


def test_half_an_epoch_and_a_last_small_batch_are_counted() -> None:
    pytest.importorskip("torch")
    options = {"data_options": {"num_train": 100, "num_test": 0, "image_size": 8}, "batch_size": 32}
    epochs = cost(RunSpec.model_validate({**TORCH, **options, "steps": None, "epochs": 3}))
    assert (epochs.num_steps, epochs.examples) == (12, 300)
