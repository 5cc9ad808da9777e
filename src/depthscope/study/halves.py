"""Arms that take half a repair: names whose paper has something with them that the arm does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator

from depthscope.study.catalog import CATALOG, Entry
from depthscope.study.expand import Plan
from depthscope.study.run import RunSpec


def half_repairs(plan: Plan) -> str | None:
    """One remark of all arms that take half a repair; None where there is none.

    It is no fault: to take a repair apart may be what the study is about.
    """
    arms: dict[str, list[str]] = {}
    for cell in plan.cells:
        for told in _halves(plan.runs[cell.run_id]):
            names = arms.setdefault(told, [])
            if cell.arm not in names:
                names.append(cell.arm)
    if not arms:
        return None
    told = "; ".join(
        f"{'arm' if len(names) == 1 else 'arms'} {', '.join(names)}: {what}" for what, names in arms.items()
    )
    return f"Half a repair? {told[0].upper()}{told[1:]}. It runs as it is."


def _halves(spec: RunSpec) -> Iterator[str]:
    family = CATALOG["family"].get(spec.family)
    for kind, entries in CATALOG.items():
        name = getattr(spec, kind, None)
        entry = entries.get(name) if isinstance(name, str) else None
        for field, values in entry.goes_with.items() if entry else ():
            # Of several values, those that the family has blocks for.
            possible = [each for each in values if family is None or each in family.accepts.get(field, values)]
            here = getattr(spec, field)
            if possible and here not in possible:
                yield (
                    f"{kind} {name!r} goes with {field} {' or '.join(map(repr, possible))} in its paper"
                    f"{_papers(entry)}; here {field} is {here!r}"
                )


def _papers(entry: Entry | None) -> str:
    """Author and year of each source, of its key in the bibliography: ` (Zhang 2019)`."""
    keys = [re.match(r"([a-z]+)(\d{4})", each) for each in (entry.sources if entry else ())]
    found = dict.fromkeys(f"{key[1].capitalize()} {key[2]}" for key in keys if key)
    return f" ({', '.join(found)})" if found else ""
