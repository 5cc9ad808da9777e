"""A study's folder: which study it holds, and where each run lies.

study.toml            the study at its size; the folder's identity and enough to continue it
runs/<run_id>/        run.json, metrics.parquet, layers.parquet, ...
                      weights-<step>.safetensors, where the study keeps them (`weights`)
                      while it is under way: checkpoint.json, checkpoint-<step>.safetensors, ... (`checkpoint`)
findings.json, table.csv, report.html, figures/     made from the runs; may be deleted at any time
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from depthscope.core.errors import FaultsError, UserError
from depthscope.core.files import mend, read_text, write_bytes
from depthscope.study.study import StudySpec
from depthscope.study.toml import DEFAULT_SIZE, MAX_CHARACTERS, dump, parse

STUDY_FILE = "study.toml"


def run_folder(folder: Path, run_id: str) -> Path:
    """Where a run's files lie."""
    return folder / "runs" / run_id


class RunFolderError(UserError):
    """A run's own folder cannot be read or written; those of other runs can."""


def run_fault(folder: Path, run_id: str, error: OSError) -> UserError:
    """What to raise where a run's files cannot be used: of that run alone where its own folder is to blame."""
    at = run_folder(folder, run_id)
    reason = error.strerror or str(error)
    everywhere = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
    if everywhere or not os.path.lexists(at) or not os.access(at.parent, os.W_OK | os.X_OK):
        return UserError(f"{at}: cannot be written ({reason}). {mend(error)}")
    return RunFolderError(f"{at}: cannot be used ({reason}). Delete the run's folder, and the run is done anew.")


def read_study(folder: Path) -> StudySpec:
    """The study that a folder holds.

    Raises:
        UserError: the folder is missing or holds no study, or its study.toml is damaged.
    """
    path = folder / STUDY_FILE
    try:
        text = read_text(path, MAX_CHARACTERS)
    except (FileNotFoundError, NotADirectoryError) as error:
        what = "holds no study (no study.toml)" if folder.is_dir() else "does not exist or is not a folder"
        raise UserError(f"{folder} {what}. Wanted the --out folder of a `depthscope run`.") from error
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}).") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: damaged: byte {error.start} is not UTF-8 text. {_MEND}") from error
    try:
        return parse(text, source=str(path))
    except FaultsError as error:
        raise FaultsError(error.source, [*error.faults, ("", _MEND)]) from error


_MEND = "Restore the file, or choose another folder with --out."


def check_folder(folder: Path, study: StudySpec) -> None:
    """Refuse a folder that is not for this study, before anything is written.

    A folder holds one study (by name) at one size. More seeds or arms of the same study are welcome.

    Raises:
        UserError: it holds another study or size, or other files, or cannot be written.
    """
    try:
        _check_content(folder, study)
        existing = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    except OSError as error:
        raise UserError(
            f"{folder} cannot be read ({error.strerror or error}). Choose another folder with --out."
        ) from error
    if not existing.is_dir():
        raise UserError(f"{existing} is a file; wanted a folder. Choose another with --out.")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"{existing} is read-only. Choose another folder with --out, or change its permissions.")


def _check_content(folder: Path, study: StudySpec) -> None:
    if not folder.is_dir():
        return
    if (folder / STUDY_FILE).exists():
        held = read_study(folder)
        if (held.name, held.size) != (study.name, study.size):
            raise UserError(
                f"{folder} holds the study {_called(held)}, not {_called(study)}. Choose another folder with --out."
            )
    elif any(not item.name.startswith(".") for item in folder.iterdir()):
        # Hidden files are let pass: a first write that was killed leaves one, and file managers leave theirs.
        raise UserError(f"{folder} holds other files and no study. Choose an empty or new folder with --out.")


def default_folder(study: StudySpec) -> Path:
    """Where results go unless another folder is named: `results/NAME`, with the size where it is not quick."""
    return Path("results") / (study.name if study.size in ("", DEFAULT_SIZE) else f"{study.name}-{study.size}")


def recorded_runs(folder: Path) -> list[str]:
    """The run_ids that a folder holds a record of, whatever study they belong to; empty where there is none."""
    return sorted(path.parent.name for path in folder.glob("runs/*/run.json"))


def write_study(folder: Path, study: StudySpec) -> None:
    """Make the folder this study's. Only called when all checks have passed."""
    write_bytes(folder / STUDY_FILE, dump(study).encode())


def _called(study: StudySpec) -> str:
    return f"{study.name!r} at size {study.size!r}" if study.size else repr(study.name)
