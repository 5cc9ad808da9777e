"""Activations and normalisers written by hand from primitives: a product of two functions of the same tensor."""

from __future__ import annotations

from dataclasses import dataclass

from depthscope.core.structure import OpKind
from depthscope.probes.trace.additions import differ
from depthscope.probes.trace.graph import Graph


@dataclass(frozen=True, kw_only=True)
class Patterns:
    """What was recognised.

    Attributes:
        named: by the index of its last step, kind and name.
        inner: steps that are parts of it.
    """

    named: dict[int, tuple[OpKind, str]]
    inner: frozenset[int]


def _name(bases: set[str], centred: bool) -> tuple[OpKind, str] | None:
    if bases & {"rsqrt", "sqrt", "linalg_vector_norm", "norm"} or {"pow", "mean"} <= bases:
        if bases & {"mean", "var", "var_mean", "std", "linalg_vector_norm"}:
            return "norm", "layer" if centred or "sub" in bases or bases & {"var", "std", "var_mean"} else "rms"
        return None
    if bases & {"erf"} or {"tanh", "pow"} <= bases or ("tanh" in bases and "mul" in bases and "add" in bases):
        return "activation", "gelu"
    if {"tanh", "softplus"} <= bases:
        return "activation", "mish"
    if "sigmoid" in bases:
        return "activation", "silu"
    if bases & {"hardsigmoid"}:
        return "activation", "hardswish"
    return None


def patterns(graph: Graph, gates: frozenset[int]) -> Patterns:
    """Recognise products x * f(x) without a weight inside: GELU, SiLU and Mish, RMS and layer norms."""
    named: dict[int, tuple[OpKind, str]] = {}
    inner: set[int] = set()
    for at, step in enumerate(graph.steps):
        if step.sort != "multiply" or len(graph.flows[at]) < 2 or at in gates:
            continue
        different, source, between = differ(graph, list(graph.flows[at]), parts=True)
        if different or source < 0:
            continue
        bases = {graph.steps[each].base for each in between}
        producer = graph.producer[source]
        centred = producer >= 0 and graph.steps[producer].base == "sub" and len(graph.flows[producer]) > 1
        found = _name(bases, centred)
        if found is None:
            continue
        inner |= between
        scaled = _scaled(graph, at) if found[0] == "norm" else -1
        named[at if scaled < 0 else scaled] = found
        if scaled >= 0:
            inner.add(at)
        if found[1] == "layer" and centred:
            inner.add(producer)
            inner.update(graph.producer[each] for each in graph.flows[producer] if _is_mean(graph, each))
    return Patterns(named=named, inner=frozenset(inner))


def _scaled(graph: Graph, at: int) -> int:
    """The step that multiplies a normaliser's result by its gamma; -1 where there is none."""
    value = graph.steps[at].outputs[0]
    while (user := graph.only_user.get(value, -1)) >= 0 and graph.steps[user].sort == "shape":
        value = graph.steps[user].outputs[0]
    is_gamma = user >= 0 and graph.steps[user].sort == "multiply" and graph.steps[user].weights
    return user if is_gamma and len(graph.flows[user]) == 1 else -1


def _is_mean(graph: Graph, value: int) -> bool:
    at = graph.producer[value]
    return at >= 0 and graph.steps[at].base == "mean"
