"""FLOPs of a network whose repeated operations are worked out once: torch's own count, and the plain twin's memory."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from depthscope.study.run import RunSpec  # noqa: E402
from depthscope.train import flops  # noqa: E402
from depthscope.train.count import count_passes, network_of  # noqa: E402
from depthscope.train.shapes import data_shape  # noqa: E402

NETWORK: dict[str, Any] = {
    "backend": "torch",
    "family": "cifar_resnet",
    "depth": 20,
    "width": 4,
    "norm": "batch",
    "activation": "relu",
    "init": "he_fan_in",
    "data": "images",
    "data_options": {"image_size": 8},
    "steps": 1,
}
VECTORS: dict[str, Any] = {
    "family": "mlp",
    "depth": 6,
    "activation": "tanh",
    "init": "gaussian",
    "data": "spiral",
    "data_options": {},
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"shortcut": "B"},
        {"shortcut": "exclusive_gate"},
        {"shortcut": "dropout", "norm": "ws_group"},
        {"shortcut": "A_pool", "norm": "fixup"},
        {"shortcut": "A", "model_options": {"checkpointing": True}},
        {"shortcut": "A", "norm": "instance", "activation": "tanh"},
        {"shortcut": "B", "family": "preact_resnet", "depth": 29, "model_options": {"bottleneck": True}},
        {"shortcut": "dense", "family": "densenet", "depth": 22},
        {"shortcut": "nfnet", "norm": "scaled_ws", "family": "nfnet"},
        VECTORS,
        {**VECTORS, "shortcut": "dense"},
        {**VECTORS, "shortcut": "highway", "norm": "layer"},
    ],
)
def test_they_are_torchs_own_and_no_byte_is_lost(changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    spec = RunSpec.model_validate({**NETWORK, **changes})
    model, x = network_of(spec, data_shape(spec))
    found = count_passes(model, x)
    with FlopCounterMode(display=False) as counter:
        model(x)
    assert found.flops == counter.get_total_flops() // 2 > 0
    monkeypatch.setattr(flops, "_is_pure", lambda func: False)
    assert count_passes(model, x) == found


def test_operations_with_values_are_all_done() -> None:
    weight = nn.Parameter(torch.eye(3))

    class Twice(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            once = x @ weight
            assert torch.equal(once, x @ weight)
            assert torch.equal(once, x)
            return once

    assert count_passes(Twice(), torch.arange(6.0).reshape(2, 3)).flops == 2 * 2 * 3 * 3


def test_one_and_true_are_two_operands_and_a_view_is_none() -> None:
    x = torch.empty(4, 6, dtype=torch.int64, device="meta")
    with flops.Counter():
        assert (x * 1).dtype == (x * 1).dtype == torch.int64
        assert (x * 1.0).dtype == (x * 1.0).dtype == torch.float32
        first, second = x.t(), x.t()
        assert first.untyped_storage()._cdata == second.untyped_storage()._cdata == x.untyped_storage()._cdata
        sums = [x + x, x + x]
        assert len({each.untyped_storage()._cdata for each in (x, *sums)}) == 3
        assert (x.t() + x.t()).stride() == (x.t() + x.t()).stride() == (1, 6)
