"""The verbs, from end to end on small studies."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.small import SMALL

import depthscope
from depthscope.core.errors import UserError
from depthscope.record.events import Ended, News

Copy = Callable[[Path], Path]


@pytest.fixture(scope="module")
def spiral(copy_of_spiral: Copy, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_spiral(tmp_path_factory.mktemp("spiral") / "out")


def test_a_folder_holds_what_the_design_says(spiral: Path) -> None:
    assert {"study.toml", "runs", "findings.json", "table.csv", "report.html"} <= {
        path.name for path in spiral.iterdir()
    }
    run = next((spiral / "runs").iterdir())
    assert {"run.json", "metrics.parquet"} <= {path.name for path in run.iterdir()}


def test_findings_json_has_the_schema_and_judges_every_claim_of_the_size(spiral: Path) -> None:
    document = json.loads((spiral / "findings.json").read_text())
    assert {"schema", "study", "provenance", "findings"} <= set(document)
    planned = depthscope.plan("spiral", size="smoke")
    claims = [claim.name for claim in planned.study.claims if claim.sizes is None or "smoke" in claim.sizes]
    assert [finding["claim"] for finding in document["findings"]] == claims
    for finding in document["findings"]:
        assert {"claim", "confirmatory", "verdict", "margin", "estimates"} <= set(finding)
        assert finding["verdict"] in ("supported", "refuted", "undecided")
        for estimate in finding["estimates"]:
            assert {"name", "value", "low", "high", "n", "unit"} <= set(estimate)
    assert sum(finding["confirmatory"] for finding in document["findings"]) == 1


def test_the_table_has_a_row_for_every_cell(spiral: Path) -> None:
    with (spiral / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    planned = depthscope.plan("spiral", size="smoke")
    assert len(rows) == len(planned.cells)
    assert {row["status"] for row in rows} == {"completed"}


def test_running_again_does_nothing_and_more_seeds_do_only_the_new_ones(tmp_path: Path) -> None:
    folder, small = tmp_path / "out", tmp_path / "small.toml"
    small.write_text(SMALL, encoding="utf-8")
    ended: list[str] = []

    def hear(event: News) -> None:
        if isinstance(event, Ended):
            ended.append(event.run_id)

    watcher = depthscope.Watcher(on_event=hear)
    first = depthscope.run(small, seeds=1, out=folder, workers=1, watcher=watcher)
    number = len(first.results.plan.runs)
    assert len(ended) == number
    stamps = {path: path.stat().st_mtime_ns for path in folder.rglob("run.json")}
    depthscope.run(small, seeds=1, out=folder, workers=1, watcher=watcher)
    assert len(ended) == number
    again = depthscope.run(small, seeds=2, out=folder, workers=1, watcher=watcher)
    assert len(set(ended)) == len(ended) == len(again.results.plan.runs) == 2 * number
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


def test_the_command_on_the_page_repeats_the_study(spiral: Path, copy_of_spiral: Copy, tmp_path: Path) -> None:
    from depthscope.api.reports import command
    from depthscope.study.toml import dump, load

    assert command(depthscope.results(spiral)) == "depthscope run spiral --size smoke --out results/spiral-smoke"
    folder = copy_of_spiral(tmp_path / "folder")
    fewer = depthscope.run("spiral", size="smoke", seeds=[0, 1], out=folder, workers=1)
    assert command(fewer.results) == "depthscope run spiral --size smoke --seeds 0,1, --out results/spiral-smoke"
    study = load("spiral", "smoke").model_copy(update={"claims": ()})
    (tmp_path / "mine.toml").write_text(dump(study))
    changed = depthscope.run(tmp_path / "mine.toml", seeds=1, out=folder, workers=1)
    assert command(changed.results) == ("depthscope run results/spiral-smoke/study.toml --out results/spiral-smoke")
    assert command(changed.results, Path("my runs")) == "depthscope run 'my runs/study.toml' --out 'my runs'"
    assert command(changed.results, tmp_path / "x") == command(changed.results)


def test_records_keep_the_claims_of_their_time(spiral: Path) -> None:
    found = depthscope.results(spiral)
    assert {record.claims_digest for record in found.records.values()} == {found.study.claims_digest}


@pytest.mark.parametrize("seeds", [0, -1, [], [-1], 10**6, range(20_000)])
def test_bad_seeds_are_one_clear_error(seeds: int | list[int]) -> None:
    with pytest.raises(UserError, match="seeds: wanted"):
        depthscope.plan("spiral", seeds=seeds)


def test_runs_of_an_earlier_form_of_the_study_are_told(copy_of_spiral: Copy, tmp_path: Path) -> None:
    folder = copy_of_spiral(tmp_path / "copy")
    notes: list[str] = []
    depthscope.run(
        "spiral", size="smoke", seeds=1, out=folder, workers=1, watcher=depthscope.Watcher(on_note=notes.append)
    )
    before = len(depthscope.plan("spiral", size="smoke").runs)
    after = len(depthscope.plan("spiral", size="smoke", seeds=1).runs)
    assert any(f"holds {before - after} runs of an earlier form" in note for note in notes)
    assert any(f"All {after} runs are done already" in note for note in notes)


def test_an_unknown_source_or_language_is_told_before_anything_runs(tmp_path: Path) -> None:
    from depthscope.study.toml import dump, load

    path = tmp_path / "mine.toml"
    path.write_text(dump(load("spiral", "smoke").model_copy(update={"sources": ("he2016",)})))
    with pytest.raises(UserError, match="he2016resnet"):
        depthscope.run(path, out=tmp_path / "out")
    with pytest.raises(UserError, match="unknown language"):
        depthscope.run("spiral", size="smoke", out=tmp_path / "out", lang="de")
    assert not (tmp_path / "out").exists()


def test_the_default_folder_names_the_size_where_it_is_not_the_quick_one(
    copy_of_spiral: Copy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_of_spiral(tmp_path / "results" / "spiral-smoke")  # all of its runs are done
    monkeypatch.chdir(tmp_path)
    report = depthscope.run("spiral", size="smoke", workers=1)
    assert report.folder == tmp_path / "results/spiral-smoke"


def test_status_counts_what_is_there(spiral: Path) -> None:
    found = depthscope.status(spiral)
    assert found.complete
    assert found.counts["completed"] == len(depthscope.plan("spiral", size="smoke").runs)


def test_the_lease_of_the_dead_on_a_run_that_is_recorded_is_no_run_under_way(
    copy_of_spiral: Copy, tmp_path: Path
) -> None:
    folder = copy_of_spiral(tmp_path / "copy")
    one, other = sorted(folder.glob("runs/*"))[:2]
    for run in (one, other):  # unreadable: it counts by its date, which is long ago
        (run / "lease-1.json").write_text("half a cl", encoding="utf-8")
        os.utime(run / "lease-1.json", (0, 0))
    (other / "run.json").unlink()
    found = depthscope.status(folder)
    assert [(each.run_id, each.alive) for each in found.running] == [(other.name, False)]
    assert found.counts["missing"] == 1


def test_a_report_of_an_unfinished_folder_says_what_is_missing(tmp_path: Path) -> None:
    from depthscope.record.folder import write_study

    write_study(tmp_path, depthscope.plan("spiral", size="smoke").study)
    report = depthscope.make_report(tmp_path)
    assert {finding.verdict for finding in report.findings} == {"undecided"}
    assert depthscope.status(tmp_path).counts["missing"] == len(report.results.plan.runs)
    assert report.page.stat().st_size > 0


def test_the_chinese_page(spiral: Path, tmp_path: Path) -> None:
    report = depthscope.make_report(spiral, lang="zh")
    page = report.page.read_text(encoding="utf-8")
    assert 'lang="zh' in page
    assert "残差网络" in report.headline
    with pytest.raises(UserError, match="unknown language 'de'"):
        depthscope.make_report(spiral, lang="de")


def test_plan_counts_the_parameters_of_the_full_study() -> None:
    pytest.importorskip("torch")
    planned = depthscope.plan("cifar10", size="full", seeds=1)
    costs = depthscope.costs(planned)
    assert costs is not None
    found = {(cell.arm, cell.axes["depth"]): costs[cell.run_id] for cell in planned.cells if cell.arm != "A0"}
    assert {place: cost.parameters for place, cost in found.items()} == {
        ("plain", 20): 269_722,
        ("plain", 56): 853_018,
        ("A", 20): 269_722,
        ("A", 56): 853_018,
        ("B", 20): 272_474,
        ("B", 56): 855_770,
    }
    # ResNet-20 at 32 x 32 is published as about 41 million multiply-adds, ResNet-56 as about 126 million.
    for (_, depth), cost in found.items():
        assert cost.forward_flops is not None
        assert cost.forward_flops / 2 == pytest.approx({20: 40.8e6, 56: 125.7e6}[depth], rel=0.02)


def test_the_smoke_cifar10_study(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    report = depthscope.run("cifar10", size="smoke", out=tmp_path / "out", workers=1)
    assert all(row.record and row.record.outcome.status == "completed" for row in report.results.rows)
    digests = {
        (row.cell.arm, row.cell.axes["depth"], row.cell.seed): row.record.digests
        for row in report.results.rows
        if row.record
    }
    for (arm, depth, seed), found in digests.items():
        other = digests["plain" if arm == "A" else "A", depth, seed]
        assert (found.init, found.order, found.augment, found.data) == (
            other.init,
            other.order,
            other.augment,
            other.data,
        )
    assert report.page.stat().st_size > 100_000


def test_a_slice_of_the_quick_study_on_the_real_images(tmp_path: Path, real_data: Path) -> None:
    """Two networks of the quick study, shortened: the real images, end to end."""
    pytest.importorskip("torch")
    from depthscope.study.toml import dump, load

    study = load("cifar10", "quick")
    options = {"data_options.num_train": 288, "data_options.validation": 32, "data_options.num_test": 64}
    base = {**study.base, "epochs": 1, **options}
    part = study.parts["main"].model_copy(update={"axes": {"depth": [8, 14]}, "exclude": ({"arm": "B"}, {"arm": "A0"})})
    short = study.model_copy(
        update={"name": "slice", "size": "", "base": base, "parts": {"main": part}, "claims": (), "seeds": 1}
    )
    path = tmp_path / "slice.toml"
    path.write_text(dump(short))
    report = depthscope.run(path, out=tmp_path / "out", data=real_data, workers=1)
    for row in report.results.rows:
        assert row.record is not None
        summary = row.record.summary
        assert summary["train_loss_running"] < 4
        # Shares of 256, 32 and 64 images: the splits are what they were asked to be.
        for split, number in (("train", 256), ("validation", 32), ("test", 64)):
            assert (summary[f"{split}_accuracy"] * number).is_integer()
        assert row.record.digests.data is not None
    assert len({row.record.digests.data for row in report.results.rows if row.record}) == 1


def test_bundled_studies_have_both_languages() -> None:
    for info in depthscope.studies():
        assert set(info.title) == set(info.question) == {"en", "zh"}
        study = depthscope.plan(info.name, size="smoke").study
        for _, arm in study.arms():
            assert set(arm.label or {}) == {"en", "zh"}
            assert all(label[0].isalnum() for label in (arm.label or {}).values())  # a label may begin a sentence
            assert arm.note is None or set(arm.note) == {"en", "zh"}
        assert all(set(claim.text) == {"en", "zh"} for claim in study.claims)
        assert all(set(part.title or {}) == {"en", "zh"} for part in study.parts.values())
