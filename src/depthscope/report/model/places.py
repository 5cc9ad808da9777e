"""Names of places as an axis and a table write them, and what lies in a block in a few words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from depthscope.core.structure import Block, Op, Structure
from depthscope.report.numbers import number


def shared_prefix(names: Sequence[str]) -> str:
    """The modules that all of them lie in, with the dot after them.

    >>> shared_prefix(["transformer.h.0", "transformer.h.1:add", "transformer.ln_f"]), shared_prefix(["a", "b"])
    ('transformer.', '')
    """
    paths = [name.split(".") for name in names]
    common = 0
    while paths and all(len(path) > common + 1 and path[common] == paths[0][common] for path in paths):
        common += 1
    return "".join(f"{part}." for part in paths[0][:common]) if paths else ""


def axis_names(structure: Structure, first: str) -> tuple[list[str], str]:
    """The names of the boundaries for an axis, `first` for the model's input, and what was cut off before each.

    The output is the model's own: where it has no module's name, it does not hinder the cut.
    """
    names = [boundary.name for boundary in structure.boundaries[1:]]
    prefix = shared_prefix([name for name in names if name != "output"])
    return [first, *(name.removeprefix(prefix) for name in names)], prefix


def addition_places(structure: Structure) -> dict[str, float]:
    """Where each residual addition stands between the boundaries of its block."""
    found = {}
    for block in structure.blocks:
        for turn, index in enumerate(block.additions, start=1):
            found[structure.additions[index].name] = block.index + turn / len(block.additions)
    return found


def ends(structure: Structure) -> list[tuple[float, float]]:
    """The spans of stem and head between the boundaries."""
    return [(block.index, block.index + 1) for block in structure.blocks if block.role != "body"]


def contents(block: Block) -> str:
    """The operations of a block, equal ones counted, in the order of their first.

    >>> relu = Op(kind="activation", name="relu")
    >>> contents(Block(index=0, name="a", role="body", ops=(Op(kind="linear", name="addmm"), relu, relu)))
    'linear, 2 relu'
    """
    counts = Counter(_label(op) for op in block.ops if op.kind != "other")
    return ", ".join(label if count == 1 else f"{count} {label}" for label, count in counts.items())


def _label(op: Op) -> str:
    if op.kind == "norm":
        return f"{op.name} norm"
    if op.kind == "pool":
        return f"{op.name} pool"
    return op.name if op.kind == "activation" else op.kind


def some(names: Iterable[str], more: str, most: int = 4) -> str:
    """The first names of a list and how many there are beside them; `more` says `and {n} more`."""
    listed = list(names)
    if len(listed) <= most + 1:
        return ", ".join(listed)
    return f"{', '.join(listed[:most])} {more.format(n=len(listed) - most)}"


def figure(value: float | None) -> str:
    """A reading: three digits, powers of ten where it is small or large.

    >>> figure(0.40816), figure(1.23e-9), figure(float("nan")), figure(None)
    ('0.408', '1.2e−9', 'not finite', '–')
    """
    if value is None:
        return "–"
    if math.isnan(value):
        return "not finite"
    return number(value).replace("e−0", "e−").replace("e+0", "e").replace("e+", "e")


def fits(value: float) -> bool:
    """Whether a log axis can show a value."""
    return math.isfinite(value) and value > 0
