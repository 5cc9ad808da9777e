"""Every threshold of the diagnosis, with what it was chosen by.

Chosen on the development seeds of `docs/diagnosis_nets.py` and on closed forms; the held-out seeds judge them
(`docs/diagnosis.md`). All are ratios, so that a scale of the loss moves none.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

LEAST_BLOCKS = 3
"""Body blocks under which depth has no meaning."""
TOTAL_LOG10 = 3.0
"""Decades by which the gradient may change over a body with skips (a healthy ResNet-50 on 4 examples: 2.4)."""
PLAIN_LOG10 = 2.0
"""Decades by which it may change over a body without skips, where it goes on exponentially."""
GROWTH_LOG10 = 2.0
"""Decades by which |h| may grow over a body without normalisation."""
CLIFF = 5.0
"""Factor by which one block's multiplier may differ from the others' median."""
BRANCH = 5.0
"""Factor by which one branch may exceed the median of its like."""
LEAST_ALIKE = 5
"""Blocks built alike from which one can stand out."""
LEAST_NORMED_RATIO = 0.1
"""|F|/|x| under which a branch with a norm is too small to dominate."""
LEAST_RATIO = 0.3
"""|F|/|x| under which a branch without a norm is too small to dominate."""
SPREAD = 4.0
"""Factor between a layer's sw2 and the median of the others', beyond which its gain is another."""
SILENT = 0.99
"""Fraction of exact zeros at which a layer is off."""
ALIVE = 0.9
"""Fraction of exact zeros up to which the layer before counts as alive."""
LOSS_OVER_CHANCE = 2.0
"""First loss over ln K at which the output is out of scale."""
RANK = 1.5
"""Effective rank of the last representation at or under which it has collapsed."""
RANK_BEFORE = 4.0
"""Factor by which the rank must have fallen from the first representation."""
DIVERGED = 1.5
"""Final over first training loss at which training has diverged."""
OSCILLATES = 0.5
"""Mean step-to-step change over the range of the loss at which it oscillates."""
FALLS = 0.7
"""Last over first training loss at or under which it falls."""
STALLS = 0.98
"""Best over first loss at or above which it has not moved."""

THRESHOLDS: Mapping[str, float] = MappingProxyType(
    {name: value for name, value in globals().items() if name.isupper() and isinstance(value, (int, float))}
)
