"""Errors that a person can act on: what was wanted, what came, how to mend it, the known names."""

from __future__ import annotations

import difflib
import sysconfig
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path


class UserError(ValueError):
    """Bad input. The command line prints it as it stands (no traceback) and exits with code 2.

    Raised before anything is written: a caller that sees one may take it that nothing was lost.
    """


class FaultsError(UserError):
    """Several faults in one file, all told at once.

    Args:
        source: the file or name that holds the faults.
        faults: one `(path, message)` each; `path` is dotted, like `parts.sweep.arms.0.shortcut`.
    """

    def __init__(self, source: str, faults: Sequence[tuple[str, str]]) -> None:
        self.source = source
        self.faults = tuple(faults)
        count = "1 fault" if len(self.faults) == 1 else f"{len(self.faults)} faults"
        lines = [f"{source}: {count}"]
        lines += [f"  {path}: {message}" if path else f"  {message}" for path, message in self.faults]
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[FaultsError], tuple[str, tuple[tuple[str, str], ...]]]:
        # Unpickling calls the class with `args`, which is the one finished text: a worker process could not tell it.
        return type(self), (self.source, self.faults)


class MissingDependencyError(UserError):
    """An optional part of Depthscope was asked for that is not installed."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, or None where nothing comes close."""
    names = list(known)
    folded = {each.casefold(): each for each in names}
    found = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    return folded[found[0]] if found else None


LONG_LIST = 12
"""Names that a line of text still holds beside the nearest one."""


def unknown_name(what: str, name: str, known: Iterable[str], *, all_in: str = "") -> str:
    """One line for an unknown name: the nearest known one, then all of them.

    Args:
        what: what it names.
        name: as it came.
        known: the names there are.
        all_in: what lists them, to be told in place of a long list where one of them is near.
    """
    names = sorted(known)
    guess = nearest(name, names)
    hint = f" Did you mean {guess!r}?" if guess else ""
    if guess and all_in and len(names) > LONG_LIST:
        return f"unknown {what} {shown(name)}.{hint} {all_in} lists all {len(names)}."
    return f"unknown {what} {shown(name)}.{hint} " + (f"Known: {', '.join(names)}." if names else "There are none.")


LONG_WORDS = 2_000
"""Characters that an exception may fill of a message."""


def words_of(error: BaseException) -> str:
    """`str(error)` on one line, whatever exception it is: its text may fail, be no Unicode, or have no end."""
    try:
        text = str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as fault:
        return f"its text cannot be made, since that raises {type(fault).__name__}"
    text = " ".join(text.encode("utf-8", "backslashreplace").decode("utf-8").split())
    return text if len(text) <= LONG_WORDS else text[: LONG_WORDS - 3] + "..."


def place_of(error: BaseException) -> str:
    """`file.py, line 3`: the innermost line of code that is neither a library's nor ours, else the innermost of all.

    Empty where no line is known.
    """
    frames = [each for each in traceback.extract_tb(error.__traceback__) if not each.filename.startswith("<")]
    own = [each for each in frames if not any(Path(each.filename).is_relative_to(folder) for folder in _LIBRARIES)]
    innermost = (own or frames)[-1:]
    return "".join(f"{Path(each.filename).name}, line {each.lineno}" for each in innermost)


_LIBRARIES = tuple(
    {Path(__file__).parents[1], *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))}
)


def shown(value: object, length: int = 60) -> str:
    """`repr(value)` on one line and cut to `length`, for messages."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of more than 4,300 digits, or nesting without end
        return f"a huge {type(value).__name__}"
    return text if len(text) <= length else text[: length - 3] + "..."
