"""A study tuned for each arm at each depth: the table of what was chosen, and how a difference of the rate is told."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest
from tests.analysis.conftest import record_of
from tests.report.conftest import judged
from tests.report.test_families import card, claim, select, study
from tests.report.test_further_axes import DOCUMENT

from depthscope.analysis.choosing import candidates, choice_sentence
from depthscope.analysis.table import Results
from depthscope.report import tuned as section
from depthscope.report.held import control_cards
from depthscope.report.paired import pairing_lines
from depthscope.report.words import Words
from depthscope.study.expand import expand
from depthscope.study.selection import selection_study
from depthscope.study.study import StudySpec

GRID = (0.01, 0.03, 0.1)
RATES = {("plain", 20): 0.03, ("plain", 56): 0.01, ("A", 20): 0.1, ("A", 56): 0.03}


def tuned_study(*declared: dict[str, Any], without: str = "", lost: tuple[str, int] | None = None) -> Results:
    """Rates chosen by depth for both arms, but for the arm `without`, whose rates stand there all the same."""
    document = study().study.model_dump(mode="json")
    part = document["parts"]["main"]
    part["arms"] = [
        {
            **arm,
            "at": [
                {"where": {"depth": depth}, "set": {"lr": rate}}
                for (name, depth), rate in RATES.items()
                if name == arm["name"]
            ],
        }
        for arm in part["arms"]
        if arm["name"] in ("plain", "A")
    ]
    part["exclude"] = []
    choices = [
        {
            "part": "main",
            "arm": arm,
            "at": {"depth": depth},
            "value": rate,
            "scores": [
                {"value": value, "num_runs": 2, "num_lost": 2}
                if (arm, depth) == lost
                else {"value": value, "mean": 0.4 - abs(value - rate), "num_runs": 2}
                for value in GRID
            ],
        }
        for (arm, depth), rate in RATES.items()
        if arm != without
    ]
    tuned = {"field": "lr", "grid": GRID, "metric": "validation_accuracy", "seeds": (10_000,), "validation": 500}
    tuned |= {"num_runs": 12, "digest": "0" * 16, "choices": choices}
    return study(*declared, parts=document["parts"], tuned=tuned)


def rows(page: str) -> list[list[str]]:
    """The words of each cell of the table of choices."""
    table = page[page.index('<table class="arms tuned">') :]
    table = table[: table.index("</table>")]
    return [
        [" ".join(html.unescape(re.sub(r"<title>.*?</title>|<[^>]+>", " ", cell)).split()) for cell in row]
        for row in (re.findall(r"<t[hd].*?</t[hd]>", line, re.DOTALL) for line in table.split("</tr>"))
        if row
    ]


def test_what_was_chosen_is_a_table_of_arms_by_depths() -> None:
    found = judged(tuned_study(lost=("plain", 56)))
    page = found.page().decode()
    assert rows(page) == [
        ["", "depth 20", "depth 56"],
        ["plain", "0.03 (40.0%)", "0.01 (–) every run lost"],
        ["ResNet (option A)", "0.1 (40.0%) largest tried", "0.03 (40.0%)"],
    ]
    assert page.count('class="chosen"') == 3
    assert page.count("Smallest and largest tried: a better value may lie outside the grid.") == 1
    assert "Chosen for each arm at each depth before this study" in page
    chinese = found.page(lang="zh").decode()
    assert rows(chinese)[1:] == [
        ["普通网络", "0.03 (40.0%)", "0.01 (–) 全部运行均丢失"],
        ["ResNet（选项 A）", "0.1 (40.0%) 所试的最大值", "0.03 (40.0%)"],
    ]
    assert "为每组在每个深度上在" in chinese


def test_a_rate_that_was_chosen_for_both_sides_is_named_so_and_is_no_second_thing() -> None:
    between = claim("between", "A", a=select("A", 56), b=select("plain", 56))
    along = claim("along", "plain")
    found = judged(tuned_study(between, along))
    page = found.page().decode()
    for finding, thing in zip(found.findings, ("shortcut", "depth"), strict=True):
        [pairing] = finding.pairing
        assert "several" not in pairing.flags
        assert set(pairing.varied) == {thing, "lr"}
        assert (pairing.tuned, pairing.tuned_by) == ("lr", ("depth",))
        told = card(page, finding.claim)
        assert "lr (tuned for each arm at each depth)" in told
        assert "More than one thing varies" not in told
    assert "differs by design: shortcut, lr (tuned for each arm at each depth)" in page
    told = " ".join(line["text"] for line in pairing_lines(found.findings[0], Words("zh")))
    assert "lr（各组在每个深度上分别调优）" in told


def test_a_rate_that_was_chosen_for_one_side_alone_is_a_second_thing() -> None:
    between = claim("between", "A", a=select("A", 56), b=select("plain", 56))
    found = judged(tuned_study(between, without="A"))
    [pairing] = found.findings[0].pairing
    assert pairing.tuned is None
    assert pairing.flags == ("several",)
    told = " ".join(line["text"] for line in pairing_lines(found.findings[0], Words("en")))
    assert "More than one thing varies: shortcut, lr." in told
    assert "tuned for" not in told
    assert control_cards(found.results, Words("en"))[0]["items"][-1]["text"].startswith("More than one thing varies")


def selection(depths: list[int], missing: int = 0) -> Results:
    """What wins rises with depth for the plain network; nothing is fit for the other one at the greatest."""
    parts = {"main": {**DOCUMENT["parts"]["main"], "axes": {"depth": depths}}}
    tuning = {"grid": GRID, "validation": 30, "seeds": 2, "by": ["depth"]}
    plan = expand(selection_study(StudySpec.model_validate({**DOCUMENT, "parts": parts, "tuning": tuning})))
    records = {}
    for cell in plan.cells[missing:]:
        best = GRID[min(depths.index(cell.axes["depth"]), 2)]
        figures: Any = {"validation_accuracy": 0.8 - abs(cell.axes["lr"] - best)}
        if cell.arm == "skip" and cell.axes["depth"] == depths[-1]:
            figures = "diverged"
        records[cell.run_id] = record_of(plan.runs[cell.run_id], figures)
    return Results(plan=plan, records=records, load_table=lambda run_id, name: None)


def test_few_choices_are_told_one_by_one() -> None:
    found = selection([2, 8])
    assert [(each.arm.name, each.at, each.choice and each.choice.value) for each in candidates(found)] == [
        ("plain", {"depth": 2}, 0.01),
        ("plain", {"depth": 8}, 0.03),
        ("skip", {"depth": 2}, 0.01),
        ("skip", {"depth": 8}, None),
    ]
    assert choice_sentence(found, "en") == (
        "Chosen for each arm by mean validation accuracy, lr of: plain at depth 2, 0.01 (80.0%); "
        "plain at depth 8, 0.03 (80.0%); skip at depth 2, 0.01 (80.0%); "
        "skip at depth 8, none, as no run ended with a figure."
    )
    assert "plain（深度 8），0.03（80.0%）" in choice_sentence(found, "zh")
    shown = section.tuned(found, Words("en"))
    assert shown is not None
    assert shown["rows"] == []
    [table] = shown["tables"]
    assert [[cell["value"] for cell in row["cells"]] for row in table["rows"]] == [
        ["0.01", "0.03"],
        ["0.01", "Nothing chosen: no run ended with a figure."],
    ]


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        (0, "lr of 10: 0.01 won 2; 0.03 won 2; 0.1 won 5; none fit for 1."),
        (1, "lr of 10: 0.01 won 1; 0.03 won 2; 0.1 won 5; 1 not chosen yet; none fit for 1."),
    ],
)
def test_many_choices_are_told_together(missing: int, says: str) -> None:
    found = selection([2, 4, 6, 8, 10], missing=missing)
    assert choice_sentence(found, "en") == f"Chosen for each arm at each depth by mean validation accuracy, {says}"
    assert choice_sentence(found, "zh").startswith(
        "按验证准确率的均值为各组在每个深度上选定的 lr（共 10 个）：0.01 胜出"
    )
