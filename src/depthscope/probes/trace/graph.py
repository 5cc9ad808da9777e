"""The traced pass as plain data: values, the steps that gave them, and where the data flows.

A value is one state of a tensor: an in-place operation ends one value and begins the next. Values are numbered in
the order of their birth, so what a step takes has smaller numbers than what it gives, and every walk below is a
single sweep or a heap: no recursion, whatever the depth.

Three marks tell the values apart:

- **data**: it descends from a tensor that was passed to the model;
- **deep**: it descends from one through a weight (a linear layer, a convolution, an embedding);
- **flow**: what the model is about. A mask reaches every layer without ever passing a weight, and would hide every
  narrow place; so where a step has a deep input, those that are not deep count only if they are floats which
  a weight takes too (the raw input that a first residual block adds back), not masks.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from depthscope.probes.trace.ops import Sort


@dataclass(slots=True)
class Step:
    """One operation that was run.

    Attributes:
        op: its number among the operations that are counted; -1 where it is none (a join of values that share memory).
        base: name of the operation.
        name: name to show.
        sort: what it does.
        inputs: values taken, in order.
        outputs: values given.
        call: number of the innermost call of a module; -1 for the model itself.
        weights: names of the parameters consumed.
        weighted: it applies a weight matrix, a kernel or an embedding to the data.
        partial: of a part, whether it leaves out so much that what remains is no longer the same data.
        facts: as of `core.structure.Op`.
        reused: one of its weights is applied by another step too; filled by `Graph.finish`.
    """

    op: int
    base: str
    name: str
    sort: Sort
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    call: int
    weights: tuple[str, ...] = ()
    weighted: bool = False
    partial: bool = False
    facts: dict[str, float] = field(default_factory=dict)
    reused: bool = False


@dataclass(slots=True)
class Call:
    """One call of a module below the model.

    Attributes:
        label: fully qualified name, with `#k` from the second call on.
        module: fully qualified name.
        kind: name of the class of the module.
        first: number of steps before it.
        parent: the call around it; -1 for the model.
    """

    label: str
    module: str
    kind: str
    first: int
    parent: int


@dataclass
class Graph:
    """All values, steps and calls of one pass. Lists of values are indexed by their number."""

    steps: list[Step] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    producer: list[int] = field(default_factory=list)
    shape: list[tuple[int, ...]] = field(default_factory=list)
    data: list[bool] = field(default_factory=list)
    deep: list[bool] = field(default_factory=list)
    floating: list[bool] = field(default_factory=list)
    given: dict[int, str] = field(default_factory=dict)
    """Label of the outermost call that gave a value."""
    slots: dict[int, int] = field(default_factory=dict)
    """Position of a value among the output tensors of its operation."""
    first_use: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of a value that no operation gives: the first operation that takes it, and its position among those taken."""
    inputs: list[int] = field(default_factory=list)
    """Values of the tensors passed to the model."""
    output: int = -1
    """Value of the model's output; -1 where none of its tensors depends on the input."""
    outputs: list[int] = field(default_factory=list)
    """Values of all tensors in the model's output."""
    flows: list[tuple[int, ...]] = field(default_factory=list)
    """By step, the inputs through which the data flows, none where it flows nowhere; filled by `finish`."""
    only_user: dict[int, int] = field(default_factory=dict)
    """The step into which a value flows, where it is one; filled by `finish`."""

    def value(self, shape: tuple[int, ...], *, floating: bool, data: bool, deep: bool = False, step: int = -1) -> int:
        """Add a value; its number."""
        self.producer.append(step)
        self.shape.append(shape)
        self.data.append(data)
        self.deep.append(deep)
        self.floating.append(floating)
        return len(self.producer) - 1

    def finish(self) -> None:
        """Find where the data flows (see the top of this file). Linear in the steps."""
        fed = self._fed()
        live = self._live()
        for at, step in enumerate(self.steps):
            if not live[at]:
                self.flows.append(())
                continue
            taken = [each for each in dict.fromkeys(step.inputs) if self.data[each]]
            if any(self.deep[each] for each in taken):
                taken = [each for each in taken if self.deep[each] or fed[each]]
            self.flows.append(tuple(taken))
        users = Counter(each for flow in self.flows for each in flow)
        for at, flow in enumerate(self.flows):
            self.only_user.update((each, at) for each in flow if users[each] == 1)
        self._undo_concatenations()
        appliers = Counter(name for step in self.steps if step.weighted for name in step.weights)
        for step in self.steps:
            step.reused = step.weighted and any(appliers[name] > 1 for name in step.weights)

    def _undo_concatenations(self) -> None:
        """A tensor joined to itself and split again is whole (the two streams of a Reformer start so)."""
        for step in self.steps:
            if not step.partial or len(step.inputs) != 1 or self.producer[step.inputs[0]] < 0:
                continue
            joined = self.steps[self.producer[step.inputs[0]]]
            if joined.sort == "concat" and len(set(joined.inputs)) == 1:
                whole = self.shape[joined.inputs[0]]
                step.partial = any(self.shape[each] != whole for each in step.outputs)

    def _live(self) -> list[bool]:
        """Steps whose results reach the output; not the copies that autograd makes of what is then overwritten."""
        ends = [each for each in self.outputs if self.data[each]]
        if not ends:  # an output of a sort that shows no tensor
            return [True] * len(self.steps)
        needed = bytearray(len(self.producer))
        for each in ends:
            needed[each] = 1
        live = [False] * len(self.steps)
        for at in range(len(self.steps) - 1, -1, -1):
            step = self.steps[at]
            if any(needed[each] for each in step.outputs):
                live[at] = True
                for each in step.inputs:
                    needed[each] = 1
        return live

    def _fed(self) -> list[bool]:
        """Shallow floats that a weight takes, or that come of such: the raw input, as against a mask."""
        fed = [False] * len(self.producer)
        for step in reversed(self.steps):
            if any(self.deep[each] for each in step.inputs):
                continue
            if step.weighted or any(fed[each] for each in step.outputs):
                for each in step.inputs:
                    if self.data[each]:
                        fed[each] = True
        fed = [mark and self.floating[value] for value, mark in enumerate(fed)]
        for step in self.steps:
            if any(fed[each] for each in step.inputs):
                for each in step.outputs:
                    fed[each] = fed[each] or (self.floating[each] and not self.deep[each])
        return fed

    def label(self, value: int) -> str:
        """Name of a value: of the outermost module that gives it, else module, colon and operation."""
        return self.given.get(value) or self.place(value)

    def place(self, value: int) -> str:
        """The module in which a value arises, a colon and the operation.

        What the model's own code does, between calls of its modules, is named after the last of them with a layer.
        """
        at = self.producer[value]
        call, before = self.steps[at].call, at
        while call < 0 and before > 0:
            before -= 1
            call = self.steps[before].call if self.steps[before].weighted else -1
        while before < at and call >= 0 and self.calls[call].parent >= 0:
            call = self.calls[call].parent
        inside = self.calls[call].label if call >= 0 else ""
        return f"{inside}:{self.steps[at].name}"
