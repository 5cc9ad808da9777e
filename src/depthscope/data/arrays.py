"""A data set from somebody's arrays, with all that can be wrong about them told in a line.

Shape letters: N examples, C channels, H height, W width, I input features.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.core.errors import UserError, shown, unknown_name
from depthscope.data.dataset import IGNORED, Dataset, Split, make_dataset

SPLITS = ("train", "test", "validation")
_KEYS = (*(f"{axis}_{split}" for split in SPLITS for axis in "xy"), "num_classes")
_FORMS = (
    "a mapping with x_train and y_train (and perhaps x_test, y_test, x_validation, y_validation, num_classes), "
    "a tuple (x_train, y_train) or (x_train, y_train, x_test, y_test), or a Dataset"
)


def as_dataset(name: str, found: object) -> Dataset:
    """The data set in what a function of the user's returned.

    Args:
        name: what to call it, in messages and in the record.
        found: a mapping or tuple of arrays (or of what `numpy.asarray` makes one of, such as a CPU tensor), or
            a `Dataset`. Inputs are vectors [N, I] or images [N, C, H, W], numbers; labels are integers [N],
            from 0.

    Raises:
        UserError: another form, shape or type; a value that is not finite; labels that do not start at 0.
    """
    if isinstance(found, Dataset):
        for split in SPLITS:
            part: Split | None = getattr(found, split)
            if part is not None:
                _check_values(f"{name}: {split}", part, found.num_classes, found.num_tokens)
        _check_alike(name, {split: getattr(found, split) for split in SPLITS})
        return found
    arrays = _by_key(name, found)
    splits = {split: _split(name, arrays, split) for split in SPLITS}
    train = splits["train"]
    if train is None:
        raise UserError(f"{name}: no x_train. Wanted {_FORMS}.")
    _check_alike(name, splits)
    num_classes = _num_classes(name, arrays, splits)
    for split, part in splits.items():
        if part is not None:
            _check_values(f"{name}: {split}", part, num_classes)
    return make_dataset(
        name, train, test=splits["test"], validation=splits["validation"], num_classes=num_classes, facts={}
    )


def _by_key(name: str, found: object) -> dict[str, Any]:
    if isinstance(found, Mapping):
        for key in found:
            if key not in _KEYS:
                raise UserError(f"{name}: {unknown_name('array', str(key), _KEYS)}")
        return {str(key): value for key, value in found.items() if value is not None}
    if isinstance(found, tuple | list) and len(found) in (2, 4):
        return dict(zip(("x_train", "y_train", "x_test", "y_test"), found, strict=False))
    came = f"a {type(found).__name__} of {len(found)}" if isinstance(found, tuple | list) else type(found).__name__
    raise UserError(f"{name}: returned {came}; wanted {_FORMS}.")


def _split(name: str, arrays: Mapping[str, Any], split: str) -> Split | None:
    x_key, y_key = f"x_{split}", f"y_{split}"
    if x_key not in arrays and y_key not in arrays:
        return None
    for key, other in ((x_key, y_key), (y_key, x_key)):
        if key not in arrays:
            raise UserError(f"{name}: {other} came without {key}.")
    x, y = _array(f"{name}: {x_key}", arrays[x_key]), _array(f"{name}: {y_key}", arrays[y_key])
    if x.ndim not in (2, 4) or not x.size:
        raise UserError(
            f"{name}: {x_key} has shape {list(x.shape)}; wanted vectors [N, features] or images "
            "[N, channels, height, width], at least one."
        )
    if y.ndim != 1 or len(y) != len(x):
        raise UserError(f"{name}: {y_key} has shape {list(y.shape)}; wanted one label an example, [{len(x)}].")
    if y.dtype.kind not in "iu":
        raise UserError(f"{name}: {y_key} holds {y.dtype}; wanted integers, the classes from 0 on.")
    if x.dtype.kind not in "fiub":
        raise UserError(f"{name}: {x_key} holds {x.dtype}; wanted numbers.")
    # Vectors in float64, since the laboratory may train in it; images as they are where the type is small.
    kept = x.ndim == 4 and x.dtype in (np.uint8, np.float32)
    wide = x if kept else x.astype(np.float64 if x.ndim == 2 else np.float32)
    return Split(np.ascontiguousarray(wide), np.ascontiguousarray(y, dtype=np.int64))


def _array(what: str, value: object) -> NDArray[Any]:
    try:
        return np.asarray(value)
    except Exception as error:  # ragged lists, a tensor on a GPU or with a gradient: each has words of its own
        raise UserError(f"{what}: cannot be read as an array ({error}).") from error


def _num_classes(name: str, arrays: Mapping[str, Any], splits: Mapping[str, Split | None]) -> int:
    highest = max(int(part.y.max()) for part in splits.values() if part is not None)
    given = arrays.get("num_classes", max(highest + 1, 2))
    if not isinstance(given, int | np.integer) or isinstance(given, bool) or given < 2:
        raise UserError(f"{name}: num_classes: wanted a whole number of 2 or more, got {shown(given)}.")
    return int(given)


def _check_values(where: str, split: Split, num_classes: int, num_tokens: int = 0) -> None:
    if not len(split):
        raise UserError(f"{where} has no example; leave the split away.")
    _check_finite(f"{where} inputs", split.x)
    if num_tokens and (split.x.dtype.kind not in "iu" or split.x.min() < 0 or split.x.max() >= num_tokens):
        raise UserError(
            f"{where} inputs are {split.x.dtype} from {split.x.min()} to {split.x.max()}; "
            f"wanted tokens, integers from 0 to {num_tokens - 1}."
        )
    if split.y.dtype.kind == "f":
        _check_finite(f"{where} targets", split.y)
        return
    asked = split.y[split.y != IGNORED] if split.y.ndim == 2 else split.y
    if not asked.size:
        raise UserError(f"{where} asks nothing: each label is {IGNORED}.")
    low, high = int(asked.min()), int(asked.max())
    if low < 0 or high >= num_classes:
        raise UserError(f"{where} labels run from {low} to {high}; wanted 0 to {num_classes - 1}.")
    if where.endswith(": train") and low > 0 and not num_tokens:
        raise UserError(f"{where} labels run from {low} to {high}; wanted classes from 0 on. Subtract {low}.")


def _check_finite(what: str, values: NDArray[Any]) -> None:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        bad = np.argwhere(~np.isfinite(values))[0].tolist()
        raise UserError(f"{what} hold {values[tuple(bad)]} at {bad}; wanted finite numbers.")


def _check_alike(name: str, splits: Mapping[str, Split | None]) -> None:
    shapes = {split: part.x.shape[1:] for split, part in splits.items() if part is not None}
    for split, shape in shapes.items():
        if shape != shapes["train"]:
            raise UserError(
                f"{name}: one {split} example has shape {list(shape)}, one of training {list(shapes['train'])}."
            )
