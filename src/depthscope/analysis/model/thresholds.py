"""Every threshold of the diagnosis, with its meaning in `MEANINGS`.

Those on one measurement were chosen on the development seeds of `docs/diagnosis_nets.py` and on closed forms; the
held-out seeds judge them (`docs/diagnosis.md`). Those on curves of losses are judged by real trainings there. All are
ratios or counts, so that a scale of the loss moves none.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

LEAST_BLOCKS = 3
TOTAL_LOG10 = 3.0
PLAIN_LOG10 = 2.0
GROWTH_LOG10 = 2.0
CLIFF = 5.0
BRANCH = 5.0
LEAST_ALIKE = 5
LEAST_NORMED_RATIO = 0.1
LEAST_RATIO = 0.3
SPREAD = 4.0
SILENT = 0.99
ALIVE = 0.9
LOSS_OVER_CHANCE = 2.0
INPUT_STD = 10.0
RANK = 1.1
RANK_NEAR = 1.5
RANK_BEFORE = 4.0
BLOWN = 5.0
DIVERGED = 1.5
OSCILLATES = 0.5
FALLS = 0.7
GENERALISES = 0.5
STALLS = 0.98
LEAST_STEPS = 100

THRESHOLDS: Mapping[str, float] = MappingProxyType(
    {name: value for name, value in globals().items() if name.isupper() and isinstance(value, (int, float))}
)
MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "LEAST_BLOCKS": "blocks between stem and head under which depth has no meaning",
        "TOTAL_LOG10": "powers of ten by which the gradient may change over a body with skips (a healthy ResNet-50 on "
        "4 examples: 2.4)",
        "PLAIN_LOG10": "powers of ten by which it may change over a body without skips, where it goes on exponentially",
        "GROWTH_LOG10": "powers of ten by which |h| may grow over a body without normalisation",
        "CLIFF": "factor by which one block's multiplier may differ from the median of its like",
        "BRANCH": "factor by which one branch may exceed the median of its like",
        "LEAST_ALIKE": "blocks built alike from which one can stand out",
        "LEAST_NORMED_RATIO": "|F|/|x| under which a branch with a norm is too small to dominate",
        "LEAST_RATIO": "|F|/|x| under which a branch without a norm is too small to dominate",
        "SPREAD": "factor between a layer's fan_in x variance and the median of the others', beyond which its gain is "
        "another",
        "SILENT": "fraction of exact zeros at which a layer is off",
        "ALIVE": "fraction of exact zeros up to which the layer before it counts as alive",
        "LOSS_OVER_CHANCE": "first loss over ln K (that of a uniform guess) at which the output is out of scale",
        "INPUT_STD": "standard deviation of the input over which, or under 1 over which, a note speaks of its scale",
        "RANK": "effective rank of the last representation at or under which it has collapsed",
        "RANK_NEAR": "effective rank at or under which a note says that it is near collapse",
        "RANK_BEFORE": "factor by which the rank must have fallen from the first representation",
        "BLOWN": "highest loss over the first (or over chance) at which a training has blown up",
        "DIVERGED": "final over first training loss at which a training has diverged",
        "OSCILLATES": "mean change from record to record over the whole range of the loss, at which it oscillates",
        "FALLS": "last over first training loss at or under which it has fallen",
        "GENERALISES": "part of the fall of the training loss that the validation loss must show",
        "STALLS": "last over first loss, or over chance, at or above which it has not moved",
        "LEAST_STEPS": "steps of a training under which a loss is not called stalled",
    }
)
"""Threshold -> what it bounds."""
assert MEANINGS.keys() == THRESHOLDS.keys()
