from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from depthscope.record.events import Ended, Rows, Started
from depthscope.record.schema import Digests, LayerFacts, Outcome, Provenance, RunRecord, Timings
from depthscope.record.writer import RunWriter
from depthscope.study.run import RunSpec

PROVENANCE = Provenance(
    depthscope="0.1", python="3.11", numpy="2.0", platform="Linux x86_64", processor="a chip", device="cpu", threads=1
)
LAYERS = (
    LayerFacts(index=0, name="stem", kind="linear", weight="stem.weight", shape=(8,)),
    LayerFacts(index=1, name="head", kind="linear"),
)
DONE = Outcome(status="completed", step=10)
METRICS: dict[str, list[Any]] = {
    "step": [0, 10],
    "split": ["train", "train"],
    "quantity": ["loss", "loss"],
    "value": [1.1, 0.5],
}
TABLES: Mapping[str, Mapping[str, list[Any]]] = {
    "metrics": METRICS,
    "layers": {
        "step": [0, 0],
        "layer": [0, 1],
        "name": ["stem", "head"],
        "quantity": ["h_norm"] * 2,
        "value": [2.0, 3.0],
    },
}

Write = Callable[..., RunRecord]


@pytest.fixture
def spec() -> RunSpec:
    """The smallest run of the laboratory."""
    fields = {"backend": "numpy", "family": "mlp", "depth": 4, "width": 8, "activation": "tanh", "init": "gaussian"}
    return RunSpec.model_validate({**fields, "data": "spiral", "steps": 10, "measures": ["layers"]})


@pytest.fixture
def write(tmp_path: Path, spec: RunSpec) -> Write:
    """Writes a record of `spec`, or of `of`, into the test's folder, in place of one that stands."""

    def act(
        *,
        of: RunSpec = spec,
        tables: Mapping[str, Mapping[str, list[Any]]] = TABLES,
        outcome: Outcome = DONE,
        summary: Mapping[str, float] | None = None,
        wall_s: float = 1.5,
        folder: Path = tmp_path,
    ) -> RunRecord:
        writer = RunWriter(folder, of, PROVENANCE)
        digests = Digests(init={"stem.weight": "00ff"}, data="aa")
        writer.hear(Started(run_id=of.run_id, layers=LAYERS, parameters=99, digests=digests, num_steps=10))
        for table, columns in tables.items():
            writer.hear(Rows(run_id=of.run_id, table=table, columns=columns))
        ended = Ended(run_id=of.run_id, outcome=outcome, summary=summary or {"train_loss": 0.5}, final="bb")
        timings = Timings(wall_s=wall_s, cpu_s=1.0, started="2026-01-01T00:00:00+00:00")
        record = writer.finish(ended, timings, replacing=True)
        assert record is not None
        return record

    return act
