"""A run's tables as parquet, from and to columns."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from depthscope.record.schema import TABLES


def encode(table: str, columns: Mapping[str, list[Any]]) -> bytes:
    """The table as parquet. Equal columns give equal bytes under one version of pyarrow."""
    schema = TABLES[table]
    sink = io.BytesIO()
    pq.write_table(pa.table({name: columns[name] for name in schema.names}, schema=schema), sink, compression="zstd")
    return sink.getvalue()


def decode(content: bytes) -> dict[str, list[Any]]:
    """The columns that `encode` was given.

    Raises:
        pa.ArrowInvalid: it is no parquet.
    """
    return dict(pq.read_table(io.BytesIO(content)).to_pydict())
