"""What a run in torch shares with the laboratory, where its family is the laboratory's own.

The laboratory takes points as they are, and its batch norm uses the statistics of the batch at hand, everywhere: it
keeps no running ones. So a split is evaluated, and a profile measured, on all of its examples at once. In parts they
would be other numbers: the points of a spiral lie arm after arm, so that a part of them is not like the whole.
"""

from __future__ import annotations

from depthscope.study.catalog import CATALOG
from depthscope.study.run import RunSpec
from depthscope.train.measure import PROBE_BATCH

EVAL_BATCH = 512
"""Examples that are evaluated at once."""


def is_twin(spec: RunSpec) -> bool:
    """Whether the run is one in torch of a family that the laboratory has too."""
    entry = CATALOG["family"].get(spec.family)
    return spec.backend == "torch" and entry is not None and "numpy" in entry.targets


def eval_batch(spec: RunSpec, num: int) -> int:
    """How many of `num` examples are evaluated at once by a run in torch."""
    return num if is_twin(spec) else min(EVAL_BATCH, num)


def probe_batch(spec: RunSpec, num: int) -> int:
    """How many of `num` training examples, the first ones, a run in torch measures its layers on."""
    return num if is_twin(spec) else min(PROBE_BATCH, num)
