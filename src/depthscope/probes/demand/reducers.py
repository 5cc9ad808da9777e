"""Effective rank, dead and saturated units as reducers of a followed forward pass.

They are of the form that `measure.listener.Recorder` calls at each boundary: `(index, tensor) -> {quantity: value}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from depthscope.core.structure import Block, Op, Structure
from depthscope.probes.demand.rank import effective_rank
from depthscope.probes.demand.rows import is_sequence, num_samples
from depthscope.probes.demand.silent import expected_silent
from depthscope.probes.demand.units import dead_fraction, saturated_fraction

Reducer = Callable[[int, Tensor], Mapping[str, float]]


def rank_reducer(structure: Structure) -> Reducer:
    """`rank` and `rank_limit` of every boundary."""

    def reduce(index: int, h: Tensor) -> Mapping[str, float]:
        if not h.is_floating_point() or not h.numel():
            return {}
        rank, limit = effective_rank(h, sequence=is_sequence(structure, index))
        return {"rank": rank, "rank_limit": limit}

    return reduce


class SampleCounter:
    """A reducer that gives no reading, and counts the samples of single units: before it is said what those cost."""

    def __init__(self) -> None:
        self._shapes: dict[int, tuple[int, ...]] = {}

    def __call__(self, index: int, h: Tensor) -> Mapping[str, float]:
        """See a boundary tensor."""
        if h.is_floating_point():
            self._shapes[index] = tuple(h.shape)
        return {}

    def most(self, structure: Structure) -> int:
        """Samples at the boundary that has most."""
        shapes = self._shapes.items()
        return max((num_samples(shape, sequence=is_sequence(structure, index)) for index, shape in shapes), default=0)


def unit_reducer(structure: Structure) -> Reducer:
    """`dead` of every boundary, `saturated` where a tanh or sigmoid gives it, each from 20 samples on.

    Where the network up to the boundary is one of ReLU layers without normalisers and additions, beside it
    `dead_expected` and `dead_expected_std`, see `expected_silent`. Not for convolutions, whose channels have as many
    samples as places, alike to an unknown degree.
    """

    def reduce(index: int, h: Tensor) -> Mapping[str, float]:
        if not h.is_floating_point():
            return {}
        sequence = is_sequence(structure, index)
        found: dict[str, float] = {}
        dead = dead_fraction(h, sequence=sequence)
        if dead is not None:
            found["dead"] = dead
            depth = relu_depth(structure, index)
            if depth and h.ndim == 2:
                found["dead_expected"], found["dead_expected_std"] = expected_silent(depth, len(h), h.shape[1])
        last = _last_op(structure, index)
        if last is not None and last.kind == "activation":
            saturated = saturated_fraction(h, last.name, sequence=sequence)
            if saturated is not None:
                found["saturated"] = saturated
        return found

    return reduce


def relu_depth(structure: Structure, index: int) -> int:
    """ReLU layers up to a boundary that ends in one, of a plain network without normalisers; 0 of any other."""
    blocks = structure.blocks[:index]
    last = _last_op(structure, index)
    if last is None or last.name != "relu" or not all(_is_plain(block) for block in blocks):
        return 0
    return sum(op.kind == "activation" for block in blocks for op in block.ops)


def _is_plain(block: Block) -> bool:
    return all(op.kind in ("linear", "dropout") or (op.kind, op.name) == ("activation", "relu") for op in block.ops)


def _last_op(structure: Structure, index: int) -> Op | None:
    """The operation that gives a boundary."""
    return structure.blocks[index - 1].ops[-1] if index and structure.blocks[index - 1].ops else None
