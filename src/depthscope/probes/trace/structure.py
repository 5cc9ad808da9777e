"""From the graph of a traced pass to the `Structure`, and where in the pass its parts stand."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from torch import nn

from depthscope.core.structure import Block, Boundary, Op, OpKind, Parameter, ResidualAddition, Role, Structure
from depthscope.probes.trace.additions import Found, is_concatenation, is_gate, residual
from depthscope.probes.trace.boundaries import Cut, Edges, edges
from depthscope.probes.trace.graph import Graph
from depthscope.probes.trace.patterns import Patterns, patterns

_KINDS: dict[str, OpKind] = {
    "conv": "conv",
    "embedding": "embedding",
    "recurrent": "recurrent",
    "attention": "attention",
    "norm": "norm",
    "activation": "activation",
    "multiply": "scale",
    "pool": "pool",
    "dropout": "dropout",
}


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a boundary is seen in a pass: in the outputs of an operation, or among the tensors that one takes.

    Attributes:
        op: number of the operation.
        at: position among its output tensors, or among the tensors of its arguments.
        taken: it is an argument: no operation gives it (the model's input; what lies under a write into a part).
    """

    op: int
    at: int
    taken: bool = False


@dataclass(frozen=True, kw_only=True)
class Positions:
    """Where the parts of a structure stand in the pass.

    Attributes:
        boundaries: by index; None where no operation shows it.
        additions: number of the operation of each.
        skip_first: whether the skip is the first operand of each.
    """

    boundaries: tuple[Place | None, ...]
    additions: tuple[int, ...]
    skip_first: tuple[bool, ...]


class _Names:
    """Names in the order given; a name that is taken gets `#k`."""

    def __init__(self) -> None:
        self._of: dict[int, str] = {}
        self._times: Counter[str] = Counter()

    def __call__(self, graph: Graph, value: int) -> str:
        if value not in self._of:
            label = graph.label(value)
            if label in self._times and value in graph.given:  # a module that gives several tensors
                label = graph.place(value)
            times = self._times[label]
            self._times[label] += 1
            self._of[value] = f"{label}#{times}" if times else label
        return self._of[value]


def structure_of(graph: Graph, model: nn.Module, used: set[str]) -> tuple[Structure, Positions]:
    """Read a structure off a graph.

    Args:
        graph: finished.
        model: that was traced, for its parameters.
        used: names of the parameters that some operation took.
    """
    found = [each for at in range(len(graph.steps)) if (each := residual(graph, at)) is not None]
    gates = frozenset(at for at in range(len(graph.steps)) if is_gate(graph, at))
    joins = frozenset(at for at in range(len(graph.steps)) if is_concatenation(graph, at))
    seen = patterns(graph, gates)
    reader = _Reader(graph, frozenset(each.step for each in found), gates, joins, seen)
    edge = edges(graph, reader.additions)
    names = _Names()
    boundaries, places = _boundaries(graph, edge, names)
    additions = _additions(graph, found, reader, edge, names)
    structure = Structure(
        boundaries=boundaries,
        blocks=_blocks(graph, reader, edge, boundaries, additions),
        additions=additions,
        num_concatenations=len(joins),
        num_gates=len(gates),
        parameters=_parameters(model, used),
    )
    positions = Positions(
        boundaries=places,
        additions=tuple(graph.steps[each.step].op for each in found),
        skip_first=tuple(each.skip_first for each in found),
    )
    return structure, positions


class _Reader:
    """Steps told as `Op`s."""

    def __init__(
        self, graph: Graph, additions: frozenset[int], gates: frozenset[int], joins: frozenset[int], seen: Patterns
    ) -> None:
        self.additions = additions
        self._graph, self._gates, self._joins, self._seen = graph, gates, joins, seen

    def ops(self, steps: Iterable[int]) -> tuple[Op, ...]:
        """Operations of steps in order, mere shape and the insides of recognised patterns left out."""
        return tuple(op for at in sorted(steps) if (op := self._op(at)) is not None)

    def _op(self, at: int) -> Op | None:
        step = self._graph.steps[at]
        if at in self._seen.inner or step.sort in ("shape", "part"):
            return None
        kind, name = self._kind(at), step.name
        if at in self._seen.named:
            kind, name = self._seen.named[at]
        module = self._graph.calls[step.call].module if step.call >= 0 else ""
        return Op(kind=kind, name=name, module=module, weights=step.weights, facts=dict(step.facts))

    def _kind(self, at: int) -> OpKind:
        step = self._graph.steps[at]
        if at in self.additions:
            return "residual"
        if at in self._gates:
            return "gate"
        if at in self._joins:
            return "concat"
        if step.sort == "product":
            return "linear" if step.weighted else "attention" if len(self._graph.flows[at]) > 1 else "other"
        if step.sort == "multiply" and len(self._graph.flows[at]) > 1:
            return "other"
        if step.name == "upsample":
            return "other"
        return _KINDS.get(step.sort, "other")


def _place(graph: Graph, cut: Cut) -> Place | None:
    if cut.value in graph.first_use:
        op, at = graph.first_use[cut.value]
        return Place(op=op, at=at, taken=True)
    if cut.step < 0:
        return None
    step = graph.steps[cut.step]
    return Place(op=step.op, at=graph.slots[cut.value]) if step.op >= 0 and cut.value in graph.slots else None


def _boundaries(
    graph: Graph, edge: Edges | None, names: _Names
) -> tuple[tuple[Boundary, ...], tuple[Place | None, ...]]:
    """Boundaries with their places; input and output alone where nothing is known between."""
    if edge is None:
        shape = graph.shape[graph.inputs[0]][1:] if graph.inputs else ()
        out = graph.shape[graph.output][1:] if graph.output >= 0 else ()
        ends = (Boundary(index=0, name="input", shape=shape), Boundary(index=1, name="output", shape=out))
        return ends, (None, None)
    first, *middle, last = edge.cuts
    listed = [Boundary(index=0, name="input", shape=graph.shape[first.value][1:])]
    for index, cut in enumerate(middle, 1):
        listed.append(Boundary(index=index, name=names(graph, cut.value), shape=graph.shape[cut.value][1:]))
    listed.append(Boundary(index=len(edge.cuts) - 1, name="output", shape=graph.shape[last.value][1:]))
    return tuple(listed), tuple(_place(graph, cut) for cut in edge.cuts)


def _additions(
    graph: Graph, found: list[Found], reader: _Reader, edge: Edges | None, names: _Names
) -> tuple[ResidualAddition, ...]:
    ends = [cut.step for cut in edge.cuts[1:-1]] if edge else []
    return tuple(
        ResidualAddition(
            index=index,
            name=names(graph, _shown(graph, each)),
            block=bisect_right(ends, each.step - 1),
            branch=reader.ops(_between(graph, each.source, each.branch)),
            skip=reader.ops(_between(graph, each.source, each.skip)),
        )
        for index, each in enumerate(found)
    )


def _shown(graph: Graph, found: Found) -> int:
    """The sum, or what a module gives of it after a mere change of shape."""
    value = graph.steps[found.step].outputs[0]
    at = value
    while at not in graph.given and (user := graph.only_user.get(at, -1)) >= 0 and graph.steps[user].sort == "shape":
        at = graph.steps[user].outputs[0]
    return at if at in graph.given else value


def _between(graph: Graph, source: int, end: int) -> set[int]:
    """Steps on ways from a value to a later one, and what else went into these since."""
    steps: set[int] = set()
    stack, seen = [end], {source, end}
    while stack:
        value = stack.pop()
        at = graph.producer[value]
        if value <= source or at < 0:
            continue
        steps.add(at)
        fresh = [each for each in graph.flows[at] if each not in seen]
        seen.update(fresh)
        stack.extend(fresh)
    return steps


def _blocks(
    graph: Graph,
    reader: _Reader,
    edge: Edges | None,
    boundaries: tuple[Boundary, ...],
    additions: tuple[ResidualAddition, ...],
) -> tuple[Block, ...]:
    count = len(boundaries) - 1
    inside: list[list[int]] = [[] for _ in range(count)]
    if edge is not None:
        ends = [cut.step for cut in edge.cuts[1:-1]]
        for at in edge.path:
            inside[bisect_right(ends, at - 1)].append(at)
    blocks = []
    for index in range(count):
        start, end = boundaries[index], boundaries[index + 1]
        ops = reader.ops(inside[index])
        changes = start.shape != end.shape
        role: Role = "body"
        if index == 0 and (changes or (edge is not None and not graph.floating[edge.cuts[0].value])):
            role = "stem"
        elif index == count - 1 and changes:
            role = "head"
        weights = tuple(dict.fromkeys(name for op in ops for name in op.weights))
        blocks.append(
            Block(
                index=index,
                name=end.name,
                role=role,
                ops=ops,
                additions=tuple(each.index for each in additions if each.block == index),
                weights=weights,
            )
        )
    return tuple(blocks)


def _parameters(model: nn.Module, used: set[str]) -> tuple[Parameter, ...]:
    names: dict[int, list[str]] = {}
    tensors: dict[int, nn.Parameter] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
        tensors[id(parameter)] = parameter
    return tuple(
        Parameter(
            name=all_names[0],
            shape=tuple(tensors[key].shape),
            aliases=tuple(all_names[1:]),
            trainable=tensors[key].requires_grad,
            used=any(name in used for name in all_names),
        )
        for key, all_names in names.items()
    )
