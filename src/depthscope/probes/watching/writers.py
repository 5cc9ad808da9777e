"""Where the numbers of a watched training go, beside its profile: TensorBoard, W&B, MLflow, anything alike.

A writer is recognised by what it can do; none of these packages is imported.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from depthscope.core.errors import UserError, shown, words_of

Write = Callable[[Mapping[str, float], int], None]
"""`(values by name, step)`."""

WANTED = (
    "a TensorBoard SummaryWriter (add_scalar), a W&B run or anything with log(values, step), mlflow or anything with "
    "log_metrics(values, step), a function of (values, step), or a list of these"
)


def as_write(writer: object) -> Write:
    """One function that writes to `writer`, whatever sort it is; its failures warn once and end nothing.

    Args:
        writer: see `WANTED`. An `MlflowClient` needs to know its run: `(client, run_id)`.

    Raises:
        UserError: it is none of these.

    >>> heard = {}
    >>> as_write(lambda values, step: heard.update({step: values}))({"depth/grad_norm/0": 1.0}, 3)
    >>> heard
    {3: {'depth/grad_norm/0': 1.0}}
    """
    if writer is None:
        return lambda _values, _step: None
    if isinstance(writer, tuple) and len(writer) == 2 and isinstance(writer[1], str):
        return _Careful(_mlflow_client(*writer), writer[0])
    if isinstance(writer, list | tuple):
        writes = [as_write(each) for each in writer]

        def all_of_them(values: Mapping[str, float], step: int) -> None:
            for write in writes:
                write(values, step)

        return all_of_them
    return _Careful(_recognised(writer), writer)


def _recognised(writer: Any) -> Write:
    if callable(getattr(writer, "add_scalar", None)):
        return lambda values, step: _each(lambda name, value: writer.add_scalar(name, value, step), values)
    if callable(getattr(writer, "log_metrics", None)):
        mapped = _MlflowNames()
        return lambda values, step: writer.log_metrics(mapped(values), step=step)
    if callable(getattr(writer, "log_batch", None)):
        raise UserError("watch: an MLflow client writes to a run that it must be told: writer=(client, run_id).")
    log = None if hasattr(writer, "addHandler") else getattr(writer, "log", None)  # a logger of text has one too
    if callable(log) and _takes(log, "step"):
        return lambda values, step: log(dict(values), step=step)
    if callable(log) and _takes_two(log):
        return lambda values, step: log(dict(values), step)
    if callable(writer) and not inspect.isclass(writer) and _takes_two(writer):
        return lambda values, step: writer(values, step)
    raise UserError(f"watch: writer: wanted {WANTED}; got {shown(writer)}.")


def _mlflow_client(client: Any, run_id: str) -> Write:
    if not callable(getattr(client, "log_metric", None)):
        raise UserError(f"watch: writer=(client, run_id): wanted an MlflowClient, got {shown(client)}.")
    mapped = _MlflowNames()

    def write(values: Mapping[str, float], step: int) -> None:
        _each(lambda name, value: client.log_metric(run_id, name, value, step=step), mapped(values))

    return write


def _each(write_one: Callable[[str, float], object], values: Mapping[str, float]) -> None:
    for name, value in values.items():
        write_one(name, value)


class _MlflowNames:
    """MLflow's metric names hold letters, digits and `_-. /` only: `#2` becomes `.call2`, all else `-`; told once."""

    def __init__(self) -> None:
        self._told = False

    def __call__(self, values: Mapping[str, float]) -> dict[str, float]:
        named = {
            re.sub(r"[^\w\-. /]", "-", re.sub(r"#(\d+)", r".call\1", name)): value for name, value in values.items()
        }
        changed = next((pair for pair in zip(values, named, strict=False) if pair[0] != pair[1]), None)
        if changed and not self._told:
            self._told = True
            warnings.warn(
                f"watch: MLflow allows neither # nor : in a metric's name; {changed[0]} is written as {changed[1]}.",
                stacklevel=2,
            )
        return named


class _Careful:
    """A writer that fails is told once, and the training goes on."""

    def __init__(self, write: Write, writer: object) -> None:
        self._write = write
        self._writer = type(writer).__name__
        self._failed = False

    def __call__(self, values: Mapping[str, float], step: int) -> None:
        try:
            self._write(values, step)
        except Exception as error:
            if not self._failed:
                self._failed = True
                warnings.warn(
                    f"watch: the writer ({self._writer}) failed at step {step}: {type(error).__name__}: "
                    f"{words_of(error)}. Training goes on; the values are in the profile all the same.",
                    stacklevel=2,
                )


def _parameters(function: Callable[..., object]) -> Iterator[inspect.Parameter]:
    try:
        yield from inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not tell
        yield inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)


def _takes(function: Callable[..., object], name: str) -> bool:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return any(
        each.kind is inspect.Parameter.VAR_KEYWORD or (each.name == name and each.kind in named)
        for each in _parameters(function)
    )


def _takes_two(function: Callable[..., object]) -> bool:
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    kinds = [each.kind for each in _parameters(function)]
    return inspect.Parameter.VAR_POSITIONAL in kinds or sum(kind in positional for kind in kinds) >= 2
