"""docs/your-own-code.md: its package, written outside the repository, does its study by name from the command line."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

DOC = (Path(__file__).resolve().parents[2] / "docs" / "your-own-code.md").read_text(encoding="utf-8")


def write_example(folder: Path) -> None:
    """Every block that the document names a file for."""
    blocks = re.findall(r"`([\w/]+\.(?:py|toml))`:\n\n```(?:python|toml)\n(.*?)```", DOC, re.DOTALL)
    assert [name for name, _ in blocks] == [
        *(f"rings/{each}.py" for each in ("model", "data", "init", "probes")),
        "rings.toml",
    ]
    for name, text in [("rings/__init__.py", ""), *blocks]:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def depthscope(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # As a person starts it: another program, in the folder that holds the package.
    program = shutil.which("depthscope", path=str(Path(sys.executable).parent))
    assert program
    return subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outside")
    write_example(folder)
    shell = depthscope(folder, "run", "rings.toml", "--workers", "2", "--out", "out", "--json")
    assert shell.returncode == 0, shell.stderr
    assert json.loads(shell.stdout)["findings"][0]["estimates"]
    return folder


def test_the_example_runs_in_this_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import depthscope

    write_example(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        held = importlib.import_module("rings.data").rings(0, num=40, validation=10, num_test=0)
        lengths = {name: len(value) for name, value in held.items()}
        assert lengths == {"x_train": 30, "y_train": 30, "x_validation": 10, "y_validation": 10}
        planned = depthscope.plan(tmp_path / "rings.toml", seeds=1)
        counted = depthscope.costs(planned)
        assert counted is not None
        # A stem 2 x 8, 2 layers 8 x 8, a head 8 x 2, and their biases; 40 examples, 20 epochs, a multiply and an add.
        first = counted[planned.cells[0].run_id]
        assert first.parameters == 2 * 8 + 8 + 2 * (64 + 8) + 16 + 2
        assert first.train_flops == 3 * 2 * (16 + 2 * 64 + 16) * 40 * 20
        check(depthscope.run(tmp_path / "rings.toml", out=tmp_path / "out", seeds=1, workers=1).folder, 4)
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "rings"]:
            del sys.modules[name]


def test_the_clip_on_the_page_clips() -> None:
    import torch

    [block] = [each for each in re.findall(r"```python\n(.*?)```", DOC, re.DOTALL) if "def by_value" in each]
    told: dict[str, Any] = {}
    exec(compile(block, "docs/your-own-code.md", "exec"), told)
    model = torch.nn.Linear(1, 3, bias=False)
    clip = told["by_value"](model, limit=0.5)
    model.weight.grad = torch.tensor([[2.0], [-3.0], [0.25]])
    clip()
    assert model.weight.grad.flatten().tolist() == [0.5, -0.5, 0.25]


@pytest.mark.slow
def test_the_example_does_what_the_document_says(done: Path) -> None:
    check(done / "out", 8)


def check(out: Path, number: int) -> None:
    import pyarrow.parquet as pq

    from depthscope import results

    assert (out / "report.html").stat().st_size > 100_000
    records = list(results(out).records.values())
    assert len(records) == number
    for record in records:
        assert record.outcome.status == "completed"
        assert set(record.digests.code) == {
            "rings.model:Net",
            "rings.data:rings",
            "rings.init:small",
            "rings.probes:head",
        }
        assert {"probe:head.norm", "probe:head.margin"} <= set(record.summary)
        table = pq.read_table(out / "runs" / record.run_id / "metrics.parquet").to_pylist()
        rows = [(row["step"], row["value"]) for row in table if row["quantity"] == "head.norm"]
        # One batch an epoch: its end is every step.
        assert [step for step, _ in rows] == list(range(21))
        assert rows[-1][1] == record.summary["probe:head.norm"]
        # The layers in the order of a forward pass, though nothing names them.
        names = [layer.name for layer in record.layers]
        assert names == ["stem", *(f"blocks.{index}.linear" for index in range(len(names) - 2)), "head"]
    # Two arms, and two depths, start from the same tensors where they share the name.
    shared = {record.digests.init["blocks.1.linear.weight"] for record in records if record.spec.seed == 0}
    assert len(shared) == 1


@pytest.mark.slow
def test_what_run_refuses_plan_refuses_and_finds_the_code_beside_the_study(done: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(done, folder)
    shell = depthscope(tmp_path, "plan", "copy/rings.toml")
    assert shell.returncode == 0, shell.stderr
    with (folder / "rings" / "init.py").open("a") as file:
        file.write("\n\ndef small(*, shape):\n    return np.zeros(7)\n")
    shell = depthscope(tmp_path, "plan", "copy/rings.toml")
    assert shell.returncode == 2
    assert "rings.init:small" in shell.stderr
    assert len(shell.stderr.splitlines()) == 1


@pytest.mark.slow
def test_changed_code_is_told(done: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(done, folder)
    with (folder / "rings" / "model.py").open("a") as file:
        file.write("# changed\n")
    shell = depthscope(folder, "run", "rings.toml", "--workers", "1", "--out", "out")
    assert shell.returncode == 0, shell.stderr
    assert "8 runs here were made with another version of rings.model:Net" in " ".join(shell.stderr.split())


@pytest.mark.slow
def test_the_plan_estimates_the_example(done: Path) -> None:
    shell = depthscope(done, "plan", "rings.toml", "--calibrate", "--workers", "2", "--json")
    assert shell.returncode == 0, shell.stderr
    document = json.loads(shell.stdout)
    assert document["estimate"]["seconds"] > 0
    assert all(row["seconds_per_run"] > 0 and row["memory_bytes"] > 0 for row in document["rows"])


@pytest.mark.slow
def test_a_package_that_is_not_there_is_one_line_and_nothing_is_written(done: Path, tmp_path: Path) -> None:
    shutil.copy(done / "rings.toml", tmp_path)
    shell = depthscope(tmp_path, "run", "rings.toml", "--out", "out")
    assert shell.returncode == 2
    assert shell.stderr.startswith("depthscope: rings.model:Net: no module 'rings' can be imported.")
    assert not (tmp_path / "out").exists()
