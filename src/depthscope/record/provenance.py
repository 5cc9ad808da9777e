"""Where and with what a run was done."""

from __future__ import annotations

import platform
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from depthscope.record.schema import Provenance


def provenance(*, device: str, threads: int, group_size: int = 1) -> Provenance:
    """The provenance of a run done here. No host or user name: records are for sharing."""
    cuda, gpu = _gpu() if device == "cuda" else (None, None)
    return Provenance(
        depthscope=metadata.version("depthscope"),
        python=platform.python_version(),
        numpy=np.__version__,
        blas=_blas(),
        pyarrow=metadata.version("pyarrow"),
        # Only where torch is loaded already: the laboratory's runs must not load it.
        torch=metadata.version("torch") if "torch" in sys.modules else None,
        cuda=cuda,
        gpu=gpu,
        platform=f"{platform.system()} {platform.machine()}",
        processor=_processor(),
        device=device,
        threads=threads,
        group_size=group_size,
    )


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
