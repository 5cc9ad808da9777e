"""The two runs that a constructed one (`init = "constructed"`) is made of."""

from __future__ import annotations

from typing import Any

from depthscope.study.run import RunSpec

CONSTRUCTED = "constructed"


def is_constructed(spec: RunSpec) -> bool:
    """Whether the run begins with a trained shallower network that is made deeper."""
    return spec.init == CONSTRUCTED


def shallow_spec(spec: RunSpec) -> RunSpec:
    """The run that trains the shallower network: the recipe, the seed, the data and the batches of `spec`.

    Written as a study would write it, it is that run, by its run_id too.
    """
    return _drawn(spec, depth=int(str(spec.init_options["from_depth"])), measures=(), measure_steps=())


def drawn_spec(spec: RunSpec) -> RunSpec:
    """The run with the initialiser that draws its tensors: that of a constructed run is named in its options."""
    return _drawn(spec) if is_constructed(spec) else spec


def _drawn(spec: RunSpec, **changes: Any) -> RunSpec:
    fields = spec.model_dump()
    # Validated, so that the other initialiser's options are filled.
    return RunSpec.model_validate({**fields, "init": spec.init_options["init"], "init_options": {}, **changes})
