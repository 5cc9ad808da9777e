"""Code by name: `"package.module:function"` into an object, called with what its signature names, and its digest."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import inspect
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from depthscope.core.errors import MissingDependencyError, UserError, nearest, place_of, words_of
from depthscope.core.hashing import combined_digest
from depthscope.study.catalog import is_user_code
from depthscope.study.run import RunSpec
from depthscope.train.sources import source_files

TORCH_MISSING = (
    "PyTorch is not installed, and this study needs it: pip install 'depthscope[torch]'. On Linux that takes a CUDA "
    "build of several GB; the README gives the command for the small CPU build."
)


class ProbeError(Exception):
    """A probe gave something that is no measurement, or changed what it measured."""


def resolve(target: str) -> Callable[..., Any]:
    """The object behind `"package.module:name"`.

    Raises:
        UserError: the module cannot be imported, or has no such function.
    """
    name, _, function = target.partition(":")
    module = _module(target, name)
    found: Callable[..., Any] | None = getattr(module, function, None)
    if callable(found):
        return found
    if found is not None:
        raise UserError(f"{target}: {function!r} is a {type(found).__name__}, wanted a function or class.")
    known = [each for each, value in vars(module).items() if callable(value) and not each.startswith("_")]
    guess = nearest(function, known)
    hint = f" Did you mean {guess!r}?" if guess else ""
    where = Path(module.__file__).name if module.__file__ else "without a file"
    raise UserError(f"{target}: module {name!r} ({where}) has no {function!r}.{hint}")


def _module(target: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == "torch":
            raise MissingDependencyError(TORCH_MISSING) from error
        raise UserError(
            f"{target}: no module {error.name!r} can be imported. Is its package installed here, or its folder "
            "the one that the command is started in, or that of the study file?"
        ) from error
    except BaseException as error:  # whatever runs at import: a typing error, a script that exits
        if asked_to_end(error):
            raise
        raise UserError(f"{target}: cannot be imported: {told(error)}") from error


def told(error: BaseException) -> str:
    """An exception in a line: its type, its words, and file and line: the innermost of the user's, if any."""
    if isinstance(error, SyntaxError):
        where = f"{Path(error.filename).name if error.filename else '?'}, line {error.lineno}"
        return f"{type(error).__name__}: {error.msg} ({where})"
    where = place_of(error) or "no line known"
    return ": ".join(filter(None, (type(error).__name__, words_of(error)))) + f" ({where})"


@contextlib.contextmanager
def kept_cwd() -> Iterator[None]:
    """Put the working directory back that code of the user's may leave changed; it belongs to the whole process."""
    try:
        before = os.getcwd()
    except OSError:  # removed under the process: there is nothing to go back to
        before = None
    try:
        yield
    finally:
        if before is not None:
            with contextlib.suppress(OSError):
                os.chdir(before)


def raised_in(error: BaseException, targets: Iterable[str]) -> bool:
    """Whether an exception came through a module, or package, of these functions."""
    packages = {_top(target.partition(":")[0]) for target in targets}
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(_top(str(frame.f_globals.get("__name__", ""))) in packages for frame in frames)


def asked_to_end(error: BaseException) -> bool:
    """Whether an exception ends this process by somebody's will, and not by a fault of the code that it runs in.

    KeyboardInterrupt is Ctrl-C, and what our handlers of SIGTERM raise; Ray's own raises SystemExit.
    """
    if isinstance(error, SystemExit):
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        return bool(frames) and _top(str(frames[-1].f_globals.get("__name__", ""))) == "ray"
    return isinstance(error, KeyboardInterrupt)


def _top(module: str) -> str:
    return module.partition(":")[0].partition(".")[0]


@contextlib.contextmanager
def as_user_error(target: str) -> Iterator[None]:
    """Turn whatever user code raises into one clear line: for the checks before anything is written."""
    try:
        with kept_cwd():
            yield
    except UserError:
        raise
    except BaseException as error:  # SystemExit too: a check that ends the process would look like success
        if asked_to_end(error):
            raise
        raise UserError(f"{target}: raised {told(error)}") from error


@contextlib.contextmanager
def told_of_network(spec: RunSpec) -> Iterator[None]:
    """See `as_user_error`; and where a message names none of the run's user code, put the network's in front of it."""
    try:
        with as_user_error(network_name(spec)):
            yield
    except MissingDependencyError:
        raise
    except UserError as error:
        if any(target in str(error) for target in user_targets(spec)):
            raise
        raise UserError(f"{network_name(spec)}: {error}") from error


def takes(target: str, name: str, *, by_name: bool = False) -> bool:
    """Whether the function has an argument of this name, or (unless `by_name`) takes any."""
    parameters = _parameters(target)
    if by_name:
        return name in parameters
    return name in parameters or any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())


def call(target: str, offered: Mapping[str, Any], options: Mapping[str, Any] | None = None) -> Any:
    """Call a function of the user's by keyword.

    Args:
        target: `"package.module:function"`.
        offered: values by name; those that its signature names are passed.
        options: values that the study gives; all are passed.

    Raises:
        UserError: see `check_signature`. What the function itself raises is passed on.
    """
    check_signature(target, offered, options or {})
    chosen = {name: value for name, value in offered.items() if takes(target, name)}
    return resolve(target)(**chosen, **(options or {}))


def check_signature(target: str, offered: Iterable[str], options: Iterable[str] = (), options_field: str = "") -> None:
    """See that a call by keyword with these names would fit.

    Raises:
        UserError: an option that is not taken, or is offered anyway; an argument that nothing fills.
    """
    offered, options = list(offered), list(options)
    parameters = _parameters(target)
    names = [each.name for each in parameters.values() if each.kind in _BY_KEYWORD]
    known = f"It takes {', '.join(names) or 'nothing'}."
    for option in options:
        where = f"{options_field}.{option}" if options_field else option
        if option in offered:
            raise UserError(f"{target}: {where} is given by the run itself; call the option something else.")
        if not takes(target, option):
            guess = nearest(option, names)
            hint = f" Did you mean {guess!r}?" if guess else ""
            at = f" ({where})" if options_field else ""
            raise UserError(f"{target}: takes no argument {option!r}{at}.{hint} {known}")
    for name, parameter in parameters.items():
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise UserError(f"{target}: takes {name!r} by position only; it is called by keyword.")
        wanting = parameter.default is inspect.Parameter.empty and parameter.kind in _BY_KEYWORD
        if wanting and name not in offered and name not in options:
            remedy = f"give it a default, or a value in {options_field}" if options_field else "give it a default"
            raise UserError(
                f"{target}: wants {name!r}, which nothing gives; {remedy}. On offer: {', '.join(sorted(offered))}."
            )


_BY_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def _parameters(target: str) -> Mapping[str, inspect.Parameter]:
    function = resolve(target)
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{target}: its signature cannot be read, and it is called by the names in it ({error}). Wrap it in a def."
        ) from error


def user_targets(spec: RunSpec) -> tuple[str, ...]:
    """The user code that a run names, each once."""
    names = (spec.data, spec.init, spec.clip, *spec.measures)
    return tuple(dict.fromkeys((*network_targets(spec), *filter(is_user_code, names))))


def network_targets(spec: RunSpec) -> tuple[str, ...]:
    """The user code that a run's network is built of."""
    return tuple(name for name in (spec.family, spec.shortcut, spec.norm, spec.activation) if is_user_code(name))


def may_overwrite(spec: RunSpec) -> bool:
    """Whether parts of a run's network may write over what they read (`models.overwrite`).

    Parts of the user's may keep what they make, or give what they were given; a probe of the user's may leave hooks.
    """
    return not network_targets(spec) and not any(is_user_code(each) for each in spec.measures)


def network_name(spec: RunSpec) -> str:
    """What a message calls a run's network: the code of the user's that it is made of, else its family."""
    own = (*network_targets(spec), *filter(is_user_code, (spec.init,)))
    return " with ".join(own) or spec.family


def code_digests(spec: RunSpec) -> dict[str, str]:
    """Digest, by target, of the source that a run's user code was loaded from, where it has one.

    The source of a function is the file of its module and what that imports of its own package: see `sources`.
    The digest is taken once a process, when the code is loaded.
    """
    found = {target: code_digest(target) for target in user_targets(spec)}
    return {target: digest for target, digest in found.items() if digest is not None}


def changed_code(digests: Iterable[Mapping[str, str]]) -> list[str]:
    """A line where functions of the user's are not, here and now, those that records were made with.

    Args:
        digests: `Digests.code` of each record.
    """
    known = list(digests)
    now: dict[str, str | None] = {}
    for target in sorted({target for each in known for target in each}):
        with contextlib.suppress(UserError):  # the package is not here: what is done can be shown without it
            now[target] = code_digest(target)
    changed = [{target for target in each if target in now and each[target] != now[target]} for each in known]
    number = sum(map(bool, changed))
    if not number:
        return []
    runs = "1 run here was" if number == 1 else f"{number} runs here were"
    return [
        f"{runs} made with another version of {', '.join(sorted(set().union(*changed)))}. What is done stays as it is; "
        "delete those runs, or use another folder, to do it anew."
    ]


@lru_cache(maxsize=256)
def code_digest(target: str) -> str | None:
    """Of the source of a function of the user's, see `code_digests`; None where it has none."""
    if _top(target) == "torch":  # `torch.nn:Mish`: thousands of files, whose version stands in the record
        return None
    function = inspect.unwrap(resolve(target))
    named, defined = target.partition(":")[0], str(getattr(function, "__module__", ""))
    files = source_files(named) | (source_files(defined) if defined != named else {})
    contents = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()}
    return combined_digest(contents) if contents else None
