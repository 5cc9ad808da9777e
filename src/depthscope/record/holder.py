"""What a claim on a run says: whose it is, and its last sign of life. Read and written by `record.lease`."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Self

LEASE_S = 60.0
"""Seconds for which a claim must have been seen unchanged before another driver may take it over."""

LENGTH = 320
"""Bytes of a claim, always: it is rewritten in one call, and a reader never sees the rest of a longer one."""


@dataclass(frozen=True, kw_only=True)
class Holder:
    """What a claim says.

    Attributes:
        token: the holder's own; "" where the claim could not be read (its holder may be just writing it).
        beat: counted up by the holder while it lives.
        lease_s: its time to live.
        machine: digest of the holder's machine since its last start, and its process namespace; None: not known.
        pid: of the holder.
        born: when the system says that the holder's process began, so that a number used again is told apart.
        step: updates done.
        num_steps: updates of the whole run; 0 until it is known.
    """

    token: str
    beat: int = 0
    lease_s: float = LEASE_S
    machine: str | None = None
    pid: int = 0
    born: str | None = None
    step: int = 0
    num_steps: int = 0

    @classmethod
    def here(cls, *, token: str, lease_s: float) -> Self:
        """This process."""
        pid = os.getpid()
        return cls(token=token, lease_s=lease_s, machine=this_machine(), pid=pid, born=born(pid))

    @property
    def stamp(self) -> str:
        """Equal as long as the holder gives no sign of life."""
        return f"{self.token}#{self.beat}"

    @property
    def is_here(self) -> bool:
        """Whether the holder was started on this machine, where its process can be looked up."""
        return self.machine is not None and self.machine == this_machine()

    @property
    def is_dead(self) -> bool:
        """Whether the holder is known to be gone: its process was on this machine and is no more."""
        return self.is_here and born(self.pid) != self.born


def encode(holder: Holder) -> bytes:
    """The claim's content: `LENGTH` bytes."""
    text = json.dumps(asdict(holder)).encode()
    assert len(text) < LENGTH, len(text)
    return text.ljust(LENGTH - 1) + b"\n"


def parse(content: bytes) -> Holder:
    """The inverse; a holder without a token where the content is none of a claim."""
    try:
        found = Holder(**json.loads(content))
        numbers = (found.beat, found.lease_s, found.pid, found.step, found.num_steps)
        return found if isinstance(found.token, str) and all(each + 0.0 >= 0 for each in numbers) else _UNREADABLE
    except (ValueError, TypeError, RecursionError):
        return _UNREADABLE


_UNREADABLE = Holder(token="")
"""Half written, or altered by hand. If it stays like this, it expires like any other."""


@cache
def this_machine() -> str | None:
    """Digest of what names this start of this machine, and of the numbering of its processes (containers differ).

    No name of a host stands in a results folder. None where the system does not tell: then only time does.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        return hashlib.sha256((boot + os.readlink("/proc/self/ns/pid")).encode()).hexdigest()[:16]
    except OSError:
        return None


def born(pid: int) -> str | None:
    """When a process began, in the system's ticks; None where there is none or it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]
    except (OSError, IndexError):
        return None
