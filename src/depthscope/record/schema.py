"""RunRecord: what is kept of one run, and the tables that stand beside it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import pyarrow as pa
from pydantic import Field

from depthscope.core.hashing import digest
from depthscope.study.metrics import SUMMARY as SUMMARY
from depthscope.study.run import Frozen, RunSpec

SCHEMA_VERSION = 1

MEASURES = 1
"""Counted up when what is measured or logged changes, so that older records are done again."""

TABLES: Mapping[str, pa.Schema] = MappingProxyType(
    {
        # One row a figure of the training: `split` is train_running (in torch the average over an epoch's
        # augmented batches, in training mode), train (clean, eval mode), test, or schedule (lr).
        "metrics": pa.schema(
            [
                pa.field("step", pa.int64(), nullable=False),
                pa.field("split", pa.string(), nullable=False),
                pa.field("quantity", pa.string(), nullable=False),
                pa.field("value", pa.float64()),
            ]
        ),
        # One row a layer, quantity (core.profile.QUANTITIES) and step.
        "layers": pa.schema(
            [
                pa.field("step", pa.int64(), nullable=False),
                pa.field("layer", pa.int32(), nullable=False),
                pa.field("name", pa.string(), nullable=False),
                pa.field("quantity", pa.string(), nullable=False),
                pa.field("value", pa.float64()),
            ]
        ),
        # One row a method, step size and tensor ("" means all tensors together).
        "gradcheck": pa.schema(
            [
                pa.field("method", pa.string(), nullable=False),
                pa.field("h", pa.float64(), nullable=False),
                pa.field("tensor", pa.string(), nullable=False),
                pa.field("median", pa.float64()),
                pa.field("worst", pa.float64()),
                pa.field("worst_at", pa.string()),
                pa.field("count", pa.int64(), nullable=False),
            ]
        ),
    }
)

Columns = Mapping[str, list[Any]]
"""A table as lists by column, in the order of its schema."""


class Outcome(Frozen):
    """How a run ended. A failed or diverged run is a record, never a hole.

    Attributes:
        status: completed; diverged (the loss left all bounds, or is not finite at the end); failed (an error in the
            code).
        step: updates done.
        stopped_early: whether the recipe's declared stopping rule ended it.
        reason: what happened, where it did not simply complete.
        remedy: what to try.
    """

    status: Literal["completed", "diverged", "failed"]
    step: int
    stopped_early: bool = False
    reason: str | None = None
    remedy: str | None = None


class LayerFacts(Frozen):
    """What was recognised about one layer (see `core.profile.Layer`)."""

    index: int
    name: str
    kind: str
    weight: str | None = None
    shape: tuple[int, ...] = ()


class Digests(Frozen):
    """Digests of what arms share, so that pairing can be seen.

    Attributes:
        init: tensor name -> digest of its initial value.
        data: digest of the data set's content.
        order: digest of every epoch's batch order; None for full-batch runs.
        augment: digest of every epoch's augmentation draws; None without.
        final: digest of all weights and buffers at the end; None where the run did not complete.
    """

    init: dict[str, str] = Field(default_factory=dict)
    data: str | None = None
    order: str | None = None
    augment: str | None = None
    final: str | None = None


class Timings(Frozen):
    """Seconds. They stand here alone, so that the tables of two equal runs are byte-identical.

    Attributes:
        wall_s: wall clock, of this run or its equal share of a group trained side by side.
        cpu_s: CPU time of the worker, likewise. Start-up and the making of the page are not in it.
        started: ISO 8601 time in UTC.
    """

    wall_s: float
    cpu_s: float
    started: str


class Provenance(Frozen):
    """Where and with what a run was done; no part of its identity."""

    depthscope: str
    python: str
    numpy: str
    blas: str | None = None
    pyarrow: str | None = None
    torch: str | None = None
    cuda: str | None = None
    gpu: str | None = None
    platform: str
    processor: str
    device: str
    threads: int
    group_size: int = 1


class RunRecord(Frozen):
    """One run, as it stands in `run.json`.

    Attributes:
        spec: what was asked; `spec.measures` are the measures that this record holds.
        summary: the run's final figures by name; a missing value stays missing.
        parameters: number of trained parameters.
        claims_digest: of the study's claims when the run was made.
        measures_version: `MEASURES` when the run was made.
        tables: name -> SHA-256 of the parquet file beside this one.
        checksum: digest of all the rest, so that a record altered by hand is noticed; set by the writer.
    """

    schema_version: int = SCHEMA_VERSION
    run_id: str
    spec: RunSpec
    outcome: Outcome
    summary: dict[str, float] = Field(default_factory=dict)
    parameters: int | None = None
    layers: tuple[LayerFacts, ...] = ()
    digests: Digests = Digests()
    claims_digest: str | None = None
    measures_version: int = MEASURES
    tables: dict[str, str] = Field(default_factory=dict)
    provenance: Provenance
    timings: Timings
    checksum: str = ""

    def sealed(self) -> RunRecord:
        """This record with its checksum."""
        return self.model_copy(update={"checksum": self._digest()})

    @property
    def is_intact(self) -> bool:
        """Whether the checksum is that of the content."""
        return self.checksum == self._digest()

    def _digest(self) -> str:
        return digest(self.model_dump(mode="json", exclude={"checksum"}))

    def answers(self, spec: RunSpec) -> bool:
        """Whether this record holds all that `spec` asks: the same run, with at least its measures as of now."""
        return (
            self.run_id == spec.run_id
            and self.measures_version == MEASURES
            and set(spec.measures) <= set(self.spec.measures)
        )
