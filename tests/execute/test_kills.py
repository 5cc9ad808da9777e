"""Kill -9 of workers and drivers, at random moments that fall inside training: nothing lost, all bits equal."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.train.own import package

from depthscope.execute.driver import drive
from depthscope.execute.order import Settings
from depthscope.execute.processes import Processes
from depthscope.execute.remaining import remaining
from depthscope.record.events import DoneElsewhere, Ended, News, Resumed, Retried
from depthscope.record.lease import holder
from depthscope.study.expand import Plan, expand
from depthscope.study.toml import parse
from depthscope.train.build import Context

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the kills are aimed with /proc")

EAGER = Settings(min_gap_s=0.0)
"""A checkpoint at every safe point: most kills fall near one, or into its writing."""

Serial = Callable[[str], tuple[Plan, dict[str, object]]]
Contents = Callable[[Plan, Path], dict[str, object]]


TextOf = Callable[[str], str]


def state_of(pid: int) -> str:
    """The letter of a process's state: R runs, T stands still, Z is dead and not yet buried."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


class Killer:
    """Kills who holds a run, up to `kills` times, each time at a random moment after training began in its process.

    Training has begun when the lease shows a step beyond that at which the holder took over: a checkpoint of its own.
    """

    def __init__(self, plan: Plan, folder: Path, kills: int, seed: int) -> None:
        self._plan, self._folder, self._draw = plan, folder, random.Random(seed)
        self._first: dict[str, int] = {}
        self.left = kills
        self.killed = 0
        self.end = threading.Event()

    def strike(self) -> bool:
        """One kill, if somebody is in training now."""
        for run_id in self._plan.runs:
            with contextlib.suppress(OSError):
                claim = holder(self._folder, run_id)
                if claim is None or not claim.token or claim.pid == os.getpid():
                    continue
                if claim.step <= self._first.setdefault(claim.token, claim.step):
                    continue
                self.end.wait(self._draw.uniform(0.0, 0.1))
                # It stands still while it is looked at again: else it could let go between the look and the kill.
                os.kill(claim.pid, signal.SIGSTOP)
                while state_of(claim.pid) not in "TZ":
                    time.sleep(0.001)
                now = holder(self._folder, run_id)
                if now is not None and now.token == claim.token and not now.is_dead:
                    os.kill(claim.pid, signal.SIGKILL)
                    self.killed += 1
                    self.left -= 1
                    self._first[claim.token] = 10**9
                    return True
                os.kill(claim.pid, signal.SIGCONT)
        return False

    def run(self) -> None:
        while self.left and not self.end.is_set():
            self.strike()
            self.end.wait(0.005)


def kill_workers(text: str, kills: int, seed: int, tmp_path: Path, serial: Serial, contents: Contents) -> None:
    plan, whole = serial(text)
    resumed, rounds, number = 0, 0, kills
    with Processes(2) as executor:
        while kills:
            rounds += 1
            folder = tmp_path / f"{rounds}"
            folder.mkdir()
            news: list[News] = []
            killer = Killer(plan, folder, kills, seed + rounds)
            thread = threading.Thread(target=killer.run)
            thread.start()
            try:
                drive(
                    remaining(plan, folder)[0],
                    folder,
                    Context(),
                    executor=executor,
                    on_event=news.append,
                    settings=EAGER,
                )
            finally:
                killer.end.set()
                thread.join()
            kills = killer.left
            assert contents(plan, folder) == whole
            ends = sorted(each.run_id for each in news if isinstance(each, Ended | DoneElsewhere))
            assert ends == sorted(plan.runs)
            assert len([each for each in news if isinstance(each, Retried)]) >= killer.killed
            resumed += sum(isinstance(each, Resumed) and each.step > 0 for each in news)
            assert rounds < 30
    # The others fell between a record and the end of its lease: there was nothing left to resume.
    assert resumed >= number // 2


# Ten moments in CI: six in workers, three in drivers, one in torch.
def test_workers_killed_in_training(text_of: TextOf, tmp_path: Path, serial: Serial, contents: Contents) -> None:
    kill_workers(text_of("numpy"), 6, 1, tmp_path, serial, contents)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_many_workers_killed_in_training(
    name: str, text_of: TextOf, tmp_path: Path, serial: Serial, contents: Contents
) -> None:
    kill_workers(text_of(name), 20, 2, tmp_path, serial, contents)


DRIVER = """
import sys
from pathlib import Path
from depthscope.execute.driver import drive
from depthscope.execute.remaining import remaining
from depthscope.execute.order import Settings
from depthscope.study.expand import expand
from depthscope.study.toml import parse
from depthscope.train.build import Context
folder = Path(sys.argv[1])
plan = expand(parse(sys.stdin.read(), source="study.toml"))
drive(remaining(plan, folder)[0], folder, Context(), settings=Settings(min_gap_s=0.0))
"""


def start(text: str, folder: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen([sys.executable, "-c", DRIVER, str(folder)], stdin=subprocess.PIPE, text=True)
    assert child.stdin is not None
    child.stdin.write(text)
    child.stdin.close()
    return child


def kill_drivers(text: str, kills: int, seed: int, tmp_path: Path, serial: Serial, contents: Contents) -> None:
    plan, whole = serial(text)
    rounds, number = 0, kills
    while kills:
        rounds += 1
        folder = tmp_path / f"{rounds}"
        folder.mkdir()
        killer = Killer(plan, folder, kills, seed + rounds)
        while True:
            child = start(text, folder)
            while child.poll() is None and not (killer.left and killer.strike()):
                time.sleep(0.005)
            if child.wait() == 0:
                break
            assert child.returncode == -signal.SIGKILL
        kills = killer.left
        assert contents(plan, folder) == whole
        assert rounds < 30
    lines = [line for log in tmp_path.glob("*/runs/*/log.txt") for line in log.read_text().splitlines()]
    assert sum("resumed from step" in line for line in lines) >= number // 2


@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_drivers_killed_in_training(
    name: str, text_of: TextOf, tmp_path: Path, serial: Serial, contents: Contents
) -> None:
    kill_drivers(text_of(name), 3 if name == "numpy" else 1, 3, tmp_path, serial, contents)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_many_drivers_killed_in_training(
    name: str, text_of: TextOf, tmp_path: Path, serial: Serial, contents: Contents
) -> None:
    kill_drivers(text_of(name), 5, 4, tmp_path, serial, contents)


DEADLY = """
import os, signal

def kills(step):
    if step >= 2 and not os.path.exists("PEACE"):
        os.kill(os.getpid(), signal.SIGKILL)
    return {}
"""


def test_a_run_that_kills_its_workers_is_a_failed_record(
    text_of: TextOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time before it was saved; the others go on, and the same command tries it again."""
    peace = tmp_path / "peace"
    name = package(monkeypatch, tmp_path, code=DEADLY.replace("PEACE", str(peace)))
    text = text_of("numpy").replace('"plain"', f'"plain"\nset = {{ measures = ["{name}.code:kills"] }}')
    text = text.replace("axes =", 'exclude = [{ arm = "plain", depth = 4 }]\naxes =')
    plan = expand(parse(text, source="study.toml"))
    (doomed,) = [run_id for run_id, spec in plan.runs.items() if spec.shortcut == "none"]
    with Processes(2) as executor:
        drive(remaining(plan, tmp_path)[0], tmp_path, Context(), executor=executor)
    left, records, _ = remaining(plan, tmp_path)
    assert [spec.run_id for task in left for spec in task.specs] == [doomed]
    outcome = records[doomed].outcome
    assert (outcome.status, outcome.step) == ("failed", 0)
    assert outcome.reason == "the worker died 3 times on it (its worker process died (signal 9, SIGKILL))"
    assert "memory" in str(outcome.remedy)
    peace.touch()
    drive(left, tmp_path, Context())
    assert remaining(plan, tmp_path)[0] == []


def test_workers_end_with_a_driver_that_was_killed(text_of: TextOf, tmp_path: Path) -> None:
    text = text_of("numpy").replace("steps = 400", "steps = 1000000")
    plan = expand(parse(text, source="study.toml"))
    code = DRIVER.replace("Settings(min_gap_s=0.0))", "Settings(min_gap_s=0.0), executor=Processes(2))").replace(
        "import sys\n", "import sys\nfrom depthscope.execute.processes import Processes\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, text=True)
    assert child.stdin is not None
    child.stdin.write(text)
    child.stdin.close()
    workers: set[int] = set()
    while len(workers) < 2 and child.poll() is None:
        claims = [holder(tmp_path, run_id) for run_id in plan.runs]
        workers = {claim.pid for claim in claims if claim is not None and claim.step > 0}
        time.sleep(0.02)
    child.kill()
    child.wait()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{each}").exists() for each in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [each for each in workers if Path(f"/proc/{each}").exists()]
    for each in left:
        os.kill(each, signal.SIGKILL)
    assert len(workers) == 2
    assert not left
