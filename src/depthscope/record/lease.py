"""Leases: who works on a run, so that several drivers can share a folder.

A claim is a file `lease-N.json` in the run's folder, made by exclusive creation and rewritten in place, at the same
length, by its holder alone: that is its heartbeat. The holder of a run is the claim with the highest number. Whoever
takes over a claim that has expired makes number N + 1: of two that try, the file system lets one.

No clock is compared with another machine's, and none that can jump is read: a claim has expired for someone who has
seen it unchanged for its time to live by their own monotonic clock (`Observer`). A holder whose process is seen to be
gone, on the same machine, is dead at once.

A holder that was stopped for long may wake after its claim was taken over. It asks `Lease.holds` before it saves or
records anything, and drops its work where the answer is no: runs are deterministic, so what it would have written is
what the other writes. Between that question and the writing nothing can be ruled out; a record is therefore made by
exclusive creation, and a checkpoint is whole whoever wrote it last.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path

from depthscope.core.errors import UserError
from depthscope.core.files import read_bytes, regular
from depthscope.record.folder import run_fault, run_folder
from depthscope.record.holder import LEASE_S, LENGTH, Holder, encode, parse

BEATS = 5
"""Heartbeats in a claim's time to live."""

_NAME = re.compile(r"lease-(0|[1-9][0-9]*)\.json")

_ATTEMPTS, _PAUSE_S = 10, 0.05
"""Looks at a run that seems free and cannot be had, and the time between the later ones."""

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)
"""ESTALE: another machine deleted the file on a network drive."""


class Lease:
    """A run that this process holds. Made by `acquire`."""

    def __init__(self, path: Path, number: int, claim: Holder) -> None:
        self._path, self._number, self._claim = path, number, claim

    def beat(self, step: int | None = None, num_steps: int | None = None) -> bool:
        """Give a sign of life, and say where the run stands. False where the claim is no longer one's own.

        Raises:
            OSError: the folder cannot be written.
        """
        claim = self._claim
        self._claim = claim = replace(
            claim,
            beat=claim.beat + 1,
            step=claim.step if step is None else step,
            num_steps=claim.num_steps if num_steps is None else num_steps,
        )
        try:
            # The file that was opened is written, whatever its name has come to mean: its content, read first, has
            # shown it to be one's own, and nobody else writes in it.
            with regular(self._path, "r+b") as file:
                if parse(file.read(LENGTH)).token != claim.token:
                    return False
                file.seek(0)
                file.write(encode(claim))  # closing it is enough for other machines to see it, also on NFS
        except OSError as error:
            if error.errno in _GONE:
                return False
            raise
        return True

    def holds(self) -> bool:
        """Whether the run is still one's own: asked before anything is written.

        Raises:
            OSError: the folder cannot be read.
        """
        try:
            own = parse(read_bytes(self._path))
            return own.token == self._claim.token and max(_numbers(self._path.parent), default=0) == self._number
        except OSError as error:
            if error.errno in _GONE:
                return False
            raise

    def release(self) -> None:
        """Let the run go; harmless where it was lost. A folder with nothing else in it goes, too."""
        with contextlib.suppress(OSError):
            if self.holds():
                _remove_below(self._path.parent, self._number)
                self._path.unlink()
            self._path.parent.rmdir()


def acquire(
    folder: Path, run_id: str, *, token: str, lease_s: float = LEASE_S, dead: Collection[str] = ()
) -> Lease | None:
    """The lease of a run; None where another holds it.

    Args:
        folder: the study's; it must be there.
        run_id: the run.
        token: unlike that of any other holder.
        lease_s: time to live.
        dead: stamps that an `Observer` saw expire, and tokens whose holders are known to be gone.

    Raises:
        RunFolderError: the run's folder cannot be read or written.
        UserError: the study's folder is not there or cannot be written.
    """
    at = run_folder(folder, run_id)
    try:
        for attempt in range(_ATTEMPTS):
            time.sleep(_PAUSE_S * (attempt > 1))
            try:
                number, held = _highest(at)
                if held is not None and not (held.is_dead or held.stamp in dead or (held.token and held.token in dead)):
                    return None
                for each in (at.parent, at):  # not the study's folder: one that was deleted must not come back
                    with contextlib.suppress(FileExistsError):
                        each.mkdir()
                lease = _claim(at, number + 1, token, lease_s)
                if lease is not None:
                    return lease
                # Another was first: the next look shows its claim, or that it has let go already.
            except FileNotFoundError:  # whoever held the run may just be removing its folder
                if not folder.is_dir():
                    raise
        # Nobody is seen to hold it, and yet it cannot be had: a link that leads nowhere.
        raise FileExistsError(errno.EEXIST, "a link that leads nowhere is in its place or in it")
    except OSError as error:
        if not folder.is_dir():
            raise UserError(gone(folder)) from error
        raise run_fault(folder, run_id, error) from error


def gone(folder: Path) -> str:
    """What to say where a study's folder was taken away."""
    return f"{folder} was deleted or moved while runs were being written into it. The same command starts anew."


def holder(folder: Path, run_id: str) -> Holder | None:
    """The claim that holds a run; None where nobody does."""
    return _highest(run_folder(folder, run_id))[1]


class Observer:
    """Tells which claims have expired, by looking at them again and again.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[str, float, float]] = {}

    def look(self, folder: Path, run_id: str) -> tuple[Holder | None, bool]:
        """(the claim that holds a run, whether it may be taken over: hand its stamp to `acquire`)."""
        claim, now = holder(folder, run_id), self._clock()
        if claim is None or claim.is_dead:
            self._seen.pop(run_id, None)
            return claim, claim is not None
        stamp, last, silent = self._seen.get(run_id, ("", now, 0.0))
        if stamp != claim.stamp:
            silent = 0.0
        else:
            # An observer that was itself stopped (with the holder, perhaps: a laptop that slept) learns little from
            # one late look: however long ago the last one was, it counts as the time between a few heartbeats.
            silent += min(now - last, claim.lease_s / BEATS * 2)
        self._seen[run_id] = (claim.stamp, now, silent)
        return claim, silent >= claim.lease_s

    def forget(self, run_id: str) -> None:
        """The run is recorded: it will not be looked at again."""
        self._seen.pop(run_id, None)


def silence(folder: Path, run_id: str) -> float | None:
    """Seconds since a run's holder gave a sign of life, by the dates of files; None where nobody holds it.

    For a person to read: clocks of two machines may differ, and nothing is decided by it.
    """
    at = run_folder(folder, run_id)
    try:
        return max(0.0, time.time() - max(path.stat().st_mtime for path in _paths(at)))
    except (OSError, ValueError):
        return None


def _claim(at: Path, number: int, token: str, lease_s: float) -> Lease | None:
    path = at / f"lease-{number}.json"
    claim = Holder.here(token=token, lease_s=lease_s)
    try:
        file = open(path, "xb", buffering=0)  # noqa: SIM115
    except FileExistsError:
        return None
    try:
        with file:
            file.write(encode(claim))
    except OSError:  # a full disk: nobody must wait for an empty claim to expire
        path.unlink()
        raise
    lease = Lease(path, number, claim)
    # A higher one may have come since the folder was read: its maker saw more than this one did.
    if not lease.holds():
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    _remove_below(at, number)
    return lease


def _remove_below(at: Path, number: int) -> None:
    for path in list(_paths(at)):
        if _number(path.name) < number:
            path.unlink(missing_ok=True)


def _highest(at: Path) -> tuple[int, Holder | None]:
    """(number, content) of the claim that counts; (0, None) where there is none."""
    numbers = _numbers(at)
    if not numbers:
        return 0, None
    number = max(numbers)
    try:
        return number, parse(read_bytes(at / f"lease-{number}.json"))
    except OSError as error:
        if error.errno in _GONE:
            return 0, None  # let go in this moment
        raise


def _numbers(at: Path) -> list[int]:
    return [_number(path.name) for path in _paths(at)]


def _paths(at: Path) -> Iterator[Path]:
    try:
        names = os.listdir(at)
    except OSError as error:
        if error.errno in _GONE:
            return
        raise
    yield from (at / name for name in names if _NAME.fullmatch(name))


def _number(name: str) -> int:
    found = _NAME.fullmatch(name)
    assert found
    return int(found[1])
