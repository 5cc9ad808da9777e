"""Study files with faults: each is told by its path in the file, all of them at once, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
import tomli_w

from depthscope.core.errors import FaultsError
from depthscope.study.check import RUN_FIELDS
from depthscope.study.expand import expand
from depthscope.study.toml import parse

Document = dict[str, Any]
Told = Callable[[Document], list[tuple[str, str]]]


@pytest.fixture
def told() -> Told:
    """The faults of a document, as `depthscope plan` would tell them."""

    def faults(document: Document) -> list[tuple[str, str]]:
        with pytest.raises(FaultsError) as error:
            expand(parse(tomli_w.dumps(document), source="mine.toml"), source="mine.toml")
        return list(error.value.faults)

    return faults


def put(document: Document, path: str, value: Any) -> None:
    """Set, add to a list, or (for None) remove what stands at a path; keys in it hold no dots."""
    *heads, last = path.split("/")
    holder: Any = document
    for head in heads:
        holder = holder[int(head)] if isinstance(holder, list) else holder.setdefault(head, {})
    if isinstance(holder, list):
        holder[int(last) :] = [value, *holder[int(last) + 1 :]] if value is not None else holder[int(last) + 1 :]
    elif value is None:
        del holder[last]
    else:
        holder[last] = value


MAIN = "parts/main"
TUNING: Document = {"grid": [0.01, 0.1], "validation": 10}
SCORES: list[Document] = [{"value": value, "mean": 0.4 + value, "num_runs": 4} for value in (0.01, 0.1)]
CHOICE: Document = {"part": "main", "arm": "plain", "value": 0.1, "scores": SCORES}
TUNED: Document = {
    "field": "lr",
    "grid": [0.01, 0.1],
    "metric": "validation_accuracy",
    "seeds": [10_000],
    "validation": 10,
    "num_runs": 8,
    "digest": "0123456789abcdef",
    "choices": [CHOICE],
}
COMMON: Document = {"text": {"en": "a sentence"}, "part": "main", "metric": "train_accuracy"}
DEEP, SHALLOW = ({"arm": "plain", "where": {"depth": end}} for end in ("max", "min"))
FIRST = [DEEP, SHALLOW]
LOSES_POINTS = {**COMMON, "name": "x", "kind": "no_degradation", "a": DEEP, "b": SHALLOW, "margin": 2}
FEWER_POINTS = {**COMMON, "name": "x", "kind": "difference", "a": DEEP, "b": SHALLOW, "expect": "at_least", "than": -10}
ONE_WAY = {**COMMON, "name": "x", "kind": "monotone", "arm": "plain", "direction": "decreasing", "within": 1}
SWAPPED = {**COMMON, "name": "x", "kind": "no_degradation", "a": SHALLOW, "b": DEEP, "margin": 0.02}
FAULTS: list[tuple[str, Any, str, str]] = [
    # where, what is put there (None: removed), the path that is told, what is said
    ("nmae", "x", "nmae", "unknown key 'nmae'. Did you mean 'name'?"),
    ("name", None, "name", "missing; it must be given."),
    ("name", "My Study", "name", "wanted a name like tanh-48 (small letters, digits, hyphens), got 'My Study'."),
    ("title", "Mine", "title", "wanted a table, got 'Mine'. Write { en = \"Mine\" }."),
    ("claims/0/text", "It is so", "claims.0.text", 'Write { en = "It is so" }.'),
    (f"{MAIN}/arms/1/label", "Skip", "parts.main.arms.1.label", 'Write { en = "Skip" }.'),
    (f"{MAIN}/arms/1/set/shortcut", "residual", "parts.main.arms.1.set.shortcut", "Did you mean 'identity' (x + F(x)"),
    ("base/data", "my.package.rings", "base.data", "with a colon: 'my.package:rings'."),
    (f"{MAIN}/arms/1/name", "plain", "parts.main.arms.1.name", "'plain' is used twice"),
    ("title", {}, "title", "wanted at least one entry, got {}."),
    ("title/fr", "Le mien", "title.fr", "wanted 'en' or 'zh', got 'fr'."),
    ("title/en", 3, "title.en", "wanted text, got 3."),
    ("sources", "he2016resnet", "sources", "wanted a list, got 'he2016resnet'."),
    ("seeds", 0, "seeds", "wanted 1 or more, got 0."),
    ("seeds", "3", "seeds", "wanted an integer, got '3'."),
    ("seeds", 2.5, "seeds", "wanted an integer, got 2.5."),
    ("seeds", [], "seeds", "wanted at least one entry, got []."),
    ("seeds", [0, -1], "seeds.1", "wanted 0 or more, got -1."),
    ("seeds", 20_000, "seeds", "wanted 10000 or less, got 20000."),
    # parts
    ("parts", 3, "parts", "wanted a table, got 3."),
    ("parts", {}, "parts", "wanted at least one entry, got {}."),
    ("parts", None, "parts", "missing; it must be given."),
    ("parts/a b", {"arms": [{"name": "plain"}]}, "parts.a b", "wanted a name like ResNet-A"),
    (f"{MAIN}/axs", {"depth": [2]}, "parts.main.axs", "unknown key 'axs'. Did you mean 'axes'?"),
    (f"{MAIN}/axes", [4], "parts.main.axes", "wanted a table, got [4]."),
    (f"{MAIN}/axes/depth", 4, "parts.main.axes.depth", "wanted a list, got 4."),
    (f"{MAIN}/axes/gain", [], "parts.main.axes.gain", "wanted at least one entry, got []."),
    (f"{MAIN}/axes/depth", [4, 8, 4], "parts.main.axes.depth", "holds 4 twice."),
    (f"{MAIN}/axes/dpeth", [4, 8], "parts.main.axes.dpeth", "unknown field of a run 'dpeth'. Did you mean 'depth'?"),
    (f"{MAIN}/axes/seed", [4, 8], "parts.main.axes.seed", "seeds have a key of their own: `seeds`"),
    (f"{MAIN}/axes/lr", [0.1, -1.0], "parts.main.axes.lr", "wanted more than 0, got -1.0."),
    (f"{MAIN}/axes/lr", [0.1, float("inf")], "parts.main.axes.lr", "a run has no such value: [0.1, inf]."),
    (f"{MAIN}/axes/shortcut", ["none"], "parts.main.axes.shortcut", "arm 'skip' sets shortcut too"),
    (f"{MAIN}/axes/data_options.nois", [1], "parts.main.axes.data_options.nois", "Did you mean 'noise'?"),
    (f"{MAIN}/seeds", True, "parts.main.seeds", "wanted an integer, got True."),
    (f"{MAIN}/baseline", "plian", "parts.main.baseline", "unknown arm 'plian'. Did you mean 'plain'?"),
    (f"{MAIN}/exclude", {"arm": "plain"}, "parts.main.exclude", "wanted a list"),
    (f"{MAIN}/exclude", [{"amr": "plain"}], "parts.main.exclude.0.amr", "Did you mean 'arm'?"),
    (f"{MAIN}/exclude", [{"arm": "skp"}], "parts.main.exclude.0.arm", "unknown arm 'skp'. Did you mean 'skip'?"),
    (f"{MAIN}/exclude", [{}], "parts.main.exclude.0", "an empty rule would leave out every run"),
    # arms
    (f"{MAIN}/arms", [], "parts.main.arms", "wanted at least one entry, got []."),
    (f"{MAIN}/arms", 3, "parts.main.arms", "wanted a list, got 3."),
    (f"{MAIN}/arms/0", "plain", "parts.main.arms.0", "wanted a table, got 'plain'."),
    (f"{MAIN}/arms/0/name", "a b", "parts.main.arms.0.name", "(letters, digits, hyphens), got 'a b'."),
    (f"{MAIN}/arms/0/name", None, "parts.main.arms.0.name", "missing"),
    (f"{MAIN}/arms/1/lable", {"en": "x"}, "parts.main.arms.1.lable", "unknown key 'lable'. Did you mean 'label'?"),
    (f"{MAIN}/arms/1/set/shortcut", "identiy", "parts.main.arms.1.set.shortcut", "Did you mean 'identity'?"),
    (f"{MAIN}/arms/1/set/seed", 3, "parts.main.arms.1.set.seed", "seeds have a key of their own"),
    (f"{MAIN}/arms/2", {"name": "skip"}, "parts.main.arms.2.name", "'skip' is used twice"),
    # (an only entry with a fault is also too few entries to pydantic; that is not told)
    ("parts/flow/arms/0/lable", {"en": "x"}, "parts.flow.arms.0.lable", "Did you mean 'label'?"),
    ("claims/2/cells/0/amr", "x", "claims.2.cells.0.amr", "Did you mean 'arm'?"),
    # runs
    ("base", 3, "base", "wanted a table, got 3."),
    ("base/widht", 3, "base.widht", "unknown field of a run 'widht'. Did you mean 'width'?"),
    ("base/family", None, "base.family", "missing; every run needs it."),
    ("base/data", "spirl", "base.data", "unknown data 'spirl'. Did you mean 'spiral'?"),
    ("base/lr", date(2026, 1, 1), "base.lr", "a run has no such value: datetime.date(2026, 1, 1)."),
    ("base/lr", "fast", "base.lr", "wanted a number, got 'fast'."),
    ("base/width", "8", "base.width", "wanted an integer, got '8'."),
    ("base/seed", 3, "base.seed", "seeds have a key of their own"),
    ("base/epochs", 3, "base.epochs", "give epochs or steps, not both."),
    ("base/data_options", {"noise": "x"}, "base.data_options.noise", "wanted a number, got 'x'."),
    ("base/data_options.noise", "x", "base.data_options.noise", "wanted a number, got 'x'."),
    ("base/depth.x", 3, "base.depth.x", "wanted an integer, got {'x': 3}."),
    ("parts/flow/base/measures", ["layer"], "parts.flow.base.measures", "Did you mean 'layers'?"),
    # claims
    ("claims", {}, "claims", "wanted a list, got {}."),
    ("claims/0/kind", "diference", "claims.0", "unknown kind of claim 'diference'. Did you mean 'difference'?"),
    ("claims/0/kind", None, "claims.0", "missing `kind`"),
    ("claims/0/metric", "train_los", "claims.0.metric", "unknown metric 'train_los'. Did you mean 'train_loss'?"),
    ("claims/0/part", "mian", "claims.0.part", "unknown part 'mian'. Did you mean 'main'?"),
    ("claims/0/expects", "at_most", "claims.0.expects", "unknown key 'expects'. Did you mean 'expect'?"),
    ("claims/0/expect", "atmost", "claims.0.expect", "wanted 'at_least' or 'at_most', got 'atmost'. Did you mean"),
    ("claims/0/than", "0.5", "claims.0.than", "wanted a number, got '0.5'."),
    ("claims/0/than", float("nan"), "claims.0.than", "wanted a finite number, got nan."),
    ("claims/0/a/arm", "plian", "claims.0.a.arm", "unknown arm 'plian'. Did you mean 'plain'?"),
    ("claims/0/a/were", {}, "claims.0.a.were", "unknown key 'were'. Did you mean 'where'?"),
    ("claims/0/a/where/dept", 4, "claims.0.a.where.dept", "unknown axis of part 'main' 'dept'. Did you mean 'depth'?"),
    ("claims/0/a/where/depth", 5, "claims.0.a", "no run has arm 'plain' with depth = 5. The part has depth: [4, 8]."),
    ("claims/0/name", "two", "claims.1.name", "'two' is used twice; each claim needs its own name."),
    ("claims/0/sizes", ["smal"], "claims.0.sizes", "unknown size 'smal'. Did you mean 'small'?"),
    ("claims/1/confirmatory", ["smal"], "claims.1.confirmatory", "unknown size 'smal'. Did you mean 'small'?"),
    ("claims/1/confirmatory", "yes", "claims.1.confirmatory", "wanted true or false, got 'yes'."),
    ("claims/1/first/1", None, "claims.1.first.1", "missing"),
    ("claims/1/second/1/arm", "skp", "claims.1.second.1.arm", "unknown arm 'skp'. Did you mean 'skip'?"),
    ("claims/2/cells", [], "claims.2.cells", "wanted at least one entry, got []."),
    ("claims/3/tolerance", 0, "claims.3.tolerance", "wanted more than 0, got 0."),
    ("claims/4/margin", 0, "claims.4.margin", "wanted more than 0, got 0."),
    ("claims/4/margn", 1, "claims.4.margn", "unknown key 'margn'. Did you mean 'margin'?"),
    ("claims/4/metric", "dh_factor_first", "claims.4.metric", "neither side is worse; wanted a loss or an accuracy"),
    ("claims/4/a/arm", "plian", "claims.4.a.arm", "unknown arm 'plian'. Did you mean 'plain'?"),
    ("claims/5/axis", "dpeth", "claims.5.axis", "unknown axis of part 'main' 'dpeth'. Did you mean 'depth'?"),
    ("claims/5/where", {"depth": 4}, "claims.5.where.depth", "is the axis that the claim goes along"),
    ("claims/5/where", {"dept": 4}, "claims.5.where.dept", "unknown axis of part 'main' 'dept'."),
    ("claims/5/arm", "plian", "claims.5.arm", "unknown arm 'plian'. Did you mean 'plain'?"),
    ("claims/5/within", -1, "claims.5.within", "wanted 0 or more, got -1."),
    ("claims/5/direction", "up", "claims.5.direction", "wanted 'increasing' or 'decreasing', got 'up'."),
    ("claims/6/a", [], "claims.6.a", "wanted at least 2 entries, got []."),
    ("claims/6/a/1/arm", "skp", "claims.6.a.1.arm", "unknown arm 'skp'. Did you mean 'skip'?"),
    ("claims/6/a/1", DEEP, "claims.6.a.1", "means the same runs as a.0; each alternative is counted once."),
    ("claims/6/a/1", {"arm": "plain", "where": {"depth": 8}}, "claims.6.a.1", "means the same runs as a.0; each"),
    ("claims/6/a/1", SHALLOW, "claims.6.b", "means the same runs as a.1, so the difference would be 0"),
    ("claims/6/b", None, "claims.6.b", "missing"),
    ("claims/6/than", None, "claims.6.than", "missing"),
    # claims that could never fail or hold, or that compare nothing
    ("claims/0/unit", "nat", "claims.0.unit", "no unit of 'train_loss': wanted 'nats', or leave it away; got 'nat'."),
    ("claims/4", LOSES_POINTS, "claims.4.margin", "the claim could never fail: for 2 points write 0.02."),
    ("claims/0", FEWER_POINTS, "claims.0.than", "could never fail: for -10 points write -0.1."),
    ("claims/0", FEWER_POINTS | {"than": 20}, "claims.0.than", "could never hold: for 20 points write 0.2."),
    ("claims/0", FEWER_POINTS | {"expect": "at_most", "than": 1}, "claims.0.than", "so with 1 the claim could never"),
    ("claims/5", ONE_WAY, "claims.5.within", "so with 1 the claim could never fail."),
    ("claims/0/b/where/depth", "max", "claims.0.b", "means the same runs as a, so the difference would be 0"),
    ("claims/1/second/1/where/depth", 8, "claims.1.second.1", "means the same runs as second.0"),
    ("claims/1/second", FIRST, "claims.1.second", "means the same runs as `first`, so the difference would be 0"),
    ("claims/4", SWAPPED, "claims.4.a", "is the shallower (depth 4, and b has 8); the claim says that "),
    # ranking
    (f"{MAIN}/ranked", "train_los", "parts.main.ranked", "of 'train_los' neither side is worse; wanted a loss or an"),
    (f"{MAIN}/ranked", "dh_factor_first", "parts.main.ranked", "neither side is worse; wanted a loss or an accuracy"),
    (f"{MAIN}/ranked", "train_loss", "parts.main.ranked", "wanted 3 arms or more to rank; the part has 2."),
    # resources
    ("resources", 3, "resources", "wanted a table, got 3."),
    ("resources/cpus", 0, "resources.cpus", "wanted more than 0, got 0."),
    ("resources/gpu", 1, "resources.gpu", "unknown key 'gpu'. Did you mean 'gpus'?"),
    ("resources/memory_gb", "8", "resources.memory_gb", "wanted a number, got '8'."),
    (f"{MAIN}/resources", {"gpus": 1.5}, "parts.main.resources.gpus", "wanted a share of one GPU (such as 0.5)"),
    (f"{MAIN}/resources", {"cpu": 1}, "parts.main.resources.cpu", "unknown key 'cpu'. Did you mean 'cpus'?"),
    # tuning
    ("tuning", {**TUNING, "grid": [0.1]}, "tuning.grid", "wanted at least 2 entries, got [0.1]."),
    ("tuning", {**TUNING, "grid": [0.1, 0.1]}, "tuning.grid", "holds 0.1 twice."),
    ("tuning", {**TUNING, "grid": [0.1, "x"]}, "tuning.grid.1", "wanted a number, got 'x'."),
    ("tuning", {**TUNING, "grid": [0.1, -1]}, "tuning.grid", "wanted more than 0, got -1."),
    ("tuning", {**TUNING, "field": "lrr"}, "tuning.field", "unknown number among the fields of a run 'lrr'. Did you"),
    ("tuning", {**TUNING, "field": "shortcut"}, "tuning.field", "unknown number among the fields of a run 'shortcut'."),
    ("tuning", {**TUNING, "feild": "lr"}, "tuning.feild", "unknown key 'feild'. Did you mean 'field'?"),
    ("tuning", {**TUNING, "seeds": [0, 7]}, "tuning.seeds", "seed 0 is run by part 'main'; choose on seeds that"),
    ("tuning", {**TUNING, "parts": ["mian"]}, "tuning.parts.0", "unknown part 'mian'. Did you mean 'main'?"),
    ("tuning", {**TUNING, "metric": "test_accuracy"}, "tuning.metric", "wanted 'validation_accuracy' or"),
    ("tuning", {"grid": [1, 2]}, "tuning.validation", "missing; it must be given."),
    # tuned
    ("tuned", TUNED, "parts.main.arms.0.set.lr", "is None, and [tuned] says that 0.1 was chosen."),
    ("tuned", {**TUNED, "digest": "x"}, "tuned.digest", "wanted 16 small hexadecimal digits, got 'x'."),
    ("tuned", {**TUNED, "choices": [{**CHOICE, "part": "mian"}]}, "tuned.choices.0.part", "unknown part 'mian'."),
    ("tuned", {**TUNED, "choices": [{**CHOICE, "arm": "plian"}]}, "tuned.choices.0.arm", "unknown arm 'plian'."),
    ("tuned", {**TUNED, "choices": [{**CHOICE, "aem": "x"}]}, "tuned.choices.0.aem", "Did you mean 'arm'?"),
    (
        *("tuned", {**TUNED, "choices": [{**CHOICE, "scores": [{**SCORES[1], "num_lost": 5}]}]}),
        *("tuned.choices.0.scores.0.num_lost", "wanted 4 (num_runs) or less, got 5."),
    ),
    # sizes
    ("sizes", 3, "sizes", "wanted tables such as [sizes.quick]."),
    ("sizes/small", 3, "sizes", "wanted tables such as [sizes.quick]."),
    ("sizes/small/sedes", 3, "sizes.small.sedes", "unknown key 'sedes'. Did you mean 'seeds'?"),
    ("sizes/large/seeds", "many", "sizes.large.seeds", "wanted an integer, got 'many'."),
    ("sizes/large/parts", {"main": {"axis": {}}}, "sizes.large.parts.main.axis", "Did you mean 'axes'?"),
    ("sizes/large/claims", [{"name": "x"}], "sizes.large.claims.0", "missing `kind`"),
    ("sizes/small/base/lr", -1, "base.lr", "wanted more than 0, got -1."),
]


@pytest.mark.parametrize(("where", "value", "path", "says"), FAULTS)
def test_one_fault(document: Document, told: Told, where: str, value: Any, path: str, says: str) -> None:
    put(document, where, value)
    faults = told(document)
    assert [each for each, _ in faults] == [path]  # and none that only follows from it
    assert says in faults[0][1]
    assert len(faults[0][1].splitlines()) == 1


def test_there_are_more_than_thirty_kinds() -> None:
    assert len({says.split("'")[0].split(",")[0] for *_, says in FAULTS}) >= 30


def test_the_document_itself_is_sound(document: Document) -> None:
    assert len(expand(parse(tomli_w.dumps(document), source="mine.toml")).runs) == 10


def test_two_arms_that_are_the_same_run_are_one_alternative(document: Document, told: Told) -> None:
    put(document, f"{MAIN}/arms/1/set", {"shortcut": "none"})  # as the other arm has it by default
    alternative, second = dict(told(document)), "means the same runs as `first`, so the difference would be 0"
    assert list(alternative) == ["claims.1.second", "claims.6.a.1"]
    assert alternative["claims.6.a.1"] == "means the same runs as a.0; each alternative is counted once."
    assert alternative["claims.1.second"].startswith(second)


def test_what_tuning_cannot_have(document: Document, told: Told) -> None:
    document["tuning"] = dict(TUNING)
    put(document, f"{MAIN}/axes/lr", [0.1, 0.2])
    put(document, f"{MAIN}/arms/1/set/data_options.validation", 5)
    put(document, f"{MAIN}/axes/data_options.without_test", [True, False])
    assert [path for path, _ in told(document)] == ["parts.main.axes.data_options.without_test", "parts.main.axes.lr"]
    del document["parts"]["main"]["axes"]["lr"], document["parts"]["main"]["axes"]["data_options.without_test"]
    put(document, f"{MAIN}/arms/1/set/lr", 0.1)
    [(path, says)] = told(document)
    assert path == "parts.main.arms.1.set.lr"
    assert says == (
        "would be lost: [tuning] chooses lr for this arm. Leave it away, or choose in other parts with tuning.parts."
    )
    document["base"]["steps"] = 0
    del document["sizes"], document["claims"]
    assert told(document) == [("tuning", "no part of the study trains, so that there is nothing to choose.")]


def test_what_a_tuned_study_may_no_longer_change(document: Document, told: Told) -> None:
    document["tuned"] = json.loads(json.dumps(TUNED))
    document["parts"]["main"]["arms"][0]["set"]["lr"] = 0.1
    expand(parse(tomli_w.dumps(document), source="mine.toml"))
    document["seeds"] = [0, 10_000]
    assert told(document) == [("seeds", "seed 10000 was used to choose lr (tuned.seeds); run others.")]
    document["parts"]["main"]["seeds"] = 2
    document["parts"]["main"]["arms"][0]["set"]["lr"] = 0.02
    [(path, says)] = told(document)
    assert path == "parts.main.arms.0.set.lr"
    assert "is 0.02, and [tuned] says that 0.1 was chosen" in says
    document["parts"]["main"]["arms"][0]["set"]["lr"] = 0.3
    document["tuned"]["choices"][0]["value"] = 0.3
    assert told(document) == [("tuned.choices.0.value", "0.3 is no value that was tried.")]


def test_a_name_that_two_arms_share_makes_no_faults_of_who_speaks_of_the_other(document: Document, told: Told) -> None:
    put(document, f"{MAIN}/arms/1/name", "plain")
    put(document, f"{MAIN}/baseline", "skip")
    assert [path for path, _ in told(document)] == ["parts.main.arms.1.name"]


def test_claims_that_an_exclusion_leaves_with_one_depth(document: Document, told: Told) -> None:
    put(document, f"{MAIN}/exclude", [{"arm": "plain", "depth": 4}])
    faults = dict(told(document))
    assert "has one value of depth, 8; going one way needs" in faults.pop("claims.5")
    assert sorted(faults) == ["claims.0.b", "claims.1.first.1", "claims.4.b", "claims.6.b"]
    assert all("means the same runs as" in says for says in faults.values())


def test_one_way_along_an_axis_of_names_means_nothing(document: Document, told: Told) -> None:
    put(document, f"{MAIN}/axes/activation", ["tanh", "relu"])
    put(document, "claims/5/axis", "activation")
    assert told(document) == [("claims.5.axis", "wanted an axis of numbers; activation holds ['tanh', 'relu'].")]


def test_a_size_is_not_the_key_for_sizes(document: Document, told: Told) -> None:
    document["size"] = document.pop("sizes")
    assert ("size", "wanted text, got {'small': {'base': {'steps': 5}}, 'large': {'seeds': 4}}.") in told(document)


def test_thirty_faults_at_once(document: Document, told: Told) -> None:
    together = [
        ("nmae", "x", "nmae"),
        ("base/widht", 3, "base.widht"),
        ("base/lr", -1, "base.lr"),
        ("base/seed", 1, "base.seed"),
        ("base/gain", "big", "base.gain"),
        ("base/stop_loss", 0, "base.stop_loss"),
        ("base/epochs", 3, "base.epochs"),
        ("base/batch_size", 0, "base.batch_size"),
        ("base/precision", "float", "base.precision"),
        ("base/data_options", {"nois": 1, "arms": 1}, "base.data_options.nois base.data_options.arms"),
        ("base/optimizer", "sdg", "base.optimizer"),
        ("base/warmup_steps", -1, "base.warmup_steps"),
        ("base/norm", "layer", "base.norm"),
        ("base/activation", "gelu", "base.activation"),
        ("base/width", 0, "base.width"),
        (f"{MAIN}/axes/init", ["gaussian", "gauss"], "parts.main.axes.init"),
        (f"{MAIN}/axes/depth", [4, 8, 8], "parts.main.axes.depth"),
        (f"{MAIN}/axes/seed", [1], "parts.main.axes.seed"),
        (f"{MAIN}/baseline", "x", "parts.main.baseline"),
        (f"{MAIN}/exclude", [{"amr": "x"}, {}, {"arm": "x"}], "exclude.0.amr exclude.1 exclude.2.arm"),
        (f"{MAIN}/arms/1/set/shortcut", "skip", "parts.main.arms.1.set.shortcut"),
        (f"{MAIN}/arms/1/lable", {"en": "x"}, "parts.main.arms.1.lable"),
        ("parts/flow/base/measures", ["layer"], "parts.flow.base.measures"),
        ("claims/0/metric", "x", "claims.0.metric"),
        ("claims/0/than", "x", "claims.0.than"),
        ("claims/1/text", {}, "claims.1.text"),
        ("claims/2/kind", "x", "claims.2"),
        ("claims/3/tolerance", -1, "claims.3.tolerance"),
        ("claims/3/sizes", ["tiny"], "claims.3.sizes"),
        ("claims/4/margin", 0, "claims.4.margin"),
        ("resources/cpu", 1, "resources.cpu"),
        ("tuning/grid", [1], "tuning.grid tuning.validation"),
        ("sizes/large/seeds", 0, "sizes.large.seeds"),
    ]
    for where, value, _ in together:
        put(document, where, value)
    wanted = {
        path.replace("exclude", "parts.main.exclude", 1) if path[0:4] == "excl" else path
        for *_, paths in together
        for path in paths.split()
    }
    assert {path for path, _ in told(document)} == wanted
    assert len(wanted) >= 30


@pytest.mark.parametrize("misspelt", ["bse", "axs", "arm", "sets", "exclud"])
def test_a_misspelt_table_makes_no_faults_of_what_it_held(document: Document, told: Told, misspelt: str) -> None:
    main = document["parts"]["main"]
    main["exclude"] = [{"arm": "skip"}]
    holders = {"bse": (document, "base"), "sets": (main["arms"][1], "set"), "arm": (main, "arms")}
    holder, key = holders.get(misspelt, (main, {"axs": "axes", "exclud": "exclude"}.get(misspelt, "")))
    holder[misspelt] = holder.pop(key)
    faults = dict(told(document))
    [path] = [path for path in faults if path.endswith(f".{misspelt}") or path == misspelt]
    assert f"Did you mean '{key}'?" in faults.pop(path)
    # An absent list of arms is a fault of its own; nothing else is said.
    assert set(faults) <= {"parts.main.arms"}


def test_faults_of_runs_are_told_beside_faults_of_claims(document: Document, told: Told) -> None:
    put(document, "base/lr", 0)
    put(document, "claims/0/a/arm", "x")
    put(document, "claims/1/first/0/where/depth", 7)
    assert [path for path, _ in told(document)] == ["base.lr", "claims.0.a.arm", "claims.1.first.0"]


def test_faults_of_claims_are_told_beside_faults_of_structure(document: Document, told: Told) -> None:
    put(document, "title", "Mine")
    put(document, "claims/0/than", "x")
    put(document, f"{MAIN}/arms/1/note", "a word")
    put(document, "base/lr", 0)
    put(document, "claims/4/a/arm", "plian")
    paths = [path for path, _ in told(document)]
    assert paths == ["base.lr", "claims.0.than", "claims.4.a.arm", "parts.main.arms.1.note", "title"]


def test_a_long_list_of_names_gives_way_to_the_nearest(document: Document, told: Told) -> None:
    put(document, "base/widht", 3)
    [(_, says)] = told(document)
    assert says == (
        f"unknown field of a run 'widht'. Did you mean 'width'? `depthscope schema` lists all {len(RUN_FIELDS)}."
    )


def test_paths_are_in_the_order_of_numbers(document: Document, told: Told) -> None:
    claim = document["claims"][3]
    document["claims"] = [{**claim, "name": f"c{at}", "tolerance": at - 11} for at in range(12)]
    assert [path for path, _ in told(document)] == [f"claims.{at}.tolerance" for at in range(12)]


def test_a_part_without_runs(document: Document, told: Told) -> None:
    document["claims"] = []
    document["parts"]["main"]["exclude"] = [{"width": 8}]
    assert told(document) == [("parts.main.exclude", "leaves no run in this part.")]


def test_a_claim_is_looked_at_only_where_it_is_judged(document: Document) -> None:
    for at in (0, 1, 4, 5, 6):
        document["claims"][at]["sizes"] = ["large"]
    document["claims"][1]["confirmatory"] = True
    document["sizes"]["small"]["parts"] = {"main": {"axes": {"depth": [2]}}}
    document["claims"][0]["a"]["where"]["depth"] = 8
    text = tomli_w.dumps(document)
    expand(parse(text, source="mine.toml", size="small"))
    expand(parse(text, source="mine.toml", size="large"))
