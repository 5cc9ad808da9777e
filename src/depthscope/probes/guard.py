"""A measurement leaves everything as found: the model, and outside of it generators and modes."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module
from torch.nn.utils import parametrize

from depthscope.core.errors import UserError
from depthscope.probes.contents import Contents


def set_generator(device: torch.device | str, seed: int) -> None:
    """Put torch's global generator of a device at `seed`; on a CPU that alone, without those of the GPUs beside it."""
    if torch.device(device).type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


@contextmanager
def undisturbed(device: torch.device) -> Iterator[None]:
    """Run a block with gradients on and autocast off; put every global generator back after it.

    Generators: torch's on the CPU and on `device`, NumPy's legacy global one, Python's. They are put
    back after an exception too, and so are the modes.

    Args:
        device: where the block computes.
    """
    python_state = random.getstate()
    numpy_state = np.random.get_state()  # noqa: NPY002 - other people's models may draw from it
    cuda = [device] if device.type == "cuda" else []
    try:
        with (
            torch.random.fork_rng(devices=cuda),
            torch.inference_mode(False),
            # Leaving inference mode turns gradients on in today's torch; it does not promise to.
            torch.enable_grad(),
            torch.autocast(device.type, enabled=False),
        ):
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002 - see above


@contextmanager
def as_found(model: nn.Module) -> Iterator[None]:
    """Run forward and backward passes of a model; leave it, and what it shares with the program, bitwise as found.

    Put back, after an exception too:

    - of the model: the values of every parameter, buffer and plain tensor attribute, `requires_grad`, `.grad` (the
      same tensor with the same values, or None), hooks of modules and of parameters, train/eval flags, attributes of
      each submodule (the contents of lists, dicts and sets, nested ones too), generators among them;
    - of the program: the global generators of torch (the CPU's and those of the devices that hold the model), NumPy
      and Python, grad mode, autocast, anomaly detection, the default dtype, the choice of deterministic algorithms,
      global module hooks and the cache of parametrisations.

    Nothing is deep-copied. Buffers are copied; a parameter only before an operation writes it.

    Not put back is what neither an operation of torch nor a module's attributes show: a write through NumPy's view of a
    parameter, the attributes of an object that a module holds (an optimiser stepped in the forward pass among them),
    how far an iterator has come, a global variable, a file.

    Inside, parameters have no `.grad` (a backward pass in a forward adds to none of the caller's), casts under
    autocast are not cached, nothing runs compiled, and a submodule that is wrapped by `torch.compile`, DataParallel
    or DistributedDataParallel stands unwrapped in its place, so that names carry no prefix.

    Args:
        model: as the caller has it. See `unwrapped` for which part of a wrapped one to run.

    Raises:
        UserError: a parameter has no values yet (a lazy layer), or was written by code that torch does not show
            (a compiled kernel), so that it could not be put back.
    """
    contents = Contents(model)
    shared = [*_generators(_devices(model)), *_modes(_devices(model)), *_tables()]
    lost: tuple[str, ...] = ()
    modules = frozenset(id(each) for each in model.modules())
    _under_way.append(modules)
    try:
        contents.set_aside_gradients()
        # What the caller's pass has cached belongs to its graph, which a backward pass here would use up.
        torch.set_autocast_cache_enabled(False)
        parametrize._cache.clear()
        _unwrap_inside(model)
        with _uncompiled(), contents.writes:
            yield
    finally:
        lost = contents.put_back()
        for restore in shared:
            restore()
        _under_way.remove(modules)
    if lost:
        raise UserError(
            f"probe: the model's own forward or backward pass wrote {lost[0]}"
            f"{f' and {len(lost) - 1} more' if len(lost) > 1 else ''} where torch does not show it (compiled code), so "
            "that the old values are gone. Load the weights again, and probe the model uncompiled."
        )


def is_under_way(model: nn.Module) -> bool:
    """Whether a model runs for a measurement just now, within `as_found`, and not for the program."""
    return any(id(model) in modules for modules in _under_way)


_under_way: list[frozenset[int]] = []
"""Of each measurement that runs, the identities of its modules."""


def unwrapped(model: nn.Module) -> nn.Module:
    """The model inside `torch.compile`, DataParallel, DistributedDataParallel and FSDP, one inside another.

    Its names carry no prefix of theirs. FSDP's `fully_shard` wraps nothing.

    >>> linear = nn.Linear(1, 1)
    >>> unwrapped(nn.DataParallel(nn.DataParallel(linear))) is linear
    True
    """
    while True:
        kinds = {f"{each.__module__.partition('.')[0]}.{each.__name__}" for each in type(model).__mro__}
        inner = next((getattr(model, name, None) for kind, name in _WRAPPERS.items() if kind in kinds), None)
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def _unwrap_inside(model: nn.Module) -> None:
    for module in list(model.modules()):
        for name, child in module._modules.items():
            inner = child if child is None or "_fsdp_wrapped_module" in child._modules else unwrapped(child)
            if inner is not child:
                module._modules[name] = inner
        if module.__dict__.get("_compiled_call_impl") is not None:  # of Module.compile
            module.__dict__["_compiled_call_impl"] = None


def _uncompiled() -> AbstractContextManager[object]:
    """Run functions that are compiled as written, where torch can (2.6) and any may be."""
    compiler: Any = torch.compiler
    loaded = "torch._dynamo" in sys.modules  # importing it takes seconds
    return compiler.set_stance("force_eager") if loaded and hasattr(compiler, "set_stance") else nullcontext()


_WRAPPERS = {
    # By name: importing these classes would load parts of torch that not every build has.
    "torch.OptimizedModule": "_orig_mod",
    "torch.DataParallel": "module",
    "torch.DistributedDataParallel": "module",
    "torch.FullyShardedDataParallel": "module",
}

Restore = Callable[[], Any]


def _devices(model: nn.Module) -> list[torch.device]:
    tensors: list[Tensor] = [*model.parameters(), *model.buffers()]
    return list(dict.fromkeys(each.device for each in tensors if each.device.type not in ("cpu", "meta")))


def _generators(devices: list[torch.device]) -> Iterator[Restore]:
    yield partial(random.setstate, random.getstate())
    yield partial(np.random.set_state, np.random.get_state())  # noqa: NPY002 - other people's models may draw from it
    yield partial(torch.set_rng_state, torch.get_rng_state())
    for device in devices:
        backend: Any = getattr(torch, device.type)
        of = () if device.type == "mps" else (device,)  # it has one generator
        yield partial(backend.set_rng_state, backend.get_rng_state(*of), *of)


def _modes(devices: list[torch.device]) -> Iterator[Restore]:
    yield partial(torch.set_grad_enabled, torch.is_grad_enabled())
    yield partial(torch.set_anomaly_enabled, torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
    yield partial(torch.set_default_dtype, torch.get_default_dtype())
    yield partial(_deterministic, _determinism())
    for kind in dict.fromkeys(["cpu", *(device.type for device in devices)]):
        if torch.amp.is_autocast_available(kind):
            yield partial(torch.set_autocast_enabled, kind, torch.is_autocast_enabled(kind))
            yield partial(torch.set_autocast_dtype, kind, torch.get_autocast_dtype(kind))
    yield partial(torch.set_autocast_cache_enabled, torch.is_autocast_cache_enabled())


def _determinism() -> tuple[bool, bool]:
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


def _deterministic(before: tuple[bool, bool]) -> None:
    if _determinism() != before:  # to set it loads torch's compiler, which takes seconds
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def _tables() -> Iterator[Restore]:
    tables: list[dict[Any, Any]] = [
        table for name, table in vars(torch_module).items() if name.startswith("_global_") and isinstance(table, dict)
    ]
    for table in [*tables, parametrize._cache]:
        yield partial(_refill, table, dict(table))


def _refill(table: dict[Any, Any], entries: dict[Any, Any]) -> None:
    table.clear()
    table.update(entries)
