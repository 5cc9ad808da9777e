"""Leases: one holder a run, whoever tries; expiry by the watcher's own clock; a holder that lost its lease knows."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from depthscope.core.errors import UserError
from depthscope.record import holder as holders
from depthscope.record import lease as leases
from depthscope.record.folder import RunFolderError, run_folder
from depthscope.record.lease import Lease, Observer, acquire, holder

RUN = "0123456789abcdef"


class Clock:
    def __init__(self) -> None:
        self.now = 1e6

    def __call__(self) -> float:
        return self.now


def claims(folder: Path) -> list[str]:
    at = run_folder(folder, RUN)
    return sorted(path.name for path in at.iterdir()) if at.is_dir() else []


def take(folder: Path, token: str, **options: object) -> Lease:
    lease = acquire(folder, RUN, token=token, **options)  # type: ignore[arg-type]
    assert lease is not None
    return lease


def test_one_holder_until_it_lets_go(tmp_path: Path) -> None:
    first = take(tmp_path, "a")
    assert first.holds()
    assert acquire(tmp_path, RUN, token="b") is None
    first.release()
    assert not first.holds()
    assert not run_folder(tmp_path, RUN).exists()
    assert take(tmp_path, "b").holds()


def test_a_sleeper_gives_no_sign_of_life_in_a_claim_of_the_same_number(tmp_path: Path) -> None:
    """Its own was taken over and let go, and numbers count from 1 again."""
    sleeper = take(tmp_path, "a")
    take(tmp_path, "b", dead={"a"}).release()
    take(tmp_path, "c")
    assert claims(tmp_path) == ["lease-1.json"]
    assert not sleeper.beat(5, 10)
    sleeper.release()
    held = holder(tmp_path, RUN)
    assert held is not None
    assert (held.token, held.beat, held.step) == ("c", 0, 0)


def test_it_tells_where_the_run_stands_and_its_file_keeps_its_length(tmp_path: Path) -> None:
    lease = take(tmp_path, "a", lease_s=7.0)
    before = os.stat(run_folder(tmp_path, RUN) / "lease-1.json")
    assert lease.beat(10, 10**12)
    assert lease.beat()
    claim = holder(tmp_path, RUN)
    assert claim is not None
    assert (claim.token, claim.beat, claim.step, claim.num_steps, claim.lease_s) == ("a", 2, 10, 10**12, 7.0)
    after = os.stat(run_folder(tmp_path, RUN) / "lease-1.json")
    assert (before.st_size, before.st_ino) == (after.st_size, after.st_ino)


def test_no_host_name_is_in_it(tmp_path: Path) -> None:
    import platform

    take(tmp_path, "a")
    content = json.loads((run_folder(tmp_path, RUN) / "lease-1.json").read_text())
    assert set(content) == {"token", "beat", "lease_s", "machine", "pid", "born", "step", "num_steps"}
    assert platform.node() not in str(content["machine"])


def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on this process is on another machine than what stands in claims until now."""
    monkeypatch.setattr(holders, "this_machine", lambda: "another machine")


def test_it_expires_for_who_sees_it_unchanged_for_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lease, clock = take(tmp_path, "a", lease_s=60.0), Clock()
    elsewhere(monkeypatch)
    observer = Observer(clock)
    for beat in range(50):  # a holder that beats is never expired
        claim, expired = observer.look(tmp_path, RUN)
        assert not expired
        clock.now += 12
        if beat % 2:
            assert lease.beat()
    waited = 0.0
    while not (looked := observer.look(tmp_path, RUN))[1]:
        clock.now += 1
        waited += 1
    # Seen unchanged for 60 s, of which up to two heartbeats had passed already when the loop above ended.
    assert 60 - 24 <= waited <= 60
    claim = looked[0]
    assert claim is not None
    # What was seen may be taken; a holder that has woken since may not.
    assert lease.beat()
    assert acquire(tmp_path, RUN, token="b", dead={claim.stamp}) is None
    claim = holder(tmp_path, RUN)
    assert claim is not None
    taken = take(tmp_path, "b", dead={claim.stamp})
    assert taken.holds()
    assert not lease.holds()
    assert not lease.beat()
    assert claims(tmp_path) == ["lease-2.json"]
    lease.release()
    assert taken.holds()


def test_one_late_look_expires_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    take(tmp_path, "a", lease_s=60.0)
    elsewhere(monkeypatch)
    clock = Clock()
    observer = Observer(clock)
    observer.look(tmp_path, RUN)
    clock.now += 1e5  # the observer slept, and the holder perhaps with it
    assert not observer.look(tmp_path, RUN)[1]


def test_wall_clocks_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = take(tmp_path, "a")
    elsewhere(monkeypatch)
    observer = Observer(Clock())
    observer.look(tmp_path, RUN)
    for jump in (-1e9, 1e9):
        monkeypatch.setattr("time.time", lambda jump=jump: 1.7e9 + jump)
        os.utime(run_folder(tmp_path, RUN) / "lease-1.json", (1e9 + jump / 2, 1e9 + jump / 2))
        assert not observer.look(tmp_path, RUN)[1]
        assert lease.beat()
        assert lease.holds()


HOLD = """
import sys
from pathlib import Path
from depthscope.record.lease import acquire
assert acquire(Path(sys.argv[1]), sys.argv[2], token="gone") is not None
print("held", flush=True)
sys.stdin.read()
"""


def test_a_holder_that_was_killed_on_this_machine_is_dead_at_once(tmp_path: Path) -> None:
    if holders.this_machine() is None:
        pytest.skip("this system does not tell a process's beginning")
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path), RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == "held\n"
    assert acquire(tmp_path, RUN, token="b") is None
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet buried by its parent
    assert Observer().look(tmp_path, RUN)[1]
    assert take(tmp_path, "b").holds()
    child.wait()
    child.stdout.close()
    child.stdin.close()


def test_the_same_number_of_a_later_process_is_not_the_holder(tmp_path: Path) -> None:
    if holders.this_machine() is None:
        pytest.skip("this system does not tell a process's beginning")
    take(tmp_path, "a")
    path = run_folder(tmp_path, RUN) / "lease-1.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "born": "1"}))
    assert take(tmp_path, "b").holds()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"token": 3}', b'{"token": "a", "lease_s": "x"}', b"\xff"])
def test_a_claim_that_cannot_be_read_expires_like_any_other(content: bytes, tmp_path: Path) -> None:
    at = run_folder(tmp_path, RUN)
    at.mkdir(parents=True)
    (at / "lease-7.json").write_bytes(content)
    assert acquire(tmp_path, RUN, token="b", dead={""}) is None
    clock = Clock()
    observer = Observer(clock)
    while not (looked := observer.look(tmp_path, RUN))[1]:
        clock.now += 5
    assert looked[0] is not None
    take(tmp_path, "b", dead={looked[0].stamp})
    assert claims(tmp_path) == ["lease-8.json"]


def test_a_folder_that_was_deleted_is_told_and_does_not_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    folder.mkdir()
    lease = take(folder, "a")
    folder.rename(tmp_path / "moved")
    assert not lease.holds()
    assert not lease.beat()
    lease.release()
    with pytest.raises(UserError, match="was deleted or moved"):
        acquire(folder, RUN, token="b")
    assert not folder.exists()


def test_of_two_that_saw_the_same_one_makes_the_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second looked before the first had made its claim, and goes on when the first holds."""
    look = leases._highest
    seen = [look(run_folder(tmp_path, RUN))]
    first = take(tmp_path, "first")
    monkeypatch.setattr(leases, "_highest", lambda at: seen.pop() if seen else look(at))
    assert acquire(tmp_path, RUN, token="second") is None
    assert first.holds()


def a_pipe(at: Path) -> None:
    at.mkdir()
    os.mkfifo(at / "lease-1.json")


NOWHERE = "no such place"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda at: at.symlink_to(NOWHERE),
        lambda at: (at.mkdir(), (at / "lease-1.json").symlink_to(NOWHERE)),
        lambda at: (at.mkdir(), (at / "lease-1.json").mkdir()),
        a_pipe,
        lambda at: at.write_text("a file"),
    ],
    ids=["folder to nowhere", "lease to nowhere", "lease a folder", "lease a pipe", "folder a file"],
)
def test_what_cannot_be_had_is_told_and_not_waited_for(
    spoil: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_PAUSE_S", 0.0)
    run_folder(tmp_path, RUN).parent.mkdir()
    spoil(run_folder(tmp_path, RUN))
    with pytest.raises(RunFolderError, match=r"cannot be used .*Delete the run's folder") as told:
        acquire(tmp_path, RUN, token="a")
    assert str(run_folder(tmp_path, RUN)) in str(told.value)
    assert acquire(tmp_path, "f" * 16, token="a") is not None


def test_numbers_have_no_largest(tmp_path: Path) -> None:
    first = take(tmp_path, "gone")
    at = run_folder(tmp_path, RUN)
    (at / "lease-1.json").rename(at / "lease-999999999.json")
    assert not first.holds()
    assert take(tmp_path, "b", dead={"gone"}).holds()
    assert claims(tmp_path) == ["lease-1000000000.json"]


def test_stealers_at_the_same_moment_leave_one_holder(tmp_path: Path) -> None:
    """Rounds of eight threads that all may take over, let go or beat; between rounds all who ever held are asked."""
    number, rounds = 8, 150
    every: list[Lease] = []

    def act(seed: int) -> Lease | None:
        draw = random.Random(seed)
        if every and draw.random() < 0.3:
            draw.choice(every).release()
        if every and draw.random() < 0.3:
            draw.choice(every).beat(seed, seed)
        claim = holder(tmp_path, RUN)
        return acquire(tmp_path, RUN, token=f"{seed}", dead={claim.stamp} if claim else ())

    taken = 0
    with ThreadPoolExecutor(number) as pool:
        for at in range(rounds):
            found = [each for each in pool.map(act, range(at * number, (at + 1) * number)) if each]
            every = [*every[-20:], *found]
            taken += len(found)
            assert sum(each.holds() for each in every) <= 1
            assert sum(each.beat() for each in every) <= 1
    assert taken > rounds / 2


COUNT_UP = """
import os, sys
from pathlib import Path
from depthscope.record.lease import acquire
folder, run_id = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for at in range(100):
    while (lease := acquire(folder, run_id, token=f"{os.getpid()}-{at}")) is None:
        pass
    value = int((folder / "number").read_text())
    (folder / "number").write_text(str(value + 1))
    assert lease.holds()
    lease.release()
"""


def test_processes_exclude_one_another(tmp_path: Path) -> None:
    """Three processes add to a number in a file, which nothing else protects."""
    (tmp_path / "number").write_text("0")
    command = [sys.executable, "-c", COUNT_UP, str(tmp_path), RUN]
    children = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for child in children:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.communicate("go\n")
    assert [child.returncode for child in children] == [0, 0, 0]
    assert (tmp_path / "number").read_text() == "300"


def test_threads_of_one_process_exclude_one_another(tmp_path: Path) -> None:
    inside, most = 0, 0
    lock = threading.Lock()

    def work(seed: int) -> None:
        nonlocal inside, most
        for at in range(40):
            lease = acquire(tmp_path, RUN, token=f"{seed}-{at}")
            if lease is not None:
                with lock:
                    inside += 1
                    most = max(most, inside)
                with lock:
                    inside -= 1
                lease.release()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert most == 1
