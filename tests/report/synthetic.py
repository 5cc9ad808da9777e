"""Made-up results with the shapes of real ones, so that the page can be designed and tested without training.

The numbers follow what the studies measured in trials (levels and spread), with noise from a fixed seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from depthscope.analysis.table import Results
from depthscope.record.schema import (
    TABLES,
    Digests,
    LayerFacts,
    Outcome,
    Provenance,
    RunRecord,
    Timings,
)
from depthscope.study.expand import Cell, Plan, expand
from depthscope.study.run import RunSpec
from depthscope.study.study import StudySpec
from depthscope.study.toml import load, parse
from depthscope.train.measure import diverged

PROVENANCE = Provenance(
    depthscope="0.1.0",
    python="3.11.7",
    numpy="2.1.0",
    torch="2.11.0",
    platform="Linux-6.1-x86_64",
    processor="x86_64",
    device="cpu",
    threads=1,
    group_size=3,
)

Tables = dict[str, dict[str, list[Any]]]
Make = Callable[[RunSpec, Cell, np.random.Generator], tuple[dict[str, float], Tables, int, int]]


def cifar(size: str = "quick", *, drop: int = 0, diverge: bool = False) -> Results:
    """The cifar10 study. `drop` runs are missing; `diverge` makes one a diverged record."""
    results = _results(expand(load("cifar10", size)), _cifar_run)
    records = dict(results.records)
    if diverge:
        run_id = results.plan.cells[5].run_id
        ended = diverged(17, math.inf)
        records[run_id] = records[run_id].model_copy(update={"outcome": ended, "summary": {}})
    for cell in results.plan.cells[len(results.plan.cells) - drop :]:
        records.pop(cell.run_id, None)
    return Results(plan=results.plan, records=records, load_table=results.load_table)


def spiral(*, sweep: tuple[int, ...] = (2, 4, 8, 12, 16, 24, 32, 48), seeds: int = 10) -> Results:
    """A study with a sweep over depth, untrained flow, a gradient check, batch norm and a skip-free repair."""
    text = (Path(__file__).parent / "spiral.toml").read_text(encoding="utf-8")
    text = text.replace("SWEEP", str(list(sweep))).replace("SEEDS", str(seeds))
    return _results(expand(parse(text, source="spiral")), _spiral_run)


def made(plan: Plan) -> Results:
    """Results of a plan like the cifar10 study's, whatever its arms."""
    return _results(plan, _cifar_run)


def hostile() -> Results:
    """A study whose every text tries to be markup."""
    study = load("cifar10", "smoke")
    bad = "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'>"
    document = study.model_dump(mode="json")
    document |= {"title": {"en": bad}, "question": {"en": bad}}
    part = document["parts"]["main"]
    part["title"] = {"en": bad}
    for arm in part["arms"]:
        arm["label"] = {"en": f"{arm['name']} {bad}"}
        arm["note"] = {"en": bad}
    for claim in document["claims"]:
        claim["text"] = {"en": bad}
    return _results(expand(StudySpec.model_validate(document)), _cifar_run)


def _results(plan: Plan, make: Make) -> Results:
    records: dict[str, RunRecord] = {}
    tables: dict[tuple[str, str], pa.Table] = {}
    for index, cell in enumerate(plan.cells):
        if cell.run_id in records:
            continue
        spec = plan.runs[cell.run_id]
        summary, found, parameters, steps = make(spec, cell, np.random.default_rng([7, index]))
        for name, columns in found.items():
            tables[cell.run_id, name] = pa.table(columns, schema=TABLES[name])
        facts = tuple(
            LayerFacts(index=at, name=_layer_name(spec, at), kind="conv" if spec.backend == "torch" else "linear")
            for at in range(_num_layers(spec))
        )
        records[cell.run_id] = RunRecord(
            run_id=cell.run_id,
            spec=spec,
            outcome=Outcome(status="completed", step=steps),
            summary=summary,
            parameters=parameters,
            layers=facts,
            digests=_digests(spec, facts),
            tables=dict.fromkeys(found, "0" * 64),
            provenance=PROVENANCE,
            timings=Timings(
                wall_s=4.0 + 0.6 * spec.depth, cpu_s=4.0 + 0.6 * spec.depth, started="2026-01-05T09:30:00Z"
            ),
        )
    return Results(plan=plan, records=records, load_table=lambda run_id, name: tables.get((run_id, name)))


def _digests(spec: RunSpec, facts: tuple[LayerFacts, ...]) -> Digests:
    init = {f"{fact.name}.weight": f"{spec.seed:04x}{fact.index:012x}" for fact in facts}
    if spec.zero_last_gamma:
        init["stages.0.0.bn2.weight"] = "f" * 16
    elif spec.family == "cifar_resnet":
        init["stages.0.0.bn2.weight"] = "e" * 16
    order = None if spec.batch_size is None else f"{spec.seed:016x}"
    augment = None if spec.augment == "none" else f"{spec.seed + 99:016x}"
    return Digests(init=init, data="d" * 16, order=order, augment=augment, final=f"{hash(spec.run_id) % 16**8:016x}")


def _num_layers(spec: RunSpec) -> int:
    # The laboratory counts square layers; its stem and head come on top.
    return spec.depth if spec.family == "cifar_resnet" else spec.depth + 2


def _layer_name(spec: RunSpec, at: int) -> str:
    if spec.family != "cifar_resnet":
        return "stem" if at == 0 else "head" if at == spec.depth + 1 else f"blocks.{at - 1}.linear1"
    if at == 0:
        return "stem.conv"
    if at == spec.depth - 1:
        return "head"
    blocks = (spec.depth - 2) // 6
    stage, rest = divmod(at - 1, 2 * blocks)
    return f"stages.{stage}.{rest // 2}.conv{rest % 2 + 1}"


_LEVELS = {  # clean train accuracy, last epoch's loss, by (arm, deep?)
    ("plain", False): (0.42, 1.60),
    ("plain", True): (0.188, 2.15),
    ("A", False): (0.485, 1.46),
    ("A", True): (0.42, 1.62),
    ("A0", False): (0.44, 1.53),
    ("A0", True): (0.437, 1.52),
    ("B", False): (0.49, 1.44),
    ("B", True): (0.43, 1.60),
}


def _cifar_run(spec: RunSpec, cell: Cell, rng: np.random.Generator) -> tuple[dict[str, float], Tables, int, int]:
    kind = cell.arm if cell.arm in ("A0", "B") else "plain" if spec.shortcut == "none" else "A"
    accuracy, loss = _LEVELS[kind, spec.depth > 20]
    accuracy += 0.012 * rng.standard_normal()
    loss += 0.03 * rng.standard_normal()
    epochs, per_epoch = spec.epochs or 1, 39
    metrics: dict[str, list[Any]] = {"step": [], "split": [], "quantity": [], "value": []}

    def note(step: int, split: str, quantity: str, value: float) -> None:
        for key, each in zip(metrics, (step, split, quantity, value), strict=True):
            metrics[key].append(each)

    for epoch in range(1, epochs + 1):
        share = 1 - math.exp(-3 * epoch / epochs)
        wobble = 0.02 * rng.standard_normal()
        note(epoch * per_epoch, "train_running", "loss", 2.303 + (loss - 2.303) * share + wobble * share)
        note(epoch * per_epoch, "train_running", "accuracy", 0.1 + (accuracy - 0.12) * share - wobble * share / 3)
        note(epoch * per_epoch, "schedule", "lr", spec.lr * (0.1 if epoch > 0.7 * epochs else 1))
    steps = epochs * per_epoch
    summary = {
        "train_loss": loss - 0.03,
        "train_accuracy": accuracy,
        "test_loss": loss + 0.08,
        "test_accuracy": accuracy - 0.04,
        "train_loss_running": metrics["value"][-3],
        "train_accuracy_running": metrics["value"][-2],
    }
    logged = sorted({0, *(2**k for k in range(12) if 2**k < steps), *range(per_epoch, steps + 1, per_epoch)})
    growth = {"plain": 1.22, "A": 1.02, "A0": 1.0, "B": 1.02}[kind]
    layers = _profile(spec, logged, rng, growth=growth, relax=4.0, base=2e-3, zero_branch=spec.zero_last_gamma)
    return summary, {"metrics": metrics, "layers": layers}, 67_000 if spec.depth == 20 else 213_000, steps


def _profile(
    spec: RunSpec,
    steps: list[int],
    rng: np.random.Generator,
    *,
    growth: float,
    relax: float,
    base: float,
    zero_branch: bool = False,
) -> dict[str, list[Any]]:
    """|dL/dh| grows (or shrinks) by `growth` a layer toward the input, less so as training goes on."""
    out: dict[str, list[Any]] = {"step": [], "layer": [], "name": [], "quantity": [], "value": []}
    residual, num_layers = spec.shortcut != "none", _num_layers(spec)
    noise = np.exp(0.08 * rng.standard_normal((len(steps), num_layers, 4)))
    for index, step in enumerate(steps):
        share = math.exp(-relax * index / max(len(steps) - 1, 1)) if len(steps) > 1 else 1.0
        rate = math.log(growth) * (0.15 + 0.85 * share)
        for layer in range(num_layers):
            dh = base * math.exp(rate * (num_layers - 1 - layer)) * (1 + 0.15 * math.sin(1.7 * layer))
            values = {
                "h_norm": 30.0 * (1.03**layer if residual else math.exp(-0.3 * max(math.log(1 / growth), 0) * layer)),
                "dh_norm": dh,
                "dw_norm": 8 * dh * (1 + layer % 3),
                "dw_ratio": dh * (1 + layer % 3),
            }
            if residual and layer and layer % 2 == 0:
                values["f_over_x"] = (0.02 + 0.2 * (1 - share) if zero_branch else 0.4 + 0.2 * share) + 0.01
                if zero_branch and step == 0:
                    values["f_over_x"] = 0.0
            for at, (quantity, value) in enumerate(values.items()):
                row = (step, layer, _layer_name(spec, layer), quantity, value * noise[index, layer, at % 4])
                for key, each in zip(out, row, strict=True):
                    out[key].append(each)
    return out


def _spiral_run(spec: RunSpec, cell: Cell, rng: np.random.Generator) -> tuple[dict[str, float], Tables, int, int]:
    residual, depth = spec.shortcut != "none", spec.depth
    tables: Tables = {}
    summary: dict[str, float] = {}
    steps = spec.steps or 0
    growth = 1.0 if residual or spec.init == "orthogonal" else 1.22 if spec.norm == "batch" else 0.7
    if steps:
        fall = 0 if residual or spec.init == "orthogonal" else 1 / (1 + math.exp(-(depth - 22) / 3))
        accuracy = round(min(1.0, 1 - 0.52 * fall + fall * 0.03 * rng.standard_normal()), 4)
        loss = 0.002 + 1.0 * fall
        metrics: dict[str, list[Any]] = {"step": [], "split": [], "quantity": [], "value": []}
        for step in range(10, steps + 1, 10):
            share = 1 - math.exp(-6 * step / steps)
            for quantity, value in (
                ("loss", 1.1 * (loss / 1.1) ** share * math.exp(0.05 * rng.standard_normal())),
                ("accuracy", 0.34 + (accuracy - 0.34) * share),
            ):
                for key, each in zip(metrics, (step, "train", quantity, value), strict=True):
                    metrics[key].append(each)
        tables["metrics"] = metrics
        summary = {"train_accuracy": accuracy, "train_loss": loss, "train_loss_running": loss * 1.05}
    if "layers" in spec.measures:
        logged = sorted({0, *(2**k for k in range(11) if 2**k < steps), steps})
        tables["layers"] = _profile(spec, logged, rng, growth=growth, relax=1.5, base=9e-5)
        summary["dh_factor_first"] = growth * math.exp(0.02 * rng.standard_normal())
    if "gradcheck" in spec.measures:
        tables["gradcheck"], medians = _gradcheck(spec, rng)
        summary |= medians
    return summary, tables, 16 * 17 * depth + 99, steps


def _gradcheck(spec: RunSpec, rng: np.random.Generator) -> tuple[dict[str, list[Any]], Mapping[str, float]]:
    out: dict[str, list[Any]] = {name: [] for name in TABLES["gradcheck"].names}
    small = 1.0 if spec.shortcut != "none" else 0.7**spec.depth
    medians = {}
    for method, sizes in (
        ("central", [10.0**-k for k in range(1, 9)]),
        ("five_point", [1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4]),
        ("complex", [1e-20]),
    ):
        for h in sizes:
            order = 2 if method == "central" else 4
            error = 4e-16 if method == "complex" else 0.3 * h**order + 1e-16 / (h * small)
            error *= math.exp(0.1 * rng.standard_normal())
            row = (method, h, "", min(error, 1.9), min(error * 300, 2.0), "layers.3.weight[2, 5]", 900)
            for key, each in zip(out, row, strict=True):
                out[key].append(each)
            if (method, h) in (("central", 1e-4), ("five_point", 3e-3), ("complex", 1e-20)):
                medians[f"gradcheck_{method}_median"] = error
    return out, medians
