"""Where channels go in memory, and the networks for which the fast layout is not safe."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from depthscope.models.convnet import cifar_resnet  # noqa: E402
from depthscope.train.layout import lay_out  # noqa: E402


def is_channels_last(model: Any) -> bool:
    return all(
        parameter.is_contiguous(memory_format=torch.channels_last)
        for parameter in model.parameters()
        if parameter.ndim == 4 and min(parameter.shape[1:3]) > 1
    )


@pytest.mark.parametrize(
    ("shortcut", "width", "device", "fast"),
    [("none", 4, "cpu", True), ("A", 4, "cpu", True), ("B", 8, "cpu", False), ("B", 16, "cpu", True)],
)
def test_channels_last_but_for_narrow_projections(shortcut: str, width: int, device: str, fast: bool) -> None:
    model = lay_out(cifar_resnet(depth=8, width=width, shortcut=shortcut), device)
    assert is_channels_last(model) == fast


NARROW = """
import torch
from depthscope.models.convnet import cifar_resnet
from depthscope.train.layout import lay_out
torch.set_num_threads(1)
model = lay_out(cifar_resnet(depth=8, width=4, shortcut="B"), "cpu")
for _ in range(20):
    model(torch.randn(16, 3, 8, 8)).square().mean().backward()
"""


def test_a_narrow_projection_does_not_corrupt_the_heap() -> None:
    # In a process of its own: what is corrupted aborts it (oneDNN issue 6035).
    done = subprocess.run([sys.executable, "-c", NARROW], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_gradients_keep_the_layout_through_a_stage_that_begins() -> None:
    # A gradient in another layout makes every layer before it slow; subsampling by an index would give one.
    model: Any = lay_out(cifar_resnet(depth=8, width=4, shortcut="A"), "cpu")
    found: list[bool] = []

    def look(_module: Any, _inputs: Any, output: Any) -> None:
        output.register_hook(lambda grad: found.append(grad.is_contiguous(memory_format=torch.channels_last)))

    for block in model.blocks[:2]:
        block.relu2.register_forward_hook(look)
    model.stem.relu.register_forward_hook(look)
    model(torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)).square().mean().backward()
    assert found == [True] * 3
