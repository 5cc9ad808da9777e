"""The script for a GPU, as far as a CPU can tell: its rows, its bits, its time, and what it says without one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

Load = Callable[[str], Any]
SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu.py"


def table_of(load: Load, *, out: Path | None = None, seconds: float = 1e6) -> Any:
    return load("gpu_table").Table(device="cpu", out=out, until=time.perf_counter() + seconds)


def test_steps_and_augmentation_are_rows_beside_their_reference(load: Load, tmp_path: Path) -> None:
    gpu, out = load("gpu"), tmp_path / "new" / "gpu.json"
    table = table_of(load, out=out)
    scale = replace(gpu.REHEARSAL, precisions=("float32",))
    gpu.augmentation(scale, table)
    gpu.steps(scale, table)
    assert [row.what for row in table.rows] == [
        "augmentation: one image at a time on the CPU",
        "augmentation: batches on the device",
        "ResNet-8: plain reference",
        "ResNet-8: float32",
    ]
    for plain, ours in (table.rows[:2], table.rows[2:]):
        assert plain.times == 1.0
        assert plain.images_s > 0
        assert ours.times == ours.images_s / plain.images_s
    assert all(row.peak_mib is None and row.same_bits is None for row in table.rows)
    held = json.loads(out.read_text(encoding="utf-8"))
    assert [row["images_s"] for row in held["rows"]] == [row.images_s for row in table.rows]
    assert (held["device"], held["left_out"], held["failed"]) == ("cpu", [], [])


def test_the_engine_is_that_of_a_study_and_its_losses_go_past_an_epoch(load: Load) -> None:
    gpu = load("gpu")
    with gpu.exact(1):
        engine = gpu.Engine(gpu.REHEARSAL, 8, "float32", graphs=False, num=160)
        for _ in range(3):  # 128, 32, and 128 of the next epoch
            engine.step()
    losses = engine.losses()
    assert (len(losses), engine.standing.step) == (3, 3)
    assert losses[2] == engine.run.tally.values()[0]  # as the run itself counts them, from the epoch's begin
    assert len(set(losses)) == 3


@pytest.mark.parametrize(("other", "same"), [(0.0, True), (2.0**-52, False), (float("nan"), False)])
def test_bits_that_differ_with_graphs_are_told(
    load: Load, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], other: float, same: bool
) -> None:
    gpu, table = load("gpu"), table_of(load)

    class Fake:
        def __init__(self, scale: object, depth: int, precision: str, *, graphs: bool, num: int = 0) -> None:
            self.off, self.taken = other if graphs else 0.0, 0

        def step(self) -> None:
            self.taken += 1

        def losses(self) -> list[float]:
            return [float("nan")] + [1.0] * (self.taken - 2) + [1.0 + self.off]

    monkeypatch.setattr(gpu, "Engine", Fake)
    gpu.graphs(replace(gpu.REHEARSAL, precisions=("float32",), checked=4), table)
    assert [(row.what, row.same_bits, row.times) for row in table.rows] == [("ResNet-8: float32, graphs", same, None)]
    told = capsys.readouterr().out
    assert ("OTHER BITS than without" in told) is not same
    assert ("same bits as without" in told) is same


def test_without_graphs_on_either_side_the_bits_are_the_same(load: Load) -> None:
    gpu = load("gpu")
    with gpu.exact(1):
        assert gpu.same_bits(replace(gpu.REHEARSAL, checked=2), 8, "bfloat16")  # a CPU records nothing


def test_a_rate_counts_what_was_done_in_the_time(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, clock = load("gpu"), [0.0]
    monkeypatch.setattr(gpu.time, "perf_counter", lambda: clock[0])

    def work() -> None:
        clock[0] += 0.5

    # Rounds of 0.5, 1, 1.5 and 2 s: whole steps, at least one.
    for round_s in (0.0, 0.6, 1.2, 2.0):
        assert gpu.rate(work, replace(gpu.REHEARSAL, warm=2, rounds=3, round_s=round_s), 128) == 256.0
    begun = clock[0]
    gpu.rate(work, replace(gpu.REHEARSAL, warm=2, rounds=3, round_s=1.2), 128)
    assert clock[0] - begun == 0.5 * (2 + 3 * 3)


def test_what_there_is_no_time_for_is_left_out_and_a_failure_stops_no_other_row(
    load: Load, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = load("gpu_table")

    def fails() -> Any:
        raise RuntimeError("CUDA error:\n  out of memory")

    def good() -> Any:
        return made.Row(what="good", images_s=1.0)

    table = table_of(load, out=tmp_path / "gpu.json", seconds=1000.0)
    assert table.add("bad", fails) is None
    assert table.add("long", good, need_s=2000.0) is None
    assert table.add("good", good, need_s=500.0) == made.Row(what="good", images_s=1.0)
    table.until = 0.0
    assert table.add("late", good) is None
    table.write()
    held = json.loads((tmp_path / "gpu.json").read_text(encoding="utf-8"))
    assert held["failed"] == ["bad: RuntimeError: CUDA error: out of memory"]
    assert held["left_out"] == ["long", "late"]
    assert [row["what"] for row in held["rows"]] == ["good"]
    assert capsys.readouterr().out.splitlines()[0].split() == ["bad", "FAILED"]


def test_a_gpu_without_bfloat16_is_asked_for_none(load: Load) -> None:
    gpu, studies = load("gpu"), load("studies")
    for there, precisions in ((True, ("float32", "bfloat16")), (False, ("float32",))):
        scale = gpu.gpu(bfloat16=there)
        assert scale.precisions == precisions
        specs = studies.runs_of(scale.study)
        assert {spec.precision for spec in specs} == {precisions[-1]}
        assert max(scale.workers) == len(specs)
        assert {spec.epochs for spec in specs} == {30}


def test_without_a_gpu_it_says_so_in_one_line(
    load: Load, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    with pytest.raises(SystemExit) as left:
        load("gpu").main()
    assert left.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "gpu: no CUDA device here; wanted one (torch.cuda.is_available()).\n"


@pytest.mark.slow
def test_the_rehearsal_goes_the_whole_way(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--rehearse", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        env={**os.environ, "DEPTHSCOPE_CACHE": str(tmp_path / "cache")},
    )
    assert done.returncode == 0, done.stderr
    rows = {row["what"]: row for row in json.loads((tmp_path / "gpu.json").read_text(encoding="utf-8"))["rows"]}
    assert list(rows)[2:] == [
        "ResNet-8: plain reference",
        "ResNet-8: float32",
        "ResNet-8: bfloat16",
        "a study, 1 runs at a time, bfloat16",
    ]
    assert all(row["images_s"] > 0 and what in done.stdout for what, row in rows.items())
    assert rows["a study, 1 runs at a time, bfloat16"]["times"] == 1.0
