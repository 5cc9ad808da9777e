"""Reads the pickles of the official CIFAR-10 folder without unpickling.

A pickle is a program, and `pickle.load` runs it. The official files use 23 of its instructions, and
call two functions with fixed arguments: NumPy's array and its uint8. So this module is an interpreter
of just those instructions, in which nothing can be called: a call that is not one of the two is
refused. The standard library's `pickletools.genops` splits the bytes into instructions; it runs none.

There is no memo: the official files write to it but never read it back. So no value occurs twice, and
memory stays in proportion to the file.
"""

from __future__ import annotations

import enum
import math
import pickletools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.core.errors import UserError

MAX_BYTES = 40_000_000
"""No official file is longer than 31,035,999 bytes."""


class _Name(enum.Enum):
    """What the files refer to by name, and what two calls give. Symbols: none can be called."""

    RECONSTRUCT = "_reconstruct"
    NDARRAY = "ndarray"
    DTYPE = "dtype"
    EMPTY_ARRAY = "the array before its state is set"
    UINT8 = "the dtype of one unsigned byte"


_NAMES = {
    "numpy.core.multiarray _reconstruct": _Name.RECONSTRUCT,  # NumPy 1
    "numpy._core.multiarray _reconstruct": _Name.RECONSTRUCT,  # NumPy 2
    "numpy ndarray": _Name.NDARRAY,
    "numpy dtype": _Name.DTYPE,
}
_CALLS: list[tuple[_Name, tuple[Any, ...], _Name]] = [
    (_Name.RECONSTRUCT, (_Name.NDARRAY, (0,), "b"), _Name.EMPTY_ARRAY),
    (_Name.DTYPE, ("u1", 0, 1), _Name.UINT8),
]
_UINT8_STATE = (3, "|", None, None, None, -1, -1, 0)
_VALUES = frozenset({"SHORT_BINSTRING", "BINSTRING", "BININT1", "BININT2", "BININT", "NONE", "NEWFALSE"})
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_VALUE_OF = {"NONE": None, "NEWFALSE": False}


class _RefusedError(Exception):
    pass


def read_pickle(content: bytes, source: object) -> dict[str, Any]:
    """The dictionary in one file of the official folder.

    Byte strings (which is what text was in Python 2) come as `str`, one character a byte.

    Args:
        content: the file's bytes.
        source: what to call the file in an error.

    Returns:
        Keys to integers, strings, lists of them, and uint8 arrays (read-only).

    Raises:
        UserError: any content that an official file does not have. Nothing of it was run.
    """
    try:
        if len(content) > MAX_BYTES:
            raise _RefusedError(f"{len(content):,} bytes long, more than {MAX_BYTES:,}")
        return _run(content)
    except _RefusedError as refused:
        fault = str(refused)
    # What `genops` raises on bytes that are no pickle, and an empty stack or an odd operand raise here.
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        fault = f"not a whole pickle ({error})"
    raise UserError(
        f"{source}: refused: {fault}. An official CIFAR-10 file holds nothing of the kind; "
        "nothing in it was run. Fetch the data again from its official source."
    )


def _run(content: bytes) -> dict[str, Any]:
    stack: list[Any] = []
    marked: list[list[Any]] = []  # the stacks that were set aside by MARK
    for opcode, argument, position in pickletools.genops(content):
        name = opcode.name
        if name in ("PROTO", "BINPUT", "LONG_BINPUT"):
            continue
        if name in _VALUES:
            stack.append(_VALUE_OF.get(name, argument))
        elif name == "EMPTY_LIST":
            stack.append([])
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name in _TUPLES:
            count = _TUPLES[name]
            if len(stack) < count:
                raise _RefusedError("a tuple of values that are not there")
            stack[-count:] = [tuple(stack[-count:])]
        elif name == "MARK":
            marked.append(stack)
            stack = []
        elif name in ("TUPLE", "APPENDS", "SETITEMS"):
            items, stack = stack, marked.pop()
            _take(name, items, stack)
        elif name == "GLOBAL":
            if argument not in _NAMES:
                raise _RefusedError(f"it refers to {str(argument)[:60]!r}")
            stack.append(_NAMES[argument])
        elif name == "REDUCE":
            arguments, called = stack.pop(), stack.pop()
            stack.append(_called(called, arguments))
        elif name == "BUILD":
            state, target = stack.pop(), stack.pop()
            stack.append(_built(target, state))
        elif name == "STOP":
            if position != len(content) - 1 or marked or len(stack) != 1:
                raise _RefusedError("it does not end where its one value ends")
            value = stack.pop()
            if not isinstance(value, dict):
                raise _RefusedError("its value is not a dictionary")
            return value
        else:
            raise _RefusedError(f"instruction {name} at byte {position}")
    raise _RefusedError("it has no end")


def _take(name: str, items: list[Any], stack: list[Any]) -> None:
    """TUPLE, APPENDS and SETITEMS: what stands above the mark goes into one value below it."""
    if name == "TUPLE":
        stack.append(tuple(items))
        return
    target = stack[-1]
    if name == "APPENDS" and isinstance(target, list):
        target.extend(items)
    elif name == "SETITEMS" and isinstance(target, dict) and len(items) % 2 == 0:
        keys = items[::2]
        if not all(isinstance(key, str) for key in keys):
            raise _RefusedError("a key that is not a string")
        target.update(zip(keys, items[1::2], strict=True))
    else:
        raise _RefusedError(f"instruction {name} on something else")


def _called(called: Any, arguments: Any) -> _Name:
    for function, wanted, result in _CALLS:
        if called is function and arguments == wanted:
            return result
    raise _RefusedError("a call that makes no array of bytes")


def _built(target: Any, state: Any) -> Any:
    if target is _Name.UINT8 and state == _UINT8_STATE:
        return target
    if target is _Name.EMPTY_ARRAY and isinstance(state, tuple) and len(state) == 5:
        return _array(*state)
    raise _RefusedError("a state that is not an array of bytes")


def _array(version: Any, shape: Any, dtype: Any, fortran: Any, data: Any) -> NDArray[np.uint8]:
    if version != 1 or dtype is not _Name.UINT8 or fortran is not False:
        raise _RefusedError("an array that is not of bytes in C order")
    if not (isinstance(shape, tuple) and all(type(side) is int and side >= 0 for side in shape)):
        raise _RefusedError("an array without a shape")
    if not (isinstance(data, str) and len(data) == math.prod(shape)):
        raise _RefusedError(f"an array of shape {shape} whose bytes are missing")
    return np.frombuffer(data.encode("latin-1"), np.uint8).reshape(shape)
