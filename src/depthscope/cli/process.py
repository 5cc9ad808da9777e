"""The process around a command: where it finds code, how it is asked to end, where its words go."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
from typing import NoReturn


def prepare() -> None:
    """Before any command."""
    if sys.stdout is None:  # closed by the caller (`>&-`): there is still a study to do
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    # User code by name is found beside the study, as `python -m` would find it. Last: a file of the user's that is
    # called like a module of the standard library must not take its place.
    with contextlib.suppress(OSError):  # a folder that was removed under the shell
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminated)
    for stream in (sys.stdout, sys.stderr):
        # A pipe on Windows, or LANG=C, would fail on the first tick mark.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def usage(error: Exception) -> str:
    """What typer found wrong with a call (an unknown option, a missing argument), and where its help is; "" of none."""
    message: str = error.format_message().rstrip()  # type: ignore[attr-defined]
    if message and message[-1] not in ".?!":
        message += "."
    context = getattr(error, "ctx", None)
    return message and f"{message} See `{context.command_path if context else 'depthscope'} --help`."


def _terminated(*_: object) -> None:
    # `timeout`, a cluster or a shutdown asks to end: as with Ctrl-C, workers are stopped and what is done is kept.
    raise KeyboardInterrupt


def to_nowhere() -> NoReturn:
    """The reader went away (`| head`): nothing to tell, and Python must not tell it at exit either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)
