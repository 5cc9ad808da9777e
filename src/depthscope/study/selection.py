"""The study that chooses for another one, and the study that comes of its choices.

Tuning is a study of its own: every arm at every value of the grid, on seeds that the study itself does not run
and without its test set. What is chosen becomes an ordinary study file, so that the arrow stays straight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, get_args

from pydantic import ValidationError

from depthscope.core.errors import shown, unknown_name
from depthscope.study.catalog import CATALOG
from depthscope.study.cells import Cell, agrees
from depthscope.study.check import keys_of, place_faults
from depthscope.study.faults import found_in
from depthscope.study.overlay import layered, origin, overlap
from depthscope.study.run import OPTION_FIELDS, UNIDENTIFIED, RunSpec
from depthscope.study.study import Arm, Case, Part, StudySpec
from depthscope.study.tuning import Choice, Tuned, Tuning, best

USER_UNTESTED: Mapping[str, Any] = MappingProxyType({"num_test": 0})
"""What a data set of the user's own is given so that its test set is not opened."""

_MEND = "Tune again, or take [tuned] out."


def tuned_parts(study: StudySpec, tuning: Tuning) -> dict[str, Part]:
    """The parts whose arms are tuned: those named, else all that train."""
    if tuning.parts is not None:
        return {name: study.parts[name] for name in tuning.parts if name in study.parts}
    return {name: part for name, part in study.parts.items() if any(_trains(study, part, arm) for arm in part.arms)}


def is_selection(study: StudySpec) -> bool:
    """Whether the study's runs are those that a choice is made on: the whole grid, on the selection seeds."""
    tuning = study.tuning
    if tuning is None or study.claims:
        return False
    parts = tuned_parts(study, tuning).values()
    return bool(parts) and all(
        part.axes.get(tuning.field) == list(tuning.grid) and study.seeds_of(part) == tuning.selection_seeds
        for part in parts
    )


def selection_study(study: StudySpec) -> StudySpec:
    """The study whose runs decide the tuned values; a study of the same size, with no claims.

    Its runs hold `tuning.validation` examples out of their training sets and do not open the test set. It keeps
    `[tuning]`, which tells its page by what the values are compared.
    """
    tuning = study.tuning
    assert tuning is not None
    parts = {}
    for name, part in tuned_parts(study, tuning).items():
        arms = tuple(_choosing(arm, _held_out(study, part, arm, tuning)) for arm in part.arms)
        parts[name] = part.model_copy(
            update={
                "base": {**part.base, "measures": [], "measure_steps": []},
                "arms": arms,
                "axes": {**part.axes, tuning.field: list(tuning.grid)},
                "seeds": None,
            }
        )
    english, chinese = study.title.get("en"), study.title.get("zh")
    title = {
        **({"en": f"{english}: choosing {tuning.field}"} if english else {}),
        **({"zh": f"{chinese}：选择 {tuning.field}"} if chinese else {}),
    }
    update = {
        "name": f"{study.name}-tuning",
        "title": title,
        "question": None,
        "seeds": list(tuning.selection_seeds),
        "parts": parts,
        "claims": (),
        "landscape": None,
    }
    return StudySpec.model_validate(study.model_copy(update=update).model_dump())


def _choosing(arm: Arm, held_out: Mapping[str, Any]) -> Arm:
    """The arm of the selection: nothing is measured on the way, wherever the arm asks for it."""
    cases = [(case.where, _unmeasured(case.set)) for case in arm.at]
    at = tuple(Case(where=where, set=fields) for where, fields in cases if fields)
    return arm.model_copy(update={"set": {**_unmeasured(arm.set), **held_out}, "at": at})


def _unmeasured(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in fields.items() if field not in UNIDENTIFIED}


def with_choices(study: StudySpec, tuned: Tuned) -> StudySpec:
    """The study whose arms set the chosen values, with where they come from."""
    parts = {}
    for name, part in study.parts.items():
        arms = tuple(
            _with(arm, tuned.field, [each for each in tuned.choices if (each.part, each.arm) == (name, arm.name)])
            for arm in part.arms
        )
        parts[name] = part.model_copy(update={"arms": arms})
    update = {"name": f"{study.name}-tuned", "parts": parts, "tuning": None, "tuned": tuned}
    return StudySpec.model_validate(study.model_copy(update=update).model_dump())


def _with(arm: Arm, field: str, choices: Sequence[Choice]) -> Arm:
    """The arm that sets what was chosen: everywhere, or at the place that each choice is for."""
    everywhere = dict.fromkeys([field], choices[0].value) if choices and not choices[0].at else {}
    cases = [Case(where=choice.at, set={field: choice.value}) for choice in choices if choice.at]
    return arm.model_copy(update={"set": {**arm.set, **everywhere}, "at": (*arm.at, *cases)})


def tuning_faults(study: StudySpec) -> Iterator[tuple[str, str]]:
    """(path, message) of what `[tuning]` asks for and cannot have."""
    tuning = study.tuning
    if tuning is None or is_selection(study):
        return
    if not _is_number(tuning.field):
        yield "tuning.field", unknown_name("number among the fields of a run", tuning.field, _numbers())
        return
    for index, name in enumerate(tuning.parts or ()):
        if name not in study.parts:
            yield f"tuning.parts.{index}", unknown_name("part", name, study.parts)
    parts = tuned_parts(study, tuning)
    if not parts and tuning.parts is None:
        yield "tuning", "no part of the study trains, so that there is nothing to choose."
    for index, axis in enumerate(tuning.by):
        known = dict.fromkeys(known for part in parts.values() for known in part.axes)
        if parts and axis not in known:
            yield f"tuning.by.{index}", unknown_name("axis of the tuned parts", axis, known)
    yield from _metric_faults(study, tuning, parts)
    leave = "choose in other parts with tuning.parts"
    for name, part in parts.items():
        fixed = {key for arm in part.arms for key in _held_out(study, part, arm, tuning)}
        for index, arm in enumerate(part.arms):
            for below, fields in (("set", arm.set), *((f"at.{at}.set", case.set) for at, case in enumerate(arm.at))):
                for key in keys_of(fields):
                    path = f"parts.{name}.arms.{index}.{below}.{key}"
                    if overlap(key, tuning.field):
                        lost = f"would be lost: [tuning] chooses {tuning.field} for this arm."
                        yield path, f"{lost} Leave it away, or {leave}."
                    elif below != "set" and any(overlap(key, each) for each in fixed):
                        yield path, f"is set by [tuning] while it chooses. Leave it away, or {leave}."
        for axis in part.axes:
            if overlap(axis, tuning.field):
                message = f"[tuning] chooses {tuning.field}, so that no axis can vary it. Leave it away, or {leave}."
                yield f"parts.{name}.axes.{axis}", message
            elif any(overlap(axis, key) for key in fixed):
                yield f"parts.{name}.axes.{axis}", f"is set by [tuning] while it chooses. Leave it away, or {leave}."
        seeds = sorted({*study.seeds_of(part)} & {*tuning.selection_seeds})
        if seeds:
            yield "tuning.seeds", f"seed {seeds[0]} is run by part {name!r}; choose on seeds that it does not run."
    yield from _grid_faults(study, tuning, parts)


def tuned_faults(study: StudySpec, cells: Sequence[Cell]) -> Iterator[tuple[str, str]]:
    """(path, message) of where a study, which has these cells, no longer is what its `[tuned]` says."""
    tuned = study.tuned
    if tuned is None:
        return
    places: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for cell in cells:
        known = places.setdefault((cell.part, cell.arm), [])
        if not known or known[-1] is not cell.axes:  # the seeds of a place follow one another
            known.append(cell.axes)
    for index, choice in enumerate(tuned.choices):
        path = f"tuned.choices.{index}"
        if choice.part not in study.parts:
            yield f"{path}.part", unknown_name("part", choice.part, study.parts)
            continue
        part = study.parts[choice.part]
        arms = [arm.name for arm in part.arms]
        if choice.arm not in arms:
            yield f"{path}.arm", unknown_name("arm", choice.arm, arms)
            continue
        yield from _choice_faults(choice, tuned, path)
        yield from place_faults(part, choice.part, choice.at, f"{path}.at")
        at = arms.index(choice.arm)
        for held, where in _held(part.arms[at], tuned.field, places.get((choice.part, choice.arm), ()), choice):
            if held != choice.value:
                says = f"[tuned] says that {choice.value} was chosen. {_MEND}"
                yield f"parts.{choice.part}.arms.{at}.{where}", f"is {shown(held)}, and {says}"
                break
    for (name, arm), axes in places.items():
        if any((choice.part, choice.arm) == (name, arm) for choice in tuned.choices):
            without = next((place for place in axes if not tuned.chose(name, arm, place)), None)
            if without is not None:
                place = ", ".join(f"{axis} = {shown(without[axis])}" for axis in tuned.by if axis in without)
                yield (
                    "tuned.choices",
                    f"hold none for arm {arm!r} of part {name!r} at {place}, which is run. {_MEND}",
                )
    for name in dict.fromkeys(choice.part for choice in tuned.choices if choice.part in study.parts):
        part = study.parts[name]
        seeds = sorted({*study.seeds_of(part)} & {*tuned.seeds})
        if seeds:
            yield (
                "seeds" if part.seeds is None else f"parts.{name}.seeds",
                f"seed {seeds[0]} was used to choose {tuned.field} (tuned.seeds); run others.",
            )


def _choice_faults(choice: Choice, tuned: Tuned, path: str) -> Iterator[tuple[str, str]]:
    """Of a value that its own scores did not choose; where no run had a figure the smallest stands in."""
    tried = [score.value for score in choice.scores]
    winner = best(choice.scores, tuned.metric)
    wins = winner.value if winner else min(tried)
    if choice.value not in tried:
        yield f"{path}.value", f"{choice.value} is no value that was tried."
    elif choice.value != wins:
        why = (
            f"of {tuned.metric}, fewest lost runs before the best mean, and the smaller of equals"
            if winner
            else "the smallest, since no run had a figure"
        )
        yield f"{path}.value", f"{choice.value} is not what its scores choose: {wins} is ({why}). {_MEND}"


def _held(arm: Arm, field: str, places: Sequence[Mapping[str, Any]], choice: Choice) -> Iterator[tuple[Any, str]]:
    """(what the arm sets a field to, its path below the arm) at each of the places that a choice is for."""
    for axes in places:
        if agrees(axes, choice.at):
            held, origins = layered(*arm.sets(axes))
            for key in field.split(".", 1):
                held = held.get(key) if isinstance(held, dict) else None  # type: ignore[assignment]
            where = "at" if choice.at else f"set.{field}"
            yield held, where if held is None else origin(field, origins)


def _trains(study: StudySpec, part: Part, arm: Arm) -> bool:
    return any(value != 0 for value in _taken(study, part, arm, "steps"))


def _taken(study: StudySpec, part: Part, arm: Arm, field: str) -> list[Any]:
    """All values that a field takes in the runs of an arm; None where it is set nowhere."""
    cases = [case.set[field] for case in arm.at if field in case.set]
    return [*part.axes.get(field, [_values(study, part, arm).get(field)]), *cases]


def _values(study: StudySpec, part: Part, arm: Arm) -> dict[str, Any]:
    return layered((study.base, ""), (part.base, ""), (arm.set, ""))[0]


def _held_out(study: StudySpec, part: Part, arm: Arm, tuning: Tuning) -> dict[str, Any]:
    """Options of the data with which an arm's runs hold out the validation split and open no test set."""
    options: dict[str, Any] = {"validation": tuning.validation}
    for name in _taken(study, part, arm, "data"):
        entry = CATALOG["data"].get(str(name))
        options |= entry.untested if entry else USER_UNTESTED
    return {f"data_options.{key}": value for key, value in options.items()}


def _grid_faults(study: StudySpec, tuning: Tuning, parts: Mapping[str, Part]) -> Iterator[tuple[str, str]]:
    """Values of the grid that a run cannot have, whatever else is wrong with it."""
    for part in parts.values():
        values = _values(study, part, part.arms[0])
        for value in tuning.grid:
            try:
                RunSpec.model_validate(layered((values, ""), ({tuning.field: value}, ""))[0])
            except ValidationError as error:
                for fault in found_in(error):
                    if ".".join(fault.path) == tuning.field:
                        yield "tuning.grid", fault.message or "a run has no such field."


def _metric_faults(study: StudySpec, tuning: Tuning, parts: Mapping[str, Part]) -> Iterator[tuple[str, str]]:
    """Of data that has no accuracy to choose by."""
    if tuning.metric != "validation_accuracy":
        return
    every = (name for part in parts.values() for arm in part.arms for name in _taken(study, part, arm, "data"))
    for name in dict.fromkeys(map(str, every)):
        if name in CATALOG["data"] and CATALOG["data"][name].regression:
            asks = f"what data {name!r} asks for is near or far, not right or wrong"
            yield "tuning.metric", f'{asks}; write metric = "validation_loss" in [tuning].'


def _is_number(field: str) -> bool:
    head, dot, _ = field.partition(".")
    return head in OPTION_FIELDS if dot else field in _numbers()


def _numbers() -> list[str]:
    """The fields of a run that are numbers; beside them options, reached with a dot."""

    def number(annotation: Any) -> bool:
        return annotation in (int, float) or any(number(each) for each in get_args(annotation))

    fields = RunSpec.model_fields.items()
    return [name for name, field in fields if name not in (*OPTION_FIELDS, "seed") and number(field.annotation)]
