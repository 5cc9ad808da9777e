"""The leases that a worker holds, kept alive by a thread while it trains."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from depthscope.core.errors import UserError
from depthscope.core.files import mend
from depthscope.record.lease import BEATS, Lease, gone


class HeldLeases:
    """Leases by run. Inside `with`, a thread gives their signs of life; at its end all are let go."""

    def __init__(self, folder: Path, leases: Mapping[str, Lease], lease_s: float) -> None:
        self._folder, self._leases = folder, dict(leases)
        self._stand: dict[str, tuple[int, int]] = {}
        self._lost: set[str] = set()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._keep, args=(lease_s / BEATS,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()
        for run_id in list(self._leases):
            self.release(run_id)

    def stands(self, run_id: str, step: int, num_steps: int) -> None:
        """Where a run stands, for the next sign of life."""
        self._stand[run_id] = (step, num_steps)

    def beat(self, run_id: str) -> None:
        """A sign of life now, and not at the next turn: so that others see how far a checkpoint stands."""
        lease = self._leases.get(run_id)
        # A folder that cannot be written for a while: others see no sign of life, and take over in the end.
        with contextlib.suppress(OSError):
            if lease is not None and not lease.beat(*self._stand.get(run_id, ())) and run_id in self._leases:
                self._lost.add(run_id)

    def is_lost(self, run_id: str) -> bool:
        """Whether a sign of life has shown that a run is another's now; costs nothing."""
        return run_id in self._lost

    def holds(self, run_id: str) -> bool:
        """Whether a run is still held; looks at the folder.

        Raises:
            UserError: the study's folder is gone, or cannot be read.
        """
        try:
            if run_id not in self._lost and self._leases[run_id].holds():
                return True
        except OSError as error:
            raise UserError(f"{self._folder}: cannot be read ({error.strerror or error}). {mend(error)}") from error
        self.check_folder()
        return False

    def check_folder(self) -> None:
        """See that the study's folder is still there.

        Raises:
            UserError: it is not.
        """
        if not self._folder.is_dir():
            raise UserError(gone(self._folder))

    def release(self, run_id: str) -> None:
        """Let a run go."""
        lease = self._leases.pop(run_id, None)
        if lease is not None:
            lease.release()

    def _keep(self, period: float) -> None:
        while not self._end.wait(period):
            for run_id in list(self._leases):
                self.beat(run_id)
