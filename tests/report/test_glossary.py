"""The glossary glosses what a page uses, and nothing else."""

from __future__ import annotations

from tests.report.conftest import Study
from tests.report.test_strings import visible

from depthscope.report.glossary import glossary
from depthscope.report.words import Words


def test_a_term_is_glossed_where_it_is_used(cifar: Study, spiral: Study) -> None:
    terms = {name: dict(glossary(study.results, Words("en"))) for name, study in (("c", cifar), ("s", spiral))}
    assert ("option A, option B" in terms["c"], "option A, option B" in terms["s"]) == (True, False)
    assert ("complex step" in terms["c"], "complex step" in terms["s"]) == (False, True)
    assert {"nats", "|dL/dh|", "factor a layer", "confirmatory, exploratory"} <= set(terms["c"]) & set(terms["s"])
    for text in terms["c"].values():
        assert text in visible(cifar.page())


def test_one_term_for_one_thing_in_chinese(spiral: Study) -> None:
    page = visible(spiral.page(lang="zh"))
    assert "复数步" not in page
    assert "验证性" not in page
