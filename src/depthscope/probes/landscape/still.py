"""Whether a model stays as it is when it runs, so that nothing has to be put back after it.

Told in two ways: exactly, by copies of all tensors (`stays`), and in little time, at every point (`Marks`).
"""

from __future__ import annotations

import pickle
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from depthscope.probes.contents import GENERATORS
from depthscope.probes.guard import unwrapped


def stays(model: nn.Module, run: Callable[[], object]) -> bool:
    """Whether `run`, which runs the model, leaves its tensors, attributes and generators as they are.

    Seen is what `guard.as_found` puts back: tensors, bit for bit, what modules hold, and what their lists, dicts and
    sets hold. A model with a compiled part does not count as one that stays, since `as_found` has to run it uncompiled.
    """
    if any(unwrapped(each) is not each or vars(each).get("_compiled_call_impl") for each in model.modules()):
        return False
    before = list(_contents(model))
    kept = [each.clone() if isinstance(each, Tensor) else each for each in before]  # while they hold what they hold now
    run()
    after = list(_contents(model))
    return len(after) == len(before) and all(
        one is other and (not isinstance(one, Tensor) or _equal(one, old)) if _is_object(one) else one == other
        for one, other, old in zip(before, after, kept, strict=True)
    )


_PLAIN = frozenset((bool, int, float, str, type(None)))


class Marks:
    """What a model holds now, to tell by identities, values and torch's counts of writes whether it has changed.

    It takes a small share of a pass. A write that torch does not count, as through NumPy's view, is not seen.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._held, self._versions = self._now()

    def _now(self) -> tuple[list[Any], list[int]]:
        held: list[Any] = []
        for module in self._model.modules():
            for value in vars(module).values():
                if type(value) in _PLAIN:
                    held.append(value)
                elif value or not isinstance(value, dict):  # most of a module's tables are empty
                    held.extend(_inside(value, set()))
                else:
                    held.append(0)
        return held, [each._version for each in held if isinstance(each, Tensor) and not each.is_inference()]

    def stand(self) -> bool:
        """Whether the model still holds the same."""
        held, versions = self._now()
        return (
            len(held) == len(self._held)
            and versions == self._versions
            and all(
                one is other or (not _is_object(one) and _alike(one, other))
                for one, other in zip(self._held, held, strict=True)
            )
        )


def may_compile() -> bool:
    """Whether something in this process may be compiled as it runs."""
    return "torch._dynamo" in sys.modules


def _contents(model: nn.Module) -> Iterator[Any]:
    """All that a model holds, in order; of generators their states, as bytes."""
    for module in model.modules():
        yield from _inside(vars(module), set())


def _inside(value: Any, seen: set[int]) -> Iterator[Any]:
    if isinstance(value, GENERATORS):
        yield _state(value)
    elif isinstance(value, Mapping | list | tuple | set | frozenset) or hasattr(value, "appendleft"):
        if id(value) in seen:
            return
        seen.add(id(value))
        yield len(value)
        for item in list(value.items() if isinstance(value, Mapping) else value):
            yield from _inside(item, seen)
    else:
        yield value


def _alike(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _is_object(value: Any) -> bool:
    return not isinstance(value, str | bytes | int | float | complex | None)


def _equal(one: Tensor, other: Tensor) -> bool:
    if one.layout is not torch.strided or one.is_meta:
        return True
    return torch.equal(_bits(one), _bits(other))


def _bits(tensor: Tensor) -> Tensor:
    flat = torch.view_as_real(tensor.detach().resolve_conj()) if tensor.is_complex() else tensor.detach()
    return flat.contiguous().view(-1).view(torch.uint8) if flat.numel() else flat


def _state(generator: Any) -> bytes:
    if isinstance(generator, torch.Generator):
        return bytes(generator.get_state().tolist())
    if isinstance(generator, np.random.Generator):
        return pickle.dumps(generator.bit_generator.state)
    return pickle.dumps(generator.getstate() if isinstance(generator, random.Random) else generator.get_state())
