from __future__ import annotations

import pytest
import torch

from depthscope.probes.numbers import weights_digest


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_one_bit_changes_the_digest(dtype: torch.dtype) -> None:
    state = {"a": torch.arange(6).reshape(2, 3).to(dtype), "b": torch.ones(2)}
    before = weights_digest(state)
    assert before == weights_digest({"b": torch.ones(2), "a": state["a"].clone()})
    integers = {8: torch.int64, 4: torch.int32, 2: torch.int16}[dtype.itemsize]
    state["a"].view(integers)[1, 2] ^= 1
    assert weights_digest(state) != before


def test_names_shapes_and_dtypes_count_and_layout_does_not() -> None:
    zeros = torch.zeros(2, 3)
    digests = {
        weights_digest({"a": zeros}),
        weights_digest({"b": zeros}),
        weights_digest({"a": zeros.T}),
        weights_digest({"a": zeros.to(torch.int32)}),
        weights_digest({}),
    }
    assert len(digests) == 5
    image = torch.randn(2, 3, 4, 5)
    last = image.contiguous(memory_format=torch.channels_last)
    assert weights_digest({"a": image}) == weights_digest({"a": last})
    assert weights_digest({"a": image.requires_grad_()}) == weights_digest({"a": last})
