"""The JSON Schema of a study file, for editors: keys and names are completed, explained, and underlined when wrong.

It is made from the models, their docstrings and the catalogue. What it refuses `parse` refuses too; what takes
more than one place of the file to see (an arm that a claim names, a depth that a family lacks) `parse` alone can say.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from depthscope.study.catalog import CATALOG, USER_KINDS, Kind
from depthscope.study.check import RUN_FIELDS
from depthscope.study.claims import KINDS, NoDegradationClaim, Select
from depthscope.study.landscape import Maps
from depthscope.study.metrics import PROBE, SUMMARY, worse_side
from depthscope.study.resources import ResourceTable
from depthscope.study.run import OPTION_FIELDS, RunSpec
from depthscope.study.study import Arm, Case, Part, StudySpec
from depthscope.study.tuning import Choice, Score, Tuned, Tuning

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
USER_CODE = r"^[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*$"
"""`package.module:function`."""

_MODELS: tuple[type[BaseModel], ...] = (
    *(StudySpec, Part, Arm, Case, Select, Maps, ResourceTable, Tuning, Tuned, Choice, Score),
    *KINDS.values(),
)
_SIZES = (
    "Sizes of the study by name (smoke, quick, full): each is laid over the rest of the file. Tables are merged, "
    "anything else is replaced."
)


def study_schema() -> Schema:
    """The schema of a study file, in the dialect of 2020-12."""
    made = _tidy(StudySpec.model_json_schema())
    defs: dict[str, Schema] = {name: each for name, each in made.pop("$defs").items() if name != "Part"}
    study, part = made, _tidy(Part.model_json_schema())
    part.pop("$defs")
    defs |= {"Part": part, "Run": _run(), "Axes": _axes(), "Rule": _rule()}
    for model in _MODELS:
        _describe(study if model is StudySpec else defs[model.__name__], model)
    for holder in (study["properties"], part["properties"]):
        holder["base"] = _refers(holder["base"], "Run")
    for holder, field in (("Arm", "set"), ("Case", "set"), ("Case", "where"), ("Choice", "at")):
        told = defs[holder]["properties"][field]
        some = {"minProperties": told["minProperties"]} if "minProperties" in told else {}
        defs[holder]["properties"][field] = {**_refers(told, "Run"), **some}
    part["properties"]["ranked"] = _refers(part["properties"]["ranked"], "LossOrAccuracy")
    part["properties"]["axes"] = _refers(part["properties"]["axes"], "Axes")
    part["properties"]["exclude"]["items"] = {"$ref": "#/$defs/Rule"}
    own = {"type": "string", "pattern": rf"^{PROBE}[^\W\d]\w*\..+", "description": "of your probe: function.name"}
    defs["Metric"] = {"anyOf": [*_consts(SUMMARY), own]}
    defs["LossOrAccuracy"] = {"anyOf": _consts({key: text for key, text in SUMMARY.items() if worse_side(key)})}
    for model in KINDS.values():
        name = "LossOrAccuracy" if model is NoDegradationClaim else "Metric"
        fields = defs[model.__name__]["properties"]
        fields["metric"] = _refers(fields["metric"], name)

    # A size may bring what the rest of the file leaves out, so that all is required only where there are no sizes.
    required, arms, chosen = study.pop("required"), part.pop("required"), defs["Tuning"].pop("required")
    left = {"parts": {"additionalProperties": {"required": arms}}, "tuning": {"required": chosen}}
    study["properties"]["parts"]["additionalProperties"] = False  # names of parts have a pattern
    size = {key: value for key, value in study["properties"].items() if key != "size"}
    defs["Size"] = {"type": "object", "additionalProperties": False, "properties": size, "description": _SIZES}
    return {
        "$schema": DIALECT,
        "title": "Depthscope study",
        **study,
        "properties": {
            **study["properties"],
            "sizes": {"type": "object", "description": _SIZES, "additionalProperties": {"$ref": "#/$defs/Size"}},
        },
        "if": {"not": {"required": ["sizes"]}},
        "then": {"required": required, "properties": left},
        "$defs": dict(sorted(defs.items())),
    }


def _run() -> Schema:
    """Any fields of a run; an option may be reached with a dot."""
    properties, patterns = _fields()
    return {
        "description": "Fields of a run.",
        "type": "object",
        "properties": properties,
        "patternProperties": patterns,
        "additionalProperties": False,
    }


def _axes() -> Schema:
    def listed(each: Schema) -> Schema:
        text = {"description": each["description"]} if "description" in each else {}
        return {**text, "type": "array", "minItems": 1, "uniqueItems": True, "items": each}

    properties, patterns = _fields()
    return {
        "description": "Lists of values by field of a run.",
        "type": "object",
        "properties": {name: listed(each) for name, each in properties.items()},
        "patternProperties": {name: listed(each) for name, each in patterns.items()},
        "additionalProperties": False,
    }


def _rule() -> Schema:
    # A rule may ask for a value that no run has: it then leaves nothing out. So names alone are held to the known ones.
    names = {"arm": {"description": "name of an arm", "type": "string"}, "seed": {"type": "integer"}}
    return {
        "description": "Values that a run must all have to be left out.",
        "type": "object",
        "minProperties": 1,
        "properties": {**names, **{name: {} for name in RUN_FIELDS}},
        "patternProperties": {rf"^({'|'.join(RUN_FIELDS)})\.": {}},
        "additionalProperties": False,
    }


def _fields() -> tuple[dict[str, Schema], dict[str, Schema]]:
    """(schema by field of a run, schema by pattern of a key with a dot)."""
    models = _tidy(RunSpec.model_json_schema())["properties"]
    properties: dict[str, Schema] = {}
    patterns: dict[str, Schema] = {}
    for name in RUN_FIELDS:
        known = models[name]
        if name in OPTION_FIELDS:
            kind = OPTION_FIELDS[name]
            options, scalar = _options(kind), known["additionalProperties"]
            is_open = kind in USER_KINDS  # user code has options of its own
            properties[name] = {**known, "properties": options, "additionalProperties": scalar if is_open else False}
            properties |= {f"{name}.{option}": each for option, each in options.items()}
            if is_open:
                patterns[rf"^{name}\.[^.]+$"] = scalar
        elif name == "measures":
            properties[name] = {**known, "items": _name("measure")}
        elif name in CATALOG:
            kinds: Any = name
            properties[name] = {"description": known["description"], **_name(kinds)}
        else:
            properties[name] = known
    return properties, patterns


def _name(kind: Kind) -> Schema:
    code = {"pattern": USER_CODE, "type": "string", "description": "code of your own: package.module:function"}
    known = _consts({name: entry.summary for name, entry in CATALOG[kind].items()})
    return {"anyOf": [*known, code] if kind in USER_KINDS else known}


def _options(kind: Kind) -> dict[str, Schema]:
    """The options of all names of a kind; the limits and choices of one that two names share are left to `parse`."""
    types = {bool: "boolean", int: "integer", float: "number", str: "string"}
    found: dict[str, Schema] = {}
    for name, entry in CATALOG[kind].items():
        for option, default in entry.options.items():
            own = {"type": types[type(default)]} if not isinstance(default, list) else _numbers()
            said = f"{name}: {default!r}".replace("True", "true").replace("False", "false")
            if option in found:
                found[option] = {**own, "description": f"{found[option]['description']}; {said}"}
            else:
                bounds = _limits(entry.limits.get(option), own) | _chosen(entry.choices.get(option))
                found[option] = {**own, **bounds, "description": f"default of {said}"}
    return found


def _numbers() -> Schema:
    return {"type": "array", "items": {"type": "number"}}


def _limits(interval: str | None, own: Schema) -> Schema:
    if interval is None:
        return {}
    low, high = (float(end) for end in interval[1:-1].split(","))
    bounds: Schema = {"minimum" if interval[0] == "[" else "exclusiveMinimum": low}
    if high != float("inf"):
        bounds["maximum" if interval[-1] == "]" else "exclusiveMaximum"] = high
    return {"items": {"type": "number", **bounds}} if own["type"] == "array" else bounds


def _chosen(choices: tuple[str, ...] | None) -> Schema:
    return {"enum": list(choices)} if choices else {}


def _consts(names: Mapping[str, str]) -> list[Schema]:
    return [{"const": name, "description": text} for name, text in names.items()]


def _refers(told: Schema, name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}", **({"description": told["description"]} if "description" in told else {})}


def _describe(schema: Schema, model: type[BaseModel]) -> None:
    """Put what a model's docstring says into its schema: the summary, and each attribute's line."""
    doc = inspect.cleandoc(model.__doc__ or "")
    schema["description"] = _one_line(doc.partition("Attributes:")[0])
    for name, text in _attributes(doc):
        schema["properties"][name].setdefault("description", text)


def _attributes(doc: str) -> Iterator[tuple[str, str]]:
    lines = doc.partition("Attributes:")[2]
    for found in re.finditer(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", lines, re.MULTILINE):
        yield found[1], _one_line(found[2])


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _tidy(value: Any) -> Any:
    """Without pydantic's titles and discriminators, and without null, which TOML does not have."""
    if isinstance(value, list):
        return [_tidy(each) for each in value]
    if not isinstance(value, dict):
        return value
    made = {
        key: _tidy(each)
        for key, each in value.items()
        if key != "discriminator" and not (key == "title" and isinstance(each, str))
    }
    if made.get("default", ...) is None:
        del made["default"]
    members = made.get("anyOf", ())
    if {"type": "null"} in members:
        left = [each for each in members if each != {"type": "null"}]
        made = {
            **{key: each for key, each in made.items() if key != "anyOf"},
            **(left[0] if len(left) == 1 else {"anyOf": left}),
        }
    return made
