"""From names to objects: catalogue targets, data sets, devices."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from depthscope.core.errors import MissingDependencyError, UserError, unknown_name
from depthscope.data.dataset import Dataset
from depthscope.study.catalog import CATALOG, Kind, is_user_code
from depthscope.study.run import RunSpec

DEVICES = ("auto", "cpu", "cuda", "mps")


@dataclass(frozen=True, kw_only=True)
class Context:
    """Where a task is done; nothing here changes its numbers on a given device.

    Attributes:
        device: cpu, cuda or mps.
        data_root: the folder that holds the real data; None lets the data set find or fetch it.
        threads: threads of torch and of BLAS.
    """

    device: str = "cpu"
    data_root: Path | None = None
    threads: int = 1


def resolve(target: str) -> Callable[..., Any]:
    """The object behind `"package.module:name"`.

    Raises:
        UserError: the module or the name in it does not exist.
    """
    module, _, name = target.partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name == "torch":
            raise MissingDependencyError(TORCH_MISSING) from error
        raise UserError(
            f"{target}: no module {error.name!r} can be imported. Is its package installed here?"
        ) from error
    except AttributeError as error:
        raise UserError(f"{target}: module {module!r} has no {name!r}.") from error
    return found


def target_of(kind: Kind, name: str, backend: str) -> str:
    """The catalogue's target of a name, or user code as it stands."""
    if is_user_code(name):
        return name
    targets: Mapping[Any, str] = CATALOG[kind][name].targets
    if backend not in targets:
        raise UserError(f"{kind} {name!r} is not there for {backend}, only for {', '.join(targets)}.")
    return targets[backend]


def load_data(spec: RunSpec, context: Context) -> Dataset:
    """The run's data set. The last few are kept, since the runs of a study share them."""
    root = str(context.data_root) if context.data_root is not None else None
    # Of the built-in sets the spiral alone depends on the seed: the images are loaded once for all seeds.
    seed = 0 if spec.data in ("cifar10", "images") else spec.seed
    return _load(target_of("data", spec.data, spec.backend), seed, root, json.dumps(spec.data_options))


@lru_cache(maxsize=4)
def _load(target: str, seed: int, root: str | None, options: str) -> Dataset:
    data: Dataset = resolve(target)(seed, Path(root) if root is not None else None, **json.loads(options))
    return data


def check_runs(specs: Iterable[RunSpec], root: Path | None, progress: Callable[[int, int | None], None]) -> None:
    """See that code and data of these runs are at hand and whole, before anything is written.

    Every name is resolved, CIFAR-10 is verified (and downloaded where it is missing), and every other
    data set is made once.

    Raises:
        UserError: a name that leads nowhere, options out of range, files that are missing, cut short or altered.
    """
    runs = list(specs)
    for spec in runs:
        resolve(target_of("family", spec.family, spec.backend))
    _check_cifar10([spec for spec in runs if spec.data == "cifar10"], root, progress)
    others = {(spec.data, json.dumps(spec.data_options)): spec for spec in runs if spec.data != "cifar10"}
    for spec in others.values():
        load_data(spec, Context(data_root=root))


def _check_cifar10(specs: list[RunSpec], root: Path | None, progress: Callable[[int, int | None], None]) -> None:
    if not specs:
        return
    from depthscope.data import cifar10

    check: Callable[..., None] = cifar10.check_options
    for spec in specs:
        check(**spec.data_options)
    counts: dict[str, Any] = {
        name: max(int(str(spec.data_options[name])) for spec in specs) for name in ("num_train", "num_test")
    }
    cifar10.prepare(root, progress=progress, **counts)


def check_precision(specs: Iterable[RunSpec], device: str) -> str | None:
    """A line of warning where bfloat16 is asked of a CPU that shows no sign of having it; else None.

    Raises:
        UserError: a precision that the device does not have.
    """
    asked = {spec.precision for spec in specs if spec.backend == "torch"}
    if device == "mps" and asked - {"float32"}:
        raise UserError(
            f"precision: device mps has float32 alone here, got {', '.join(sorted(asked))}. Use cpu or cuda."
        )
    if device != "cpu" or "bfloat16" not in asked:
        return None
    try:
        native = "bf16" in Path("/proc/cpuinfo").read_text()
    except OSError:
        native = False  # other systems do not tell in one place
    return None if native else "precision bfloat16: this CPU shows no native bfloat16; it will be emulated and slow."


TORCH_MISSING = (
    "PyTorch is not installed, and this study needs it: pip install 'depthscope[torch]'. On Linux that takes a CUDA "
    "build of several GB; the README gives the command for the small CPU build."
)


def choose_device(asked: str) -> str:
    """The device that `asked` means here: cpu, cuda or mps.

    Raises:
        UserError: unknown, or not there.
        MissingDependencyError: torch is not installed.
    """
    if asked not in DEVICES:
        raise UserError(unknown_name("device", asked, DEVICES))
    try:
        import torch
    except ModuleNotFoundError as error:
        raise MissingDependencyError(TORCH_MISSING) from error
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if asked == "auto":
        return next(name for name in ("cuda", "mps", "cpu") if there[name])
    if not there[asked]:
        working = ", ".join(name for name, is_there in there.items() if is_there)
        raise UserError(f"device {asked!r}: torch {torch.__version__} finds none here. Working: {working}.")
    return asked
