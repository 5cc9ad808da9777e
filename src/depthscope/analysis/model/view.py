"""One step of a profile, laid out for the rules: by block, by addition, by parameter."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from depthscope.core.readings import Conditions, ModelProfile
from depthscope.core.structure import Block, Op, ResidualAddition, Status, Structure

Sign = tuple[tuple[str, str], ...]
"""Kinds and names of operations in order: what two blocks have in common whatever their numbers."""

PASSING = ("dropout", "scale")
"""Kinds that change numbers alone, and that signs leave out."""

MANY = 4
"""Uses of one weight in one block from which it is taken for a step of a recurrence."""


def sign(ops: tuple[Op, ...] | list[Op]) -> Sign:
    """The sign of a chain; dropout and scales are left out."""
    return tuple((op.kind, op.name) for op in ops if op.kind not in PASSING)


@dataclass(frozen=True)
class View:
    """A profile at one step."""

    profile: ModelProfile
    step: int

    @property
    def structure(self) -> Structure:
        """What was recognised."""
        return self.profile.structure

    @property
    def conditions(self) -> Conditions:
        """Under which it was measured."""
        return self.profile.conditions[self.step]

    @property
    def statuses(self) -> Mapping[str, Status]:
        """Of each parameter."""
        return self.profile.statuses

    @cached_property
    def body(self) -> tuple[Block, ...]:
        """The blocks between stem and head."""
        return self.structure.body

    def at(self, quantity: str) -> dict[str, float]:
        """A quantity of the boundaries."""
        return self.profile.values("boundary", quantity, self.step)

    @cached_property
    def norms(self) -> dict[str, float]:
        """|h| by boundary."""
        return self.at("norm")

    @cached_property
    def grad_norms(self) -> dict[str, float]:
        """|dL/dh| by boundary."""
        return self.at("grad_norm")

    @cached_property
    def multipliers(self) -> dict[str, float]:
        """By body block."""
        found = self.profile.values("block", "grad_multiplier", self.step)
        return {block.name: found[block.name] for block in self.body if block.name in found}

    @cached_property
    def ratios(self) -> dict[str, float]:
        """|F|/|x| by addition."""
        return self.profile.values("addition", "residual_ratio", self.step)

    @cached_property
    def weight_grads(self) -> dict[str, float]:
        """|dW| by parameter."""
        return self.profile.values("parameter", "weight_grad_norm", self.step)

    @cached_property
    def weights(self) -> dict[str, float]:
        """|W| by parameter."""
        return self.profile.values("parameter", "weight_norm", self.step)

    @cached_property
    def ndim(self) -> dict[str, int]:
        """Number of dimensions by parameter."""
        return {parameter.name: len(parameter.shape) for parameter in self.structure.parameters}

    @cached_property
    def size(self) -> dict[str, int]:
        """Number of entries by parameter."""
        return {parameter.name: math.prod(parameter.shape) for parameter in self.structure.parameters}

    def matrices(self, block: Block) -> list[str]:
        """The block's weights of two dimensions or more."""
        return [name for name in block.weights if self.ndim.get(name, 0) >= 2]

    def entry(self, block: Block) -> str:
        """Name of the boundary before a block."""
        return self.structure.boundaries[block.index].name

    def exit(self, block: Block) -> str:
        """Name of the boundary after a block."""
        return self.structure.boundaries[block.index + 1].name

    def rms(self, boundary: int) -> float:
        """Root mean square entry at a boundary; nan where it was not measured."""
        found = self.structure.boundaries[boundary]
        size = self.conditions.batch * math.prod(found.shape)
        return self.norms.get(found.name, math.nan) / math.sqrt(size) if size else math.nan

    @cached_property
    def additions(self) -> tuple[ResidualAddition, ...]:
        """Those in the body."""
        inside = {block.index for block in self.body}
        return tuple(each for each in self.structure.additions if each.block in inside)

    @cached_property
    def is_residual(self) -> bool:
        """Half of the body's weighted blocks or more hold an addition."""
        weighted = [block for block in self.body if self.matrices(block)]
        return 2 * sum(bool(block.additions) for block in weighted) >= len(weighted) > 0

    @cached_property
    def norm_names(self) -> frozenset[str]:
        """Normalisers in the body."""
        return frozenset(op.name for block in self.body for op in block.ops if op.kind == "norm")

    @cached_property
    def recurrent(self) -> frozenset[str]:
        """Body blocks that hold a recurrence, or that use one weight matrix many times (a recurrence by hand)."""
        return frozenset(block.name for block in self.body if is_recurrent(block))

    def block_of(self, addition: ResidualAddition) -> Block:
        """The block that an addition lies in."""
        return self.structure.blocks[addition.block]


def is_recurrent(block: Block) -> bool:
    """Whether a block holds a recurrence, or takes one weight in `MANY` operations or more."""
    uses = Counter(name for op in block.ops if op.kind == "linear" for name in op.weights)
    return any(op.kind == "recurrent" for op in block.ops) or max(uses.values(), default=0) >= MANY


def common_module(ops: list[Op] | tuple[Op, ...]) -> str:
    """The innermost module that holds all weighted operations of a chain; empty where that is the model."""
    names = [op.module.split(".") for op in ops if op.weights and op.kind != "norm"] or [
        op.module.split(".") for op in ops if op.module
    ]
    if not names:
        return ""
    shared = names[0]
    for name in names[1:]:
        shared = [a for a, b in zip(shared, name, strict=False) if a == b][: _agree(shared, name)]
    return ".".join(shared)


def _agree(a: list[str], b: list[str]) -> int:
    """Leading parts that two names share."""
    for index, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            return index
    return min(len(a), len(b))
