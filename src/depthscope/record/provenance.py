"""Where and with what a run was done."""

from __future__ import annotations

import platform
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np

from depthscope.record.schema import Provenance


def provenance(*, device: str, threads: int, group_size: int = 1) -> Provenance:
    """The provenance of a run done here. No host or user name: records are for sharing."""
    return Provenance(
        depthscope=metadata.version("depthscope"),
        python=platform.python_version(),
        numpy=np.__version__,
        # The version without the import: the laboratory's runs must not load torch.
        torch=metadata.version("torch") if "torch" in sys.modules else None,
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
