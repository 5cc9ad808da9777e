"""Cases of an arm: what it sets at some values of the axes alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from depthscope.core.errors import FaultsError
from depthscope.core.hashing import digest
from depthscope.study.expand import expand
from depthscope.study.selection import selection_study, with_choices
from depthscope.study.study import StudySpec
from depthscope.study.toml import dump, load, parse
from depthscope.study.tuning import Choice, Score, Tuned

Document = dict[str, Any]

FILE = """
name = "mine"
title = { en = "Mine" }
seeds = 2
[base]
backend = "numpy"
family = "mlp"
width = 8
activation = "tanh"
init = "gaussian"
data = "spiral"
steps = 5
lr = 0.1
optimizer = "sgd"
optimizer_options = { momentum = 0.5 }
[parts.main]
axes = { depth = [4, 8], gain = [1.0, 1.5] }
[[parts.main.arms]]
name = "plain"
[[parts.main.arms.at]]
where = { depth = 8 }
set = { lr = 0.03 }
[[parts.main.arms.at]]
where = { depth = 8, gain = 1.5 }
set = { "optimizer_options.momentum" = 0.9 }
[[parts.main.arms]]
name = "skip"
set = { shortcut = "identity", lr = 0.2 }
at = [{ where = { gain = 1.0 }, set = { lr = 0.01 } }]
"""


def test_a_case_lies_over_its_arm_where_all_of_its_axes_agree() -> None:
    study = parse(FILE, source="mine.toml")
    planned = expand(study)
    found = {
        (cell.arm, cell.axes["depth"], cell.axes["gain"]): (
            planned.runs[cell.run_id].lr,
            planned.runs[cell.run_id].optimizer_options["momentum"],
        )
        for cell in planned.cells
    }
    assert found == {
        ("plain", 4, 1.0): (0.1, 0.5),
        ("plain", 4, 1.5): (0.1, 0.5),
        ("plain", 8, 1.0): (0.03, 0.5),
        ("plain", 8, 1.5): (0.03, 0.9),
        ("skip", 4, 1.0): (0.01, 0.5),
        ("skip", 4, 1.5): (0.2, 0.5),
        ("skip", 8, 1.0): (0.01, 0.5),
        ("skip", 8, 1.5): (0.2, 0.5),
    }
    assert parse(dump(study), source="again") == study


def test_a_run_of_a_case_is_the_run_of_a_study_that_says_it_everywhere() -> None:
    mine = expand(parse(FILE, source="mine.toml"))
    document = parse(FILE, source="mine.toml").model_dump(mode="json", exclude_defaults=True)
    document["base"]["lr"] = 0.03
    document["parts"]["main"]["arms"] = [{"name": "plain"}]
    theirs = expand(StudySpec.model_validate(document))

    def at(planned: Any) -> set[str]:
        return {cell.run_id for cell in planned.cells if (cell.arm, *cell.axes.values()) == ("plain", 8, 1.0)}

    assert at(mine) == at(theirs)


def told(text: str) -> list[tuple[str, str]]:
    with pytest.raises(FaultsError) as error:
        expand(parse(text, source="mine.toml"), source="mine.toml")
    return list(error.value.faults)


AT = "parts.main.arms.0.at"


@pytest.mark.parametrize(
    ("old", "new", "path", "says"),
    [
        (
            "where = { depth = 8 }",
            "where = { dpeth = 8 }",
            f"{AT}.0.where.dpeth",
            "unknown axis of part 'main' 'dpeth'",
        ),
        (
            "where = { depth = 8 }",
            "where = { width = 8 }",
            f"{AT}.0.where.width",
            "unknown axis of part 'main' 'width'",
        ),
        (
            "where = { depth = 8 }",
            "where = { depth = 9 }",
            f"{AT}.0.where.depth",
            "wanted a value of the axis, [4, 8]; ",
        ),
        (
            "where = { depth = 8 }",
            "where = { gain = true }",
            f"{AT}.0.where.gain",
            "wanted a value of the axis, [1.0, 1.5]; got True.",
        ),
        ("where = { depth = 8 }", "where = {}", f"{AT}.0.where", "wanted at least one entry, got {}."),
        ("where = { depth = 8 }\n", "", f"{AT}.0.where", "missing; it must be given."),
        ("where = { depth = 8 }", "were = { depth = 8 }", f"{AT}.0.were", "unknown key 'were'. Did you mean 'where'?"),
        ("set = { lr = 0.03 }", "set = {}", f"{AT}.0.set", "wanted at least one entry"),
        ("set = { lr = 0.03 }", "set = { seed = 3 }", f"{AT}.0.set.seed", "seeds have a key of their own"),
        ("set = { lr = 0.03 }", "set = { lrr = 3 }", f"{AT}.0.set.lrr", "unknown field of a run 'lrr'"),
        ("set = { lr = 0.03 }", "set = { lr = -1 }", f"{AT}.0.set.lr", "wanted more than 0, got -1."),
        ("set = { lr = 0.03 }", "set = { depth = 5 }", f"{AT}.0.set.depth", "is an axis of the part, and only one of"),
        (
            "set = { lr = 0.03 }",
            "set = { optimizer_options = { momentum = 0.3 } }",
            f"{AT}.1.set.optimizer_options.momentum",
            "is set by entry 0 too, at a place that both mean, and only one of them can decide it.",
        ),
    ],
)
def test_a_fault_of_a_case_is_told_at_its_path(old: str, new: str, path: str, says: str) -> None:
    assert FILE.count(old) == 1
    found = dict(told(FILE.replace(old, new)))
    assert says in found.pop(path)
    assert found == ({f"{AT}.0.where": "missing; it must be given."} if path.endswith("were") else {})


def test_a_misspelt_at_is_told_alone() -> None:
    found = told(FILE.replace("arms.at]]", "arms.att]]"))
    assert found == [
        ("parts.main.arms.0.att", "unknown key 'att'. Did you mean 'at'? Known: at, label, name, note, set.")
    ]


def test_cases_that_never_meet_may_set_the_same() -> None:
    text = FILE.replace("where = { depth = 8, gain = 1.5 }", "where = { depth = 4 }")
    text = text.replace('set = { "optimizer_options.momentum" = 0.9 }', "set = { lr = 0.5 }")
    planned = expand(parse(text, source="mine.toml"))
    plain = {(cell.axes["depth"], planned.runs[cell.run_id].lr) for cell in planned.cells if cell.arm == "plain"}
    assert plain == {(4, 0.5), (8, 0.03)}


def test_studies_without_cases_keep_their_digests() -> None:
    """Written down before an arm could have cases, and a choice a place."""
    study = load("cifar10", "smoke")
    assert study.digest == "b01597e03e073f92"
    assert digest(sorted(expand(study).runs)) == "9d2bf20c2d9b13ab"


UNKNOWN = "unknown axis of {} 'dpeth'. Did you mean 'depth'? Known: depth, gain."
GRID = (0.01, 0.02, 0.04)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_each_run_of_a_tuned_study_has_what_was_chosen_at_its_place(data: st.DataObject) -> None:
    """Any axes, any of them in `by`, any choices: through TOML and back, run by run."""
    document = parse(FILE, source="mine.toml").model_dump(mode="json", exclude_defaults=True)
    axes = document["parts"]["main"]["axes"]
    by = data.draw(st.lists(st.sampled_from(sorted(axes)), unique=True))
    document["parts"]["main"]["arms"] = [{"name": "plain"}, {"name": "skip", "set": {"shortcut": "identity"}}]
    if data.draw(st.booleans()):
        document["parts"]["main"]["exclude"] = [{"arm": "plain", "depth": 8}]
    document["tuning"] = {"grid": list(GRID), "validation": 9, "by": by}
    asked = StudySpec.model_validate(document)
    places = dict.fromkeys((cell.arm, tuple((axis, cell.axes[axis]) for axis in by)) for cell in expand(asked).cells)
    values = {place: data.draw(st.sampled_from(GRID)) for place in places}
    made = with_choices(
        asked,
        Tuned(
            field="lr",
            grid=GRID,
            metric="validation_accuracy",
            seeds=(10_000,),
            validation=9,
            num_runs=1,
            digest=selection_study(asked).digest,
            choices=tuple(
                Choice(
                    part="main",
                    arm=arm,
                    at=dict(at),
                    value=value,
                    scores=tuple(Score(value=each, mean=0.5 + 0.1 * (each == value), num_runs=1) for each in GRID),
                )
                for (arm, at), value in values.items()
            ),
        ),
    )
    again = parse(dump(made), source="again")
    assert again == made
    planned = expand(again)
    assert len(planned.runs) == len(expand(asked).runs)
    for cell in planned.cells:
        assert planned.runs[cell.run_id].lr == values[cell.arm, tuple((axis, cell.axes[axis]) for axis in by)]


def test_a_tuned_study_that_was_changed_at_one_depth_is_refused() -> None:
    study = parse(FILE, source="mine.toml").model_dump(mode="json", exclude_defaults=True)
    choices = [
        {
            "part": "main",
            "arm": "plain",
            "at": {"depth": at},
            "value": value,
            "scores": [{"value": each, "mean": 0.5 - 0.1 * (each == value), "num_runs": 1} for each in GRID],
        }
        for at, value in ((4, 0.01), (8, 0.04))
    ]
    study["parts"]["main"]["arms"] = [
        {"name": "plain", "at": [{"where": {"depth": at}, "set": {"lr": lr}} for at, lr in ((4, 0.01), (8, 0.04))]},
        {"name": "other", "set": {"shortcut": "identity"}},
    ]
    study["tuned"] = {
        "field": "lr",
        "grid": list(GRID),
        "metric": "validation_loss",
        "seeds": [10_000],
        "validation": 9,
        "num_runs": 6,
        "digest": "0" * 16,
        "choices": choices,
    }

    def changed(edit: Callable[[Document, Document], object]) -> list[tuple[str, str]]:
        document: Document = json.loads(json.dumps(study))
        edit(document["parts"]["main"], document["tuned"])
        return told(tomli_w.dumps(document))

    expand(parse(tomli_w.dumps(study), source="mine.toml"))
    [(path, says)] = changed(lambda part, _: part["arms"][0]["at"][1]["set"].update(lr=0.02))
    assert path == "parts.main.arms.0.at.1.set.lr"
    assert says == "is 0.02, and [tuned] says that 0.04 was chosen. Tune again, or take [tuned] out."
    [(path, says)] = changed(lambda part, _: part["axes"]["depth"].append(16))
    assert path == "tuned.choices"
    assert says.startswith("hold none for arm 'plain' of part 'main' at depth = 16, which is run.")
    [(path, says)] = changed(lambda _, tuned: tuned["choices"][0]["at"].update(depth=5))[:1]
    assert path == "tuned.choices"
    found = changed(lambda part, _: part["arms"][0]["at"].pop(0))
    assert found == [
        ("parts.main.arms.0.at", "is None, and [tuned] says that 0.01 was chosen. Tune again, or take [tuned] out.")
    ]
    found = changed(lambda _, tuned: tuned["choices"][1].update(at={"dpeth": 8}))
    assert found[-1] == ("tuned.choices.1.at.dpeth", UNKNOWN.format("part 'main'"))


def test_what_by_cannot_have() -> None:
    tuning = '[tuning]\ngrid = [0.1, 0.2]\nvalidation = 9\nby = ["depth", "{by}"]\n'
    bare = FILE.partition("[[parts.main.arms]]")[0] + '[[parts.main.arms]]\nname = "plain"\n'
    assert told(bare + tuning.replace("{by}", "dpeth")) == [("tuning.by.1", UNKNOWN.format("the tuned parts"))]
    [(path, says)] = told(bare + tuning.replace("{by}", "depth"))
    assert (path, says) == ("tuning.by", "holds 'depth' twice.")
    expand(parse(bare + tuning.replace("{by}", "gain"), source="mine.toml"))
    # A case that sets what is chosen, or what [tuning] sets while it chooses, would undo it.
    case = 'at = [{ where = { depth = 8 }, set = { lr = 0.5, "data_options.validation" = 3 } }]\n'
    assert [path for path, _ in told(bare + case + tuning.replace(', "{by}"', ""))] == [
        "parts.main.arms.0.at.0.set.data_options.validation",
        "parts.main.arms.0.at.0.set.lr",
    ]


def test_a_case_that_brings_other_data_opens_no_test_set_while_tuning() -> None:
    bare = FILE.partition("[[parts.main.arms]]")[0]
    case = (
        '[[parts.main.arms]]\nname = "plain"\n'
        'at = [{ where = { depth = 8 }, set = { data = "mine.data:make" } }]\n'
        "[tuning]\ngrid = [0.1, 0.2]\nvalidation = 9\n"
    )
    bare = bare.replace('data = "spiral"', 'data = "mine.data:first"')
    study = parse(bare + case, source="mine.toml")
    for spec in expand(selection_study(study)).runs.values():
        assert spec.data_options == {"validation": 9, "num_test": 0}
