"""What runs in torch and in the laboratory share, where a family of points is in both.

The laboratory takes points as they are, and its batch norm uses the statistics of the batch at hand, everywhere: it
keeps no running ones. So a split is evaluated, and a profile measured, on all of its examples at once. In parts they
would be other numbers: the points of a spiral lie arm after arm, so that a part of them is not like the whole.
"""

from __future__ import annotations

from depthscope.study.catalog import CATALOG
from depthscope.study.run import RunSpec
from depthscope.train.measure import PROBE_BATCH

EVAL_BATCH = 256
"""Examples that are evaluated at once. (512 take 8% more of a processor's time on CIFAR-10: caches hold less.)"""


def is_twin(spec: RunSpec) -> bool:
    """Whether the run's family takes points, and the laboratory has it. (A transformer looks at each row by itself.)"""
    entry = CATALOG["family"].get(spec.family)
    return entry is not None and "numpy" in entry.targets and not entry.reads


def eval_batch(spec: RunSpec, num: int) -> int:
    """How many of `num` examples are evaluated at once."""
    return num if is_twin(spec) else min(EVAL_BATCH, num)


def probe_batch(spec: RunSpec, num: int) -> int:
    """On how many of `num` training examples, the first ones, layers are measured."""
    return num if is_twin(spec) else min(PROBE_BATCH, num)


def steps_of_epoch(spec: RunSpec, num: int) -> int | None:
    """After how many updates an epoch ends and is measured, of `num` batches; None where all examples are one batch."""
    return None if is_twin(spec) and num == 1 else num
