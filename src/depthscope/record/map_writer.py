"""Writes a map's folder: its head, its chunks, and all points together once they are there."""

from __future__ import annotations

import contextlib
import io
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq

from depthscope.core.errors import UserError
from depthscope.core.files import write_bytes
from depthscope.record.landscape import (
    FIGURES,
    MAP_FILE,
    MapHead,
    PointKind,
    Rows,
    chunks,
    grid_of,
    kinds,
    read_head,
    read_points,
    schema,
)
from depthscope.record.provenance import resumed_from
from depthscope.study.landscape import MapSpec

CLOSE: Mapping[str, float] = MappingProxyType({"float64": 1e-6, "float32": 1e-3, "bfloat16": 2e-2})
"""Relative difference of one loss on two machines, at most; code that changed gives another loss."""


def check_map_folder(folder: Path) -> MapHead | None:
    """What a folder is a map of already; None where it is free for one.

    Raises:
        UserError: it holds other files, or cannot be written.
    """
    held = read_head(folder)
    if held is None:
        _check_empty(folder)
        return None
    for kind in kinds(held.spec):
        if (path := folder / f"{kind}.parquet").is_dir():
            raise UserError(f"{path} is a folder; wanted the map's file. Move it away, or choose another with --out.")
    return held


def open_map(folder: Path, head: MapHead) -> MapHead:
    """Make a folder this map's, or go on with it.

    Args:
        folder: where.
        head: the map's.

    Returns:
        The map's head: that of the folder, where one stands there already, with what differs now in its provenance.

    Raises:
        UserError: it holds another map, or other files, or cannot be written; the centre's loss is another one now.
    """
    held = check_map_folder(folder)
    if held is not None:
        check_same(folder, held, head)
        later = resumed_from(_num_points(folder, held), held.provenance, head.provenance)
        if head.centre is not None:
            _check_centre(folder, held, float(head.centre), later.resumed[-1].differs)
        if not later.resumed[-1].differs:
            return held
        head = head.model_copy(update={"provenance": later, "centre": held.centre})
    write_bytes(folder / MAP_FILE, (head.model_dump_json(indent=2) + "\n").encode())
    return head


def check_spec(folder: Path, held: MapHead, asked: MapSpec) -> None:
    """Refuse to go on with a map that was asked for otherwise.

    Raises:
        UserError: says in what.
    """
    mine, theirs = asked.model_dump(mode="json"), held.spec.model_dump(mode="json")
    _refuse(folder, [f"{name} {theirs[name]}, not {mine[name]}" for name in mine if mine[name] != theirs[name]])


def check_same(folder: Path, held: MapHead, asked: MapHead) -> None:
    """Refuse to go on with another map.

    Raises:
        UserError: the folder's is another one; says in what.
    """
    check_spec(folder, held, asked.spec)
    there, here = held.provenance.device, asked.provenance.device
    differs = {
        f"loss {held.source.loss}, not {asked.source.loss}": held.source.loss != asked.source.loss,
        f"other code of the loss {held.source.loss}": held.code != asked.code,
        f"device {there}, not {here}": there != here,
        f"other weights (of {held.source.model})": held.weights != asked.weights,
        f"other examples (of {held.source.data})": held.data != asked.data,
    }
    _refuse(folder, [words for words, differ in differs.items() if differ])


def _refuse(folder: Path, differs: list[str]) -> None:
    if differs:
        raise UserError(f"{folder} holds another map: {'; '.join(differs)}. Choose another folder with --out.")


def _check_centre(folder: Path, head: MapHead, now: float, differs: Sequence[str]) -> None:
    """Refuse to go on where the network itself has another loss now than when the map was begun.

    Where nothing else differs the two are equal bit for bit; on another machine, or with other versions, nearly.
    """
    if head.centre is None:  # a map of before it was kept
        return
    was = float(head.centre)
    off = CLOSE[head.spec.precision] if differs else 0.0
    if math.isnan(was) and math.isnan(now):
        return
    if not math.isclose(was, now, rel_tol=off, abs_tol=1e-12 if differs else 0.0):
        raise UserError(
            f"{folder} holds a map whose centre has loss {was:.9g}; with the same weights and examples it is {now:.9g} "
            "now, so that the code of the model or of the loss has changed. Choose another folder with --out."
        )


def _check_empty(folder: Path) -> None:
    try:
        other = folder.is_dir() and any(not item.name.startswith(".") for item in folder.iterdir())
    except OSError as error:
        raise UserError(
            f"{folder} cannot be read ({error.strerror or error}). Choose another folder with --out."
        ) from error
    if other:
        raise UserError(f"{folder} holds other files and no map. Choose an empty or new folder with --out.")
    existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(parent))
    if not existing.is_dir():
        raise UserError(f"{existing} is a file; wanted a folder. Choose another with --out.")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"{existing} is read-only. Choose another folder with --out, or change its permissions.")


def _num_points(folder: Path, head: MapHead) -> int:
    return sum(len(read_points(folder, head, kind)) for kind in kinds(head.spec))


def write_chunk(folder: Path, head: MapHead, kind: PointKind, rows: Rows) -> None:
    """Keep points that were found together."""
    path = folder / "points" / f"{kind}-{min(rows):07}-{max(rows):07}.parquet"
    write_bytes(path, _encoded(head, kind, rows))


def close_map(folder: Path, head: MapHead, kind: PointKind, rows: Rows) -> None:
    """Keep all points of a kind in one file in place of the chunks, now that they are all there."""
    path = folder / f"{kind}.parquet"
    content = _encoded(head, kind, rows)
    try:
        same = path.read_bytes() == content
    except OSError:
        same = False
    if not same:
        write_bytes(path, content)
    for chunk in chunks(folder, kind):
        chunk.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # chunks of the other kind
        (folder / "points").rmdir()


def _encoded(head: MapHead, kind: PointKind, rows: Rows) -> bytes:
    """Rows as parquet, in the order of their numbers. Equal rows give equal bytes under one version of pyarrow."""
    grid, order = grid_of(head.spec, kind), sorted(rows)
    at = [grid.at(index) for index in order]
    columns = {
        "index": order,
        "a": [each[0] for each in at],
        "b": [each[1] if grid.axes == 2 else None for each in at],
        **{name: [rows[index][name] for index in order] for name in FIGURES[kind]},
    }
    table = pa.table(columns, schema=schema(kind).with_metadata({"map": head.key}))
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()
