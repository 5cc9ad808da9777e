"""A family of confirmatory claims on the page: no unadjusted interval, exploratory ones marked, what is shared told."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.report import synthetic
from tests.report.conftest import Study, judged
from tests.report.test_visible import read

from depthscope.analysis.finding import Pairing
from depthscope.analysis.findings import findings_document
from depthscope.analysis.table import Results
from depthscope.report import judged as claims
from depthscope.report.paired import MOST, pairing_lines
from depthscope.report.strings import Lang
from depthscope.report.words import Words
from depthscope.study.expand import expand
from depthscope.study.study import StudySpec

# Mean .1, deviation .04, three seeds: t = 4.33 is beyond 4.30 (95%) and within 6.21 (97.5%).
CHANGES = (0.06, 0.10, 0.14)


def select(arm: str, depth: int) -> dict[str, Any]:
    return {"arm": arm, "where": {"depth": depth}}


def claim(name: str, arm: str, **more: Any) -> dict[str, Any]:
    common = {"text": {"en": f"claim {name}"}, "part": "main", "metric": "train_loss", "unit": "nats"}
    sides = {"a": select(arm, 56), "b": select(arm, 20)}
    return {"kind": "difference", "name": name, "expect": "at_least", "than": 0.0, **common, **sides, **more}


def study(*declared: dict[str, Any], **more: Any) -> Results:
    """Every arm's training loss rises with depth by `CHANGES`."""
    document = {**synthetic.cifar().study.model_dump(mode="json"), "claims": list(declared), **more}
    results = synthetic.made(expand(StudySpec.model_validate(document)))
    records = dict(results.records)
    for row in results.rows:
        assert row.record is not None
        loss = 1.0 + (CHANGES[row.cell.seed] if row.spec.depth == 56 else 0.0)
        records[row.cell.run_id] = row.record.model_copy(update={"summary": {**row.record.summary, "train_loss": loss}})
    return Results(plan=results.plan, records=records, load_table=results.load_table)


@pytest.fixture(scope="module")
def family() -> Study:
    results = study(
        claim("one", "plain", confirmatory=True), claim("two", "A", confirmatory=True), claim("three", "A0")
    )
    return judged(results)


def card(page: str, name: str) -> str:
    """What is read of one claim, its folded part included."""
    start = max(page.find(f"claim {name}{tag}") for tag in ("</h3>", "</span>"))
    ends = [page.find(tag, start) for tag in ("</article>", "</details>\n</div>", "</details>\n<details class")]
    return page[start : min(end for end in ends if end > 0)]


def test_alone_each_claim_would_be_supported() -> None:
    assert {finding.verdict for finding in judged(study(claim("one", "plain", confirmatory=True))).findings} == {
        "supported"
    }


def test_no_interval_of_an_undecided_claim_of_a_family_is_clear_of_its_bound(family: Study) -> None:
    assert [finding.verdict for finding in family.findings] == ["undecided", "undecided", "supported"]
    page = family.page().decode()
    for finding in family.findings[:2]:
        judged_estimate = finding.estimates[0]
        assert judged_estimate.level == 0.975
        assert judged_estimate.low is not None
        assert judged_estimate.low < 0
        shown = card(page, finding.claim)
        assert "One of 2 confirmatory claims" in shown
        assert "covers 97.5%, not 95%" in shown
        intervals = re.findall(r"\[([\d.]+)% CI (−?[\d.]+) to", shown)
        assert intervals
        assert {level for level, _ in intervals} == {"97.5"}
        assert all(low.startswith("−") for _, low in intervals)
        drawn = claims.claims(family.results, [finding], Words("en"))[0]["draw"]().to_dict()
        bars = [row for rows in drawn["datasets"].values() for row in rows if {"x", "x2", "row"} <= set(row)]
        assert [(row["x"] < 0 < row["x2"]) for row in bars] == [True]
    # The sentence on top is held to the same.
    top = page[page.index('<section class="finding"') :].partition("</section>")[0]
    assert set(re.findall(r"\[([\d.]+)% CI", top)) == {"97.5"}


def test_an_exploratory_claim_is_marked_wherever_it_stands(family: Study) -> None:
    page = family.page().decode()
    marks = re.findall(r'<span class="tag">(\w+)</span>', page)
    assert marks == ["confirmatory", "confirmatory", "exploratory"]
    document = findings_document(family.results, family.findings, {})
    told = [(finding["confirmatory"], finding["family"]) for finding in document["findings"]]
    assert told == [(True, 2), (True, 2), (False, 1)]
    assert {each["kind"] for each in document["diagnoses"]} <= {"degradation", "budget", "undecided", "none"}


def test_what_the_sides_share_is_told_and_two_things_at_once_are_flagged() -> None:
    crossed = claim("cross", "A", b=select("plain", 20))
    same = claim("same", "A", a=select("A", 56), b=select("plain", 56))
    page = judged(study(crossed, same)).page().decode()
    flag = "More than one thing varies: depth, shortcut."
    assert flag in card(page, "cross")
    assert flag not in card(page, "same")
    assert "what varies: shortcut." in card(page, "same")
    assert "57 of 57 tensors that both have start equal, on each of 3 seeds" in card(page, "same")
    assert "the same data, order, augmentation" in card(page, "same")


def test_of_many_comparisons_the_one_with_a_warning_is_told() -> None:
    """Seven that differ each in another field: a list is cut, and never a warning."""
    whole: dict[str, Any] = {"seeds": (0,), "num_shared": 1, "num_common": 1, "fields": ()}
    whole |= {"same_data": True, "same_order": True, "same_augment": True}
    made = [Pairing(a=f"a{at}", b="b", varied=(f"field{at}",), **whole) for at in range(6)]
    flagged = Pairing(a="last", b="b", varied=("lr",), **{**whole, "same_order": False}, flags=("order",))
    finding = judged(study(claim("one", "plain"))).findings[0].model_copy(update={"pairing": (*made, flagged)})
    lines = pairing_lines(finding, Words("en"))
    assert [line["text"].partition(": ")[0] for line in lines] == [
        "last and b",
        "Not paired in the order",
        *(f"a{at} and b" for at in range(MOST)),
    ]
    assert [line["flagged"] for line in lines] == [False, True] + [False] * MOST


@pytest.mark.parametrize(
    ("lang", "text"),
    [
        ("en", "No tensor is on both sides; 5 tensors are on one side alone; "),
        ("zh", "两侧没有共有的张量；5 个张量仅一侧拥有；"),
    ],
)
def test_sides_without_a_tensor_in_common_are_said_to_have_none(lang: Lang, text: str) -> None:
    apart: dict[str, Any] = {"seeds": (0,), "num_shared": 0, "num_common": 0, "fields": ("family",)}
    apart |= {"only_a": ("a", "b"), "only_b": ("c", "d", "e"), "varied": ("family",)}
    pairing = Pairing(a="a", b="b", same_data=True, same_order=True, same_augment=True, **apart)
    finding = judged(study(claim("one", "plain"))).findings[0].model_copy(update={"pairing": (pairing,)})
    (line,) = pairing_lines(finding, Words(lang))
    assert line["text"].startswith(text)


def test_other_data_is_flagged() -> None:
    results = study(claim("same", "A", a=select("A", 56), b=select("plain", 56)))
    records = {
        key: record.model_copy(
            update={"digests": record.digests.model_copy(update={"data": record.spec.shortcut, "order": key})}
        )
        for key, record in results.records.items()
    }
    found = judged(Results(plan=results.plan, records=records, load_table=results.load_table))
    for lang, words in (("en", "Not paired in the data"), ("zh", "数据不成对")):
        shown = found.page(lang=lang).decode()
        assert words in shown
        assert re.search(rf'<li class="flag">.*?{words}', shown)
    assert found.findings[0].pairing[0].flags == ("data", "order")


def test_tuning_is_told_with_its_edges_and_a_tuned_rate_is_no_second_thing() -> None:
    arms = ("plain", "A", "A0")
    document = synthetic.cifar().study.model_dump(mode="json")
    part = document["parts"]["main"]
    rates = dict(zip(arms, (0.01, 0.1, 0.03), strict=True))
    kept = [arm for arm in part["arms"] if arm["name"] in arms]
    part |= {"arms": [{**arm, "set": {**arm["set"], "lr": rates[arm["name"]]}} for arm in kept], "exclude": []}
    grid = (0.01, 0.03, 0.1)
    choices = [
        {
            "part": "main",
            "arm": arm,
            "value": rates[arm],
            "scores": [{"value": value, "mean": 0.4 - abs(value - rates[arm]), "num_runs": 2} for value in grid],
        }
        for arm in arms
    ]
    tuned = {"field": "lr", "grid": grid, "metric": "validation_accuracy", "seeds": (10_000, 10_001), "validation": 500}
    tuned |= {"num_runs": 18, "digest": "0" * 16, "choices": choices}
    same = claim("same", "A", a=select("A", 56), b=select("plain", 56))
    found = judged(study(same, parts=document["parts"], tuned=tuned))
    page = found.page().decode()
    section = page[page.index('<section id="tuned">') :]
    section = section[: section.index("</section>")]
    assert "18 runs were made to choose" in section
    assert section.count("The smallest value of the grid") == section.count("The largest value of the grid") == 1
    assert section.count("inside the grid") == 1
    assert section.count('class="chosen"') == 3
    assert found.findings[0].pairing[0].flags == ()
    assert "what varies: shortcut, lr (tuned for each arm)." in card(page, "same")
    assert "lr 的调优方式" in read(found.page(lang="zh"))
