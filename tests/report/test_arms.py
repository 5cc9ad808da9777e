"""What arms set is read at a glance: options stand together under the name that they are of."""

from __future__ import annotations

from typing import Any

from depthscope.analysis.table import Results
from depthscope.report import content
from depthscope.report.arms import arms
from depthscope.report.recipe import recipe
from depthscope.report.words import Words
from depthscope.study.expand import expand
from depthscope.study.study import StudySpec

OWN = {"tied": False, "bias": False}


def study(**base: Any) -> Results:
    """A GPT with and without options of its own, untrained; `base` changes what all runs share."""
    start = {"backend": "torch", "family": "gpt", "depth": 2, "width": 8, "activation": "relu", "init": "gpt2"}
    document = {
        "name": "made-up",
        "title": {"en": "Made up"},
        "base": {**start, "data": "names", "steps": 0, **base},
        "parts": {
            "main": {
                "arms": [
                    {"name": "standard", "set": {"norm": "layer"}},
                    {"name": "own", "set": {"norm": "rms", "gain": 2.0, "model_options": OWN}},
                    {"name": "again", "set": {"norm": "rms", "gain": 3.0, "model_options": OWN}},
                ]
            }
        },
    }
    plan = expand(StudySpec.model_validate(document))
    return Results(plan=plan, records={}, load_table=lambda run_id, name: None)


def told(lang: str = "en") -> list[list[tuple[str, str]]]:
    words = Words(lang)  # type: ignore[arg-type]
    results = study()
    (view,) = content.views(results, words)
    return [[(each["code"], each["text"]) for each in arm["settings"]] for arm in arms(results, view, words)]


def test_options_stand_in_one_line_under_their_family_and_are_told_once() -> None:
    unless, standard, own, again = told()
    meaning = "tied: the head is the table of tokens; bias: biases, and shifts of normalisers"
    assert unless[-1] == ("gpt: tied = true, bias = true", meaning)
    assert [code for code, _ in standard] == ["norm = layer"]
    assert own[-1] == again[-1] == ("gpt: tied = false, bias = false", "")
    assert [code for code, _ in own] == ["norm = rms", "gain = 2", "gpt: tied = false, bias = false"]
    assert not any("model_options" in code for lines in told() for code, _ in lines)


def test_what_varies_names_the_options_of_the_family_once() -> None:
    words = Words("en")
    (view,) = content.views(study(), words)
    rows = dict(recipe(view, words))
    assert rows["What varies"] == "the normaliser; its gain; tied, bias of gpt"


def counted(data: str, lang: str = "en", **base: Any) -> str:
    words = Words(lang)  # type: ignore[arg-type]
    start = {"backend": "torch", "depth": 4, "width": 8, "activation": "tanh", "init": "gaussian", "steps": 1}
    plan = expand(
        StudySpec.model_validate(
            {
                "name": "made-up",
                "title": {"en": "Made up"},
                "base": {**start, "data": data, "data_options.num_train": 32, **base},
                "parts": {"main": {"arms": [{"name": "plain"}]}},
            }
        )
    )
    (view,) = content.views(Results(plan=plan, records={}, load_table=lambda run_id, name: None), words)
    return dict(recipe(view, words))[words("recipe.row.data")]


def test_examples_are_called_what_they_are() -> None:
    gpt = {"family": "gpt", "init": "gpt2", "activation": "relu"}
    assert "; 32 names to train on" in counted("names", **gpt)
    assert "; 32 windows of text to train on" in counted("shakespeare", **gpt)
    assert "; 32 training sequences" in counted("adding", family="recurrent")
    assert "; 32 training examples" in counted("identity_task", family="mlp")
    assert "32 条训练序列" in counted("adding", lang="zh", family="recurrent")
    assert "images" not in counted("names", **gpt)
