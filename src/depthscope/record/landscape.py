"""MapRecord: what is kept of one loss landscape, and how it is read back.

A map's folder:

map.json               what it is a map of (MapHead), and enough to go on with it
points/<kind>-<first>-<last>.parquet     while it is under way: chunks of points, each whole or not there
<kind>.parquet         all points, once they are there; the chunks are gone then

Kinds: `loss`, on the map's grid, and `hessian`, on the coarser one.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from depthscope.core.errors import UserError
from depthscope.core.files import read_bytes
from depthscope.core.hashing import digest
from depthscope.record.schema import Provenance
from depthscope.study.landscape import Grid, MapSpec
from depthscope.study.run import Frozen

MAP_VERSION = 1
MAP_FILE = "map.json"

PointKind = Literal["loss", "hessian"]
Rows = Mapping[int, Mapping[str, float | None]]
"""Figures of points by their number."""

FIGURES: Mapping[PointKind, tuple[str, ...]] = MappingProxyType(
    {
        "loss": ("loss", "accuracy"),
        "hessian": ("lambda_max", "lambda_min", "residual_max", "residual_min"),
    }
)
"""What is known of a point. A residual is |H v - lambda v| of its unit vector v."""


class MapSource(Frozen):
    """Whose landscape it is.

    Attributes:
        kind: code (by name), object (in a Python process) or run (of a study).
        model: `package.module:factory`, the class of the object, or the run's arm and depth in words.
        data: `package.module:function`, what an object was, or the run's data set.
        loss: name or `package.module:function`.
        run_id: of a run.
        step: updates done where the weights were kept; of a run.
    """

    kind: Literal["code", "object", "run"]
    model: str
    data: str
    loss: str
    run_id: str | None = None
    step: int | None = None


class Trajectory(Frozen):
    """The training's path in the plane of its principal directions.

    Attributes:
        steps: updates done at each kept weight.
        path: (a,) or (a, b) of each; the last is 0.
        explained: share of the path's variance along each direction.
    """

    steps: tuple[int, ...] = ()
    path: tuple[tuple[float, ...], ...]
    explained: tuple[float, ...]


class MapHead(Frozen):
    """What a map is of, as it stands in `map.json`.

    Attributes:
        spec: what was asked.
        source: whose landscape.
        weights: digest of parameters and buffers at the centre (and of the trajectory's, where that is the plane).
        data: digest of the examples.
        facts: what else is known: parameters, trainable ones, layers of batch norm, ...
        trajectory: where that is the plane.
        code: digest of the loss's source, where that is the user's by name.
        centre: loss of the network itself when the map was begun, as `repr` writes it: inf and nan are no JSON.
        provenance: where and with what.
    """

    schema_version: int = MAP_VERSION
    spec: MapSpec
    source: MapSource
    weights: str
    data: str
    facts: dict[str, bool | int | float | str] = Field(default_factory=dict)
    trajectory: Trajectory | None = None
    code: str | None = None
    centre: str | None = None
    provenance: Provenance

    @property
    def key(self) -> str:
        """What decides each number of the map; chunks of another key are none of this map's."""
        parts = (self.spec.map_id, self.weights, self.data, self.source.loss, self.provenance.device)
        return digest([*parts, *([self.code] if self.code is not None else [])])


@dataclass(frozen=True, kw_only=True)
class HessianMap:
    """Extreme eigenvalues on the coarser grid; arrays of the grid's shape, NaN where a point is missing.

    Attributes:
        grid: where.
        lambda_max: the largest eigenvalue, algebraically.
        lambda_min: the smallest.
        residual_max: of the largest.
        residual_min: of the smallest.
        missing: numbers of the points that are still to be found.
    """

    grid: Grid
    lambda_max: NDArray[np.float64]
    lambda_min: NDArray[np.float64]
    residual_max: NDArray[np.float64]
    residual_min: NDArray[np.float64]
    missing: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MapRecord:
    """One map, or as much of it as is there.

    Attributes:
        head: what it is of.
        loss: [b, a], or [a] of one axis, as `head.spec.grid()` counts; inf and NaN as they were found, NaN where a
            point is missing.
        accuracy: likewise; None where the loss's judge gives none.
        missing: numbers of the points that are still to be found.
        hessian: on the coarser grid, where there is one.
    """

    head: MapHead
    loss: NDArray[np.float64]
    accuracy: NDArray[np.float64] | None = None
    missing: tuple[int, ...] = ()
    hessian: HessianMap | None = None

    @property
    def spec(self) -> MapSpec:
        """What was asked."""
        return self.head.spec

    @property
    def grid(self) -> Grid:
        """Where the loss was found."""
        return self.head.spec.grid()

    @property
    def complete(self) -> bool:
        """Whether no point is missing."""
        return not self.missing and not (self.hessian and self.hessian.missing)

    @property
    def centre_loss(self) -> float:
        """The loss of the network itself."""
        return float(self.loss.flat[self.grid.centre])


def read_map(folder: Path) -> MapRecord:
    """The map that a folder holds, whole or in part.

    Raises:
        UserError: it holds none, or its map.json cannot be read.
    """
    head = read_head(folder)
    if head is None:
        what = f"holds no map (no {MAP_FILE})" if folder.is_dir() else "does not exist or is not a folder"
        raise UserError(f"{folder} {what}. Wanted the --out folder of a `depthscope landscape`.")
    return record_of(head, {kind: read_points(folder, head, kind) for kind in kinds(head.spec)})


def kinds(spec: MapSpec) -> tuple[PointKind, ...]:
    """The kinds of points that a map has."""
    return ("loss", "hessian") if spec.hessian_points else ("loss",)


def grid_of(spec: MapSpec, kind: PointKind) -> Grid:
    """Where the points of a kind lie."""
    grid = spec.grid() if kind == "loss" else spec.hessian_grid()
    assert grid is not None, "a map without a Hessian's grid has no such points"
    return grid


def record_of(head: MapHead, points: Mapping[PointKind, Rows]) -> MapRecord:
    """A map out of its points."""
    found, missing = _arrays(head.spec.grid(), points.get("loss", {}), FIGURES["loss"])
    judged = any(row["accuracy"] is not None for row in points.get("loss", {}).values())
    hessian = None
    grid = head.spec.hessian_grid()
    if grid is not None:
        arrays, without = _arrays(grid, points.get("hessian", {}), FIGURES["hessian"])
        hessian = HessianMap(grid=grid, missing=without, **arrays)
    accuracy = found["accuracy"] if judged else None
    return MapRecord(head=head, loss=found["loss"], accuracy=accuracy, missing=missing, hessian=hessian)


def _arrays(grid: Grid, rows: Rows, names: tuple[str, ...]) -> tuple[dict[str, NDArray[np.float64]], tuple[int, ...]]:
    arrays = {name: np.full(grid.size, np.nan) for name in names}
    for index, row in rows.items():
        for name in names:
            value = row[name]
            arrays[name][index] = np.nan if value is None else value
    missing = tuple(index for index in range(grid.size) if index not in rows)
    return {name: array.reshape(grid.shape) for name, array in arrays.items()}, missing


def read_head(folder: Path) -> MapHead | None:
    """What a folder is a map of; None where it holds no map.

    Raises:
        UserError: its map.json cannot be read, or is of another version.
    """
    path = folder / MAP_FILE
    try:
        content = read_bytes(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}).") from error
    try:
        return MapHead.model_validate_json(content)
    except ValidationError as error:
        place = ".".join(str(part) for part in error.errors(include_url=False)[0]["loc"])
        raise UserError(
            f"{path}: is not a map of this Depthscope (at {place or 'the top'}). Restore the file, or choose another "
            "folder with --out."
        ) from error


def read_points(folder: Path, head: MapHead, kind: PointKind) -> Rows:
    """The points of a kind that are there. A file that is damaged, or of another map, holds none."""
    whole = _read(folder / f"{kind}.parquet", head, kind)
    if whole is not None and len(whole) == grid_of(head.spec, kind).size:
        return whole
    found: dict[int, Mapping[str, float | None]] = {}
    for path in chunks(folder, kind):
        found |= _read(path, head, kind) or {}
    return found


def chunks(folder: Path, kind: PointKind) -> Iterator[Path]:
    """The files of chunks, by name."""
    yield from sorted((folder / "points").glob(f"{kind}-*.parquet"))


def _read(path: Path, head: MapHead, kind: PointKind) -> Rows | None:
    try:
        # Without threads: a process that ends while those of Arrow are starting was seen to abort.
        file = pq.ParquetFile(io.BytesIO(read_bytes(path)), page_checksum_verification=True)
        table = file.read(use_threads=False)
        columns: dict[str, list[Any]] = table.to_pydict()
    except (OSError, ValueError, pa.ArrowException):  # ValueError: a damaged name that is no text
        return None
    if (table.schema.metadata or {}).get(b"map") != head.key.encode() or table.schema.names != schema(kind).names:
        return None
    names = FIGURES[kind]
    rows = zip(columns["index"], *(columns[name] for name in names), strict=True)
    return {index: dict(zip(names, row, strict=True)) for index, *row in rows}


def schema(kind: PointKind) -> pa.Schema:
    """Columns of the points of a kind."""
    return pa.schema(
        [
            pa.field("index", pa.int64(), nullable=False),
            pa.field("a", pa.float64(), nullable=False),
            pa.field("b", pa.float64()),
            *(pa.field(name, pa.float64()) for name in FIGURES[kind]),
        ]
    )
