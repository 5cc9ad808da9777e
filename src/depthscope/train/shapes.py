"""Shapes of the catalogue's data sets, known from a run's fields without their content.

Shape letters: T positions, I input features, K classes or targets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from depthscope.study.catalog import CATALOG
from depthscope.study.run import RunSpec
from depthscope.train.build import Context, load_data
from depthscope.train.memory import DataShape


def data_shape(spec: RunSpec, root: Path | None = None) -> DataShape:
    """Of the run's data; that of the catalogue is known without loading it."""
    if spec.data not in _EXAMPLES:
        return DataShape.of(load_data(spec, Context(data_root=root)))
    num, held = _option(spec, "num_train"), _option(spec, "validation")
    found = _EXAMPLES[spec.data](spec)
    if spec.data == "spiral":  # its splits are equally large
        num = _option(spec, "arms") * _option(spec, "points_per_arm")
        tested = num * (not spec.data_options.get("without_test"))
    else:
        tested = _option(spec, "num_test")
    task: Literal["classification", "regression"] = (
        "regression" if CATALOG["data"][spec.data].regression else "classification"
    )
    return replace(found, num_train=num - held, num_held=tested + held, task=task)


def _example(
    input_shape: tuple[int, ...], output_shape: tuple[int, ...], *, num_tokens: int = 0, itemsize: int = 8
) -> DataShape:
    return DataShape(
        input_shape=input_shape,
        output_shape=output_shape,
        num_train=0,
        num_held=0,
        itemsize=itemsize,
        num_tokens=num_tokens,
    )


def _images(spec: RunSpec) -> DataShape:
    size = _option(spec, "image_size")
    return _example((3, size, size), (10,), itemsize=1)


def _text(length: int, num_tokens: int) -> DataShape:
    return _example((length,), (length, num_tokens), num_tokens=num_tokens)


def _copy(spec: RunSpec) -> DataShape:
    return _example((spec.depth + 20,), (spec.depth + 20, 9), num_tokens=10)


def _nth_farthest(spec: RunSpec) -> DataShape:
    num, size = _option(spec, "num_vectors"), _option(spec, "vector_size")
    return _example((num, size + 3 * num), (num,))


def _identity(spec: RunSpec) -> DataShape:
    size = _option(spec, "size")
    return _example((size,), (size,))


_EXAMPLES: Mapping[str, Callable[[RunSpec], DataShape]] = MappingProxyType(
    {
        "spiral": lambda spec: _example((2,), (_option(spec, "arms"),)),
        "images": _images,
        "cifar10": _images,
        "shakespeare": lambda spec: _text(_option(spec, "length"), 65),
        "names": lambda spec: _text(16, 27),
        "adding": lambda spec: _example((spec.depth, 2), (1,)),
        "copy": _copy,
        "nth_farthest": _nth_farthest,
        "identity_task": _identity,
    }
)
"""What one example is; how many there are stands in the options of each."""


def _option(spec: RunSpec, name: str) -> int:
    return int(str(spec.data_options.get(name, 0)))
