"""The narrow places of the data flow, and which of them are the boundaries between blocks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from depthscope.probes.trace.graph import Graph


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A value through which all data flows.

    Attributes:
        value: its number.
        step: index of the step that gives it; -1 for an input.
    """

    value: int
    step: int


@dataclass(frozen=True, kw_only=True)
class Edges:
    """Where the blocks begin and end.

    Attributes:
        cuts: from the input to the output; one more than blocks.
        path: indices of all steps on the way of the data, ascending.
    """

    cuts: tuple[Cut, ...]
    path: tuple[int, ...]


def _path(graph: Graph) -> tuple[int, ...]:
    """Steps on the way from the inputs to the output, by one sweep backward."""
    needed = bytearray(len(graph.producer))
    needed[graph.output] = 1
    path = []
    for at in range(len(graph.steps) - 1, -1, -1):
        if graph.flows[at] and any(needed[each] for each in graph.steps[at].outputs):
            path.append(at)
            for each in graph.flows[at]:
                needed[each] = 1
    return tuple(reversed(path))


def _cuts(graph: Graph, path: tuple[int, ...]) -> list[Cut]:
    """Values that are alone alive at some time, in order: linear in the steps.

    In any order of execution all ancestors of a vertex cut come before it and all its descendants after it, so
    a value is a cut just where it alone is still to be used when it is born. An input is alive from its first use: what
    enters late, such as the tokens of a decoder, passes none of the earlier cuts, as a parameter passes none.
    """
    last: dict[int, int] = {}
    for at in path:
        last.update(dict.fromkeys(graph.flows[at], at))
    last[graph.output] = len(graph.steps)
    alive: set[int] = set()
    cuts = []
    for number, at in enumerate(path):
        alive.update(graph.flows[at])
        if number == 0 and len(alive) == 1:
            cuts.append(Cut(value=next(iter(alive)), step=-1))
        alive.difference_update([each for each in graph.flows[at] if last[each] == at])
        alive.update(each for each in graph.steps[at].outputs if each in last)
        if len(alive) == 1:
            cuts.append(Cut(value=next(iter(alive)), step=at))
    return cuts


def edges(graph: Graph, additions: frozenset[int]) -> Edges | None:
    """The boundaries: what goes into each segment that holds a weight, the model's input and its output.

    Segments lie between neighbouring cuts. Those without a weight (normalisers, activations, pooling; see `_holding`)
    belong to the block before them, so that a block of Linear-BN-ReLU ends at the ReLU's output, that of a Post-LN
    transformer at the normaliser's; but to the block after them where a module holds them together with its weight:
    a pre-activation unit begins at the sum, with or without its skip. What follows the last block before
    the head (the final normaliser of a pre-activation network, the global pooling) is the head's, so far as the block
    before ends sooner: x_L lies where x_{L-1} does.

    Args:
        graph: of the pass.
        additions: steps that are residual additions.

    Returns:
        None where the output does not depend on the input.
    """
    if graph.output < 0 or not graph.data[graph.output]:
        return None
    path = _path(graph)
    if not path:
        return None
    cuts = _cuts(graph, path)
    first = Cut(value=graph.flows[path[0]][0], step=-1)
    if not cuts or cuts[0].step >= 0:
        cuts.insert(0, first)
    if cuts[-1].value != graph.output:
        cuts.append(Cut(value=graph.output, step=path[-1]))
    inside = _inside(path, cuts)
    weighted = _holding(graph, inside, additions)
    begins = [_begin(graph, inside, before, at) for before, at in pairwise(weighted)]
    starts = [_before_shape(graph, inside, at, before + 1) for before, at in zip(weighted, begins, strict=False)]
    if len(weighted) > 2:
        starts[-1] = _alike(graph, inside, weighted, starts, additions)
    chosen = [cuts[0], *(cuts[at] for at in starts), cuts[-1]]
    return Edges(cuts=tuple(chosen), path=path)


def _inside(path: tuple[int, ...], cuts: list[Cut]) -> list[list[int]]:
    """Steps of each segment: after its first cut, up to and with its second."""
    inside: list[list[int]] = [[] for _ in cuts[1:]]
    at = 0
    for step in path:
        while at + 1 < len(inside) and step > cuts[at + 1].step:
            at += 1
        inside[at].append(step)
    return inside


def _holding(graph: Graph, inside: list[list[int]], additions: frozenset[int]) -> list[int]:
    """Segments that hold a weight or a residual addition (of a branch without weights: pooling, Fourier).

    Embeddings that are added to the first one, such as those of positions, are part of the stem.
    """
    holding: list[int] = []
    only_embeddings = True
    for at, steps in enumerate(inside):
        sorts = {graph.steps[each].sort for each in steps if graph.steps[each].weighted}
        if sorts or any(each in additions for each in steps):
            only_embeddings = only_embeddings and sorts == {"embedding"}
            if not (holding and only_embeddings):
                holding.append(at)
    return holding


def _begin(graph: Graph, inside: list[list[int]], before: int, at: int) -> int:
    """The segment that a block begins with: the weighted one, or what a module holds together with its weight."""

    def calls(step: int) -> list[int]:
        """Calls of modules around a step, outermost first."""
        found, call = [], graph.steps[step].call
        while call >= 0:
            found.append(call)
            call = graph.calls[call].parent
        return found[::-1]

    def common(one: list[int], other: list[int]) -> int:
        return next(
            (k for k, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), min(len(one), len(other))
        )

    def weight(segment: int, which: int) -> list[int]:
        steps = [each for each in inside[segment] if graph.steps[each].weighted] or inside[segment]
        return calls(steps[which])

    last, following = weight(before, -1), weight(at, 0)
    while at - 1 > before and inside[at - 1]:
        around = [calls(each) for each in inside[at - 1]]
        if any(common(each, following) <= common(each, last) for each in around):
            break
        at -= 1
    return at


def _only_shape(graph: Graph, steps: list[int]) -> bool:
    return all(graph.steps[each].sort in ("shape", "pad") for each in steps)


def _before_shape(graph: Graph, inside: list[list[int]], at: int, least: int) -> int:
    """The cut that begins segment `at`, moved back over mere changes of shape to where a module gives it.

    Of all cuts between which only the shape changes, the first that is the output of a module; else the first; never
    one that no operation gave.
    """
    run = [at]
    while run[-1] > least and _only_shape(graph, inside[run[-1] - 1]):
        run.append(run[-1] - 1)
    run.reverse()
    values = [graph.steps[inside[each - 1][-1]] for each in run]
    real = [each for each, step in zip(run, values, strict=True) if step.op >= 0 or each == at]
    named = [each for each in real if any(value in graph.given for value in graph.steps[inside[each - 1][-1]].outputs)]
    return (named or real)[0]


def _alike(
    graph: Graph, inside: list[list[int]], weighted: list[int], starts: list[int], additions: frozenset[int]
) -> int:
    """Where the last block before the head ends: as far after its last weight as the latest block of its like does."""

    def chain(block: int) -> list[tuple[int, tuple[str, ...]]]:
        """Segments between a block's weighted segment and the boundary after it, with their operations."""
        segments = range(weighted[block] + 1, starts[block])
        named = [(at, tuple(graph.steps[each].base for each in inside[at])) for at in segments]
        return [(at, names) for at, names in named if not _only_shape(graph, inside[at])]

    def has_addition(block: int) -> bool:
        return any(each in additions for each in inside[weighted[block]])

    last = len(starts) - 1
    like = next((each for each in range(last - 1, -1, -1) if has_addition(each) == has_addition(last)), None)
    if like is None:
        return starts[last]
    end = weighted[last] + 1
    mine, theirs = chain(last), chain(like)
    common = 0
    while common < min(len(mine), len(theirs)) and mine[common][1] == theirs[common][1]:
        end = mine[common][0] + 1
        common += 1
    if common == len(mine):
        return starts[last]
    return _before_shape(graph, inside, mine[common][0], end)
