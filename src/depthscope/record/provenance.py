"""Where and with what a run was done."""

from __future__ import annotations

import platform
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from depthscope.record.schema import Provenance, Resumption, Versions


def provenance(*, device: str, threads: int, group_size: int = 1) -> Provenance:
    """The provenance of a run done here. No host or user name: records are for sharing."""
    cuda, gpu = _gpu() if device == "cuda" else (None, None)
    return Provenance(
        depthscope=_version("depthscope"),
        python=platform.python_version(),
        numpy=np.__version__,
        blas=_blas(),
        pyarrow=_version("pyarrow"),
        # Only where torch is loaded already: the laboratory's runs must not load it.
        torch=_version("torch") if "torch" in sys.modules else None,
        cuda=cuda,
        gpu=gpu,
        platform=f"{platform.system()} {platform.machine()}",
        processor=_processor(),
        device=device,
        threads=threads,
        group_size=group_size,
    )


def resumed_from(step: int, earlier: Provenance, now: Provenance) -> Provenance:
    """The provenance of a run that was done as in `earlier` up to `step`, and goes on as in `now`."""
    part = Resumption(step=step, **{name: getattr(earlier, name) for name in Versions.model_fields})
    parts = (*earlier.resumed, part)
    return now.model_copy(
        update={"resumed": tuple(each.model_copy(update={"differs": _differences(each, now)}) for each in parts)}
    )


def _differences(part: Versions, now: Versions) -> tuple[str, ...]:
    pairs = ((name, getattr(part, name), getattr(now, name)) for name in Versions.model_fields)
    return tuple(name for name, one, other in pairs if one != other and None not in (one, other))


def change_of_versions(provenance: Provenance) -> str | None:
    """One line for a person on what changed while the run was stopped; None where nothing did that could matter.

    >>> facts = provenance(device="cpu", threads=1)
    >>> change_of_versions(resumed_from(40, facts.model_copy(update={"numpy": "1.26.0"}), facts)).partition(",")[0]
    'to step 40 with numpy 1.26.0'
    """
    parts = []
    for part in provenance.resumed:
        if part.differs:
            was = ", ".join(f"{name} {getattr(part, name)}" for name in part.differs)
            now = ", ".join(f"{name} {getattr(provenance, name)}" for name in part.differs)
            parts.append(f"to step {part.step} with {was}, then with {now}")
    return "; ".join(parts) or None


@cache
def _version(package: str) -> str:
    return metadata.version(package)  # reads and parses a file: milliseconds, at every run


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


@cache
def _blas() -> str | None:
    """Name and version of the BLAS that NumPy uses."""
    libraries = [each for each in threadpool_info() if each.get("user_api") == "blas"]
    return f"{libraries[0].get('internal_api')} {libraries[0].get('version')}" if libraries else None


@cache
def _gpu() -> tuple[str | None, str | None]:
    """(CUDA version, name of the device), asked of the torch that is loaded."""
    torch = sys.modules["torch"]
    return torch.version.cuda, torch.cuda.get_device_name()
