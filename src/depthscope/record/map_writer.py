"""Writes a map's folder: its head, its chunks, and all points together once they are there."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

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


def open_map(folder: Path, head: MapHead) -> MapHead:
    """Make a folder this map's, or go on with it.

    Returns:
        The map's head: that of the folder, where one stands there already, with what differs now in its provenance.

    Raises:
        UserError: it holds another map, or other files, or cannot be written.
    """
    held = read_head(folder)
    if held is None:
        _check_empty(folder)
    else:
        check_same(folder, held, head)
        later = resumed_from(_num_points(folder, held), held.provenance, head.provenance)
        if not later.resumed[-1].differs:
            return held
        head = head.model_copy(update={"provenance": later})
    write_bytes(folder / MAP_FILE, (head.model_dump_json(indent=2) + "\n").encode())
    return head


def check_same(folder: Path, held: MapHead, asked: MapHead) -> None:
    """Refuse to go on with another map.

    Raises:
        UserError: the folder's is another one; says in what.
    """
    if held.key == asked.key:
        return
    mine, theirs = asked.spec.model_dump(mode="json"), held.spec.model_dump(mode="json")
    differs = [f"{name} {theirs[name]}, not {mine[name]}" for name in mine if mine[name] != theirs[name]]
    if held.source.loss != asked.source.loss:
        differs.append(f"loss {held.source.loss}, not {asked.source.loss}")
    if held.provenance.device != asked.provenance.device:
        differs.append(f"device {held.provenance.device}, not {asked.provenance.device}")
    if held.weights != asked.weights:
        differs.append(f"other weights (of {held.source.model})")
    if held.data != asked.data:
        differs.append(f"other examples (of {held.source.data})")
    what = "; ".join(differs) or "made by another version of Depthscope"
    raise UserError(f"{folder} holds another map: {what}. Choose another folder with --out.")


def _check_empty(folder: Path) -> None:
    try:
        if folder.exists() and not folder.is_dir():
            raise UserError(f"{folder} is a file; wanted a folder. Choose another with --out.")
        other = folder.is_dir() and any(not item.name.startswith(".") for item in folder.iterdir())
    except OSError as error:
        raise UserError(
            f"{folder} cannot be read ({error.strerror or error}). Choose another folder with --out."
        ) from error
    if other:
        raise UserError(f"{folder} holds other files and no map. Choose an empty or new folder with --out.")


def _num_points(folder: Path, head: MapHead) -> int:
    return sum(len(read_points(folder, head, kind)) for kind in kinds(head.spec))


def write_chunk(folder: Path, head: MapHead, kind: PointKind, rows: Rows) -> None:
    """Keep points that were found together."""
    path = folder / "points" / f"{kind}-{min(rows):07}-{max(rows):07}.parquet"
    write_bytes(path, _encoded(head, kind, rows))


def close_map(folder: Path, head: MapHead, kind: PointKind, rows: Rows) -> None:
    """Keep all points of a kind in one file in place of the chunks, once they are all there."""
    if len(rows) < grid_of(head.spec, kind).size:
        return
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
