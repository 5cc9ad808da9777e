"""The sentence says what was measured, whichever way it went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from depthscope.analysis.diagnosis import diagnose
from depthscope.analysis.findings import findings_document, headline, judge
from depthscope.analysis.wording import LANGS
from depthscope.study.claims import Claim, DifferenceInDifferencesClaim, LevelClaim, Select
from depthscope.study.study import Arm

if TYPE_CHECKING:
    from tests.analysis.conftest import MakeResults, MakeTable

SHORTCUTS = {"plain": "none", "res": "identity"}


def did(metric: str = "train_accuracy", unit: str = "accuracy") -> DifferenceInDifferencesClaim:
    def ends(arm: str) -> tuple[Select, Select]:
        return Select(arm=arm, where={"depth": "max"}), Select(arm=arm, where={"depth": "min"})

    return DifferenceInDifferencesClaim(
        name="main",
        text={"en": "Plain falls more than residual", "zh": "普通网络比残差网络下降得更多"},
        part="main",
        metric=metric,
        unit=unit,
        confirmatory=True,
        kind="difference_in_differences",
        first=ends("plain"),
        second=ends("res"),
        expect="at_most",
        than=0.0,
    )


@pytest.fixture
def says(make_results: MakeResults, table: MakeTable) -> Any:
    def make(
        plain: list[Any], residual: list[Any], *claims: Claim, metric: str = "train_accuracy", start: float = 0.5
    ) -> tuple[str, str]:
        seeds = len(plain)
        values = {("plain", 8): plain, ("res", 8): residual, ("plain", 2): [start] * seeds, ("res", 2): [start] * seeds}
        results = make_results(table(values, metric), *claims, seeds=seeds)
        findings = judge(results)
        return headline(results, findings, "en"), headline(results, findings, "zh")

    return make


def test_worse_and_better(says: Any) -> None:
    english, chinese = says([0.3, 0.28, 0.26], [0.6, 0.62, 0.64], did())
    assert english == (
        "Going from 2 to 8 layers, the plain network lost 22.0 points of accuracy on its own training examples "
        "[95% CI 17.0 to 27.0, 3 seeds]; the residual network gained 12.0 points [95% CI 7.0 to 17.0, 3 seeds]. "
        "The confirmatory claim “Plain falls more than residual” is supported: difference in differences "
        "−34.0 points [95% CI −43.9 to −24.1, 3 seeds]."
    )
    assert chinese == (
        "从 2 层加深到 8 层，普通网络在自己的训练样本上的准确率下降了 22.0 个百分点 [95% CI 17.0 至 27.0，3 个种子]；"
        "残差网络上升了 12.0 个百分点 [95% CI 7.0 至 17.0，3 个种子]。"
        "确认性论断“普通网络比残差网络下降得更多”成立：双重差分 −34.0 个百分点 [95% CI −43.9 至 −24.1，3 个种子]。"
    )


def test_the_other_way_round_turns_every_word(says: Any) -> None:
    english, chinese = says([0.6, 0.62, 0.64], [0.3, 0.28, 0.26], did())
    assert "the plain network gained 12.0 points of accuracy" in english
    assert "the residual network lost 22.0 points" in english
    assert "is refuted: difference in differences 34.0 points" in english
    assert "普通网络在自己的训练样本上的准确率上升了 12.0" in chinese
    assert "残差网络下降了 22.0" in chinese
    assert "不成立" in chinese


def test_undecided_claims_nothing(says: Any) -> None:
    english, chinese = says([0.4, 0.5, 0.6], [0.45, 0.6, 0.47], did())
    for word in ("lost", "gained", "supported", "refuted"):
        assert word not in english
    assert "changed by 0.0 points of accuracy on its own training examples [95% CI −24.8 to 24.8, 3 seeds]" in english
    assert "which may be no change" in english
    assert "is undecided" in english
    assert "下降了" not in chinese
    assert "上升了" not in chinese
    assert "不能排除没有变化" in chinese
    assert "尚无定论" in chinese


def test_no_spread(says: Any) -> None:
    english, chinese = says([0.25] * 6, [0.5] * 6, did())
    behind = "[6 seeds, all equal]"
    assert "the plain network lost 25.0 points of accuracy on its own training examples " in english
    assert behind in english
    assert f"the accuracy of the residual network stayed at 50% on every seed {behind}" in english
    assert "is supported: difference in differences −25.0 points" in english
    assert "残差网络的准确率在每个种子上都保持 50% [6 个种子，数值全部相同]" in chinese


def test_few_equal_values_have_no_verb_of_direction(says: Any) -> None:
    english, chinese = says([0.25, 0.25], [0.5, 0.5], did())
    assert "the plain network changed by −25.0 points of accuracy on its own training examples" in english
    assert "[2 seeds, all equal], with too few seeds to tell chance by" in english
    assert "the accuracy of the residual network stayed at 50% on every seed [2 seeds, all equal]" in english
    assert "is undecided" in english
    assert "lost" not in english
    assert "种子太少，无从判断是否偶然" in chinese
    english, chinese = says([0.5, 0.5], [0.25, 0.25], did())
    assert "the accuracy of the plain network on its own training examples stayed at 50% on every seed" in english
    assert "普通网络在自己的训练样本上的准确率在每个种子上都保持 50%" in chinese


def test_one_seed_has_no_verb_of_direction(says: Any) -> None:
    english, chinese = says([0.25], [0.5], did())
    assert "the plain network changed by −25.0 points" in english
    assert "[1 seed, no interval], with too few seeds to tell chance by" in english
    assert "lost" not in english
    assert "无从判断是否偶然" in chinese


def test_divergence_and_absence(says: Any) -> None:
    english, chinese = says(["diverged"] * 3, [None] * 3, did())
    assert "the plain network diverged in 3 of 3 deep runs; the residual network has no pair of results yet" in english
    assert "is undecided: difference in differences not known" in english
    assert "普通网络的 3 次深层运行中有 3 次发散；残差网络尚无成对的结果" in chinese
    english, _ = says([0.3, 0.28, None], ["diverged"] * 3)
    assert "(1 of 6 runs are missing)" in english
    english, chinese = says(["diverged"] * 3, [0.3, 0.28, 0.26])
    assert "the residual network lost 22.0 points of accuracy on its own training examples" in english
    assert "残差网络在自己的训练样本上的准确率下降了" in chinese
    english, _ = says(["diverged", 0.3, 0.28, 0.26], [0.5] * 4, did())
    assert (
        "the plain network diverged in 1 of 4 deep runs, and on the 3 seeds left that network lost 22.0 points of "
        "accuracy on its own training examples [95% CI 17.0 to 27.0, 3 seeds]; "
    ) in english
    # The verdict's number is one over survivors too.
    assert "difference in differences −22.0 points [95% CI −27.0 to −17.0, 3 seeds] (1 of 16 runs diverged)." in english


@pytest.mark.parametrize("deep", [["diverged", 0.4, 0.5, 0.6], ["diverged", 0.4, 0.55], ["diverged", 0.4]])
def test_survivors_are_no_sign_of_no_change(says: Any, deep: list[Any]) -> None:
    english, chinese = says(deep, [0.5] * len(deep))
    assert "may be no change" not in english
    assert "不能排除没有变化" not in chinese
    assert f"the plain network diverged in 1 of {len(deep)} deep runs, and on the {len(deep) - 1} seed" in english
    assert "which decides nothing" in english
    assert f"普通网络的 {len(deep)} 次深层运行中有 1 次发散，在其余 {len(deep) - 1} 个种子上，该网络" in chinese


def test_shallow_divergence_is_told(make_results: MakeResults, table: MakeTable) -> None:
    values = {("plain", 2): ["diverged"] * 2, ("plain", 8): [0.5, 0.6], ("res", 2): [0.5, 0.6], ("res", 8): [0.5, 0.6]}
    results = make_results(table(values), seeds=2)
    assert "the plain network diverged in 2 of 2 shallow runs;" in headline(results, (), "en")
    assert "普通网络的 2 次浅层运行中有 2 次发散" in headline(results, (), "zh")


def test_losses_rise_and_fall(says: Any) -> None:
    english, chinese = says([1.07, 1.06, 1.02], [0.2, 0.22, 0.24], did("train_loss", "nats"), metric="train_loss")
    assert (
        "the loss of the plain network rose by 0.550 nats on its own training examples [95% CI 0.484 to 0.616"
        in english
    )
    assert "the loss of the residual network fell by 0.280 nats" in english
    assert "普通网络在自己的训练样本上的损失上升了 0.550 nats" in chinese
    assert "残差网络的损失下降了 0.280 nats" in chinese


def test_without_a_confirmatory_claim_it_counts(says: Any) -> None:
    level = LevelClaim(
        name="level",
        text={"en": "x"},
        part="main",
        metric="train_accuracy",
        kind="level",
        cells=(Select(arm="plain"),),
        statistic="every_seed",
        expect="at_least",
        than=0.2,
    )
    english, chinese = says([0.3, 0.28], [0.6, 0.62], level)
    assert english.endswith("Of 1 claim: 1 supported.")
    assert chinese.endswith("1 条论断中：1 成立。")


def test_corrected_claims_have_no_narrower_interval_beside_them(says: Any) -> None:
    second = did().model_copy(update={"name": "second", "than": -0.9})
    third = did().model_copy(update={"name": "third", "than": 0.001})
    english, _ = says([0.4, 0.38, 0.2], [0.6, 0.62, 0.64], did(), second, third)
    assert "98.3% CI" in english
    assert "95% CI" not in english.split(". ")[0]


def test_names_with_commas_do_not_cut_the_sentence(make_results: MakeResults) -> None:
    arms = (
        Arm(name="plain", label={"en": "plain, tanh", "zh": "普通网络，tanh"}, set={"shortcut": "none"}),
        Arm(name="bare", set={"shortcut": "identity"}),
    )
    results = make_results(lambda cell: {"train_accuracy": 0.5}, arms=arms)
    assert headline(results, (), "en") == (
        "Going from 2 to 8 layers, the accuracy of the plain network (tanh) on its own training examples "
        "stayed at 50% on every seed [3 seeds, all equal]; "
        "the accuracy of the bare network stayed at 50% on every seed [3 seeds, all equal]."
    )
    assert "普通网络（tanh）在自己的训练样本上的准确率在每个种子上都保持 50%" in headline(results, (), "zh")


def test_no_depth_axis_leaves_the_verdict(make_results: MakeResults) -> None:
    level = LevelClaim(
        name="level",
        text={"en": "All fit"},
        part="main",
        metric="train_accuracy",
        unit="accuracy",
        confirmatory=True,
        kind="level",
        cells=(Select(arm="plain"),),
        statistic="every_seed",
        expect="at_least",
        than=0.9,
    )
    results = make_results(lambda cell: {"train_accuracy": 1.0}, level, axes={}, base={"depth": 4})
    assert headline(results, judge(results), "en") == (
        "The confirmatory claim “All fit” is supported: 3 of 3 seeds [95% CI 29.2% to 100.0%]."
    )


def test_pairs_that_stay_at_their_own_level_have_no_common_one(make_results: MakeResults) -> None:
    results = make_results(lambda cell: {"train_accuracy": (0.5, 0.25, 0.75)[cell.seed]})
    assert "stayed exactly the same on every seed [3 seeds, all equal]" in headline(results, (), "en")
    assert "在每个种子上都完全没有变化" in headline(results, (), "zh")
    fitted = make_results(lambda cell: {"train_accuracy": 1.0})
    assert "stayed at 100% on every seed" in headline(fitted, (), "en")


@pytest.mark.parametrize(
    ("shallow", "deep", "english", "chinese"),
    [
        ("failed", 0.5, "has no pair of results (3 of 6 runs failed);", "没有成对的结果（6 次运行中有 3 次出错）"),
        ("failed", None, "has no pair of results (3 of 6 runs are missing, 3 of 6 runs failed);", "没有成对的结果"),
        (None, 0.5, "has no pair of results yet (3 of 6 runs are missing);", "尚无成对的结果"),
        ("diverged", 0.5, "diverged in 3 of 3 shallow runs;", "3 次浅层运行中有 3 次发散"),
    ],
)
def test_no_pair_says_why_and_whether_one_will_come(
    make_results: MakeResults, table: MakeTable, shallow: Any, deep: Any, english: str, chinese: str
) -> None:
    values = {("plain", 2): [shallow] * 3, ("plain", 8): [deep] * 3, ("res", 2): [0.5] * 3, ("res", 8): [0.5] * 3}
    results = make_results(table(values))
    assert f"the plain network {english}" in headline(results, (), "en")
    assert chinese in headline(results, (), "zh")


def test_two_confirmatory_claims_are_one_sentence(says: Any) -> None:
    english, _ = says([0.3, 0.28, 0.26], [0.6, 0.62, 0.64], did(), did().model_copy(update={"name": "second"}))
    assert ". The confirmatory claim “Plain" in english
    assert "; the confirmatory claim “Plain" in english
    assert "; The" not in english


@pytest.mark.parametrize(("own", "other"), [("zh", "en"), ("en", "zh")])
def test_a_study_in_one_language_is_told_in_both(make_results: MakeResults, own: str, other: str) -> None:
    """Through every function of analysis that reads the study's own texts."""
    texts = {"en": ("Deep is worse", "bare"), "zh": ("加深更差", "普通网络")}
    text, label = texts[own]
    claim = did().model_copy(update={"text": {own: text}})
    arms = tuple(Arm(name=name, label={own: label}, set={"shortcut": set_}) for name, set_ in SHORTCUTS.items())  # type: ignore[dict-item]
    results = make_results(
        lambda cell: {"train_accuracy": 0.5 + 0.01 * cell.seed * cell.axes["depth"]}, claim, arms=arms
    )
    findings = judge(results)
    assert findings_document(results, findings, {})["findings"][0]["text"] == {own: text}
    assert {*findings[0].reasons} == {"en", "zh"}
    assert all({*each.diagnosis.text} == {"en", "zh"} for each in diagnose(results))
    for lang in LANGS:
        said = headline(results, findings, lang)
        assert text in said
        assert label in said
    assert "确认性论断" in headline(results, findings, "zh")
    assert "confirmatory" in headline(results, findings, "en")
    assert other not in findings[0].text


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("plain", "the plain network"),
        ("vanilla RNN", "the vanilla RNN"),
        ("vanilla RNN, rate .001", "the vanilla RNN (rate .001)"),
        ("with plus signs", "the network with plus signs"),
        ("without +, 1/√fan_in", "the network without + (1/√fan_in)"),
    ],
)
def test_an_arm_is_named_as_a_network_once(make_results: MakeResults, label: str, name: str) -> None:
    arms = (Arm(name="plain", label={"en": label}, set={"shortcut": "none"}),)
    results = make_results(lambda cell: {"train_accuracy": cell.axes["depth"] / 10 + cell.seed / 100}, arms=arms)
    assert f"2 to 8 layers, {name} " in headline(results, (), "en").replace("the accuracy of ", "")


def test_where_depth_is_time_it_counts_steps_and_a_squared_error_has_no_unit(make_results: MakeResults) -> None:
    cells = {"plain": "rnn", "res": "residual_rnn"}
    arms = tuple(
        Arm(name=name, label={"en": label, "zh": "网络"}, set={"model_options.cell": cells[name]})
        for name, label in (("plain", "without plus signs"), ("res", "with plus signs"))
    )
    base = {"backend": "torch", "family": "recurrent", "data": "adding", "measures": [], "gain": 1.0}
    results = make_results(
        lambda cell: {"train_loss": cell.axes["depth"] * (0.01 + 0.001 * cell.seed)}, arms=arms, base=base
    )
    assert headline(results, (), "en") == (
        "Going from 2 to 8 steps, the loss of the network without plus signs rose by 0.0660 on its own training "
        "examples [95% CI 0.0511 to 0.0809, 3 seeds]; "
        "the loss of the network with plus signs rose by 0.0660 [95% CI 0.0511 to 0.0809, 3 seeds]."
    )
    assert headline(results, (), "zh").startswith("从 2 步加深到 8 步，")


@pytest.mark.parametrize(
    ("family", "english", "chinese"),
    [
        ({"family": "gpt", "data": "shakespeare"}, "Going from 2 to 8 blocks, ", "从 2 个块加深到 8 个块，"),
        ({"family": "mlp", "data": "spiral"}, "Going from 2 to 8 layers, ", "从 2 层加深到 8 层，"),
    ],
)
def test_depth_is_called_by_what_it_counts(
    make_results: MakeResults, family: dict[str, str], english: str, chinese: str
) -> None:
    base = {"backend": "torch", "measures": [], "gain": 1.0, "activation": "relu", **family}
    results = make_results(lambda cell: {"train_loss": cell.axes["depth"] + 0.1 * cell.seed}, base=base)
    assert headline(results, (), "en").startswith(english)
    assert headline(results, (), "zh").startswith(chinese)
