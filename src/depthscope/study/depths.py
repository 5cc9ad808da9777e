"""Which depths a run can have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from depthscope.core.depth import family_blocks
from depthscope.core.errors import shown
from depthscope.study.catalog import CATALOG, is_user_code


def depth_faults(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(field to mend, what is wrong) of the depth of a run, and of the one that a constructed run starts from.

    Args:
        values: the valid fields of a run; a rule over one that is absent is passed over.
    """

    def known(*fields: str) -> bool:
        return all(field in values for field in fields)

    if not known("family", "depth"):
        return
    family, depth = values["family"], values["depth"]
    if known("model_options"):
        yield from _family_faults(values, depth, "depth")
    if known("shortcut") and values["shortcut"] == "identity_2" and family in CATALOG["family"] and depth % 2:
        near = f"The nearest are {depth - 1} and {depth + 1}." if depth > 1 else "The smallest is 2."
        yield "depth", f"depth {depth} is odd, and two-layer branches need an even one. {near}"
    if values.get("init") == "constructed" and known("init_options", "model_options"):
        yield from _constructed_faults(values)


def _family_faults(values: Mapping[str, Any], depth: int, field: str) -> Iterator[tuple[str, str]]:
    try:
        family_blocks(values["family"], depth, **values["model_options"])
    except ValueError as error:
        yield field, str(error)


def _constructed_faults(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    family = str(values["family"])
    if is_user_code(family):
        yield "init", "'constructed' knows what an identity is in mlp and cifar_resnet alone; use another init."
        return
    shallow, init = values["init_options"]["from_depth"], values["init_options"]["init"]
    if shallow >= values["depth"]:
        yield "init_options.from_depth", f"wanted less than the depth, {values['depth']}; got {shallow}."
    yield from _family_faults(values, shallow, "init_options.from_depth")
    entry = CATALOG["family"].get(family)
    inits = [each for each in entry.accepts["init"] if each != "constructed"] if entry else []
    if entry and init not in inits:
        yield "init_options.init", f"{family!r} takes {' or '.join(shown(each) for each in inits)}, not {init!r}."
