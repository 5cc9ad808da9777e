"""Study files: TOML in, StudySpec out, and back. All faults of a file are told at once."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from importlib import resources
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from depthscope.core.errors import FaultsError, UserError, nearest, shown, unknown_name
from depthscope.core.files import read_text
from depthscope.study.claims import KINDS, Select
from depthscope.study.expand import faults_of
from depthscope.study.faults import Fault, found_in, in_order
from depthscope.study.landscape import Maps
from depthscope.study.overlay import merge
from depthscope.study.resources import ResourceTable
from depthscope.study.study import Arm, Case, Part, StudySpec
from depthscope.study.tuning import Choice, Score, Tuned, Tuning

_NAMED = resources.files("depthscope.study") / "named"
DEFAULT_SIZE = "quick"
MAX_CHARACTERS = 1_000_000
"""A study is a page or two; anything longer was not meant as one."""


def bundled() -> tuple[str, ...]:
    """Names of the studies that come with Depthscope."""
    return tuple(sorted(item.name.removesuffix(".toml") for item in _NAMED.iterdir() if item.name.endswith(".toml")))


def read_source(study: str | Path) -> tuple[str, str]:
    """(where it came from, TOML text) of a bundled name or of a path to a TOML file.

    Raises:
        UserError: neither a known name nor a readable file.
    """
    name = str(study)
    if name in bundled():
        return name, (_NAMED / f"{name}.toml").read_text(encoding="utf-8")
    path = Path(name)
    try:
        if path.suffix == ".toml" or path.exists():
            return name, read_text(path, MAX_CHARACTERS)
    except OSError as error:
        raise UserError(f"{name}: the study file cannot be read ({error.strerror or error}).") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{name}: not a study file: byte {error.start} is not UTF-8 text.") from error
    except ValueError as error:  # a path with a NUL in it
        if isinstance(error, UserError):
            raise
        raise UserError(f"{shown(name)}: no such file can be ({error}).") from error
    raise UserError(f"{unknown_name('study', name, bundled())} Or give the path of a .toml file.")


def load(study: str | Path, size: str | None = None) -> StudySpec:
    """The study with this bundled name or in this file, at one of its sizes.

    Args:
        study: a name of `bundled()`, or a path.
        size: None takes `quick` where the file has it, else the file's first size.

    Raises:
        UserError: see `read_source` and `parse`.
    """
    source, text = read_source(study)
    return parse(text, source=source, size=size)


def sizes_of(text: str) -> tuple[str, ...]:
    """The sizes that a study file offers, in its order."""
    sizes = tomllib.loads(text).get("sizes", {})
    return tuple(sizes) if isinstance(sizes, dict) else ()


def parse(text: str, *, source: str, size: str | None = None) -> StudySpec:
    """The StudySpec of a study file's text.

    `[sizes.NAME]` is laid over the rest of the file: tables are merged, anything else is replaced.

    Raises:
        FaultsError: all faults of structure, in all sizes, each with its path; and the faults of the
            runs, where the rest of the file can be made out. (Where the structure is sound, the
            faults of the runs are found when the study is expanded.)
        UserError: a size that the file does not have.
    """
    document = _document(text, source)
    sizes = document.pop("sizes", {})
    if not isinstance(sizes, dict) or not all(isinstance(each, dict) for each in sizes.values()):
        raise FaultsError(source, [("sizes", "wanted tables such as [sizes.quick].")])
    if size is None:
        size = DEFAULT_SIZE if DEFAULT_SIZE in sizes else next(iter(sizes), document.get("size", ""))
    elif sizes and size not in sizes:
        raise UserError(f"{source}: {unknown_name('size', size, sizes)}")
    elif not sizes and size != document.get("size", ""):
        raise UserError(f"{source}: unknown size {size!r}. This file has one size only; leave --size away.")
    if not sizes:
        study, told = _read(document, size, {})
    else:
        read = {name: _read({**merge(document, over), "size": name}, name, over) for name, over in sizes.items()}
        study, told = read[size][0], [fault for _, faults in read.values() for fault in faults]
        told += _unknown_sizes(document, sizes)
    if study is None or told:
        raise FaultsError(source, in_order(told))
    return study


def dump(study: StudySpec) -> str:
    """The study as TOML that `parse` reads back into an equal StudySpec."""
    return tomli_w.dumps(_without_none(study.model_dump(mode="json", exclude_defaults=True)), multiline_strings=False)


def _document(text: str, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also an integer of more than 4,300 digits
        raise FaultsError(source, [("", f"not TOML: {error}")]) from error


def _read(document: dict[str, Any], size: str, over: Mapping[str, Any]) -> tuple[StudySpec | None, list[_Told]]:
    """(the study, its faults) of a document, of which `over` is what its size has laid over it."""
    try:
        return StudySpec.model_validate(document), []
    except ValidationError as error:
        found = found_in(error)
    told = []
    for fault in found:
        place = ("sizes", size, *fault.path) if _holds(over, fault.path) else fault.path
        told.append((".".join(place), fault.message or _unknown_key(fault)))
    rest = _sound_rest(document, found)
    if rest is None:
        return None, told
    study, claims = rest
    return None, told + [(_claims_at(path, claims), message) for path, message in faults_of(study)]


def _claims_at(path: str, claims: list[int]) -> str:
    """The path in the whole study of one in a study that keeps these of its claims."""
    head, *tail = path.split(".")
    return ".".join([head, str(claims[int(tail[0])]), *tail[1:]]) if head == "claims" and tail else path


_Told = tuple[str, str]


def _holds(value: Any, path: tuple[str, ...]) -> bool:
    for key in path:
        if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            return False
    return True


_BESIDE_RUNS = ("claims", "landscape", "resources", "tuning", "tuned")
_DECIDES_RUNS = ("base", "parts", "arms", "axes", "set", "at", "where", "exclude", "seeds", "sizes")


def _known_keys(fault: Fault) -> tuple[str, ...]:
    match fault.path:
        case (_,):
            return (*StudySpec.model_fields, "sizes")
        case ("resources", _) | ("parts", _, "resources", _):
            return tuple(ResourceTable.model_fields)
        case ("landscape", _):
            return tuple(Maps.model_fields)
        case ("tuning", _):
            return tuple(Tuning.model_fields)
        case ("tuned", _):
            return tuple(Tuned.model_fields)
        case ("tuned", "choices", _, _):
            return tuple(Choice.model_fields)
        case ("tuned", "choices", _, "scores", *_):
            return tuple(Score.model_fields)
        case ("parts", _, _):
            return tuple(Part.model_fields)
        case ("parts", _, "arms", _, "at", *_):
            return tuple(Case.model_fields)
        case ("parts", *_):
            return tuple(Arm.model_fields)
        case ("claims", _, _) if fault.tag is not None and fault.tag in KINDS:
            return tuple(KINDS[fault.tag].model_fields)
    return tuple(Select.model_fields)


def _unknown_key(fault: Fault) -> str:
    return unknown_name("key", fault.path[-1], _known_keys(fault))


_WORDS = ("title", "question", "recipe", "sources", "label", "note")
_STAND_INS: dict[str, Any] = {"name": "x", "title": {"en": "x"}}


def _sound_rest(document: dict[str, Any], found: list[Fault]) -> tuple[StudySpec, list[int]] | None:
    """(the study without its unknown keys, faulty claims, words and tables beside its runs, the claims that it keeps).

    None where no runs are left. A misspelt `axes` would make faults of every run that are none, so the rest is left
    alone.
    """
    rest = deepcopy(document)
    given = rest.get("claims")
    faulty = {fault.path[1] for fault in found if fault.path[0] == "claims" and len(fault.path) > 1}
    claims = [at for at in range(len(given) if isinstance(given, list) else 0) if str(at) not in faulty]
    for fault in found:
        if fault.path[0] in _STAND_INS:
            rest[fault.path[0]] = _STAND_INS[fault.path[0]]
            continue
        word = next((at for at, key in enumerate(fault.path) if key in _WORDS), None)
        if word is not None and fault.path[0] != "claims":
            _leave_out(rest, fault.path[: word + 1])
            continue
        if fault.path[0] in _BESIDE_RUNS:
            rest.pop(fault.path[0], None)
            continue
        if fault.kind != "extra_forbidden" or nearest(fault.path[-1], _known_keys(fault)) in _DECIDES_RUNS:
            return None
        _leave_out(rest, fault.path)
    try:
        kept = [given[at] for at in claims] if isinstance(given, list) else []
        return StudySpec.model_validate({**rest, "claims": kept}), claims
    except ValidationError:  # pragma: no cover - only what was told is left out
        return None


def _leave_out(document: dict[str, Any], path: tuple[str, ...]) -> None:
    holder: Any = document
    for key in path[:-1]:
        holder = holder[int(key)] if isinstance(holder, list) else holder.get(key, {})
    holder.pop(path[-1], None)


def _unknown_sizes(document: dict[str, Any], sizes: dict[str, Any]) -> Iterator[_Told]:
    claims = document.get("claims")
    for index, claim in enumerate(claims if isinstance(claims, list) else []):
        for key in ("sizes", "confirmatory"):
            named = claim.get(key) if isinstance(claim, dict) else None
            for name in named if isinstance(named, list) else []:
                if isinstance(name, str) and name not in sizes:
                    yield f"claims.{index}.{key}", unknown_name("size", name, sizes)


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_none(each) for each in value]
    return value
