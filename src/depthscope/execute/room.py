"""Whether a cluster has a machine with room for a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from depthscope.study.resources import Resources

Node = Mapping[str, float]
"""What a machine has, as Ray names it: CPU and GPU in pieces, memory in bytes."""


def demand(resources: Resources) -> dict[str, float]:
    """What a run needs, as Ray names it."""
    needs = {"CPU": resources.cpus, "GPU": resources.gpus}
    if resources.memory_gb is not None:
        needs["memory"] = resources.memory_gb * 1e9
    return needs


def without_room(wanted: Iterable[Resources], nodes: Sequence[Node]) -> list[str]:
    """A line for each of what is wanted that no machine has, even when it is idle.

    >>> without_room([Resources(), Resources(gpus=99)], [{"CPU": 2.0, "memory": 8e9}])
    ['[resources] cpus = 1, gpus = 99: no machine there has that much (2 CPUs, 0 GPUs, 8 GB)']
    """
    lines = []
    for resources in sorted(set(wanted), key=repr):
        needs = demand(resources)
        if not any(all(node.get(kind, 0.0) >= amount for kind, amount in needs.items()) for node in nodes):
            lines.append(f"{_asked(resources)}: no machine there has that much ({_offered(nodes)})")
    return lines


def _asked(resources: Resources) -> str:
    memory = "" if resources.memory_gb is None else f", memory_gb = {resources.memory_gb:g}"
    return f"[resources] cpus = {resources.cpus:g}, gpus = {resources.gpus:g}{memory}"


def _offered(nodes: Sequence[Node]) -> str:
    kinds = sorted({(each.get("CPU", 0.0), each.get("GPU", 0.0), each.get("memory", 0.0)) for each in nodes})
    words = [f"{cpus:g} CPUs, {gpus:g} GPUs, {memory / 1e9:.3g} GB" for cpus, gpus, memory in reversed(kinds[-4:])]
    return "; ".join(words) or "there is none"
