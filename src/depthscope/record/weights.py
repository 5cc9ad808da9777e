"""The weights of a run at some of its steps, kept beside its record: what maps of its loss are made from.

In a run's folder:

weights-<step>.safetensors     weights and buffers after so many updates; `run.json` has its SHA-256

Each file is written when its step is reached, and stays. Until the run is recorded, its checkpoint lists those that it
goes on from.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.core.files import read_bytes, write_bytes
from depthscope.record.folder import run_folder
from depthscope.record.schema import RunRecord

Tensors = Mapping[str, NDArray[Any]]

_OWN = re.compile(r"weights-([0-9]+)\.safetensors")


def steps_of(names: Iterable[str]) -> tuple[int, ...]:
    """The steps whose weights these files hold, ascending.

    >>> steps_of(["weights-10.safetensors", "weights-0.safetensors"])
    (0, 10)
    """
    return tuple(sorted(int(found[1]) for name in names if (found := _OWN.fullmatch(name))))


def write_weights(folder: Path, run_id: str, step: int, tensors: Tensors) -> tuple[str, str]:
    """(name, SHA-256) of the file that the weights of a step were written to.

    Args:
        folder: the study's.
        run_id: whose they are.
        step: updates done.
        tensors: by name; equal ones give equal bytes.

    Raises:
        UserError: the folder cannot be written or the disk is full.
    """
    content = safetensors.numpy.save({name: np.array(value, order="C") for name, value in tensors.items()})
    name = _name(step)
    write_bytes(run_folder(folder, run_id) / name, content)
    return name, hashlib.sha256(content).hexdigest()


def read_weights(folder: Path, record: RunRecord, step: int | None = None) -> dict[str, NDArray[Any]]:
    """What a recorded run kept at a step, by name.

    Args:
        folder: the study's.
        record: of the run.
        step: updates done; None takes the last of those kept.

    Raises:
        UserError: there are none, or they are not what the run wrote.
    """
    at, steps = run_folder(folder, record.run_id), steps_of(record.weights)
    if not steps:
        raise UserError(
            f"{at} holds no weights. Put 'weights' among the measures of its runs, and run the study again."
        )
    if step is not None and step not in steps:
        known = ", ".join(map(str, steps))
        raise UserError(f"{at} holds no weights of step {step}. Known steps: {known}.")
    name = _name(steps[-1] if step is None else step)
    why = weights_fault(folder, record.run_id, {name: record.weights[name]})
    if why is not None:
        raise UserError(f"{at / name}: {why.removeprefix(name).strip()}. Delete the run's folder, and it is done anew.")
    try:
        return dict(safetensors.numpy.load(read_bytes(at / name)))
    except (OSError, safetensors.SafetensorError) as error:
        raise UserError(
            f"{at / name}: cannot be read ({error}). Delete the run's folder, and it is done anew."
        ) from error


def weights_fault(folder: Path, run_id: str, files: Mapping[str, str]) -> str | None:
    """What is wrong with the first of these files (name -> SHA-256) that is not as it was written."""
    at = run_folder(folder, run_id)
    for name, wanted in files.items():
        if not _OWN.fullmatch(name):  # not whatever file of this machine a record may name
            return f"{name} is no file of weights"
        try:
            found = hashlib.sha256(read_bytes(at / name)).hexdigest()
        except OSError as error:
            return f"{name} cannot be read ({error.strerror or error})"
        if found != wanted:
            return f"{name} was altered or cut short"
    return None


def delete_weights(folder: Path, run_id: str, *, keep: Collection[str]) -> None:
    """Remove those files of weights that nothing names, and what a killed writer left of one."""
    at = run_folder(folder, run_id)
    for path in (*at.glob("weights-*"), *at.glob(".weights-*")):
        if path.name not in keep and (_OWN.fullmatch(path.name) or path.name.startswith(".")):
            with contextlib.suppress(OSError):  # what is left over does no harm
                path.unlink()


def _name(step: int) -> str:
    return f"weights-{step}.safetensors"
