"""Which additions are residual, which products are gates, which concatenations join different data.

One walk serves all three. From the operands of an operation, values are visited backward, youngest first (a heap by
number), each with what is known of the ways from it to each operand. Where only one value is left to visit,
all that lies before it is common to the operands, and the walk ends: x + .044715 x^3 of a hand-written GELU ends
at x, the halves of a rotary embedding at the query, both without having met a parameter.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from depthscope.probes.trace.graph import Graph, Step

_DEAD, _IDENTITY, _PROJECTION = -1, 0, 1
"""Of the ways from a value to an operand, the plainest: none plain, the same data, through one linear layer."""
_NOT_REACHED, _BARE, _NORMED, _LAYER, _LAYERS = -1, 0, 1, 2, 3
"""And the richest: no way, without parameters, with those of a normaliser or by mixing positions, through one weight,
through several."""

_PLAIN = frozenset(["shape", "part", "conv", "multiply", "add", "concat", "pool", "dropout", "pad", "where", "norm"])
"""What leaves data the same for a shortcut: a change of shape or scale, pooling and padding (option A), a fixed filter,
a norm (that of a projection), further additions; a product of two tensors and a narrow part do not."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A residual addition.

    Attributes:
        step: index of its step.
        source: the value x that both operands come of.
        skip: the operand that reaches x plainly.
        branch: the other.
        skip_first: whether the skip is the first operand.
    """

    step: int
    source: int
    skip: int
    branch: int
    skip_first: bool


def operands(graph: Graph, at: int) -> tuple[int, int] | None:
    """The two operands of an addition through which data flows; None where there are not two.

    Of `addcmul` (x + c a b) the second is whichever of the factors carries more of the data.
    """
    step, flows = graph.steps[at], graph.flows[at]
    if step.sort != "add" or len(step.inputs) < 2 or not step.outputs:
        return None
    taken = set(flows)
    if step.base == "lerp" and len(step.inputs) > 2 and step.inputs[2] in taken:
        return None  # a weight that depends on the input: a gate
    first, *others = step.inputs
    other = max((each for each in others if each in taken), default=-1)
    if first not in taken or other < 0 or first == other:
        return None
    return first, other


def residual(graph: Graph, at: int) -> Found | None:
    """Whether a step is a residual addition skip(x) + F(x).

    The rule: some value x reaches one operand plainly (see `_PLAIN`; through at most one linear layer, the projection
    of a shortcut that changes the shape) and the other through parameters, with at least two weights in F where
    the shortcut has one: two parallel projections W x + U x are one linear map. A product of two
    tensors that depend on the input ends a plain way, so the carry gate of a Highway layer and the cell of an LSTM are
    no shortcuts. The sum of two branches, attention(x) + mlp(x) in GPT-J, GPT-NeoX and Falcon, is not residual: neither
    operand carries x. The addition of that sum to x is; x + attention + mlp, added one by one, has two.
    """
    pair = operands(graph, at)
    if pair is None or _interpolates(graph, at, pair):
        return None
    shape = graph.shape[graph.steps[at].outputs[0]]
    wide = [graph.shape[each] == shape for each in pair]  # a shortcut carries all of x; what is broadcast conditions it
    if not any(wide) or not all(graph.floating[each] for each in pair) or _scores(graph, graph.steps[at].outputs[0]):
        return None
    # plainest and richest way to each operand
    ways = {
        pair[0]: [_IDENTITY if wide[0] else _DEAD, _BARE, _DEAD, _NOT_REACHED],
        pair[1]: [_DEAD, _NOT_REACHED, _IDENTITY if wide[1] else _DEAD, _BARE],
    }
    heap = [-each for each in ways]
    heapify(heap)
    alive = sum(1 for way in ways.values() if way[0] >= 0 or way[2] >= 0)
    while heap and alive:
        value = -heappop(heap)
        way = ways.pop(value)
        alive -= way[0] >= 0 or way[2] >= 0
        for side in (0, 2):
            plain, rich = way[side], way[2 - side + 1]
            if graph.floating[value] and plain >= 0 and rich >= (_NORMED if plain == _IDENTITY else _LAYERS):
                return Found(
                    step=at,
                    source=value,
                    skip=pair[side // 2],
                    branch=pair[1 - side // 2],
                    skip_first=side == 0,
                )
        if not heap or graph.producer[value] < 0:
            continue
        step, taken = graph.steps[graph.producer[value]], graph.flows[graph.producer[value]]
        past = _passed(graph, step, taken, way)
        for each in taken:
            old = ways.get(each)
            if old is None:
                ways[each] = list(past)
                heappush(heap, -each)
                alive += past[0] >= 0 or past[2] >= 0
                continue
            alive -= old[0] >= 0 or old[2] >= 0
            for side in (0, 2):
                old[side] = min((entry for entry in (old[side], past[side]) if entry >= 0), default=_DEAD)
                old[side + 1] = max(old[side + 1], past[side + 1])
            alive += old[0] >= 0 or old[2] >= 0
    return None


def _passed(graph: Graph, step: Step, taken: tuple[int, ...], way: list[int]) -> list[int]:
    """The ways of a step's inputs, from those of its output."""
    past = list(way)
    for side in (0, 2):
        plain, rich = way[side], way[side + 1]
        if step.weighted and step.sort in ("product", "conv") and plain == _IDENTITY and not step.reused:
            past[side] = _PROJECTION
        elif step.weighted or step.partial or step.sort not in _PLAIN or (step.sort == "multiply" and len(taken) > 1):
            past[side] = _DEAD
        if rich < 0:
            continue
        if step.weighted:
            past[side + 1] = _LAYERS if rich >= _LAYER else _LAYER
        elif _mixes(step, taken) or (step.sort == "norm" and step.weights):
            past[side + 1] = max(rich, _NORMED)
    return past


def _mixes(step: Step, taken: tuple[int, ...]) -> bool:
    """Whether a step joins positions without a weight: a Fourier transform (FNet), attention, a scan (Mamba-2)."""
    return step.sort == "mixing" or (step.sort in ("product", "attention") and len(taken) > 1)


def _interpolates(graph: Graph, at: int, pair: tuple[int, int]) -> bool:
    """Whether a step is part of n + z (h - n) with a z that depends on the input: a GRU's gate by another name."""

    def product(value: int) -> int:
        step = graph.producer[value]
        return step if step >= 0 and graph.steps[step].sort == "multiply" and len(graph.flows[step]) > 1 else -1

    def differences(step: int) -> list[int]:
        producers = [graph.producer[each] for each in graph.flows[step]]
        return [each for each in producers if each >= 0 and graph.steps[each].base in ("sub", "rsub")]

    ends = [(at, pair)]
    scaled = graph.only_user.get(graph.steps[at].outputs[0], -1)
    if scaled >= 0 and graph.steps[scaled].outputs:
        user = graph.only_user.get(graph.steps[scaled].outputs[0], -1)
        if user >= 0 and at in differences(scaled) and (other := operands(graph, user)) is not None:
            ends.append((user, other))
    for _, (first, second) in ends:
        for one, two in ((first, second), (second, first)):
            scaled = product(two)
            if scaled >= 0 and any(one in graph.flows[each] for each in differences(scaled)):
                return True
    return False


def _scores(graph: Graph, value: int) -> bool:
    """Whether a value goes straight into a softmax: attention scores and their bias."""
    for _ in range(8):
        user = graph.only_user.get(value, -1)
        if user < 0:
            return False
        step = graph.steps[user]
        if step.name == "softmax":
            return True
        if step.sort not in ("shape", "multiply", "where", "add") or len(graph.flows[user]) > 1 or not step.outputs:
            return False
        value = step.outputs[0]
    return False


def differ(graph: Graph, values: list[int], *, parts: bool) -> tuple[bool, int, frozenset[int]]:
    """Whether values differ by a weight on the way from what they have in common.

    Args:
        graph: of the pass.
        values: two or more.
        parts: whether pieces of one tensor count as different too (the halves of a GLU).

    Returns:
        Whether they differ; else the value that they all are functions of (-1: none), and the steps between.
    """
    reach = dict.fromkeys(values, 0)
    for at, each in enumerate(values):
        reach[each] |= 1 << at
    everyone = (1 << len(values)) - 1
    heap = [-each for each in reach]
    heapify(heap)
    between: set[int] = set()
    while heap:
        value = -heappop(heap)
        marks = reach.pop(value)
        if not heap:
            return False, value, frozenset(between)
        producer = graph.producer[value]
        if producer < 0:
            if marks != everyone and graph.deep[values[0]]:
                return True, -1, frozenset()
            continue
        step = graph.steps[producer]
        if marks != everyone and (step.weighted or (parts and step.partial)):
            return True, -1, frozenset()
        between.add(producer)
        for each in graph.flows[producer]:
            if each not in reach:
                reach[each] = 0
                heappush(heap, -each)
            reach[each] |= marks
    return False, -1, frozenset()


def is_gate(graph: Graph, at: int) -> bool:
    """Whether a step multiplies two tensors that depend on the input through different parameters."""
    step, flows = graph.steps[at], graph.flows[at]
    if step.base == "glu":
        return True
    if step.sort != "multiply" or len(flows) < 2 or not all(graph.deep[each] for each in flows):
        return step.base == "lerp" and len(step.inputs) > 2 and step.inputs[2] in flows
    return differ(graph, list(flows), parts=True)[0]


def is_concatenation(graph: Graph, at: int) -> bool:
    """Whether a step joins tensors that differ by a weight: not the halves of a rotary embedding."""
    step, flows = graph.steps[at], graph.flows[at]
    return (
        step.base in ("cat", "concat", "concatenate", "hstack", "vstack", "dstack", "_cat")
        and len(flows) > 1
        and differ(graph, list(flows), parts=False)[0]
    )
