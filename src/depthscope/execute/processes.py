"""Worker processes on this machine, each with a pipe of its own.

One pool of several processes breaks as a whole when one of them dies, and a queue that they share stays locked
when one is killed while it writes. So each slot is a thread here and a process there, joined by a pipe that
carries tasks one way, words and results the other way: what dies with a process is its own task alone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, final

from depthscope.core.errors import UserError
from depthscope.execute.executor import TaskExecutor, WorkerLostError, portable
from depthscope.execute.tell import told_to

CANNOT_START = (
    "a worker process could not start. In a script of your own, call depthscope.run under "
    "`if __name__ == '__main__':`, since each worker imports the script, or with workers=1."
)

_TERMINATED = 143
"""128 + SIGTERM, as shells have it."""

_PATIENCE_S = 3.0
"""Seconds that a worker is given to unwind when it is stopped."""


@final
class Processes(TaskExecutor):
    """Worker processes. Spawned, not forked: a forked child inherits locks of threads that it does not have."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="depthscope-worker")
        self._here = threading.local()
        self._lock = threading.Lock()
        self._slots: list[_Slot] = []
        self._begun = False
        self._stopped = False

    @property
    def slots(self) -> int:
        """The number of processes."""
        return self._workers

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Send the task to the next process that is free."""
        return self._threads.submit(self._run, fn, args, kwargs)

    def _run(self, *task: Any) -> Any:
        slot: _Slot | None = getattr(self._here, "slot", None)
        if slot is None:
            slot = self._here.slot = self._start()
        try:
            return slot.do(task, self._hear)
        except WorkerLostError:
            del self._here.slot
            with self._lock:
                self._slots.remove(slot)
            slot.close()
            raise

    def _start(self) -> _Slot:
        with self._lock:  # one at a time; and none that `stop` would not see
            if self._stopped:
                raise WorkerLostError("stopped")
            slot = _Slot()
            self._slots.append(slot)
        try:
            slot.wait_until_ready()
        except WorkerLostError as error:
            with self._lock:
                self._slots.remove(slot)
            slot.close()
            if not self._begun and not self._stopped:
                raise UserError(CANNOT_START) from error
            raise
        self._begun = True
        return slot

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks; processes end when theirs are done."""
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        if wait:
            self._close()
        else:
            threading.Thread(target=self.shutdown, daemon=True).start()

    def _close(self) -> None:
        with self._lock:
            slots, self._slots = self._slots, []
        for slot in slots:
            slot.close()

    def stop(self) -> None:
        """End the processes: they may unwind for a moment, then they are killed."""
        with self._lock:
            self._stopped = True
            running = [slot.process for slot in self._slots]
        with contextlib.suppress(ValueError):  # one that died and was closed meanwhile
            for process in running:
                process.terminate()
        for process in running:
            _end(process)
        # What waits in the queue is not cancelled: `concurrent.futures.wait` never wakes for a future that is
        # cancelled and that no thread takes up. Taken up, it finds that no process starts any more, and breaks.
        self.shutdown()


class _Slot:
    """A process and this end of its pipe."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), name="depthscope-worker")
        self.process.start()
        theirs.close()  # so that the pipe ends with the process

    def wait_until_ready(self) -> None:
        self._receive()

    def do(self, task: tuple[Any, ...], hear: Callable[[object], None] | None) -> Any:
        data = pickle.dumps(task)  # what cannot be sent is the caller's fault, and the process is as good as before
        try:
            self._pipe.send_bytes(data)
        except OSError as error:
            raise self._lost() from error
        while True:
            kind, value = self._receive()
            if kind == "word":
                if hear is not None:
                    hear(value)
            elif kind == "result":
                return value
            else:
                raise value

    def _receive(self) -> tuple[str, Any]:
        try:
            received: tuple[str, Any] = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise self._lost() from error
        return received

    def _lost(self) -> WorkerLostError:
        self.process.join(_PATIENCE_S)
        code = self.process.exitcode
        return WorkerLostError(f"its worker process died ({_how(code)})", code)

    def close(self) -> None:
        self._pipe.close()
        _end(self.process)
        self.process.close()


def _how(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code}, {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal has no name
        return f"signal {-code}"


def _end(process: BaseProcess) -> None:
    with contextlib.suppress(ValueError):
        process.join(_PATIENCE_S)
        if process.is_alive():
            process.kill()
            process.join()


def _serve(pipe: Connection) -> None:
    """A worker process: tasks in, words and results out, until the pipe or the driver ends."""
    _end_with_the_driver()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal: the driver decides
    signal.signal(signal.SIGTERM, _terminated)
    try:
        pipe.send(("ready", None))
        while True:
            fn, args, kwargs = pickle.loads(pipe.recv_bytes())
            pipe.send_bytes(_answer(pipe, fn, args, kwargs))
    except (EOFError, OSError):
        return
    except KeyboardInterrupt:
        sys.exit(_TERMINATED)


def _terminated(*_: object) -> None:
    # It unwinds: temporary files are removed and leases released. No SystemExit, which code of the user's may raise
    # by itself: that is the failure of its run.
    raise KeyboardInterrupt


def _answer(pipe: Connection, fn: Callable[..., Any], args: Any, kwargs: Any) -> bytes:
    try:
        with told_to(lambda word: pipe.send(("word", word))):
            return pickle.dumps(("result", fn(*args, **kwargs)))
    except Exception as error:
        return pickle.dumps(("error", portable(error)))


def _end_with_the_driver() -> None:
    """A worker whose driver was killed would wait for work for ever: a thread watches for the driver's end."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
