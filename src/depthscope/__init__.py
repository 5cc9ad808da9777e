"""Depthscope: the instrument that shows what depth does to a neural network.

>>> import depthscope
>>> [study.name for study in depthscope.studies()]  # doctest: +ELLIPSIS
['cifar10', 'constructed', ..., 'spiral', ...]

A model of your own: `probe`, `compare`, `landscape`, `curvature`. The verbs of studies, as on the command line: `run`,
`plan`, `costs`, `calibrate`, `status`, `make_report`, `studies`, `tune`, `study_schema`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from depthscope.api import Checkup as Checkup
    from depthscope.api import Comparison as Comparison
    from depthscope.api import Curvature as Curvature
    from depthscope.api import Landscape as Landscape
    from depthscope.api import Report as Report
    from depthscope.api import Watch as Watch
    from depthscope.api import Watcher as Watcher
    from depthscope.api import calibrate as calibrate
    from depthscope.api import compare as compare
    from depthscope.api import costs as costs
    from depthscope.api import curvature as curvature
    from depthscope.api import landscape as landscape
    from depthscope.api import lightning_callback as lightning_callback
    from depthscope.api import make_report as make_report
    from depthscope.api import plan as plan
    from depthscope.api import probe as probe
    from depthscope.api import results as results
    from depthscope.api import run as run
    from depthscope.api import status as status
    from depthscope.api import studies as studies
    from depthscope.api import study_schema as study_schema
    from depthscope.api import trainer_callback as trainer_callback
    from depthscope.api import tune as tune
    from depthscope.api import watch as watch

__all__ = [
    "Checkup",
    "Comparison",
    "Curvature",
    "Landscape",
    "Report",
    "Watch",
    "Watcher",
    "calibrate",
    "compare",
    "costs",
    "curvature",
    "landscape",
    "lightning_callback",
    "make_report",
    "plan",
    "probe",
    "results",
    "run",
    "status",
    "studies",
    "study_schema",
    "trainer_callback",
    "tune",
    "watch",
]


def __getattr__(name: str) -> Any:
    # Loaded when first used: `import depthscope` alone costs next to nothing.
    if name in __all__:
        from depthscope import api

        return getattr(api, name)
    raise AttributeError(f"module 'depthscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
