"""Which layers are written: `filter=` of a watched training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from depthscope.core.errors import UserError, shown
from depthscope.core.readings import Reading
from depthscope.core.structure import Structure

Layer = int | str
WANTED = 'a glob pattern of names ("h.*"), an index of a block (0, 1, -2, -1), "mid", or a list of these'


def parsed(filter: object) -> tuple[Layer, ...] | None:
    """`filter` as a tuple of indices, "mid" and patterns; None for all.

    Raises:
        UserError: it is something else, or empty.
    """
    if filter is None:
        return None
    layers = tuple(filter) if isinstance(filter, Sequence) and not isinstance(filter, str | bytes) else (filter,)
    for each in layers:
        if isinstance(each, bool) or not isinstance(each, int | str) or each == "":
            raise UserError(f"watch: filter: wanted {WANTED}; got {shown(each)}.")
    if not layers:
        raise UserError(f"watch: filter: wanted {WANTED}; got an empty list, which would write nothing.")
    return layers


def chooser(layers: tuple[Layer, ...] | None, structure: Structure) -> Callable[[Reading], bool]:
    """Tells of a reading whether it is written: those of the whole model always are.

    An index counts the model's blocks from the input; it takes the block, the boundary at its end, its additions
    and its parameters. A pattern takes every name that it matches.

    Raises:
        UserError: an index that the model has not, or a pattern that matches no name of it.
    """
    if layers is None:
        return lambda _reading: True
    chosen: dict[str, set[str]] = {"block": set(), "boundary": set(), "addition": set(), "parameter": set()}
    for layer in layers:
        found = _by_index(layer, structure) if layer == "mid" or isinstance(layer, int) else _by_name(layer, structure)
        for place, names in found.items():
            chosen[place] |= names
    return lambda reading: reading.place == "model" or reading.name in chosen[reading.place]


def _by_index(layer: Layer, structure: Structure) -> dict[str, set[str]]:
    count = len(structure.blocks)
    index = count // 2 if isinstance(layer, str) else layer
    if not -count <= index < count:
        known = f"0 to {count - 1} or -1 to {-count}" if count else "none: its blocks were not recognised"
        raise UserError(f"watch: filter: the model has no block {layer}; it has {known}.")
    block = structure.blocks[index]
    return {
        "block": {block.name},
        "boundary": {structure.boundaries[block.index + 1].name},
        "addition": {structure.additions[each].name for each in block.additions},
        "parameter": set(block.weights),
    }


def _by_name(pattern: Layer, structure: Structure) -> dict[str, set[str]]:
    assert isinstance(pattern, str)
    names = {
        "block": [each.name for each in structure.blocks],
        "boundary": [each.name for each in structure.boundaries],
        "addition": [each.name for each in structure.additions],
        "parameter": [each.name for each in structure.parameters],
    }
    found = {place: {name for name in all_of if fnmatchcase(name, pattern)} for place, all_of in names.items()}
    if not any(found.values()):
        known = list(dict.fromkeys(name for all_of in names.values() for name in all_of))
        raise UserError(
            f"watch: filter: {pattern!r} matches no layer. Known, among {len(known)}: {', '.join(known[:8])}."
        )
    return found
