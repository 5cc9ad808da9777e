"""What the objects that measurements give have in common: they are plain data, JSON, a table, files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from depthscope.core.errors import MissingDependencyError
from depthscope.core.files import write_named


class Document:
    """Something measured that can be written down."""

    json_indent: ClassVar[int | None] = 2

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {str(self).partition(chr(10))[0]}>"

    def document(self) -> dict[str, Any]:
        """All of it as plain data that strict JSON holds."""
        raise NotImplementedError

    def to_json(self, path: str | Path | None = None) -> str:
        """`document` as JSON; written too where a path is given.

        Raises:
            UserError: the file cannot be written.
        """
        text = json.dumps(self.document(), indent=self.json_indent, ensure_ascii=False, allow_nan=False) + "\n"
        written(text.encode(), path)
        return text


def written(content: bytes, path: str | Path | None) -> bytes:
    """The content as it came, written to a file where a path is given.

    Raises:
        UserError: the file cannot be written.
    """
    if path is not None:
        write_named(Path(path), content)
    return content


def pandas_for(instead: str) -> Any:
    """The package pandas, which users bring.

    Args:
        instead: what has the same numbers without it, in a few words.

    Raises:
        MissingDependencyError: it is not installed.
    """
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise MissingDependencyError(f"to_pandas: pandas is not installed: pip install pandas. {instead}") from error
    return pandas


def strict(value: Any) -> Any:
    """Plain data that strict JSON holds.

    >>> strict({"a": (1.5, math.nan), "b": {2: -math.inf}})
    {'a': [1.5, 'nan'], 'b': {'2': '-inf'}}
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    return value
