"""The page of speed: made of records alone, each of which says what was wanted, found, and on what."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "speed.md"


def load(name: str) -> Any:
    sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "benchmarks")]
    try:
        return importlib.import_module(name)
    finally:
        del sys.path[:2]


def record(**changed: Any) -> Any:
    fields = {"name": "step", "what": "a step", "want": 2.5, "pairs": [2.0, 3.0, 2.4], "clock": "processor"}
    fields |= {"reference_s": 1.2, "ours_s": 0.5, "machine": "a machine", "versions": {"torch": "2"}, "when": "day"}
    return load("pairs").Record(**(fields | changed))


def test_the_page_is_what_the_records_make_of_it(tmp_path: Path) -> None:
    shutil.copy(PAGE, tmp_path / "speed.md")
    load("make_speed").main(page=tmp_path / "speed.md")
    assert (tmp_path / "speed.md").read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")


def test_a_row_tells_the_median_the_spread_and_whether_it_is_what_was_wanted() -> None:
    made = load("make_speed")
    row = made.row(record())
    assert row == ["a step", "✗", "≥ 2.50x", "**2.40x**", "2.00 – 3.00", "3", "1.2 s", "500 ms", "processor"]
    assert made.row(record(pairs=[2.5]))[1] == "✓"
    assert made.row(record(want=None))[1:3] == ["", "–"]
    # Of a figure without a reference less is better.
    under = record(unit="ms", want=250, pairs=[240.0, 900.0, 200.0], reference_s=None, ours_s=None, clock="wall")
    assert made.row(under) == ["a step", "✓", "≤ 250 ms", "**240 ms**", "200 – 900", "3", "–", "–", "wall"]
    assert made.row(record(unit="%", want=0.5, pairs=[0.06]))[3] == "**0.06 %**"


def test_what_misses_shows_its_profile() -> None:
    made = load("make_speed")
    facts = {"load": 0.5, "profile 1": "51.0% convolution", "profile 2": "6.0% norm"}
    missed, met = record(facts=facts), record(name="other", pairs=[9.0], facts={"load": 0.1, "start, s": 3.0})
    assert made.profiles({"step": missed, "other": met}).splitlines() == [
        "- **a step.** Wanted at least 2.50x, measured 2.40x.",
        "  - 51.0% of its time in convolution",
        "  - 6.0% of its time in norm",
        "- **a step.** start, s: 3.00.",
    ]
    near = made.row(record(pairs=[2.4981]))
    assert near[1:5] == ["✗", "≥ 2.50x", "**2.498x**", "–"]
    assert "0.1 to 0.5" in made.where({"step": missed, "other": met})


def test_a_record_is_read_as_it_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = load("pairs")
    monkeypatch.setattr(pairs, "RECORDS", tmp_path / "records")
    kept = pairs.kept("name", "what", [(6.0, 2.0), (4.0, 2.0)], want=2.6, clock="wall", facts={"runs": 3})
    assert pairs.read_records(tmp_path / "records") == {"name": kept}
    assert kept.pairs == [3.0, 2.0]
    assert (kept.reference_s, kept.ours_s, kept.met) == (5.0, 2.0, False)
    assert kept.facts["runs"] == 3
    assert set(kept.versions) >= {"depthscope", "torch", "numpy", "python"}


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks" / "records").glob("*.json")), ids=lambda path: path.stem)
def test_every_record_kept_says_on_what_and_when(path: Path) -> None:
    held = json.loads(path.read_text(encoding="utf-8"))
    pairs = load("pairs")
    assert path.stem in {**pairs.read_records(), **pairs.read_growth()}
    assert held["name"] == path.stem
    assert held["machine"]
    assert held["when"]
    assert held["versions"]


def test_growth_is_a_table_a_record() -> None:
    made = load("make_speed")
    record: dict[str, Any] = {"what": "A study", "want": "little", "along": "runs", "at": [10, 1000]}
    record |= {"processor_s": [0.5, 3.0], "memory_mib": [80.0, 1200.0], "page_mb": [0.5, 2.0], "times": 3}
    record |= {"machine": "a machine", "when": "day"}
    found = made.growth({"study": record}).splitlines()
    assert found[2] == "| runs | time of the processor | peak memory | page |"
    assert found[4:6] == ["| 10 | 500 ms | 80 MiB | 0.50 MB |", "| 1,000 | 3 s | 1,200 MiB | 2.00 MB |"]
    assert made.growth({}) == "Not measured yet."


BUSY = """
def busy(loops):
    return lambda: sum(range(loops))
"""


def test_contenders_take_turns_and_one_that_misses_is_profiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = load("pairs")
    monkeypatch.setattr(pairs, "RECORDS", tmp_path)
    (tmp_path / "busy_work.py").write_text(BUSY, encoding="utf-8")  # a module that the other process finds, too
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    busy: Callable[[int], Callable[[], object]] = importlib.import_module("busy_work").busy
    # A thousand times as much work: no machine turns that round.
    slow, quick = partial(busy, 10_000_000), partial(busy, 10_000)
    found = pairs.measured("turns", "turns", slow, quick, want=2, pairs=2, warm=1)
    assert len(found.pairs) == 2
    assert found.met
    assert not any(name.startswith("profile") for name in found.facts)
    missed = pairs.measured("turns", "turns", quick, slow, want=2, pairs=1, warm=0)
    assert missed.met is False
    assert str(missed.facts["profile 1"]).endswith(("sum", "sum>"))
    halved = pairs.measured("turns", "turns", quick, quick, want=None, pairs=1, warm=0, work=1e9)
    assert halved.pairs[0] < 1e-3


def test_every_benchmark_of_the_one_command_is_there_and_says_how_it_is_called() -> None:
    for script, *options in load("bench").commands(quick=True, data=None):
        code = (ROOT / "benchmarks" / script).read_text(encoding="utf-8")
        assert all(f'"{each}"' in code for each in options if each.startswith("--"))


def test_the_sample_of_the_quick_study_is_one_seed_of_three() -> None:
    studies = load("studies")
    text = studies.read_source("cifar10")[1]
    assert len(studies.runs_of(text, size="quick", seeds=studies.SEEDS[0])) == 6
    assert len(studies.runs_of(text, size="quick")) == 6 * studies.SEEDS[1]
    assert len(studies.runs_of(studies.SWEEP)) == 6
    assert studies.Took(begin=4.0, runs=10.0, end=6.0).counted(0.1) == pytest.approx(11.0)


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_the_script_for_a_gpu_says_clearly_that_there_is_none(tmp_path: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("a CUDA device is here")
    done = subprocess.run(
        ["bash", str(ROOT / "benchmarks" / "gpu.sh")],
        capture_output=True,
        text=True,
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "PYTHON": sys.executable, "OUT": str(tmp_path)},
    )
    assert done.returncode == 2
    assert done.stderr.strip().splitlines()[-1] == "gpu: no CUDA device here; wanted one (torch.cuda.is_available())."
    assert not list(tmp_path.iterdir())


def test_the_makefile_has_it_in_one_command() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^bench: .*\n\t\$\(BIN\)/python benchmarks/bench.py", text, re.MULTILINE)
