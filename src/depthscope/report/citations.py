"""BibTeX of just what a study used. The entries stand in `assets/sources.bib`, a blank line between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib import resources
from types import MappingProxyType

from depthscope.core.errors import UserError, unknown_name
from depthscope.study.catalog import CATALOG
from depthscope.study.expand import Plan


def _read(text: str) -> dict[str, str]:
    entries = [entry.strip() for entry in text.split("\n\n")]
    return {re.split(r"[{,]", entry, maxsplit=2)[1]: entry for entry in entries if entry}


BIBTEX: Mapping[str, str] = MappingProxyType(
    _read((resources.files("depthscope.report") / "assets" / "sources.bib").read_text(encoding="utf-8"))
)
"""key -> BibTeX entry."""

LANDSCAPE_SOURCES = ("li2018landscape",)
"""Of maps of the loss."""


def citations(plan: Plan) -> tuple[str, ...]:
    """Keys of what the plan's runs use, then those that the study names; each once, in the order of use."""
    used: dict[str, None] = {}
    for spec in plan.runs.values():
        for kind, names in CATALOG.items():
            chosen = spec.measures if kind == "measure" else (getattr(spec, kind),)
            for name in chosen:
                if name in names:  # user code has no entry
                    used.update(dict.fromkeys(names[name].sources))
    if plan.study.landscape is not None:
        used.update(dict.fromkeys(LANDSCAPE_SOURCES))
    used.update(dict.fromkeys(plan.study.sources))
    return tuple(used)


def bibtex(keys: Iterable[str]) -> str:
    """The entries of these keys, a blank line between them.

    Raises:
        UserError: a key that the bibliography does not hold.
    """
    keys = tuple(keys)
    for key in keys:
        if key not in BIBTEX:
            raise UserError(unknown_name("source", key, BIBTEX))
    return "\n\n".join(BIBTEX[key] for key in keys)


def short(entry: str, et_al: str = " et al.") -> tuple[str, str]:
    """(authors and year, title) of a BibTeX entry.

    >>> short(BIBTEX["zhang2019fixup"])
    ('Zhang et al. 2019', 'Fixup Initialization: Residual Learning Without Normalization')
    """
    read = dict(re.findall(r"^\s*(author|title|year) = \{(.*?)\},?$", entry, re.MULTILINE))
    names = [each.split(",")[0] for each in re.sub(r"[{}]", "", read["author"]).split(" and ")]
    authors = " & ".join(names) if len(names) < 3 else names[0] + et_al
    return f"{authors} {read['year']}", re.sub(r"[{}]", "", read["title"])
