"""Roughness of a loss on a grid: closed forms, and what it must not depend on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from depthscope.analysis.landscape import map_figures, roughness, run_figures
from depthscope.record.landscape import MapHead, MapRecord, MapSource
from depthscope.record.schema import Provenance
from depthscope.study.landscape import MapSpec

FACTS = Provenance(
    depthscope="0.1", python="3.11", numpy="2.0", platform="Linux x86_64", processor="a chip", device="cpu", threads=1
)
ALONG = np.linspace(-0.5, 0.5, 11)
A, B = np.meshgrid(ALONG, ALONG)


def map_of(loss: Any, seed: int = 0) -> MapRecord:
    spec = MapSpec(points=len(loss), axes=np.ndim(loss), seed=seed, extent=0.5)  # type: ignore[arg-type]
    source = MapSource(kind="run", model="m", data="d", loss="l", run_id="0")
    missing = tuple(np.flatnonzero(np.isnan(loss)))
    return MapRecord(
        head=MapHead(spec=spec, source=source, weights="w", data="d", provenance=FACTS), loss=loss, missing=missing
    )


def test_a_quadratic_has_none_whatever_its_middle_and_its_saddle() -> None:
    for loss in (A**2 + B**2, 3 * A**2 - 2 * B**2 + A * B - A + 7, 0 * A + 2.5, A + 1e-3 * B):
        assert roughness(loss, ALONG) == pytest.approx(0, abs=1e-7)
    assert roughness(ALONG**2, ALONG) == pytest.approx(0, abs=1e-7)


def test_what_is_orthogonal_to_all_quadratics_is_all_of_the_spread() -> None:
    # The Legendre-like cubic of the grid: a^3 less its projection on a; odd, so orthogonal to 1 and a^2 too.
    cubic = ALONG**3 - ALONG * (ALONG @ ALONG**3) / (ALONG @ ALONG)
    assert roughness(cubic, ALONG) == pytest.approx(1)
    # Beside a quadratic of its own size: by Pythagoras.
    bowl = ALONG**2 - np.mean(ALONG**2)
    share = math.sqrt(np.mean(cubic**2) / (np.mean(cubic**2) + np.mean(bowl**2)))
    assert roughness(cubic + bowl, ALONG) == pytest.approx(share)


def test_it_is_the_same_in_any_unit_of_loss_and_of_the_plane() -> None:
    loss = np.cos(7 * A) + A * B**2 + B
    one = roughness(loss, ALONG)
    assert one is not None
    assert 0.05 < one < 1
    assert roughness(1e200 * loss, ALONG) == pytest.approx(one)
    assert roughness(1e-200 * loss, ALONG) == pytest.approx(one)
    assert roughness(loss + 3, ALONG) == pytest.approx(one)
    assert roughness(loss, 1e6 * ALONG) == pytest.approx(one)
    assert roughness(loss.T, ALONG) == pytest.approx(one)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_map_with_a_point_that_is_not_finite_has_none(value: float) -> None:
    loss = A**2
    loss[0, 0] = value
    assert roughness(loss, ALONG) is None
    assert map_figures(map_of(loss)) == {}


def test_a_run_has_the_mean_of_its_planes_when_all_are_there() -> None:
    planes = [map_of(np.cos(frequency * A) + B**2, seed) for seed, frequency in enumerate((3, 9))]
    each = [map_figures(plane)["landscape_roughness"] for plane in planes]
    assert each[0] < each[1]
    assert run_figures(planes, 2) == {"landscape_roughness": pytest.approx(sum(each) / 2)}
    assert run_figures(planes[:1], 2) == {}
    assert run_figures([planes[0], map_of(np.full((11, 11), np.nan), 1)], 2) == {}
    assert run_figures([], 1) == {}
