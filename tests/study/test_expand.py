from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from depthscope.core.errors import FaultsError
from depthscope.study.catalog import CATALOG
from depthscope.study.claims import Select
from depthscope.study.expand import Cell, Plan, Task, expand, group_key, matching
from depthscope.study.resources import Resources
from depthscope.study.run import RunSpec
from depthscope.study.study import StudySpec

Document = dict[str, Any]
Plans = Callable[..., Plan]


@pytest.fixture
def plan(lab: Document) -> Plans:
    """Makes the plan of a study from its parts."""

    def make(parts: Document, **more: Any) -> Plan:
        return expand(
            StudySpec.model_validate({"name": "mine", "title": {"en": "Mine"}, "base": lab, "parts": parts, **more})
        )

    return make


def arms(*names: str) -> list[Document]:
    return [{"name": name, "set": {"shortcut": name} if name != "plain" else {}} for name in names]


def places(plan: Plan) -> list[tuple[str, str, Document, int]]:
    return [(cell.part, cell.arm, dict(cell.axes), cell.seed) for cell in plan.cells]


def test_every_arm_at_every_value_with_every_seed(plan: Plans) -> None:
    axes = {"depth": [2, 4], "data_options.noise": [0.1, 0.2]}
    made = plan({"main": {"arms": arms("plain", "identity"), "axes": axes, "seeds": [5, 1]}})
    assert places(made) == [
        ("main", arm, {"depth": depth, "data_options.noise": noise}, seed)
        for arm in ("plain", "identity")
        for depth in (2, 4)
        for noise in (0.1, 0.2)
        for seed in (1, 5)
    ]
    assert len(made.runs) == 16
    for cell in made.cells:
        spec = made.runs[cell.run_id]
        assert spec.run_id == cell.run_id
        assert (spec.depth, spec.data_options["noise"]) == (cell.axes["depth"], cell.axes["data_options.noise"])
        assert spec.seed == cell.seed
        assert spec.data_options["arms"] == 3  # the other options keep their values


def test_later_layers_lie_over_earlier_ones(plan: Plans) -> None:
    part = {
        "base": {"lr": 0.2, "width": 6, "data_options": {"noise": 0.5}},
        "arms": [{"name": "plain", "set": {"width": 7, "data_options.arms": 4}}],
        "axes": {"lr": [0.3]},
    }
    [spec] = plan({"main": part}, seeds=1).runs.values()
    assert (spec.depth, spec.lr, spec.width) == (4, 0.3, 7)
    assert (spec.data_options["noise"], spec.data_options["arms"]) == (0.5, 4)


def test_a_run_in_two_parts_is_done_once_with_the_measures_of_both(plan: Plans) -> None:
    made = plan(
        {
            "a": {"arms": arms("plain"), "base": {"measures": ["layers"]}, "seeds": 3},
            "b": {"arms": arms("plain"), "base": {"measures": ["gradcheck"]}, "seeds": 1},
            "c": {"arms": arms("plain"), "seeds": 2},
        }
    )
    assert len(made.cells) == 6
    assert [(spec.seed, spec.measures) for spec in made.runs.values()] == [
        (0, ("gradcheck", "layers")),
        (1, ("layers",)),
        (2, ("layers",)),
    ]
    # Runs with other measures are other work, so they are no group.
    assert [[spec.seed for spec in task.specs] for task in made.tasks] == [[0], [1, 2]]


def test_tasks_hold_runs_that_differ_in_their_seed_alone(plan: Plans) -> None:
    made = plan({"main": {"arms": arms("plain", "identity"), "axes": {"depth": [2, 4]}, "seeds": 3}})
    assert [len(task.specs) for task in made.tasks] == [3, 3, 3, 3]
    assert {spec.run_id for task in made.tasks for spec in task.specs} == set(made.runs)
    for task in made.tasks:
        assert [spec.seed for spec in task.specs] == [0, 1, 2]
        assert len({group_key(spec) for spec in task.specs}) == 1


def test_split_and_only(plan: Plans) -> None:
    [task] = plan({"main": {"arms": arms("plain"), "seeds": 3}}).tasks
    assert [part.specs for part in task.split()] == [(spec,) for spec in task.specs]
    last = task.specs[2].run_id
    kept = task.only({last, "another"})
    assert kept is not None
    assert [spec.run_id for spec in kept.specs] == [last]
    assert task.only(set()) is None


def test_a_task_of_unlike_runs_is_refused(lab: Document) -> None:
    with pytest.raises(AssertionError):
        Task((RunSpec.model_validate(lab), RunSpec.model_validate({**lab, "lr": 0.5})))
    with pytest.raises(AssertionError):
        Task(())


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        ({"arm": "plain"}, {("identity", 2), ("identity", 4)}),
        ({"arm": "plain", "depth": 4}, {("plain", 2), ("identity", 2), ("identity", 4)}),
        ({"depth": 4.0}, {("plain", 2), ("identity", 2)}),
        ({"shortcut": "none"}, {("identity", 2), ("identity", 4)}),  # a default that nobody wrote
        ({"depth": 4, "data_options.noise": 0.1}, {("plain", 2), ("identity", 2)}),  # and one of an option
        ({"depth": 4, "data_options.noise": 0.2}, {("plain", 2), ("identity", 2), ("plain", 4), ("identity", 4)}),
        ({"depth": 99}, {("plain", 2), ("identity", 2), ("plain", 4), ("identity", 4)}),
    ],
)
def test_exclude(plan: Plans, rule: Document, left: set[tuple[str, int]]) -> None:
    part = {"arms": arms("plain", "identity"), "axes": {"depth": [2, 4]}, "exclude": [rule]}
    assert {(cell.arm, cell.axes["depth"]) for cell in plan({"main": part}).cells} == left


def test_exclude_a_seed_and_combinations_that_could_not_run(plan: Plans) -> None:
    part = {"arms": arms("plain", "identity_2"), "axes": {"depth": [2, 3]}, "seeds": 2}
    rules = [{"arm": "identity_2", "depth": 3}, {"seed": 1, "arm": "plain", "depth": 2}]
    made = plan({"main": {**part, "exclude": rules}})
    assert [(arm, axes["depth"], seed) for _, arm, axes, seed in places(made)] == [
        ("plain", 2, 0),
        ("plain", 3, 0),
        ("plain", 3, 1),
        ("identity_2", 2, 0),
        ("identity_2", 2, 1),
    ]


def test_lists_are_values_too(plan: Plans) -> None:
    milestones = [[0.5], [0.5, 0.75]]
    part = {"base": {"schedule": "step"}, "arms": arms("plain"), "axes": {"schedule_options.milestones": milestones}}
    made = plan({"main": part}, seeds=1)
    assert [spec.schedule_options["milestones"] for spec in made.runs.values()] == milestones
    chosen = matching(made.cells, "main", Select(arm="plain", where={"schedule_options.milestones": [0.5]}))
    assert [cell.axes["schedule_options.milestones"] for cell in chosen] == [[0.5]]


def cells(*values: Any, arm: str = "plain") -> list[Cell]:
    return [Cell(part="main", arm=arm, axes={"x": value, "y": 0}, seed=0, run_id="") for value in values]


@pytest.mark.parametrize(
    ("values", "wanted", "chosen"),
    [
        ([4, 2, 8], "min", [2]),
        ([4, 2, 8], "max", [8]),
        ([0.5, 2], "max", [2]),
        ([4, 2, 8], 4, [4]),
        ([4, 2, 8], 4.0, [4]),
        ([4, 2], 3, []),
        (["A", "B"], "max", []),  # an order of names means nothing
        (["max", "A"], "max", ["max"]),
        (["A", 3], "max", []),
        ([], "max", []),
    ],
)
def test_matching(values: list[Any], wanted: Any, chosen: list[Any]) -> None:
    found = matching(cells(*values) + cells(99, arm="other"), "main", Select(arm="plain", where={"x": wanted}))
    assert [cell.axes["x"] for cell in found] == chosen


def test_min_and_max_are_those_of_the_arm_itself(plan: Plans) -> None:
    part = {"arms": arms("plain", "identity"), "axes": {"depth": [2, 4, 8]}, "exclude": [{"arm": "plain", "depth": 8}]}
    made = plan({"main": part}, seeds=2)
    for arm, depth in (("plain", 4), ("identity", 8)):
        found = matching(made.cells, "main", Select(arm=arm, where={"depth": "max"}))
        assert [(cell.axes["depth"], cell.seed) for cell in found] == [(depth, 0), (depth, 1)]


def test_no_axes_and_no_where_is_all_seeds(plan: Plans) -> None:
    made = plan({"main": {"arms": arms("plain", "identity")}})
    assert len(matching(made.cells, "main", Select(arm="plain"))) == 3
    assert matching(made.cells, "other", Select(arm="plain")) == []


def test_a_size_is_named_in_the_error(lab: Document) -> None:
    study = {"name": "mine", "title": {"en": "Mine"}, "size": "quick", "base": lab}
    spec = StudySpec.model_validate({**study, "parts": {"main": {"arms": arms("plian"), "seeds": 400}}})
    with pytest.raises(FaultsError) as told:
        expand(spec, source="a.toml")
    # One fault, though 400 runs have it.
    [(path, message)] = told.value.faults
    assert path == "parts.main.arms.0.set.shortcut"
    assert message == f"unknown shortcut 'plian'. Known: {', '.join(sorted(CATALOG['shortcut']))}."
    assert str(told.value).startswith("a.toml at size 'quick': 1 fault\n")


def test_an_enormous_plan_is_refused_before_it_fills_the_memory(plan: Plans) -> None:
    axes = {"lr": [1 / each for each in range(1, 1_001)], "gain": [1 / each for each in range(1, 1_001)]}
    with pytest.raises(FaultsError, match=r"parts\.main: 3,000,000 runs; wanted 100,000 or less"):
        plan({"main": {"arms": arms("plain"), "axes": axes}})


# ---- resources ---------------------------------------------------------------------------------------


def test_a_task_knows_what_its_runs_need(plan: Plans) -> None:
    parts = {
        "a": {"arms": arms("plain"), "seeds": 3},
        "b": {"arms": arms("plain"), "seeds": [2, 3], "resources": {"gpus": 0.5, "cpus": 1}},
        "c": {"arms": arms("identity"), "seeds": 1, "resources": {"gpus": 0}},
    }
    made = plan(parts, resources={"cpus": 4, "memory_gb": 2, "gpus": 0.25})
    # The run that both ask for takes the larger of each; the runs are the same without resources.
    assert [([spec.seed for spec in task.specs], task.resources) for task in made.tasks] == [
        ([0, 1], Resources(cpus=4.0, gpus=0.25, memory_gb=2.0)),
        ([2], Resources(cpus=4.0, gpus=0.5, memory_gb=2.0)),
        ([3], Resources(cpus=1.0, gpus=0.5, memory_gb=2.0)),
        ([0], Resources(cpus=4.0, gpus=0.0, memory_gb=2.0)),
    ]
    assert set(made.runs) == set(plan({name: {**part, "resources": {}} for name, part in parts.items()}).runs)
    [first, *_] = made.tasks
    kept = first.only({first.specs[1].run_id})
    assert kept is not None
    assert {task.resources for task in (kept, *first.split())} == {first.resources}


def test_what_a_run_needs_where_nothing_is_said(plan: Plans) -> None:
    [task] = plan({"main": {"arms": arms("plain")}}).tasks
    assert task.resources == Resources(cpus=1.0, gpus=0.0, memory_gb=None)
