"""A map's folder: points that are whole or not there, of this map and of no other."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from depthscope.core.errors import UserError
from depthscope.record.landscape import MapHead, MapSource, chunks, read_map
from depthscope.record.map_writer import check_map_folder, close_map, open_map, write_chunk
from depthscope.record.provenance import provenance
from depthscope.study.landscape import Maps, MapSpec

HEAD = MapHead(
    spec=MapSpec(points=3),
    source=MapSource(kind="code", model="own:net", data="own:data", loss="mse"),
    weights="0123",
    data="4567",
    provenance=provenance(device="cpu", threads=1),
)


def row(loss: float, accuracy: float | None = None) -> dict[str, float | None]:
    return {"loss": loss, "accuracy": accuracy}


def test_points_come_back_as_they_were_inf_and_nan_too(tmp_path: Path) -> None:
    open_map(tmp_path, HEAD)
    rows = {0: row(0.1 + 0.2), 1: row(math.inf), 5: row(math.nan), 3: row(-0.0)}
    write_chunk(tmp_path, HEAD, "loss", rows)
    found = read_map(tmp_path)
    assert found.head == HEAD
    assert found.missing == (2, 4, 6, 7, 8)
    assert not found.complete
    assert found.loss[0, 0] == 0.1 + 0.2
    assert found.loss[0, 1] == math.inf
    assert np.isnan(found.loss[1, 2])
    assert math.copysign(1, found.loss[1, 0]) == -1
    assert found.accuracy is None


@pytest.mark.parametrize("how", ["cut", "altered", "empty", "of another map"])
def test_a_chunk_that_is_not_whole_or_not_of_this_map_holds_nothing(how: str, tmp_path: Path) -> None:
    open_map(tmp_path, HEAD)
    of = HEAD.model_copy(update={"weights": "89ab"}) if how == "of another map" else HEAD
    write_chunk(tmp_path, of, "loss", {index: row(1.0 + index) for index in range(4)})
    (chunk,) = chunks(tmp_path, "loss")
    content = chunk.read_bytes()
    match how:
        case "cut":
            chunk.write_bytes(content[: len(content) // 2])
        case "empty":
            chunk.write_bytes(b"")
        case "altered":
            chunk.write_bytes(content[:20] + bytes([content[20] ^ 1]) + content[21:])
    assert read_map(tmp_path).missing == tuple(range(9))


def test_a_whole_map_is_one_file_and_one_that_is_damaged_is_done_again(tmp_path: Path) -> None:
    open_map(tmp_path, HEAD)
    rows = {index: row(float(index), 0.5) for index in range(9)}
    write_chunk(tmp_path, HEAD, "loss", {index: rows[index] for index in range(4)})
    write_chunk(tmp_path, HEAD, "loss", {index: rows[index] for index in range(4, 9)})
    close_map(tmp_path, HEAD, "loss", rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["loss.parquet", "map.json"]
    found = read_map(tmp_path)
    assert found.complete
    assert found.loss.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]
    assert found.centre_loss == 4.0
    assert found.accuracy is not None
    (tmp_path / "loss.parquet").write_bytes((tmp_path / "loss.parquet").read_bytes()[:-9])
    assert read_map(tmp_path).missing == tuple(range(9))


def test_a_folder_of_another_map_is_refused_and_says_in_what(tmp_path: Path) -> None:
    open_map(tmp_path, HEAD)
    assert open_map(tmp_path, HEAD) == HEAD
    for change, told in (
        ({"spec": MapSpec(points=5, extent=2.0)}, "points 3, not 5; extent 1.0, not 2.0"),
        ({"weights": "89ab"}, "other weights"),
        ({"data": "89ab"}, "other examples"),
        ({"source": HEAD.source.model_copy(update={"loss": "cross_entropy"})}, "loss mse, not cross_entropy"),
        ({"provenance": provenance(device="mps", threads=1)}, "device cpu, not mps"),
    ):
        with pytest.raises(UserError, match=told):
            open_map(tmp_path, HEAD.model_copy(update=change))
    assert read_map(tmp_path).head == HEAD


def test_a_map_that_goes_on_with_other_versions_says_so(tmp_path: Path) -> None:
    old = HEAD.model_copy(update={"provenance": HEAD.provenance.model_copy(update={"numpy": "1.26.0"})})
    open_map(tmp_path, old)
    write_chunk(tmp_path, old, "loss", {0: row(1.0)})
    (part,) = open_map(tmp_path, HEAD).provenance.resumed
    assert (part.step, part.numpy, part.differs) == (1, "1.26.0", ("numpy",))
    assert read_map(tmp_path).missing == tuple(range(1, 9))


@pytest.mark.parametrize(
    ("was", "now", "versions", "goes"),
    [
        (0.5, 0.5, "same", True),
        (0.5, math.nextafter(0.5, 1), "same", False),
        (0.5, 0.50001, "other", True),
        (0.5, 0.51, "other", False),
        (math.nan, math.nan, "same", True),
        (math.nan, 0.5, "other", False),
        (0.5, math.nan, "same", False),
        (math.inf, math.inf, "same", True),
        (math.inf, 0.5, "other", False),
    ],
)
def test_a_map_goes_on_where_its_centre_has_the_same_loss(
    was: float, now: float, versions: str, goes: bool, tmp_path: Path
) -> None:
    """Bit for bit, without a point that is there; with other versions, nearly."""
    before = HEAD.provenance.model_copy(update={"numpy": "1.26.0"}) if versions == "other" else HEAD.provenance
    open_map(tmp_path, HEAD.model_copy(update={"centre": repr(was), "provenance": before}))
    asked = HEAD.model_copy(update={"centre": repr(now)})
    if goes:
        assert open_map(tmp_path, asked).centre == repr(was) == read_map(tmp_path).head.centre
    else:
        with pytest.raises(UserError, match="code of the model or of the loss has changed"):
            open_map(tmp_path, asked)


def test_chunks_of_other_code_of_the_loss_are_none_of_this_map(tmp_path: Path) -> None:
    one, other = (HEAD.model_copy(update={"code": each}) for each in ("0123", "4567"))
    open_map(tmp_path, one)
    write_chunk(tmp_path, other, "loss", {0: row(1.0)})
    assert read_map(tmp_path).missing == tuple(range(9))
    with pytest.raises(UserError, match="other code of the loss mse"):
        open_map(tmp_path, other)


def test_no_damaged_bit_raises(tmp_path: Path) -> None:
    """It is a point that is missing, or, in a byte that says nothing, all as it was."""
    open_map(tmp_path, HEAD)
    rows = {index: row(float(index), 0.5) for index in range(9)}
    close_map(tmp_path, HEAD, "loss", rows)
    path = tmp_path / "loss.parquet"
    content = path.read_bytes()
    for at in range(len(content)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 128]) + content[at + 1 :])
        found = read_map(tmp_path)
        assert found.missing == tuple(range(9)) or found.loss.ravel().tolist() == list(range(9))


def test_a_folder_in_place_of_the_file_is_refused_before_anything_is_computed(tmp_path: Path) -> None:
    open_map(tmp_path, HEAD)
    (tmp_path / "loss.parquet").mkdir()
    with pytest.raises(UserError, match=r"loss\.parquet is a folder"):
        check_map_folder(tmp_path)


def test_the_centre_is_exactly_zero_and_coordinates_are_mirrored() -> None:
    for spec in (MapSpec(), MapSpec(points=7, extent=0.3), MapSpec(axes=1, points=101, extent=1 / 3)):
        grid = spec.grid()
        assert grid.at(grid.centre) == (0.0,) * spec.axes
        assert grid.coordinates == tuple(-each for each in reversed(grid.coordinates))
        assert grid.coordinates[-1] == spec.extent
        assert grid.size == spec.points**spec.axes
    assert MapSpec(points=3).grid().at(5) == (1.0, 0.0)


def test_a_map_id_names_all_that_decides_numbers() -> None:
    changes: dict[str, object] = {
        "axes": 1,
        "points": 53,
        "extent": 2.0,
        "directions": "trajectory",
        "normalise": "none",
        "seed": 1,
        "norm": "batch",
        "examples": 513,
        "batch_size": 64,
        "precision": "float64",
        "hessian_points": 3,
        "hessian_examples": 64,
    }
    assert set(changes) == set(MapSpec.model_fields)
    ids = {MapSpec(**{name: value}).map_id for name, value in changes.items()}  # type: ignore[arg-type]
    assert len(ids | {MapSpec().map_id}) == len(changes) + 1
    assert [each.seed for each in Maps(planes=3, points=5).specs()] == [0, 1, 2]
    assert {each.points for each in Maps(planes=3, points=5).specs()} == {5}
