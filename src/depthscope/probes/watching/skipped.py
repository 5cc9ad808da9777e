"""Where the numbers of a skipped step stopped being finite."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from depthscope.core.readings import Reading
from depthscope.core.structure import Structure


def why_skipped(readings: Sequence[Reading], structure: Structure) -> str:
    """The first layer, in the order of computation, with a number that is not finite, and of which kind it is.

    An activation is looked for from the input on. A gradient is computed from the output on, so that the first with a
    non-finite one is the nearest to the output; that of each layer before it is as a rule not finite either, and the
    first of those in the forward order is named beside it. Without a boundary profile (a step that was not
    scheduled) the parameters' gradients tell.
    """
    values: dict[str, dict[str, float]] = {}
    for each in readings:
        values.setdefault(each.quantity, {})[each.name] = each.value
    for boundary in structure.boundaries:
        if values.get("nonfinite", {}).get(boundary.name, 0) > 0:
            return f"non-finite activation, first in {boundary.name}"
    bad = _blocks_with_bad_gradients(values, structure)
    if bad:
        first, last = structure.blocks[min(bad)].name, structure.blocks[max(bad)].name
        return f"non-finite gradient in {last}" + (f", and from there back to {first}" if first != last else "")
    names = [name for name, norm in values.get("weight_grad_norm", {}).items() if not math.isfinite(norm)]
    if names:
        return f"non-finite gradient of {names[-1]}" + (f", and back to {names[0]}" if len(names) > 1 else "")
    return "non-finite gradient somewhere: by the time of the record none was left"


def _blocks_with_bad_gradients(values: Mapping[str, Mapping[str, float]], structure: Structure) -> set[int]:
    norms = values.get("weight_grad_norm", {})
    counts = values.get("grad_nonfinite", {})
    bad = set()
    for block in structure.blocks:
        # Boundary `index` is the block's input: a gradient that is not finite there arose in the block or after it.
        into = counts.get(structure.boundaries[block.index].name, 0) > 0
        if into or any(not math.isfinite(norms.get(name, 0.0)) for name in block.weights):
            bad.add(block.index)
    return bad
