"""docs/adding-a-repair.md: its example is tuned and ranked, its test sees a wrong formula, its lines make a name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

import depthscope
from depthscope.record.schema import RunRecord

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "adding-a-repair.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"`(\w+\.(?:py|toml))`[^`\n]*\n\n```(?:python|toml)\n(.*?)```", PAGE, re.DOTALL))
ADDED = re.findall(r"```python\n(.*?)```", PAGE.split("## In the catalogue")[1], re.DOTALL)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Somebody's folder with the files of the page."""
    assert set(FILES) == {"my_repairs.py", "my.toml", "test_my_repairs.py"}
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    sys.modules.pop("my_repairs", None)


def check_records(records: Iterable[RunRecord], number: int) -> None:
    """Two arms and two depths start from the same weights, gamma from what the study says; its code has a digest."""
    found = list(records)
    assert len(found) == number
    own = [record for record in found if record.spec.shortcut == "my_repairs:layerscale"]
    assert [set(record.digests.code) for record in own] == [{"my_repairs:layerscale"}] * (number // 3)
    first = min(record.spec.seed for record in found)
    assert len({record.digests.init["layers.1.weight"] for record in found if record.spec.seed == first}) == 1
    assert len({record.digests.init["layers.0.join.gamma"] for record in own}) == 1


CHOICES = [(arm, depth) for arm in ("plain", "identity", "layerscale") for depth in (4, 16)]


def test_each_arm_is_tuned_at_each_depth(folder: Path) -> None:
    """The study on the page with three steps at two learning rates."""
    text = FILES["my.toml"]
    for whole, part in (("steps = 60", "steps = 3"), ("3e-3, 1e-2, 3e-2", "1e-2, 3e-2")):
        assert text.count(whole) == 1
        text = text.replace(whole, part)
    (folder / "my.toml").write_text(text, encoding="utf-8")
    told = depthscope.tune(folder / "my.toml", workers=1)
    assert [(choice.arm, choice.at["depth"]) for choice in told.tuned.choices] == CHOICES
    check_records(told.selection.results.records.values(), 12)
    assert len(depthscope.plan(told.path).cells) == 18


@pytest.mark.slow
def test_the_study_as_it_stands(folder: Path) -> None:
    assert "$ depthscope tune my.toml --run\n" in PAGE
    told = depthscope.tune(folder / "my.toml", then_run=True, workers=1)
    assert [(choice.arm, choice.at["depth"]) for choice in told.tuned.choices] == CHOICES
    assert told.report is not None
    [finding] = told.report.findings
    assert finding.estimates
    assert "LayerScale beside the plus sign" in told.report.page.read_text(encoding="utf-8")
    check_records(told.report.results.records.values(), 18)


def test_its_test_passes_and_sees_a_wrong_formula(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    told: dict[str, object] = {}
    exec(compile(FILES["test_my_repairs.py"], "test_my_repairs.py", "exec"), told)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        told["test_it_is_its_formula"]()  # type: ignore[operator]
        told["test_a_wrong_formula_is_seen"](monkeypatch)  # type: ignore[operator]


EVERYWHERE = """
import pytest
from depthscope.study.run import RunSpec
from depthscope.train.check import check_runs

@pytest.mark.parametrize("family", ["mlp", "cifar_resnet", "preact_resnet"])
def test_layerscale_by_name(family):
    spec = dict(backend="torch", family=family, depth=8, width=4, norm="batch", activation="relu", init="he_fan_in")
    spec |= dict(data="spiral" if family == "mlp" else "images", shortcut="layerscale", steps=1)
    assert RunSpec.model_validate(spec).shortcut_options == {"start": 0.1}
    check_runs([RunSpec.model_validate(spec)])
    with pytest.raises(ValueError, match=r"wanted a value in \\[0, 1\\]"):
        RunSpec.model_validate({**spec, "shortcut_options": {"start": 2.0}})
"""


def test_the_function_the_line_and_the_case_are_all_that_a_name_takes(tmp_path: Path) -> None:
    """A copy of the package with the page's blocks put where it says: nothing else is touched."""
    sources, tests = tmp_path / "src" / "depthscope", tmp_path / "tests"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "depthscope", sources, ignore=ignored)
    shutil.copytree(ROOT / "tests" / "conformance", tests / "conformance", ignore=ignored)
    for name in ("models/naive.py", "models/gpt_naive.py", "train/short.py"):
        (tests / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "tests" / name, tests / name)
    function, join, line, check, case = ADDED
    for file, text in (("named.py", function), ("joins.py", join)):
        with (sources / "models" / "shortcuts" / file).open("a", encoding="utf-8") as opened:
            opened.write(f"\n\n{text}")
    put(sources / "study" / "entries" / "shortcuts.py", before="}\n", text=line)
    put(tests / "conformance" / "cases_shortcuts.py", before="CASES = [\n", text=f"{check}\n\n")
    put(tests / "conformance" / "cases_shortcuts.py", before="]\n", text=case)
    (tests / "conformance" / "test_everywhere.py").write_text(EVERYWHERE, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib"]
    done = subprocess.run(
        [*command, "tests/conformance", "-k", "layerscale or every_name"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path / 'src'}{os.pathsep}{tmp_path}", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout  # the case, the altered one, the list of names, three families


def put(path: Path, *, before: str, text: str) -> None:
    """Put lines before the last line of a file that is `before`."""
    head, found, tail = path.read_text(encoding="utf-8").rpartition(f"\n{before}")
    assert found
    path.write_text(f"{head}\n{text}{before}{tail}", encoding="utf-8")
