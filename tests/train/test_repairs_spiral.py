"""The bundled study `repairs-spiral`: its arms differ in what they name, and every one of them trains."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from depthscope.record.events import Ended  # noqa: E402
from depthscope.study.expand import Plan, Task, expand  # noqa: E402
from depthscope.study.run import RunSpec  # noqa: E402
from depthscope.study.selection import selection_study  # noqa: E402
from depthscope.study.toml import load  # noqa: E402
from depthscope.train.build import Context  # noqa: E402
from depthscope.train.network import make_module  # noqa: E402
from depthscope.train.start import run_task  # noqa: E402


@pytest.fixture(scope="module")
def plan() -> Plan:
    return expand(load("repairs-spiral", "quick"))


def spec_of(plan: Plan, part: str, arm: str, depth: int = 56) -> RunSpec:
    (run_id, *_) = [
        cell.run_id for cell in plan.cells if (cell.part, cell.arm, cell.axes["depth"]) == (part, arm, depth)
    ]
    return plan.runs[run_id]


def differ(one: RunSpec, other: RunSpec) -> set[str]:
    return {field for field in RunSpec.model_fields if getattr(one, field) != getattr(other, field)}


NAMED = {
    "critical": {"gain"},
    "orthogonal": {"init", "gain"},
    "ws": {"norm"},
    "clip": {"clip", "clip_options"},
    "agc": {"clip", "clip_options"},
    "warm-up": {"warmup_steps"},
    "identity": {"shortcut"},
}
PAIRS = [
    ("skip-free", "he", "relu-batch", {"norm"}),
    ("skip-free", "he", "relu-layer", {"norm"}),
    ("shortcut", "relu-batch-2", "zero-gamma", {"zero_last_gamma"}),
    ("shortcut", "identity", "scaled", {"shortcut"}),
    ("shortcut", "plain", "highway-control", {"width"}),
]


def test_an_arm_changes_what_it_names(plan: Plan) -> None:
    plain = spec_of(plan, "skip-free", "plain")
    assert spec_of(plan, "shortcut", "plain") == plain
    assert spec_of(plan, "shortcut", "identity") == spec_of(plan, "skip-free", "identity")
    assert {arm: differ(plain, spec_of(plan, "skip-free", arm)) for arm in NAMED} == NAMED
    for part, one, other, fields in PAIRS:
        assert differ(spec_of(plan, part, one), spec_of(plan, part, other)) == fields, other


def test_counts_of_parameters(plan: Plan) -> None:
    """What is not matched to the plain network is Highway, its control, which is matched to it, and dense."""
    arms = {(cell.part, cell.arm) for cell in plan.cells}
    for depth in (20, 56):
        count: dict[str, int] = {}
        for part, arm in arms:
            with torch.device("meta"):
                model = make_module(spec_of(plan, part, arm, depth), (2,), 3)
            count[arm] = sum(parameter.numel() for parameter in model.parameters())
        off = {arm for arm, each in count.items() if each != pytest.approx(count["plain"], rel=0.07)}
        assert off == {"highway", "highway-control", "dense"}
        assert count["highway-control"] == pytest.approx(count["highway"], rel=0.02)


def ended(spec: RunSpec) -> Ended:
    (found,) = [event for event in run_task(Task((spec,)), Context()) if isinstance(event, Ended)]
    return found


def test_every_arm_of_the_smoke_size_trains() -> None:
    smoke = expand(load("repairs-spiral", "smoke"))
    every = {(cell.part, cell.arm) for cell in expand(load("repairs-spiral", "quick")).cells}
    assert {(cell.part, cell.arm) for cell in smoke.cells} == every
    # One of each arm, its last.
    runs = {(cell.part, cell.arm): smoke.runs[cell.run_id] for cell in smoke.cells}
    for spec in {spec.run_id: spec for spec in runs.values()}.values():
        assert ended(spec).outcome.status == "completed"


def test_its_choices_are_made_on_other_seeds_for_each_depth() -> None:
    study = load("repairs-spiral", "quick")
    assert study.tuning is not None
    assert study.tuning.by == ("depth",)
    chosen = expand(selection_study(study))
    # 27 arms (two stand in both parts), two depths, three rates, one seed: as many as the study's own runs.
    assert len(chosen.runs) == len(expand(study).runs) == 27 * 2 * 3
    assert not {spec.seed for spec in chosen.runs.values()} & {0, 1, 2}


def test_skipinit_without_a_normaliser_or_weight_decay_is_rezero(plan: Plan) -> None:
    """What the study says of the two arms."""
    short = {"depth": 6, "steps": 5}
    both = [spec_of(plan, "shortcut", arm).model_copy(update=short) for arm in ("rezero", "skipinit")]
    one, other = (ended(spec) for spec in both)
    assert one.final == other.final
    assert one.summary == other.summary
