"""Figures of a loss on a grid: closed forms, and what they must not depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from depthscope.analysis.landscape import curvature_ratios, map_figures, rise, roughness, run_figures, spreads
from depthscope.record.landscape import HessianMap, MapHead, MapRecord, MapSource
from depthscope.record.schema import Provenance
from depthscope.study.landscape import Grid, MapSpec

FACTS = Provenance(
    depthscope="0.1", python="3.11", numpy="2.0", platform="Linux x86_64", processor="a chip", device="cpu", threads=1
)
ALONG = np.linspace(-0.5, 0.5, 11)
A, B = np.meshgrid(ALONG, ALONG)
BOWL = 1 + A**2


def map_of(loss: Any, seed: int = 0, hessian: HessianMap | None = None) -> MapRecord:
    num = len(hessian.lambda_max) if hessian else 0
    spec = MapSpec.model_validate(
        {"points": len(loss), "axes": np.ndim(loss), "seed": seed, "extent": 0.5, "hessian_points": num}
    )
    source = MapSource(kind="run", model="m", data="d", loss="l", run_id="0")
    missing = tuple(int(each) for each in np.flatnonzero(np.isnan(loss)))
    head = MapHead(spec=spec, source=source, weights="w", data="d", provenance=FACTS)
    return MapRecord(head=head, loss=loss, missing=missing, hessian=hessian)


def eigenvalues(largest: list[float], smallest: list[float]) -> HessianMap:
    zero = np.zeros(len(largest))
    return HessianMap(
        grid=Grid(axes=1, num=len(largest), extent=0.5),
        lambda_max=np.array(largest),
        lambda_min=np.array(smallest),
        residual_max=zero,
        residual_min=zero,
    )


def test_a_convex_loss_has_none_nor_has_a_slope_or_a_cliff() -> None:
    surfaces: tuple[Any, ...] = (
        A**2 + B**2,
        np.exp(3 * A + B),
        np.abs(A) + np.abs(B),
        A + 1e-3 * B,
        1e9 * (A > 0.3),
        0 * A + 2.5,
    )
    for loss in surfaces:
        assert roughness(loss) == pytest.approx(0, abs=1e-12)
    assert roughness(ALONG**2) == 0


def test_a_saddle_is_rough_along_the_axis_that_curves_down() -> None:
    # Along b each line is one hill, whose ends are its lowest: all of what it moves is above a valley's. Along a, none.
    assert roughness(A**2 - B**2) == pytest.approx(0.5)


def test_bumps_by_hand() -> None:
    # 3 down, 2 up, 4 down, 9 up: 18 in all; from 5 to the lowest, 0, and up to 9: 14.
    line = np.array([5.0, 2.0, 4.0, 0.0, 9.0])
    assert roughness(line) == pytest.approx(1 - 14 / 18)
    # Each row is that line; each column is flat, and counts as a line without bumps.
    assert roughness(np.tile(line, (5, 1))) == pytest.approx((1 - 14 / 18) / 2)


def test_it_is_the_same_in_any_unit_and_from_any_side() -> None:
    loss = np.cos(7 * A) + A * B**2 + B
    one = roughness(loss)
    assert one is not None
    assert 0.05 < one < 1
    for same in (1e200 * loss, 1e-200 * loss, loss + 3, loss.T, loss[::-1], loss[:, ::-1]):
        assert roughness(same) == pytest.approx(one)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_a_map_with_a_point_that_is_not_finite_has_none(value: float) -> None:
    loss = A**2
    loss[0, 0] = value
    assert roughness(loss) is None
    assert map_figures(map_of(loss)) == {}


def test_the_share_of_the_plane_that_is_not_convex() -> None:
    ratios = curvature_ratios(eigenvalues([4.0, 4.0, 4.0, -1.0, 0.0], [0.5, -0.2, -2.0, -3.0, 0.0]))
    assert ratios.tolist() == [0.0, 0.05, 0.5, np.inf, 0.0]
    found = map_figures(map_of(BOWL, hessian=eigenvalues([4.0, 4.0, 4.0], [0.5, -0.2, -2.0])))
    assert found == {
        "landscape_roughness": 0.0,
        "landscape_rise": pytest.approx(rise(BOWL, 1.0)),
        "landscape_curvature_ratio": pytest.approx(0.05),
        "landscape_nonconvex_share": pytest.approx(1 / 3),
    }
    assert map_figures(map_of(A**2, hessian=eigenvalues([4.0, np.nan, 1.0], [1.0, 1.0, 1.0]))) == {
        "landscape_roughness": 0.0
    }


def test_a_rise_is_counted_in_orders_of_magnitude_over_the_centre() -> None:
    decades = np.array([[3.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, -2.0]])
    assert rise(10**decades, 1.0) == pytest.approx(1.0)
    assert rise(7e-9 * 10**decades, 7e-9) == pytest.approx(1.0)
    assert rise(np.array([1.0, 0.0, 1.0]), 0.0) is None
    assert rise(np.array([np.inf, 1.0, 1.0]), 1.0) is None


def test_a_run_has_the_mean_of_its_planes_when_all_are_there() -> None:
    planes = [map_of(np.cos(frequency * A) - B**2, seed) for seed, frequency in enumerate((7, 23))]
    each = [map_figures(plane)["landscape_roughness"] for plane in planes]
    assert each[0] != each[1]
    found = run_figures(planes, 2)
    assert found == {"landscape_roughness": pytest.approx(sum(each) / 2)}  # below 0 a loss has no orders of magnitude
    assert run_figures(planes[:1], 2) == {}
    assert run_figures([planes[0], map_of(np.full((11, 11), np.nan), 1)], 2) == {}
    assert run_figures([], 1) == {}


def test_eigenvalues_are_asked_of_the_first_planes_alone() -> None:
    first = map_of(A**2, 0, eigenvalues([4.0, 4.0, 4.0], [0.5, -0.2, -2.0]))
    found = run_figures([first, map_of(A**2, 1)], 2)
    assert found == map_figures(first)
    unfinished = map_of(A**2, 0, eigenvalues([4.0, np.nan, 4.0], [0.5, np.nan, -2.0]))
    assert run_figures([unfinished, map_of(A**2, 1)], 2) == {"landscape_roughness": 0.0}


def test_what_the_directions_change_stands_beside_what_a_seed_changes() -> None:
    decades = {(0, 0): 1.0, (0, 1): 1.5, (1, 0): 3.0, (1, 1): 3.1}  # (run, plane) -> rise of a map of three points

    def run_of(number: int) -> list[MapRecord]:
        return [map_of(10.0 ** (np.array([1.5, 0.0, 1.5]) * decades[number, plane]), plane) for plane in (0, 1)]

    found = {each.metric: each for each in spreads([[run_of(0), run_of(1)]])}
    assert found["landscape_rise"].planes == pytest.approx((0.5 + 0.1) / 2)
    assert found["landscape_rise"].seeds == pytest.approx((2.0 + 1.6) / 2)
    assert found["landscape_roughness"].planes == 0
    assert spreads([[run_of(0)], [run_of(1)]]) == ()  # no cell has two runs
    assert spreads([[run_of(0)[:1], run_of(1)[:1]]]) == ()  # no run has two planes
