"""What was held equal between arms, for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from depthscope.analysis.controls import Control, controls, things
from depthscope.analysis.pairing import flags, tuned_field
from depthscope.analysis.table import Results
from depthscope.report.paired import flag_text, named, some, span
from depthscope.report.words import Words


def by_design(results: Results, words: Words) -> list[str]:
    """Which settings differ between arms, and the study's own word on how its recipe was chosen."""
    made = controls(results)
    if not made:
        return recipe(results, words)
    fields = dict.fromkeys(field for each in made for field in _fields(results, each, words))
    told = words("control_by_design", fields=", ".join(fields)) if fields else words("control_no_field")
    return [told, *recipe(results, words)]


def recipe(results: Results, words: Words) -> list[str]:
    """The study's note on its recipe; empty where it has none."""
    text = words.pick(results.study.recipe)
    return [words("control_recipe", text=text)] if text else []


def control_cards(results: Results, words: Words) -> list[dict[str, Any]]:
    """For each pair of arms what was the same and what was not; places of the axes that agree are told once."""
    groups: dict[tuple[str, str, str, str], list[Control]] = {}
    for each in controls(results):
        facts = (each.same_data, each.same_order, each.same_augment, each.fields, bool(each.differing))
        only = (bool(each.only_baseline), bool(each.only_arm), each.seeds)
        groups.setdefault((each.part, each.baseline, each.arm, repr((facts, only))), []).append(each)
    return [
        {
            "pair": _pair(results, group[0], words),
            "places": _places(group, words),
            "items": [{"flag": False, **item} for item in _items(results, group, words) if item],
        }
        for group in groups.values()
        if group[0].seeds
    ]


def _pair(results: Results, control: Control, words: Words) -> str:
    part = results.study.parts[control.part]
    names = [words.pick(part.arm(name).label, name) for name in (control.baseline, control.arm)]
    pair = words("pair", a=names[0], b=names[1])
    return f"{words.pick(part.title, control.part)}{words('colon')}{pair}" if len(results.study.parts) > 1 else pair


def _places(group: Sequence[Control], words: Words) -> str:
    found = []
    for key in group[0].axes:
        values = dict.fromkeys(str(each.axes[key]) for each in group)
        found.append(f"{words.axis(key)} {words('list').join(values)}")
    return words("recipe.comma").join(found)


def _items(results: Results, group: Sequence[Control], words: Words) -> list[dict[str, Any] | None]:
    first = group[0]

    def fact(value: bool | None, key: str) -> dict[str, Any] | None:
        if value is None:
            return None
        return {"held": value, "flag": not value, "text": words(f"{key}.{'same' if value else 'other'}")}

    shared = span([len(each.shared) for each in group])
    items: list[dict[str, Any] | None] = []
    if any(each.shared for each in group):
        key = "control.some_shared" if first.differing else "control.shared"
        items.append({"held": True, "text": words(key, count=shared, seeds=len(first.seeds))})
    if first.differing:
        names = some(first.differing)
        count = span([len(each.differing) for each in group])
        items.append({"held": False, "text": words("control.differing", count=count, names=names)})
    for only, key in ((first.only_arm, "only_arm"), (first.only_baseline, "only_baseline")):
        if only:
            count = span([len(getattr(each, key)) for each in group])
            items.append({"held": False, "text": words(f"control.{key}", count=count, names=some(only))})
    items.append(fact(first.same_data, "control.data"))
    spec = next(row.spec for row in results.rows if row.cell.part == first.part)
    if spec.steps != 0 and spec.batch_size is None:
        items.append({"held": True, "text": words("control.order.full")})
    elif spec.steps != 0:
        items.append(fact(first.same_order, "control.order"))
    if spec.steps != 0 and spec.augment != "none":
        items.append(fact(first.same_augment, "control.augment"))
    skipped = max(each.num_skipped for each in group)
    if skipped:
        items.append({"held": False, "text": words("control.skipped", count=skipped)})
    if first.fields:
        items.append({"held": False, "text": words("control.fields", fields=", ".join(_fields(results, first, words)))})
    told = [flag for flag in flags(first, tuned=_tuned(results, first)) if flag in ("several", "implied", "code")]
    varied = things(first.fields)
    drawn = [name for name in first.differing if name not in first.reshaped]
    items += [
        {"held": False, "flag": True, "text": flag_text(flag, words, varied=varied, differing=drawn)} for flag in told
    ]
    return items


def _tuned(results: Results, control: Control) -> str | None:
    sides = ((arm, control.axes) for arm in (control.baseline, control.arm))
    return tuned_field(results, control.part, *sides)


def _fields(results: Results, control: Control, words: Words) -> list[str]:
    """The fields in which two arms differ, with a word where one was tuned for both."""
    tuned, by = _tuned(results, control), results.study.tuned.by if results.study.tuned else ()
    return [named(field, words, tuned=tuned, by=by) for field in control.fields]
