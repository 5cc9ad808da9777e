"""Ray: tasks on a cluster, or on this machine. Ray places them by what the study says that a run needs.

Ray's own retries are off: the driver hands a lost task out again, with the leases that it may take over. Workers
need Depthscope, and the study's folder and data at the paths that they have here.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import pickle
import queue
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Executor, Future
from typing import Any, final

from depthscope.core.errors import MissingDependencyError, UserError, shown
from depthscope.execute.executor import TaskExecutor, WorkerLostError
from depthscope.execute.ray_worker import environment, mailbox, work
from depthscope.execute.room import Node, without_room
from depthscope.execute.tell import Note
from depthscope.study.resources import DEFAULT, Resources

RAY_MISSING = "Ray is not installed, and executor ray needs it: pip install 'depthscope[ray]'."

_ANSWER_S = 5.0
_LISTEN_S = 0.05
_UNWIND_S = 5.0
_LOOK_S = 60.0


def check_ray(address: str | None) -> None:
    """See that Ray is installed and that something answers at its address; Ray itself would try for minutes.

    Raises:
        MissingDependencyError: it is not installed.
        UserError: no address, or nothing answers there.
    """
    if importlib.util.find_spec("ray") is None:
        raise MissingDependencyError(RAY_MISSING)
    if address in (None, "auto", "local"):
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise UserError(f"address: wanted HOST:PORT of a running Ray, or auto; got {shown(address)}.")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S).close()
    except OSError as error:
        raise UserError(
            f"address {address}: nothing answers there ({error.strerror or error}). Start Ray on that machine with "
            "`ray start --head`, and name the address that it prints."
        ) from error


@final
class Ray(TaskExecutor):
    """Tasks of a Ray cluster.

    Args:
        address: HOST:PORT of its head, or auto for the cluster that this machine belongs to; None takes the one that
            this process is connected to already, or starts one on this machine, which ends with the executor.
        workers: CPUs of a cluster that is started here.
    """

    remote = True

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        self._ray = _connected(address, workers)
        self._own = self._ray is not None
        self._is_here = self._own and _is_here(address)
        import ray

        self._ray = ray
        self._mailbox = mailbox(ray)
        self._run = ray.remote(max_retries=0, retry_exceptions=False)(work)
        self._ended: queue.SimpleQueue[tuple[Future[Any], Any]] = queue.SimpleQueue()
        self._open: dict[Future[Any], Any] = {}
        self._needs: dict[Future[Any], Resources] = {}
        self._next_look = 0.0
        self._lock = threading.Lock()
        self._closed = False
        self._end = threading.Event()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def slots(self) -> int:
        """The cluster's cores; it may grow and shrink. How many tasks they bear, Ray decides."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def check(self, wanted: Collection[Resources]) -> None:
        """Refuse what a cluster that was started here has not; one that was there may grow, and is waited for.

        Raises:
            UserError: no machine has it.
        """
        lines = without_room(wanted, self._nodes()) if self._is_here else []
        if lines:
            raise UserError(f"{'; '.join(lines)}. Ask for less, or for more CPUs with --workers.")

    def _nodes(self) -> list[Node]:
        return [node["Resources"] for node in self._ray.nodes() if node["Alive"]]

    def needing(self, resources: Resources) -> Executor:
        """An executor that asks Ray for these resources."""
        return _Needing(self, resources)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Hand a task to Ray, with a core."""
        return self.submit_with(DEFAULT, fn, args, kwargs)

    def submit_with(
        self, resources: Resources, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Future[Any]:
        """Hand a task to Ray, with these resources."""
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        needs: dict[str, Any] = {"num_cpus": resources.cpus, "num_gpus": resources.gpus}
        if resources.memory_gb is not None:
            needs["memory"] = int(resources.memory_gb * 1e9)
        # Depthscope's own pickle: Ray's would copy functions of a script by value, with all that they refer to.
        task = pickle.dumps((fn, args, dict(kwargs)))
        outer: Future[Any] = Future()
        outer.set_running_or_notify_cancel()
        with self._lock:
            ref = self._run.options(**needs).remote(self._mailbox, sys.path, environment(), task)
            if resources not in self._needs.values():
                self._next_look = 0.0
            self._open[outer], self._needs[outer] = ref, resources
        ref.future().add_done_callback(lambda inner: self._ended.put((outer, inner)))
        return outer

    def _listen(self) -> None:
        """Words of tasks; then the ends that were known before they were fetched: so words come first."""
        while not (self._end.is_set() and not self._open):
            ended = []
            with contextlib.suppress(queue.Empty):
                while True:
                    ended.append(self._ended.get_nowait())
            try:
                words = self._ray.get(self._mailbox.take.remote())
            except Exception:
                # The mailbox is gone, with the machine that it was on or with Ray: no more words, but still ends.
                words = []
            for word in words:
                if self._hear is not None:
                    self._hear(pickle.loads(word))
            for outer, inner in ended:
                with self._lock:
                    self._open.pop(outer, None)
                    self._needs.pop(outer, None)
                _settle(outer, inner)
            self._tell_waiting()
            if not ended:
                time.sleep(_LISTEN_S)

    def _tell_waiting(self) -> None:
        """Tasks that no machine has room for, now and then: Ray itself would wait for one in silence."""
        now = time.monotonic()
        with self._lock:
            wanted = set(self._needs.values()) if now >= self._next_look else set()
            if wanted:
                self._next_look = now + _LOOK_S
        if wanted and self._hear is not None:
            with contextlib.suppress(Exception):  # Ray does not answer: its tasks will say so
                for line in without_room(wanted, self._nodes()):
                    self._hear(Note(f"{line}; such runs wait until one joins the cluster."))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks; a cluster that was started here ends with the last of them."""
        self._closed = True
        if cancel_futures:
            with self._lock:
                refs = list(self._open.values())
            for ref in refs:
                self._ray.cancel(ref, force=False)
        if wait:
            self._end.set()
            self._listener.join()
            self._leave()
        else:
            threading.Thread(target=self.shutdown, daemon=True).start()

    def stop(self) -> None:
        """Interrupt the tasks, and let them unwind for a moment (their leases are released); then end them."""
        self._closed = True
        with self._lock:
            refs = list(self._open.values())
        for force in (False, True):
            for ref in refs:
                with contextlib.suppress(Exception):  # one that has ended meanwhile
                    self._ray.cancel(ref, force=force)
            until = time.monotonic() + _UNWIND_S
            while self._open and time.monotonic() < until:
                time.sleep(0.05)
        self._end.set()
        self._leave()

    def _leave(self) -> None:
        if self._own and self._ray.is_initialized():
            self._ray.shutdown()
        self._own = False


class _Needing(Executor):
    def __init__(self, ray: Ray, resources: Resources) -> None:
        self._ray, self._resources = ray, resources

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self._ray.submit_with(self._resources, fn, args, kwargs)


def _is_here(address: str | None) -> bool:
    """Whether connecting starts a cluster on this machine."""
    return address == "local" or (address is None and not os.environ.get("RAY_ADDRESS"))


def _connected(address: str | None, workers: int | None) -> Any:
    """Connects this process to Ray; None where it was connected already."""
    import ray

    if ray.is_initialized():
        return None
    options: dict[str, Any] = {"include_dashboard": False, "log_to_driver": False, "logging_level": logging.ERROR}
    if _is_here(address):
        # On loopback: nothing of it is open to a network.
        options |= {"address": "local", "num_cpus": workers, "_node_ip_address": "127.0.0.1"}
    elif address is not None:
        options = {**options, "address": address}
        del options["include_dashboard"]
    on_term = signal.getsignal(signal.SIGTERM)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on settings of later versions
            ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        line = str(error).strip().partition("\n")[0]
        raise UserError(f"Ray cannot be reached at {address or 'this machine'}: {line}") from error
    finally:
        # Ray puts its own in place of it, which ends the process with no word of what is recorded.
        if callable(on_term) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, on_term)
    return ray


def _settle(outer: Future[Any], inner: Future[tuple[str, bytes]]) -> None:
    from ray import exceptions

    try:
        kind, data = inner.result()
        if kind == "result":
            outer.set_result(pickle.loads(data))
        else:
            outer.set_exception(pickle.loads(data))
    except exceptions.RayTaskError as error:
        outer.set_exception(RuntimeError(str(error)))
    except exceptions.RayError as error:
        line = str(error).strip().partition("\n")[0]
        outer.set_exception(WorkerLostError(f"its worker died ({type(error).__name__}: {line})"))
    except BaseException as error:
        outer.set_exception(error)
