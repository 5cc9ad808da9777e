"""The files that a function of the user's comes from: its module's, and those of its package that it imports."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path


def source_files(module: str) -> dict[str, Path]:
    """The files by their path below the folder of the top-level package (below their own folder, of a lone module).

    Followed are import statements, from file to file, that name modules of the same top-level package; of a module
    that belongs to no package, the single files beside it. What else lies in those folders is none of its own, and
    other packages have versions for that. An import by a computed name is not seen.

    Args:
        module: the name of a module that was imported.
    """
    top = module.partition(".")[0]
    root = _root(top)
    if root is None:
        return {}
    is_package = (root / top).is_dir() and not (root / f"{top}.py").is_file()
    found: dict[str, Path] = {}
    waiting, seen = [module], {module}
    while waiting:
        name = waiting.pop()
        file = _file(root, name)
        if file is None:
            continue
        found[file.relative_to(root / top if is_package else root).as_posix()] = file
        for other in _imported(file, name):
            own = other.partition(".")[0] == top if is_package else "." not in other
            if own and other not in seen:
                seen.add(other)
                waiting.append(other)
    return found


def _root(top: str) -> Path | None:
    """The folder that holds a top-level module or package."""
    module = sys.modules.get(top)
    if module is None:
        return None
    folders = list(getattr(module, "__path__", ()))
    if folders:
        return Path(folders[0]).parent
    return Path(module.__file__).parent if module.__file__ else None


def _file(root: Path, name: str) -> Path | None:
    path = root.joinpath(*name.split("."))
    candidates = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


def _imported(file: Path, name: str) -> Iterator[str]:
    """Names that may be modules: those of the import statements, and the packages that each lies in."""
    yield from _with_parents(name)
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return  # it was imported once: the file was changed since, and its digest says so
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            yield from _with_parents(source)
            yield from (f"{source}.{alias.name}" for alias in node.names)


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))
