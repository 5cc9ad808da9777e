"""The page as a file: complete, offline, escaped, honest about what is missing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.report import strange, synthetic
from tests.report.conftest import COMMAND, Study, StudyOf, judged
from tests.report.test_strings import visible

from depthscope.analysis.headline import headline
from depthscope.analysis.table import Results
from depthscope.report import content, sheet
from depthscope.report.layers import LAST, MAX_STEPS, depth_profiles
from depthscope.report.words import Words
from depthscope.study.expand import expand
from depthscope.study.toml import bundled, load


def page_of(study: Study, **more: Any) -> str:
    return study.page(**more).decode("utf-8")


def data_of(page: str) -> Any:
    found = re.search(r'id="depthscope-data">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found.group(1))


def test_the_page_says_what_was_found_compared_controlled_and_how_to_repeat_it(cifar: Study) -> None:
    page = page_of(cifar)
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", visible(page.encode())))
    assert headline(cifar.results, cifar.findings, "en") in text.replace("  ", " ")
    for finding in cifar.findings:
        assert finding.text["en"] in text
        assert finding.reason in text
    for section in ("claims", "part-main", "diagnosis", "control", "repeat", "cite"):
        assert f'id="{section}"' in page
    assert COMMAND in text
    assert "67,000" in text
    assert "A plain network cannot share it" in text or "a plain network cannot share it" in text
    assert "@inproceedings{he2016resnet" in page
    assert cifar.results.study.digest in text


def test_the_page_asks_nothing_of_any_other_place(spiral: Study) -> None:
    page = page_of(spiral)
    assert "default-src 'none'" in page
    own = re.sub(r"<script>.*?</script>", "", page, flags=re.S)  # Vega's own text names its schemas
    assert "src=" not in own
    assert not re.search(r'href="[^#]', own)
    assert "http:" not in own
    assert "https:" not in own
    assert "@import" not in own
    assert "url(" not in own


def test_a_page_is_of_moderate_weight(cifar: Study) -> None:
    page = page_of(cifar)
    assert len(page) < 2_500_000
    document = data_of(page)
    names = [name for chart in document["charts"].values() for name in chart["tables"]]
    assert set(names) == set(document["tables"])  # each table once, none without a chart
    assert not any("values" in json.dumps(chart["spec"].get("data", {})) for chart in document["charts"].values())


def test_the_sections_of_the_spiral_come_from_its_data(spiral: Study) -> None:
    document = data_of(page_of(spiral))
    keys = set(document["charts"])
    assert {"sweep-train_accuracy", "profile-sweep-48", "profile-flow-40", "gradcheck-gradcheck-plain-8"} <= keys
    assert {"curves-sweep-plain", "curves-skip-free-orthogonal", "batchnorm-train_accuracy"} <= keys
    assert not any(key.startswith("flow-") for key in keys)  # one depth, nothing trained


def test_curves_come_from_clean_passes_where_there_are_no_running_averages(cifar: Study, spiral: Study) -> None:
    words = Words("en")
    sweep = content.views(spiral.results, words)[0]
    assert {arm.split for arm in content.arm_curves(spiral.results, sweep, "loss")} == {"train"}
    main = content.views(cifar.results, words)[0]
    assert {arm.split for arm in content.arm_curves(cifar.results, main, "loss")} == {"train_running"}
    assert "in clean passes over all training examples" in visible(spiral.page())
    assert "as they came" in visible(cifar.page())


def test_untrained_networks_show_no_accuracies(spiral: Study) -> None:
    page = visible(spiral.page())
    flow = page[page.index('id="part-flow"') : page.index('id="part-gradcheck"')]
    assert "train accuracy" not in flow
    assert "factor per layer, step 0" in flow
    assert "last step" not in flow


def test_missing_and_diverged_runs_are_told_and_left_out(partial: Study) -> None:
    page = page_of(partial)
    text = visible(page.encode())
    assert "4 of 18 runs are missing" in text
    assert "training loss inf at step 17" in text
    assert "a smaller lr, a longer warm-up, or a normaliser" in text
    assert 'id="failures"' in page
    assert "2 of 3" in text  # seeds in the table


def test_a_study_without_any_record_makes_a_page() -> None:
    for name in bundled():
        plan = expand(load(name))
        empty = judged(Results(plan=plan, records={}, load_table=lambda run_id, table: None))
        for lang in ("en", "zh"):
            page = page_of(empty, lang=lang)
            assert data_of(page)["charts"] == {}
            assert 'id="failures"' in page


def test_markup_in_a_study_is_inert(study_of: StudyOf) -> None:
    page = page_of(study_of(synthetic.hostile))
    assert "<script>window.hacked" not in page
    assert "<img src=x" not in page
    assert page.count("<script") == 3
    assert "\\u003cscript>window.hacked" in page  # it is there, as text


def test_layers_are_reduced_to_median_and_range(cifar: Study) -> None:
    view = content.views(cifar.results, Words("en"))[0]
    shallow, deep = depth_profiles(cifar.results, view)
    assert (shallow.place, deep.place) == (20, 56)
    assert deep.steps[0] == 0
    assert deep.steps[-1] == LAST
    assert deep.last_step == 390
    assert len(deep.steps) <= MAX_STEPS + 1
    assert {2**k for k in range(8)} <= set(deep.steps)
    rows = cifar.results.select("main", cifar.results.study.claims[0].first[0])  # type: ignore[union-attr]
    tables = [cifar.results.load_table(row.cell.run_id, "layers") for row in rows]
    seen = []
    for table in tables:
        assert table is not None
        seen += [
            row["value"]
            for row in table.to_pylist()
            if (row["step"], row["layer"], row["quantity"]) == (390, 7, "dh_norm")
        ]
    found = next(
        value
        for value in deep.values
        if (value.series, value.at, value.layer, value.quantity) == ("plain", len(deep.steps) - 1, 7, "dh_norm")
    )
    expected = (min(seen), sorted(seen)[1], max(seen))
    assert (found.low, found.value, found.high) == pytest.approx(expected, rel=1e-3)


def test_zeros_are_left_out_of_log_axes_and_counted(cifar: Study) -> None:
    # A branch that starts at zero has |F|/|x| = 0 at step 0: not drawn as anything else, and told.
    view = content.views(cifar.results, Words("en"))[0]
    for profile in depth_profiles(cifar.results, view):
        at_start = [v for v in profile.values if (v.series, v.at, v.quantity) == ("A0", 0, "f_over_x")]
        assert at_start == []
        assert profile.left_out > 0
    assert "were zero or not finite" in page_of(cifar)


def test_a_study_with_another_axis_is_cut_along_it(cifar: Study) -> None:
    document = cifar.results.study.model_dump(mode="json")
    document["parts"]["main"]["axes"]["lr"] = [0.1, 0.01]
    document["claims"] = []
    study = type(cifar.results.study).model_validate(document)
    results = Results(plan=expand(study), records={}, load_table=lambda run_id, table: None)
    titles = [view.title for view in content.views(results, Words("en"))]
    assert len(titles) == 2
    assert titles[0].endswith("(learning rate = 0.1)")


def test_a_part_without_depth_is_drawn_against_its_first_axis_of_positive_numbers() -> None:
    views = {view.key: view for view in content.views(strange.other_axes(), Words("en"))}
    assert list(views) == ["rate", "size-0", "size-1", "width", "name-0", "name-1"]
    assert (views["rate"].axis, views["rate"].places) == ("lr", (0.001, 0.01, 0.1))
    assert (views["size-0"].axis, views["size-0"].places) == ("data_options.num_train", (100, 1000, 5000))
    assert views["size-1"].title == "size (learning rate = 0.1)"
    assert (views["name-0"].axis, views["name-0"].places) == ("depth", (20,))
    assert views["rate"].named(0.001, Words("en")) == "learning rate 0.001"
    assert all(len(rows) == 3 for view in views.values() for rows in view.cells().values())  # no two rates are pooled


def test_the_script_of_a_page_is_put_together_once_for_all_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DEPTHSCOPE_CACHE", str(tmp_path / "cache"))
    first = sheet._vega.__wrapped__()
    assert first == sheet._bundle().replace("</script", "<\\/script").replace("<!--", "<\\!--")

    def refuse() -> str:
        raise AssertionError("put together again")

    monkeypatch.setattr(sheet, "_bundle", refuse)
    assert sheet._vega.__wrapped__() == first
    other = "0.0.0"
    monkeypatch.setattr(sheet, "version", lambda name: other)
    with pytest.raises(AssertionError, match="again"):
        sheet._vega.__wrapped__()
