"""What a run needs of a machine. It changes where and when a run is done, never its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, field_validator

from depthscope.study.run import Float, Frozen


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What one run is given.

    Attributes:
        cpus: cores, or a share of one.
        gpus: GPUs, or a share of one; 0 for none.
        memory_gb: memory in GB (10^9 bytes); None: not limited.
    """

    cpus: float = 1.0
    gpus: float = 0.0
    memory_gb: float | None = None

    def larger(self, other: Resources) -> Resources:
        """The larger of each, for a run that two parts ask for.

        >>> Resources(cpus=2, memory_gb=1.0).larger(Resources(gpus=0.5, memory_gb=4.0))
        Resources(cpus=2, gpus=0.5, memory_gb=4.0)
        """
        memory = max(self.memory_gb or 0.0, other.memory_gb or 0.0)
        return Resources(
            cpus=max(self.cpus, other.cpus), gpus=max(self.gpus, other.gpus), memory_gb=memory if memory else None
        )


DEFAULT = Resources()
"""What a run is given where nothing is said."""


class ResourceTable(Frozen):
    """`[resources]` in a study or a part. A part's lie over the study's, one by one; none is part of a run's identity.

    Attributes:
        cpus: cores a run, or a share of one; 1 where nothing is said.
        gpus: GPUs a run, or a share of one; 0 where nothing is said.
        memory_gb: memory a run, in GB (10^9 bytes); not limited where nothing is said.
    """

    cpus: Annotated[Float, Field(gt=0, le=4096)] | None = None
    gpus: Annotated[Float, Field(ge=0, le=1024)] | None = None
    memory_gb: Annotated[Float, Field(gt=0, le=1e6)] | None = None

    @field_validator("gpus")
    @classmethod
    def _a_share_or_whole(cls, gpus: float | None) -> float | None:
        if gpus is not None and gpus > 1 and not gpus.is_integer():
            raise ValueError(f"wanted a share of one GPU (such as 0.5) or a whole number of them, got {gpus}.")
        return gpus


def resolved(*tables: ResourceTable | None) -> Resources:
    """What the tables say, later ones over earlier ones, and the defaults for the rest.

    >>> resolved(ResourceTable(cpus=2, gpus=0.5), None, ResourceTable(cpus=1))
    Resources(cpus=1.0, gpus=0.5, memory_gb=None)
    """
    said: dict[str, float] = {}
    for table in tables:
        said |= {key: float(value) for key, value in (table or ResourceTable()) if value is not None}
    return Resources(**said)
