"""The study that chooses for another one: what it runs, what it does not, and what comes of its choices."""

from __future__ import annotations

from typing import Any

import pytest

from depthscope.core.errors import FaultsError
from depthscope.study.expand import expand
from depthscope.study.selection import selection_study, with_choices
from depthscope.study.study import StudySpec
from depthscope.study.toml import dump, parse
from depthscope.study.tuning import Choice, Score, Tuned, Tuning, best

Document = dict[str, Any]


def study(document: Document, **tuning: Any) -> StudySpec:
    document.pop("sizes", None)
    document["claims"] = []
    document["tuning"] = {"grid": [0.3, 0.03], "validation": 30, **tuning}
    made = StudySpec.model_validate(document)
    expand(made)
    return made


def test_the_runs_of_a_selection(document: Document) -> None:
    document["parts"]["main"].setdefault("base", {})["measures"] = ["layers"]
    asked = study(document, seeds=2)
    chosen_by = selection_study(asked)
    assert chosen_by.name == "mine-tuning"
    assert chosen_by.claims == ()
    assert list(chosen_by.parts) == ["main"]  # the untrained part has no lr to choose
    planned = expand(chosen_by)
    # 2 arms x 2 depths x 2 values x 2 seeds, and each of them a run of its own.
    assert len(planned.runs) == len(planned.cells) == 16
    for cell in planned.cells:
        spec = planned.runs[cell.run_id]
        assert spec.lr == cell.axes["lr"]
        assert spec.data_options["validation"] == 30
        assert spec.data_options["without_test"] is True
        assert spec.measures == ()
    assert {cell.seed for cell in planned.cells} == {10_000, 10_001}
    assert not set(planned.runs) & set(expand(asked).runs)
    # All else is the run of the study at that place.
    theirs = {
        (cell.arm, cell.axes["depth"]): expand(asked).runs[cell.run_id]
        for cell in expand(asked).cells
        if cell.part == "main"
    }
    for cell in planned.cells:
        mine = planned.runs[cell.run_id].model_dump()
        other = theirs[cell.arm, cell.axes["depth"]].model_dump()
        changed = {key for key in mine if mine[key] != other[key]} - {"seed", "measures"}
        assert changed == {"lr", "data_options"}


@pytest.mark.parametrize(
    ("fields", "untested"),
    [
        ({"data": "images"}, {"num_test": 0}),
        ({"data": "cifar10"}, {"num_test": 0}),
        ({"data": "mine.data:make", "data_options": {"level": 2}}, {"num_test": 0, "level": 2}),
    ],
)
def test_no_data_set_opens_its_test_set(
    document: Document, torch_run: Document, fields: Document, untested: Document
) -> None:
    document["base"] = torch_run | fields
    document["parts"] = {"main": {"arms": [{"name": "plain", "set": {"data_options.validation": 7}}]}}
    for spec in expand(selection_study(study(document))).runs.values():
        assert spec.data_options.items() >= {"validation": 30, **untested}.items()


def test_any_number_can_be_chosen_in_the_parts_that_are_named(document: Document) -> None:
    document["parts"]["other"] = {"arms": [{"name": "fixed", "set": {"width": 3}}]}
    asked = study(document, field="width", grid=[4, 8], parts=["main"], seeds=[77])
    planned = expand(selection_study(asked))
    assert {(spec.width, spec.seed) for spec in planned.runs.values()} == {(4, 77), (8, 77)}
    document["parts"].pop("other")
    asked = study(document, field="optimizer_options.momentum", grid=[0.5, 0.9])
    found = {spec.optimizer_options["momentum"] for spec in expand(selection_study(asked)).runs.values()}
    assert found == {0.5, 0.9}


@pytest.mark.parametrize("steps", [{}, {"measure_steps": [3]}])
def test_arms_that_ask_for_measures_are_chosen_for_without_them(document: Document, steps: Document) -> None:
    main = document["parts"]["main"]
    main["arms"] = [
        {"name": "plain", "set": {"gain": 1.5, "measures": ["layers"], **steps}},
        {"name": "skip", "at": [{"where": {"depth": 8}, "set": {"measures": ["layers"], **steps}}]},
        {"name": "both", "at": [{"where": {"depth": 4}, "set": {"measures": ["layers"], "gain": 2.0, **steps}}]},
    ]
    asked = study(document)
    assert any(spec.measures for spec in expand(asked).runs.values() if spec.steps)
    planned = expand(selection_study(asked))
    assert {(spec.measures, spec.measure_steps) for spec in planned.runs.values()} == {((), ())}
    # What else they set, they keep.
    gains = {(cell.arm, cell.axes["depth"], planned.runs[cell.run_id].gain) for cell in planned.cells}
    assert gains == {
        *(("plain", depth, 1.5) for depth in (4, 8)),
        *(("skip", depth, 1.0) for depth in (4, 8)),
        *(("both", 4, 2.0), ("both", 8, 1.0)),
    }


def tuned(asked: StudySpec, values: dict[str, float]) -> Tuned:
    assert asked.tuning is not None
    grid = asked.tuning.grid
    return Tuned(
        field="lr",
        grid=asked.tuning.grid,
        metric="validation_accuracy",
        seeds=asked.tuning.selection_seeds,
        validation=30,
        num_runs=16,
        digest=selection_study(asked).digest,
        choices=tuple(
            Choice(
                part="main",
                arm=arm,
                value=value,
                scores=tuple(Score(value=each, mean=0.5 + 0.1 * (each == value), num_runs=4) for each in grid),
            )
            for arm, value in values.items()
        ),
    )


def test_the_study_that_comes_of_the_choices(document: Document) -> None:
    asked = study(document)
    made = with_choices(asked, tuned(asked, {"plain": 0.3, "skip": 0.03}))
    assert made.name == "mine-tuned"
    assert made.tuning is None
    assert parse(dump(made), source="again") == made
    planned = expand(made)
    assert {(cell.arm, planned.runs[cell.run_id].lr) for cell in planned.cells if cell.part == "main"} == {
        ("plain", 0.3),
        ("skip", 0.03),
    }
    before = [cell.run_id for cell in expand(asked).cells if cell.part == "flow"]
    assert [cell.run_id for cell in planned.cells if cell.part == "flow"] == before
    # It trains on all examples, opens the test set, and shares no seed with the choice.
    assert {(spec.data_options["validation"], spec.data_options["without_test"]) for spec in planned.runs.values()} == {
        (0, False)
    }
    assert made.tuned is not None
    assert not {spec.seed for spec in planned.runs.values()} & set(made.tuned.seeds)
    assert made.recipe == asked.recipe  # [tuned] says how, and the page tells it once


def test_an_arm_that_is_left_out_keeps_what_it_has(document: Document) -> None:
    asked = study(document)
    made = with_choices(asked, tuned(asked, {"plain": 0.3}))
    assert made.parts["main"].arm("skip") == asked.parts["main"].arm("skip")


@pytest.mark.parametrize(
    ("value", "scores", "wins"),
    [
        (
            0.3,
            [(0.03, 0.8, 0), (0.3, 0.7, 0)],
            "0.03 is (of validation_accuracy, fewest lost runs before the best mean",
        ),
        (
            0.3,
            [(0.03, 0.7, 0), (0.3, 0.8, 1)],
            "0.03 is (of validation_accuracy, fewest lost runs before the best mean",
        ),
        (0.3, [(0.03, 0.8, 0), (0.3, 0.8, 0)], "and the smaller of equals)"),
        (0.3, [(0.03, None, 4), (0.3, None, 4)], "0.03 is (the smallest, since no run had a figure)."),
        (0.3, [(0.03, 0.7, 0), (0.3, 0.8, 0)], None),
        (0.03, [(0.03, 0.8, 2), (0.3, 0.9, 3)], None),
        (0.03, [(0.03, None, 4), (0.3, None, 4)], None),
    ],
)
def test_a_choice_that_its_scores_did_not_make_is_a_fault(
    document: Document, value: float, scores: list[tuple[float, float | None, int]], wins: str | None
) -> None:
    asked = study(document)
    given = tuned(asked, {"plain": value})
    tried = tuple(Score(value=each, mean=mean, num_runs=4, num_lost=lost) for each, mean, lost in scores)
    choices = (given.choices[0].model_copy(update={"scores": tried}),)
    made = with_choices(asked, given.model_copy(update={"choices": choices}))
    if wins is None:
        assert expand(made).cells
        return
    with pytest.raises(FaultsError) as error:
        expand(made)
    [(path, says)] = error.value.faults
    assert path == "tuned.choices.0.value"
    assert says.startswith("0.3 is not what its scores choose: ")
    assert wins in says


@pytest.mark.parametrize(
    ("metric", "means", "lost", "wins"),
    [
        ("validation_accuracy", (0.7, 0.9, 0.8), (0, 0, 0), 2),
        ("validation_loss", (0.7, 0.9, 0.8), (0, 0, 0), 1),
        ("validation_accuracy", (0.7, 0.9, 0.8), (0, 1, 0), 3),
        ("validation_accuracy", (0.7, 0.9, 0.8), (2, 1, 2), 2),
        ("validation_loss", (0.1, 0.9, 0.8), (1, 0, 0), 3),
        ("validation_accuracy", (0.8, 0.8, 0.8), (0, 0, 0), 1),
        ("validation_loss", (None, 0.9, None), (4, 3, 4), 2),
        ("validation_loss", (None, None, None), (4, 4, 4), None),
    ],
)
def test_which_value_wins(
    metric: str, means: tuple[float | None, ...], lost: tuple[int, ...], wins: int | None
) -> None:
    scores = [
        Score(value=value, mean=mean, num_runs=4, num_lost=num)
        for value, mean, num in zip((1, 2, 3), means, lost, strict=True)
    ]
    for shuffled in (scores, scores[::-1]):
        won = best(shuffled, metric)
        assert (won.value if won else None) == wins


def test_the_edge_of_the_grid() -> None:
    scores = tuple(Score(value=value, mean=0.5, num_runs=1) for value in (1, 2, 3))
    edges = [Choice(part="main", arm="plain", value=value, scores=scores).edge for value in (1, 2, 3)]
    assert edges == ["low", None, "high"]


def test_a_number_of_selection_seeds_never_meets_a_number_of_seeds() -> None:
    tuning = Tuning(grid=(1, 2), validation=1, seeds=3)
    assert tuning.selection_seeds == (10_000, 10_001, 10_002)
    with pytest.raises(ValueError, match="less than or equal to 10000"):
        StudySpec(name="a", title={"en": "A"}, parts={"a": {"arms": [{"name": "a"}]}}, seeds=10_001)  # type: ignore[dict-item]


def test_no_choice_by_an_accuracy_of_numbers(document: Document) -> None:
    base = {"backend": "torch", "family": "mlp", "width": 8, "activation": "relu", "init": "gaussian"}
    document["base"] = {**base, "data": "spiral", "steps": 10, "depth": 4}
    document["parts"].pop("flow")
    document["parts"]["main"]["arms"][1]["set"]["data"] = "identity_task"
    with pytest.raises(FaultsError) as error:
        study(document)
    asks = "what data 'identity_task' asks for is near or far, not right or wrong"
    assert error.value.faults == (("tuning.metric", f'{asks}; write metric = "validation_loss" in [tuning].'),)
    chosen_by = selection_study(study(document, metric="validation_loss"))
    assert expand(chosen_by).runs


def test_a_selection_opens_no_test_set_whatever_the_study_is_ranked_by(document: Document) -> None:
    document["parts"]["main"]["arms"].append({"name": "third", "set": {"gain": 1.5}})
    document["parts"]["main"]["ranked"] = "test_accuracy"
    assert expand(selection_study(study(document))).runs
