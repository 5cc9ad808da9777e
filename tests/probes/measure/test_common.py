"""What examples share, against a plain computation."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from depthscope.probes.measure.common import common


def test_units_of_vectors_and_channels_of_images() -> None:
    torch.manual_seed(0)
    vectors, images = torch.randn(6, 5) + 0.5, torch.randn(4, 3, 2, 5) * 1e-20 + 1e-20
    found = float(common(0, vectors)["common"])
    x = vectors.double().numpy()
    assert np.isclose(found, (x.mean(0) ** 2).mean() / (x**2).mean(), rtol=1e-12)
    found = float(common(0, images)["common"])
    x = images.double().numpy()
    by_channel = np.moveaxis(x, 1, 0).reshape(3, -1)
    assert np.isclose(found, (by_channel.mean(1) ** 2).mean() / (x**2).mean(), rtol=1e-12)


def test_its_ends_and_what_has_none() -> None:
    assert float(common(0, torch.ones(3, 4) * torch.arange(4))["common"]) == pytest.approx(1.0)
    assert float(common(0, torch.tensor([[1.0, -2.0], [-1.0, 2.0]]))["common"]) == 0.0
    for nothing in (
        torch.zeros(3, 4),
        torch.ones(1, 4),
        torch.ones(3),
        torch.full((2, 2), torch.inf),
        torch.empty(2, 0),
    ):
        assert common(0, nothing) == {}
