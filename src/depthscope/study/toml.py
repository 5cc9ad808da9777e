"""Study files: TOML in, StudySpec out, and back. All faults of a file are told at once."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from copy import deepcopy
from importlib import resources
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from depthscope.core.errors import FaultsError, UserError, nearest, unknown_name
from depthscope.study.claims import DifferenceClaim, DifferenceInDifferencesClaim, LevelClaim, Select, TheoryClaim
from depthscope.study.study import Arm, Part, StudySpec

_NAMED = resources.files("depthscope.study") / "named"
DEFAULT_SIZE = "quick"


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
    if path.suffix == ".toml" or path.exists():
        try:
            return name, path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UserError(f"{name}: the study file cannot be read ({reason}).") from error
    raise UserError(f"{unknown_name('study', name, bundled())} Or give the path of a .toml file.")


def load(study: str | Path, size: str | None = None) -> StudySpec:
    """The study with this bundled name or in this file, at one of its sizes.

    Args:
        study: a name of `bundled()`, or a path.
        size: None takes `quick` where the file has sizes.

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
        FaultsError: all faults of structure, each with its path. (Faults in the runs that the study
            describes are found when it is expanded.)
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FaultsError(source, [("", f"not TOML: {error}")]) from error
    sizes = document.pop("sizes", {})
    if not isinstance(sizes, dict) or not all(isinstance(each, dict) for each in sizes.values()):
        raise FaultsError(source, [("sizes", "wanted tables such as [sizes.quick].")])
    if size is None:
        size = DEFAULT_SIZE if DEFAULT_SIZE in sizes else next(iter(sizes), None)
    elif sizes and size not in sizes:
        raise UserError(f"{source}: {unknown_name('size', size, sizes)}")
    elif not sizes and size != document.get("size", ""):
        raise UserError(f"{source}: unknown size {size!r}: this file has one size only; leave --size away.")
    if size is not None and sizes:
        document = merge(document, sizes[size])
        document["size"] = size
    try:
        return StudySpec.model_validate(document)
    except ValidationError as error:
        raise FaultsError(source, faults(error, StudySpec)) from error


def dump(study: StudySpec) -> str:
    """The study as TOML that `parse` reads back into an equal StudySpec."""
    return tomli_w.dumps(_without_none(study.model_dump(mode="json", exclude_defaults=True)), multiline_strings=False)


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` laid over `below`: tables merge key by key, everything else is replaced."""
    merged = deepcopy(dict(below))
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else deepcopy(value)
    return merged


_KNOWN_KEYS = {
    model: tuple(model.model_fields)
    for model in (StudySpec, Part, Arm, Select, DifferenceClaim, DifferenceInDifferencesClaim, LevelClaim, TheoryClaim)
}


def faults(error: ValidationError, root: type[StudySpec]) -> list[tuple[str, str]]:
    """(dotted path, message) of each fault that pydantic found, in our words."""
    found = []
    for each in error.errors(include_url=False):
        path = [str(part) for part in each["loc"] if part not in ("int", "list[constrained-int]")]
        found.append((".".join(_without_tags(path)), _message(each, path)))
    return sorted(set(found))


def _without_tags(path: list[str]) -> list[str]:
    # A discriminated union puts the tag into the path: claims.0.difference.a -> claims.0.a
    tagged = len(path) > 2 and path[0] == "claims" and path[1].isdigit()
    return path[:2] + path[3:] if tagged else path


def _message(fault: Any, path: list[str]) -> str:
    kind, given = fault["type"], fault.get("input")
    if kind == "extra_forbidden":
        known = sorted({key for keys in _candidates(path) for key in keys})
        guess = nearest(path[-1], known)
        hint = f" Did you mean {guess!r}?" if guess else ""
        return f"unknown key.{hint} Known: {', '.join(known)}."
    if kind == "missing":
        return "missing; it must be given."
    if kind == "value_error":
        return str(fault["msg"]).removeprefix("Value error, ")
    if kind == "string_pattern_mismatch":
        return f"wanted a name of letters, digits and hyphens, got {given!r}."
    shown = repr(given)
    return f"{fault['msg']}; got {shown if len(shown) < 60 else shown[:57] + '...'}."


def _candidates(path: list[str]) -> list[tuple[str, ...]]:
    if len(path) == 1:
        return [_KNOWN_KEYS[StudySpec]]
    if path[0] == "parts":
        return [_KNOWN_KEYS[Arm if "arms" in path[2:-1] else Part]]
    if path[0] == "claims" and len(path) == 4:
        return [
            tuple(model.model_fields)
            for model in (DifferenceClaim, DifferenceInDifferencesClaim, LevelClaim, TheoryClaim)
            if model.model_fields["kind"].annotation.__args__[0] == path[2]  # type: ignore[union-attr]
        ]
    return [_KNOWN_KEYS[Select]]


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_none(each) for each in value]
    return value
