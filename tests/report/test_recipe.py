"""The recipe: what all runs of a part share stands there, what differs does not, nothing is said of what is off."""

from __future__ import annotations

from tests.report.conftest import Study
from tests.report.test_strings import visible

from depthscope.report import content
from depthscope.report.recipe import chance, recipe
from depthscope.report.words import Words


def rows(study: Study, number: int, lang: str = "en") -> dict[str, str]:
    words = Words(lang)  # type: ignore[arg-type]
    return dict(recipe(content.views(study.results, words)[number], words))


def test_the_recipe_says_what_all_runs_of_a_part_share(cifar: Study) -> None:
    told = rows(cifar, 0)
    spec = cifar.results.rows[0].spec
    assert f"{spec.data_options['num_train']:,} training images" in told["Data"]
    assert f"{spec.epochs} epochs" in told["Training"]
    assert f"{spec.batch_size} examples a batch" in told["Training"]
    assert f"linear warm-up over {spec.warmup_steps} steps" in told["Training"]
    assert told["What varies"].startswith("depth (20, 56); the shortcut")
    assert "shortcut" not in told["Network"]
    assert "layers deep" not in told["Network"]
    assert told["Training"] in visible(cifar.page())


def test_what_is_off_or_not_shared_is_left_out(spiral: Study) -> None:
    flow, free = rows(spiral, 1), rows(spiral, 4)
    assert flow["Training"] == "none: the networks are measured as they start"
    assert "Adam" not in str(flow)
    assert "40 layers deep" in flow["Network"]
    assert "Initial weights" not in free  # initialiser and gain differ between the arms
    assert free["What varies"] == "the initialiser; its gain"
    assert not any(word in str(flow) for word in ("None", "none;", "null", "augment"))


def test_a_recipe_in_chinese_has_the_same_rows(spiral: Study) -> None:
    for number in range(5):
        assert len(rows(spiral, number, "zh")) == len(rows(spiral, number))


def test_chance_is_known_where_the_classes_are(cifar: Study, spiral: Study) -> None:
    words = Words("en")
    assert chance(content.views(cifar.results, words)[0]) == 0.1
    assert chance(content.views(spiral.results, words)[0]) == 1 / 3
