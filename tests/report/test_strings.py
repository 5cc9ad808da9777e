"""The table of strings is complete in each language, and a page speaks one."""

from __future__ import annotations

import html
import re
import string

import pytest
from tests.report.conftest import Study

from depthscope.record.schema import SUMMARY
from depthscope.report.strings import LANGS, STRINGS
from depthscope.report.words import Words


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def visible(page: bytes) -> str:
    """The page's text and labels, without scripts, styles and BibTeX."""
    text = page.decode("utf-8")
    text = re.sub(r"<(script|style)\b.*?</\1>", " ", text, flags=re.S)
    text = re.sub(r'<pre id="bibtex">.*?</pre>', " ", text, flags=re.S)
    return html.unescape(text)


def test_all_languages_have_the_same_keys_and_none_is_empty() -> None:
    for lang in LANGS:
        assert STRINGS[lang].keys() == STRINGS["en"].keys()
        assert all(text.strip() for text in STRINGS[lang].values())


def test_translations_fill_the_same_braces() -> None:
    for key, english in STRINGS["en"].items():
        for lang in LANGS:
            assert fields(STRINGS[lang][key]) == fields(english), key


def test_chinese_strings_are_chinese() -> None:
    same_in_both = {
        "of_planned",
        "comma",
        "recipe.comma",
        "list",
        "colon",
        "full_stop",
        "aside",
        "tuned_score",
        "axis_at",
        "axis_is",
        "chance_at",
        "arms.derived_one",
    }  # no words
    for key, text in STRINGS["zh"].items():
        assert re.search(r"[\u4e00-\u9fff]", text) or key in same_in_both, key


@pytest.mark.parametrize("name", ["cifar", "spiral", "partial"])
def test_a_chinese_page_has_no_english_string_of_the_table_left(name: str, request: pytest.FixtureRequest) -> None:
    study: Study = request.getfixturevalue(name)
    page = visible(study.page(lang="zh"))
    left = []
    for key, english in STRINGS["en"].items():
        if english in STRINGS["zh"][key] or len(english) < 12 or fields(english):
            continue
        if english in page:
            left.append(key)
    assert left == []
    # Whole sentences with braces leave their fixed parts.
    for key in ("arms_lead", "claims_key", "axis_caption", "profile_caption", "offline"):
        fixed = max(re.split(r"\{\w+\}", STRINGS["en"][key]), key=len)
        assert fixed not in page, key


def test_a_text_falls_back_to_english_and_an_unknown_language_is_refused() -> None:
    words = Words("zh")
    assert words.pick({"en": "plain"}) == "plain"
    assert words.pick({"en": "plain", "zh": "普通"}) == "普通"
    assert words.pick(None, "name") == "name"
    with pytest.raises(ValueError, match=r"unknown language 'fr'. Known: en, zh."):
        Words("fr")  # type: ignore[arg-type]


def test_every_metric_of_a_summary_has_a_name() -> None:
    for key in SUMMARY:
        for lang in LANGS:
            assert Words(lang).metric(key) != key
