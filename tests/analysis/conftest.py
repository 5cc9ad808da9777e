"""Synthetic results: a small study, and records whose figures a test makes up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from depthscope.analysis.finding import Finding
from depthscope.analysis.findings import judge
from depthscope.analysis.table import Results
from depthscope.record.schema import Digests, Outcome, Provenance, RunRecord, Timings
from depthscope.study.claims import Claim
from depthscope.study.expand import Cell, expand
from depthscope.study.run import RunSpec
from depthscope.study.study import Arm, Part, StudySpec

Figures = Mapping[str, float] | str | None
"""A run's summary; or its status where it did not complete; or None where it is missing."""
MadeUp = Callable[[Cell], Figures]
MakeTable = Callable[..., MadeUp]
MakeResults = Callable[..., Results]

DEPTHS = (2, 8)
ARMS = (
    Arm(name="plain", label={"en": "plain", "zh": "普通网络"}, set={"shortcut": "none"}),
    Arm(name="res", label={"en": "residual", "zh": "残差网络"}, set={"shortcut": "identity"}),
)
BASE: dict[str, Any] = {
    "backend": "numpy",
    "family": "mlp",
    "width": 16,
    "activation": "tanh",
    "init": "gaussian",
    "gain": 0.72,
    "data": "spiral",
    "steps": 10,
    "measures": ["gradcheck", "layers"],  # so that claims may be made on their figures
}


def record_of(spec: RunSpec, figures: Mapping[str, float] | str, **changes: Any) -> RunRecord:
    """A record that says these figures; a status in their place is a run that ended so."""
    status = figures if isinstance(figures, str) else "completed"
    found = RunRecord(
        run_id=spec.run_id,
        spec=spec,
        outcome=Outcome.model_validate({"status": status, "step": 10}),
        summary={} if isinstance(figures, str) else dict(figures),
        parameters=100 + spec.depth,
        digests=Digests(init={"stem.weight": f"stem{spec.seed}", "head.weight": f"head{spec.seed}"}, data="data"),
        timings=Timings(wall_s=2.0, cpu_s=1.5, started="2026-01-01T00:00:00+00:00"),
        provenance=Provenance(
            depthscope="0", python="3", numpy="2", platform="any", processor="any", device="cpu", threads=1
        ),
    )
    return found.model_copy(update=changes)


@pytest.fixture(scope="session")
def make_results() -> MakeResults:
    """A function that makes Results of two arms, depths 2 and 8, from made-up figures."""

    def make(
        figures: MadeUp,
        *claims: Claim,
        seeds: int = 3,
        axes: dict[str, list[Any]] | None = None,
        base: dict[str, Any] | None = None,
        arms: tuple[Arm, ...] = ARMS,
    ) -> Results:
        study = StudySpec(
            name="made-up",
            title={"en": "made up"},
            base={**BASE, **(base or {})},
            seeds=seeds,
            parts={"main": Part(arms=arms, axes={"depth": list(DEPTHS)} if axes is None else axes)},
            claims=claims,
        )
        plan = expand(study)
        records = {}
        for cell in plan.cells:
            found = figures(cell)
            if found is not None:
                records[cell.run_id] = record_of(plan.runs[cell.run_id], found)
        return Results(plan=plan, records=records, load_table=lambda run_id, name: None)

    return make


@pytest.fixture(scope="session")
def table() -> Callable[..., MadeUp]:
    """A function: figures by (arm, depth), one a seed; a status or None stands for a run without them."""

    def make(values: Mapping[tuple[str, int], Sequence[float | str | None]], metric: str = "train_accuracy") -> MadeUp:
        def figures(cell: Cell) -> Figures:
            found = values[cell.arm, cell.axes["depth"]][cell.seed]
            return {metric: found} if isinstance(found, float) else found

        return figures

    return make


@pytest.fixture(scope="session")
def found(make_results: MakeResults, table: MakeTable) -> Any:
    """A function: the finding of one claim on values by (arm, depth); what is not named is missing."""

    def judge_one(
        claim: Claim, values: dict[tuple[str, int], list[Any]], metric: str = "train_accuracy", **more: Any
    ) -> Finding:
        seeds = max(len(column) for column in values.values())
        full = {(arm, depth): [None] * seeds for arm in ("plain", "res") for depth in (2, 8)} | values
        (finding,) = judge(make_results(table(full, metric), claim, seeds=seeds, **more))
        return finding

    return judge_one
