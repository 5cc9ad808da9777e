"""Texts that trained networks wrote stand on the page: escaped, a cell an arm and place, few at once."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.report import synthetic
from tests.report.conftest import Study, judged

from depthscope.analysis.table import Results
from depthscope.report.texts import texts
from depthscope.report.words import Words

VERSE = "\nTo be,\n  or <b>not</b>"
WROTE = (VERSE, "", "third", "fourth & last")


def wrote(samples: Mapping[tuple[str, int, int], tuple[str, ...]]) -> Results:
    """The made-up study, its runs having written these texts, by (arm, depth, seed)."""
    results = synthetic.cifar()
    records = dict(results.records)
    for cell in results.plan.cells:
        found = samples.get((cell.arm, cell.axes["depth"], cell.seed))
        if found is not None:
            records[cell.run_id] = records[cell.run_id].model_copy(update={"samples": found})
    return Results(plan=results.plan, records=records, load_table=results.load_table)


def test_of_each_cell_the_first_seed_that_wrote_and_no_other() -> None:
    results = wrote({("A", 56, 1): WROTE, ("A", 56, 2): ("later",), ("plain", 20, 0): ("a",), ("plain", 56, 0): ("b",)})
    (view,) = texts(results, Words("en"))
    steps = f"{results.rows[0].record.outcome.step:,}" if results.rows[0].record else ""
    found = {
        arm["label"]: [(cell["name"], cell["at"], cell["shown"], cell["folded"]) for cell in arm["cells"]]
        for arm in view["arms"]
    }
    assert list(found.values()) == [
        [
            ("20 layers", f"seed 0, step {steps}", ("a",), ()),
            ("56 layers", f"seed 0, step {steps}", ("b",), ()),
        ],
        [("56 layers", f"seed 1, step {steps}", WROTE[:3], WROTE[3:])],
    ]


def test_the_page_shows_texts_as_they_are() -> None:
    study = judged(wrote({("A", 56, 0): WROTE}))
    page = study.page().decode()
    (section,) = re.findall(r'<section id="samples">.*?</section>', page, flags=re.S)
    # A pre's first line break is dropped by the parser: one more stands before the text, whose own stays.
    assert "<pre>\n\nTo be,\n  or &lt;b&gt;not&lt;/b&gt;</pre>" in section
    assert "(empty: it ended at once)" in section
    shown, folded = section.split("<details>")
    assert "<pre>\nthird</pre>" in shown
    assert "<summary>1 more</summary><pre>\nfourth &amp; last</pre>" in folded
    assert "temperature 1" in section
    assert '<a href="#samples">Samples</a>' in page
    assert "以温度 1 抽取" in study.page(lang="zh").decode()


def test_a_study_without_texts_has_no_such_section(cifar: Study) -> None:
    assert 'id="samples"' not in cifar.page().decode()
    assert "#samples" not in cifar.page().decode()
