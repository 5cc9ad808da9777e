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

SCHEMA_VERSION = 2

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
        code: `package.module:function` of the user's -> digest of the source that it was loaded from.
        final: digest of all weights and buffers at the end; None where the run did not complete.
    """

    init: dict[str, str] = Field(default_factory=dict)
    data: str | None = None
    order: str | None = None
    augment: str | None = None
    code: dict[str, str] = Field(default_factory=dict)
    final: str | None = None


class Timings(Frozen):
    """Seconds. They stand here alone, so that the tables of two equal runs are byte-identical.

    Attributes:
        wall_s: wall clock, of this run or its equal share of a group trained side by side; of a run that was
            resumed, the sum over its parts, without the work that was lost between a checkpoint and the stop.
        cpu_s: CPU time of the worker, likewise. Start-up and the making of the page are not in it.
        started: ISO 8601 time in UTC, of the first part.
    """

    wall_s: float
    cpu_s: float
    started: str

    def then(self, later: Timings) -> Timings:
        """Those of this part and a later one together."""
        return Timings(
            wall_s=self.wall_s + later.wall_s, cpu_s=self.cpu_s + later.cpu_s, started=self.started or later.started
        )


class Versions(Frozen):
    """What may decide the last bits of a run: versions and the chip. None where it is not known or was not used."""

    depthscope: str
    numpy: str
    blas: str | None = None
    torch: str | None = None
    cuda: str | None = None
    gpu: str | None = None
    processor: str
    device: str
    threads: int


class Resumption(Versions):
    """An earlier part of a run that was stopped and went on from a checkpoint; the fields are those of that part.

    Attributes:
        step: updates done when that part was saved for the last time.
        differs: the fields in which the part differs from the one that ended the run. Empty means that the
            run is, bit for bit, the one that would have come of it without a stop.
    """

    step: int
    differs: tuple[str, ...] = ()


class Provenance(Versions):
    """Where and with what a run was done; no part of its identity.

    Attributes:
        group_size: runs trained side by side.
        resumed: the earlier parts of a run that was stopped and went on, in order.
    """

    python: str
    pyarrow: str | None = None
    platform: str
    group_size: int = 1
    resumed: tuple[Resumption, ...] = ()


def checksum_of(content: Mapping[str, Any]) -> str:
    """The digest of a file's content, but for its `checksum`.

    Of the content as it was read, not of what a model makes of it: fields and options that came after the file was
    written are no part of what its writer sealed.
    """
    return digest({name: value for name, value in content.items() if name != "checksum"})


class RunRecord(Frozen):
    """One run, as it stands in `run.json`.

    Attributes:
        spec: what was asked; `spec.measures` and `spec.measure_steps` are those that this record holds.
        summary: the run's final figures by name; a missing value stays missing.
        parameters: number of trained parameters.
        derived: what the depth decided, such as the slope of a tailored activation or the scale of an initialiser.
        chance_loss: training loss of the best answer that does not look at the inputs, in nats, or the squared error
            of the mean target: where a figure of losses has its line. None in records of before it was kept.
        samples: text that the trained network wrote, where that was measured.
        claims_digest: of the study's claims when the run was made.
        measures_version: `MEASURES` when the run was made.
        tables: name -> SHA-256 of the parquet file beside this one.
        weights: name -> SHA-256 of each file of weights beside it (`record.weights`).
        checksum: digest of all the rest, so that a record altered by hand is noticed; set by the writer.
    """

    schema_version: int = SCHEMA_VERSION
    run_id: str
    spec: RunSpec
    outcome: Outcome
    summary: dict[str, float] = Field(default_factory=dict)
    parameters: int | None = None
    layers: tuple[LayerFacts, ...] = ()
    derived: dict[str, float] = Field(default_factory=dict)
    chance_loss: float | None = None
    samples: tuple[str, ...] = ()
    digests: Digests = Digests()
    claims_digest: str | None = None
    measures_version: int = MEASURES
    tables: dict[str, str] = Field(default_factory=dict)
    weights: dict[str, str] = Field(default_factory=dict)
    provenance: Provenance
    timings: Timings
    checksum: str = ""

    def sealed(self) -> RunRecord:
        """This record with its checksum."""
        return self.model_copy(update={"checksum": checksum_of(self.model_dump(mode="json"))})

    def answers(self, spec: RunSpec) -> bool:
        """Whether this record holds all that `spec` asks: the same run, with at least its measures as of now."""
        return (
            self.run_id == spec.run_id
            and self.measures_version == MEASURES
            and set(spec.measures) <= set(self.spec.measures)
            and set(spec.measure_steps) <= set(self.spec.measure_steps)
        )
