"""From names to objects: catalogue targets, data sets, devices."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from depthscope.core.errors import MissingDependencyError, UserError, unknown_name
from depthscope.data.arrays import as_dataset
from depthscope.data.dataset import Dataset
from depthscope.study.catalog import CATALOG, Kind, is_user_code
from depthscope.study.run import RunSpec
from depthscope.train.usercode import TORCH_MISSING, call, takes
from depthscope.train.usercode import resolve as resolve

DEVICES = ("auto", "cpu", "cuda", "mps")


@dataclass(frozen=True, kw_only=True)
class Context:
    """Where a task is done; nothing here changes its numbers on a given device.

    Attributes:
        device: cpu, cuda or mps.
        data_root: the folder that holds the real data; None lets the data set find or fetch it.
        threads: threads of torch and of BLAS.
        graphs: record the passes of an update as a CUDA graph; see `train.graphs`. No verb asks for it, as long as
            nobody has seen on a GPU that the numbers are those of the plain passes (`benchmarks/gpu.sh` looks).
    """

    device: str = "cpu"
    data_root: Path | None = None
    threads: int = 1
    graphs: bool = False


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
    target = target_of("data", spec.data, spec.backend)
    seed = spec.seed if depends_on_seed(spec) else 0
    options = dict(spec.data_options)
    if not is_user_code(spec.data) and CATALOG["data"][spec.data].by_depth:
        options["depth"] = spec.depth
    return _load(target, is_user_code(spec.data), seed, root, json.dumps(options))


def depends_on_seed(spec: RunSpec) -> bool:
    """Whether each seed has a data set of its own; otherwise all share one, which is loaded once.

    One of the user's does where its function takes `seed`.
    """
    return takes(spec.data, "seed") if is_user_code(spec.data) else CATALOG["data"][spec.data].by_seed


@lru_cache(maxsize=4)
def _load(target: str, own: bool, seed: int, root: str | None, options: str) -> Dataset:
    at = Path(root) if root is not None else None
    if own:
        try:
            made = call(target, {"seed": seed, "root": at}, json.loads(options))
        except UserError as error:  # of ours, that its function met: whose it is
            raise error if str(error).startswith(target) else UserError(f"{target}: {error}") from error
        return as_dataset(target, made)
    data: Dataset = resolve(target)(seed, at, **json.loads(options))
    return data


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
