"""The memory of training: what is asked, what fits, what is kept, and whose peak is read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Load = Callable[[str], Any]
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_the_run_is_the_one_whose_steps_are_timed_with_checkpointing_or_without(load: Load) -> None:
    memory, training = load("memory"), load("training")
    plain = memory.spec(110, "bfloat16", checkpointing=False, batch=128)
    assert plain.run_id == training.spec(110, "bfloat16").run_id
    other = memory.spec(110, "bfloat16", checkpointing=True, batch=64)
    assert (other.model_options["checkpointing"], other.batch_size, other.depth) == (True, 64, 110)


def test_what_is_predicted_is_what_the_steps_add(load: Load) -> None:
    memory = load("memory")
    plain, less = (memory.spec(110, "float32", checkpointing=way, batch=128) for way in (False, True))
    # 1,727,962 parameters of ResNet-110 with option A: gradients, momentum.
    of_weights = 2 * 4 * 1727962 / 2**20
    counted = memory.cost(plain).memory
    assert memory.predicted(plain) == pytest.approx(of_weights + counted.activations / 2**20)
    # 109 convolutions and their norms save their inputs, of 2 MiB * 4 in the first stage: about 1 GiB of them.
    assert 1000 < memory.predicted(plain) < 1100
    assert memory.predicted(less) < memory.predicted(plain) / 3


def test_the_batch_is_the_largest_that_fits(load: Load) -> None:
    memory = load("memory")
    need = {
        batch: 1.25 * memory.predicted(memory.spec(110, "float32", checkpointing=False, batch=batch)) + 2048
        for batch in memory.BATCHES
    }
    assert memory.batch_that_fits(110, None) == 128
    for batch, smaller in ((128, 64), (64, 32), (32, 16)):
        assert memory.batch_that_fits(110, need[batch]) == batch
        assert memory.batch_that_fits(110, need[batch] - 1) == smaller
    with pytest.raises(SystemExit, match=r"ResNet-110 at batch 16 wants 2,[0-9]{3} MiB, free are 100"):
        memory.batch_that_fits(110, 100.0)


def test_a_record_a_way_and_the_second_tells_what_it_spares_and_costs(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, pairs = load("memory"), load("pairs")
    monkeypatch.setattr(pairs, "RECORDS", tmp_path)

    def found(peak: float, step_s: float, *losses: str) -> Any:
        return memory.Found(before=500.0, peak=peak, step_s=step_s, losses=losses)

    ways = {False: [found(1500.0, 2.0, "a"), found(1700.0, 2.2, "a")], True: [found(800.0, 2.625, "a")]}
    own = {False: found(1400.0, 3.0, "a"), True: found(600.0, 4.0, "a")}
    memory.kept(20, "float32", 64, ways, own)
    plain, less = (pairs.read_records(tmp_path)[f"memory-20-float32{end}"] for end in ("", "-checkpointing"))
    assert (plain.pairs, plain.unit, plain.want) == ([1000.0, 1200.0], "MiB", None)
    assert plain.what == "memory that training ResNet-20 takes, batch 64, float32"
    assert less.pairs == [300.0]
    assert less.what.endswith(", activation checkpointing")
    assert plain.facts["predicted, MiB"] == round(
        memory.predicted(memory.spec(20, "float32", checkpointing=False, batch=64))
    )
    expected = {
        "peak of the process, MiB": 800,
        "step, s": 2.62,
        "memory, of that without": round(300 / 1100, 3),
        "step, of that without": 1.25,
        "losses": "the same bits as without",
        "each tensor in pages of its own, MiB": 100,
        "step then, s": 4.0,
        "memory then, of that without": 0.111,
    }
    assert {name: less.facts[name] for name in expected} == expected
    memory.kept(20, "float32", 64, {**ways, True: [found(800.0, 2.625, "b")]}, {})
    less = pairs.read_records(tmp_path)["memory-20-float32-checkpointing"]
    assert less.facts["losses"] == "OTHER BITS than without"
    assert not any("own" in name for name in less.facts)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_steps_in_a_process_of_their_own_have_the_same_losses_with_checkpointing(load: Load) -> None:
    memory = load("memory")
    plain, less = (
        memory.alone(memory.spec(8, "float32", checkpointing=way, batch=128), 1, own_pages=True)
        for way in (False, True)
    )
    assert len(plain.losses) == 2
    assert plain.losses == less.losses
    # The activations were there at once, in pages that building the network had not left behind.
    held = memory.cost(memory.spec(8, "float32", checkpointing=False, batch=128)).memory.activations / 2**20
    assert 0.8 * held < plain.rise
    assert plain.step_s > 0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_process_tells_its_own_peak_and_not_that_of_the_one_that_started_it() -> None:
    code = "import sys; sys.path.insert(0, sys.argv[1]); import growth; print(growth.resident_mib())"
    fat = "import subprocess, sys; held = b'x' * (400 << 20); subprocess.run([sys.executable, '-c', *sys.argv[1:]])"
    command = [sys.executable, "-c", fat, code, str(BENCHMARKS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 1 < float(done.stdout) < 300


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_peak_stays_and_what_is_resident_goes() -> None:
    code = """
import mmap, sys
sys.path.insert(0, sys.argv[1])
import growth
before = growth.resident_mib("VmRSS")
with mmap.mmap(-1, 200 << 20) as held:  # goes back to the system at once, whatever the allocator does
    for _ in range(200):
        held.write(b"x" * (1 << 20))
    inside = growth.resident_mib("VmRSS")
print(before, inside, growth.resident_mib("VmRSS"), growth.resident_mib())
"""
    command = [sys.executable, "-c", code, str(BENCHMARKS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    before, inside, after, peak = map(float, done.stdout.split())
    # The system counts pages in portions: to some MiB.
    assert inside - before == pytest.approx(200, abs=8)
    assert after == pytest.approx(before, abs=8)
    assert peak == pytest.approx(inside, abs=8)
