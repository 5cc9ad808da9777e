"""What each arm of a part is: the fields that it sets, in words and with their papers, and what depth decided in it.

A learning rate (or another field) that was tuned is left to the section on tuning.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from depthscope.analysis.places import written as place_of
from depthscope.analysis.table import ResultRow, Results
from depthscope.report import sections
from depthscope.report.citations import BIBTEX, short
from depthscope.report.content import View
from depthscope.report.recipe import written
from depthscope.report.words import Words
from depthscope.study.catalog import CATALOG
from depthscope.study.run import OPTION_FIELDS, RunSpec
from depthscope.study.study import Arm

_OPTIONS_OF: dict[str, str] = {kind: field for field, kind in OPTION_FIELDS.items()}
Setting = dict[str, Any]
"""key: the field; named: whether its value is a name of the catalogue or user code; of: of an option the name that it
belongs to, else empty; code: as a file says it;
text: what it is; papers: of (short citation, title)."""


def arms(results: Results, view: View, words: Words) -> list[dict[str, Any]]:
    """What the arms of a view are, in the study's order; before them what holds unless an arm says otherwise.

    Empty where there is nothing to say of any. What a number means is told where it comes first.
    """
    part = results.study.parts[view.part]
    tuned = results.study.tuned.field if results.study.tuned else None
    rows: dict[str, list[ResultRow]] = {}
    for row in view.rows:
        rows.setdefault(row.cell.arm, []).append(row)
    made = {series.name: _fields(part.arm(series.name).set, tuned) for series in view.series}
    found: list[dict[str, Any]] = []
    shared = list(_unless(made, rows, words))
    if shared:
        found.append(
            {"label": words("arms.unless"), "symbol": None, "settings": _merged(shared), "note": "", "derived": ""}
        )
    known = {each["key"] for each in shared}
    for series in view.series:
        arm = part.arm(series.name)
        settings = _merged(_settings(made[arm.name], _specs(rows[arm.name]), words), known)
        found.append(
            {
                "label": series.label,
                "symbol": sections.symbol(series),
                "settings": [*settings, *_cases(arm, tuned, rows[arm.name], words)],
                "note": words.pick(arm.note),
                "derived": _derived(rows[arm.name], words),
            }
        )
    return found if any(each["settings"] or each["note"] or each["derived"] for each in found) else []


def _merged(settings: Iterable[Setting], known: Container[str] = ()) -> list[Setting]:
    """What an arm sets in few lines: options under the name that they are of, and numbers whose meaning is known.

    Args:
        settings: one for each name.
        known: keys whose meaning stands above already.
    """
    lines: dict[str, list[Setting]] = {}
    for each in settings:
        line = each["key"]
        if not each["named"]:
            line = each["key"].partition(".")[0] if each["of"] else "numbers" if each["key"] in known else line
        lines.setdefault(line, []).append({**each, "text": ""} if each["key"] in known and not each["named"] else each)
    return [found[0] if found[0]["named"] else _line(found) for found in sorted(lines.values(), key=_last)]


def _last(line: Sequence[Setting]) -> int:
    """Names first, then numbers, then options."""
    return 0 if line[0]["named"] else 2 if line[0]["of"] else 1


def _line(settings: Sequence[Setting]) -> Setting:
    """Numbers, or the options of one name, in one line; where there are several each says which its meaning is of."""
    first, alone = settings[0], len(settings) == 1
    codes, texts = [], []
    for each in settings:
        short = each["key"].partition(".")[2] if each["of"] else each["key"]
        codes.append(each["code"].removeprefix(each["key"].removesuffix(short)))
        texts += [each["text"] if alone else f"{short}: {each['text']}"] if each["text"] else []
    code = ", ".join(codes)
    return {**first, "code": f"{first['of']}: {code}" if first["of"] else code, "text": "; ".join(texts)}


def _fields(given: Mapping[str, Any], tuned: str | None) -> list[str]:
    """The names of what is set, options as `field.option`, in the order of a run's fields, without what was tuned."""
    flat = [
        name
        for field, value in given.items()
        for name in ([f"{field}.{option}" for option in value] if isinstance(value, Mapping) else [field])
    ]
    order = list(RunSpec.model_fields)
    return sorted((name for name in flat if name != tuned), key=lambda name: order.index(name.partition(".")[0]))


def _specs(rows: Iterable[ResultRow]) -> list[dict[str, Any]]:
    return [row.spec.model_dump(mode="json") for row in rows]


def _unless(
    made: Mapping[str, Sequence[str]], rows: Mapping[str, Sequence[ResultRow]], words: Words
) -> Iterator[Setting]:
    """Of the fields that some arms set, their value in the others."""
    set_by_some = _fields(dict.fromkeys(name for names in made.values() for name in names), None)
    for name in set_by_some:
        kind = OPTION_FIELDS.get(name.partition(".")[0])
        if kind not in set_by_some:  # an option of what the arms choose has no value in the others
            others = [row for arm, names in made.items() if name not in names for row in rows[arm]]
            yield from _settings([name], _specs(others), words)


def _settings(names: Sequence[str], specs: Sequence[Mapping[str, Any]], words: Words) -> Iterator[Setting]:
    """One setting for each name (with its options) and each number that the specs share; none where they differ."""
    told = {_OPTIONS_OF[name] for name in names if name in _OPTIONS_OF}
    for name in names:
        field, _, option = name.partition(".")
        values = [spec[field].get(option) if option else spec[field] for spec in specs]
        if field in told or not values or values[0] is None or any(value != values[0] for value in values):
            continue
        if field in CATALOG:
            yield _named(field, values[0], names, specs, words)
        else:
            key = f"arms.field.{name}"
            text = words(key) if key in words.table else ""
            code = f"{name} = {written(values[0])}"
            of = _of(field, specs) if option else ""
            yield {"key": name, "named": False, "of": of, "code": code, "text": text, "papers": []}


def _of(field: str, specs: Sequence[Mapping[str, Any]]) -> str:
    """The name that options are of, where the specs share it; else that of their field."""
    names = {spec[OPTION_FIELDS[field]] for spec in specs}
    return str(names.pop()) if len(names) == 1 else field


def _named(kind: Any, name: str, names: Sequence[str], specs: Sequence[Mapping[str, Any]], words: Words) -> Setting:
    entry = CATALOG[kind].get(name)
    field = _OPTIONS_OF.get(kind)
    code = [f"{kind} = {name}"]
    for option, value in (specs[0][field] if field else {}).items():
        standard = entry is not None and entry.options.get(option) == value and f"{field}.{option}" not in names
        if not standard and all(spec[str(field)].get(option) == value for spec in specs):
            code.append(f"{option} = {written(value)}")
    sources = entry.sources if entry else ()
    summary = entry.summary if entry else words("arms.user_code")
    return {
        "key": kind,
        "named": True,
        "of": "",
        "code": ", ".join(code),
        "text": words.table.get(f"name.{kind}.{name}", summary),
        "papers": [short(BIBTEX[source], words("arms.et_al")) for source in sources],
    }


def _cases(arm: Arm, tuned: str | None, rows: Sequence[ResultRow], words: Words) -> Iterator[Setting]:
    """What the arm sets at some places alone."""
    for case in arm.at:
        mine = [row for row in rows if all(row.cell.axes.get(axis) == value for axis, value in case.where.items())]
        where = words("list").join(f"{words.axis(axis)} {place_of(value)}" for axis, value in case.where.items())
        for each in _settings(_fields(case.set, tuned), _specs(mine), words):
            yield {**each, "text": words("arms.case", where=where, text=each["text"]).rstrip()}


def _derived(rows: Sequence[ResultRow], words: Words) -> str:
    """What depth decided, of the records: `slope of the leaky ReLU 0.43 at depth 56`."""
    found: dict[str, dict[int, str]] = {}
    for row in sorted(rows, key=lambda each: each.spec.depth):
        for name, value in (row.record.derived if row.record else {}).items():
            found.setdefault(name, {})[row.spec.depth] = written(value)
    told = []
    for name, values in found.items():
        what = words.table.get(f"derived.{name}", name)
        if len(set(values.values())) == 1 and len(values) > 1:
            where = words("arms.everywhere", value=next(iter(values.values())))
        else:
            where = words("list").join(words("arms.at_depth", value=value, depth=at) for at, value in values.items())
        told.append(words("arms.derived_one", what=what, values=where))
    return words("arms.derived", told=words("recipe.comma").join(told)) if told else ""
