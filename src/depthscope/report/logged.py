"""What the runs of a cell logged of their layers, as columns; and of those what a page shows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from depthscope.analysis.profiles import medians_and_ranges
from depthscope.analysis.table import ResultRow, Results
from depthscope.report.charts.profile import LayerValue
from depthscope.report.content import significant

Ints = NDArray[np.int64]

LESIONS = ("lesion_loss", "lesion_accuracy", "block_lesion_loss")
"""Measured once, after training: they have a picture of their own."""
LAST = -1
"""Stands for the last step of each run, which differs where runs stop early."""


@dataclass(frozen=True, kw_only=True)
class Logged:
    """A row a value, the runs of a cell one after another.

    Attributes:
        num_layers: how many layers each run logged, by id.
        lasts: the last step of each run, in the same order.
        run: which of these runs a row is of, [N].
        step: [N].
        layer: [N].
        quantity: which of `quantities`, [N].
        value: [N], NaN where none could be had.
        quantities: names, ascending.
        names: of the layers; the last run's where runs differ.
    """

    num_layers: dict[str, int]
    lasts: Ints
    run: Ints
    step: Ints
    layer: Ints
    quantity: Ints
    value: NDArray[np.float64]
    quantities: tuple[str, ...]
    names: dict[int, str]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a log axis can show of it at the steps that a page keeps; a value of a last step may stand twice.

    Attributes:
        at: which of the steps, [N].
        layer: [N].
        quantity: which of `quantities`, [N].
        value: finite and above 0, [N].
        quantities: names, ascending.
        names: of the layers.
        left_out: values at these steps that a log axis cannot show.
    """

    at: Ints
    layer: Ints
    quantity: Ints
    value: NDArray[np.float64]
    quantities: tuple[str, ...]
    names: dict[int, str]
    left_out: int

    @property
    def present(self) -> set[str]:
        """The quantities of which there is a value."""
        return {self.quantities[code] for code in np.unique(self.quantity)}

    def values(self, arm: str, wanted: Collection[str]) -> list[LayerValue]:
        """The seeds' median and range of the wanted quantities: by step, quantity and layer, in this order."""
        is_wanted = np.array([name in wanted for name in self.quantities], dtype=bool)[self.quantity]
        if not is_wanted.any():
            return []
        layers, layer = np.unique(self.layer[is_wanted], return_inverse=True)
        group = (self.at[is_wanted] * len(self.quantities) + self.quantity[is_wanted]) * len(layers) + layer
        made = medians_and_ranges(group, self.value[is_wanted])
        above, place = np.divmod(made.group, len(layers))
        at, quantity = np.divmod(above, len(self.quantities))
        return [
            LayerValue(
                series=arm,
                at=step,
                quantity=self.quantities[code],
                layer=index,
                name=self.names[index],
                value=significant(median, 4),
                low=significant(low, 4),
                high=significant(high, 4),
            )
            for step, code, index, median, low, high in zip(
                *(column.tolist() for column in (at, quantity, layers[place], made.median, made.low, made.high)),
                strict=True,
            )
        ]


def read_logged(results: Results, rows: Sequence[ResultRow], *, lesions: bool) -> Logged | None:
    """What the runs of a cell logged; None where none did.

    Args:
        results: the study's.
        rows: of one cell.
        lesions: what is left without each branch or block, in place of what was logged during training.
    """
    ids, tables = [], []
    for row in rows:
        table = results.load_table(row.cell.run_id, "layers") if row.record is not None else None
        if table is not None:
            ids.append(row.cell.run_id)
            tables.append(table)
    if not tables:
        return None
    whole = pa.concat_tables(tables)
    quantities, quantity = _coded(whole.column("quantity"))
    is_lesion = np.array([name in LESIONS for name in quantities], dtype=bool)
    kept = is_lesion[quantity] == lesions
    if not kept.any():
        return None
    run = np.repeat(np.arange(len(tables)), [table.num_rows for table in tables])[kept]
    step, layer, value = (whole.column(key).to_numpy()[kept] for key in ("step", "layer", "value"))
    layers, first_from_the_end, place = np.unique(layer[::-1], return_index=True, return_inverse=True)
    names = whole.column("name").take(pa.array(np.flatnonzero(kept)[::-1][first_from_the_end])).to_pylist()
    # Runs one after another: each starts where the number changes, and one of which nothing is kept is not there.
    starts = np.flatnonzero(np.diff(run, prepend=-1))
    own = np.unique(run[::-1] * len(layers) + place) // len(layers)
    return Logged(
        num_layers={ids[index]: int(count) for index, count in zip(*np.unique(own, return_counts=True), strict=True)},
        lasts=np.maximum.reduceat(step, starts),
        run=np.cumsum(np.diff(run, prepend=run[0]) > 0),
        step=step,
        layer=layer.astype(np.int64),
        quantity=quantity[kept],
        value=value,
        quantities=quantities,
        names=dict(zip(layers.tolist(), names, strict=True)),
    )


def _coded(column: pa.ChunkedArray) -> tuple[tuple[str, ...], Ints]:
    """(the names of a column of text, ascending; which of them each row has)."""
    coded = column.combine_chunks().dictionary_encode()
    found = coded.dictionary.to_pylist()
    names = sorted(found)
    rank = np.array([names.index(name) for name in found], dtype=np.int64)
    return tuple(names), rank[coded.indices.to_numpy()]


def shown(logged: Logged, steps: Sequence[int]) -> Shown:
    """What of it stands at these steps, `LAST` among them."""
    inner = np.array([step for step in steps if step != LAST], dtype=np.int64)
    at = np.searchsorted(inner, logged.step)
    is_kept = np.isin(logged.step, inner)
    is_last = (logged.step == logged.lasts[logged.run]) & (LAST in steps)
    with np.errstate(invalid="ignore"):
        is_good = np.isfinite(logged.value) & (logged.value > 0)
    rows = np.concatenate([np.flatnonzero(is_kept & is_good), np.flatnonzero(is_last & is_good)])
    at = np.concatenate([at[is_kept & is_good], np.full(np.count_nonzero(is_last & is_good), len(inner))])
    return Shown(
        at=at,
        layer=logged.layer[rows],
        quantity=logged.quantity[rows],
        value=logged.value[rows],
        quantities=logged.quantities,
        names=logged.names,
        left_out=int(np.count_nonzero((is_kept | is_last) & ~is_good)),
    )
