"""The recipe of a part in words: what all its runs have in common, from their specs, and what varies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from depthscope.report.content import View
from depthscope.report.words import Words
from depthscope.study.run import OPTION_FIELDS, UNIDENTIFIED

_ROWS = {
    "data": ("data", "augment", "padding"),
    "network": ("family", "depth", "width", "activation", "norm", "shortcut"),
    "start": ("init", "gain", "stem_gain", "zero_last_gamma"),
    "training": ("optimizer", "lr", "schedule", "warmup_steps", "epochs", "steps", "batch_size", "stop_loss"),
    "runs": ("seeds", "precision", "backend"),
}
_OPTIONS = {
    "data": "data_options",
    "family": "model_options",
    "optimizer": "optimizer_options",
    "schedule": "schedule_options",
}
COUNTED = {
    **dict.fromkeys(("cifar10", "images"), "images"),
    **dict.fromkeys(("adding", "copy"), "sequences"),
    "names": "names",
    "shakespeare": "windows",
}
"""What the examples of a data set are called, where it is not `examples`."""
SUMMARISED = ("data", "family", "init")
"""Fields whose names say less than the catalogue's summary does."""
CLASSES = {"cifar10": 10, "images": 10}


def recipe(view: View, words: Words) -> list[tuple[str, str]]:
    """(row, what all runs of the view share), in words; settings at nothing are left out."""
    shared, varied = _split(view)
    untrained = shared.get("steps") == 0
    found = []
    for row, fields in _ROWS.items():
        if row == "training" and untrained:
            told = [words("recipe.untrained")]
        else:
            told = [text for field in fields for text in _field(field, shared, words)]
        if told:
            found.append((words(f"recipe.row.{row}"), words("recipe.comma").join(told)))
    # The options of what varies go with it, name by name: the list of arms has them.
    varied = [field for field in varied if OPTION_FIELDS.get(field.partition(".")[0]) not in varied]
    told = list(
        _told([field for field in varied if not (untrained and field in _ROWS["training"])], shared, view, words)
    )
    if told:
        found.append((words("recipe.row.varied"), words("recipe.comma").join(told)))
    return found


def chance(view: View) -> float | None:
    """The accuracy of guessing, where all runs of a view have the same known number of classes."""
    counts = {
        row.spec.data_options.get("arms") if row.spec.data == "spiral" else CLASSES.get(row.spec.data)
        for row in view.rows
    }
    count = counts.pop() if len(counts) == 1 else None
    return 1 / count if isinstance(count, int) and count > 0 else None


def _split(view: View) -> tuple[dict[str, Any], list[str]]:
    """Fields that all runs share, options as `field.option`, and the names of the others."""
    flat = [_flat(row.spec.model_dump(mode="json", exclude={"seed", *UNIDENTIFIED})) for row in view.rows]
    names = list(dict.fromkeys(name for each in flat for name in each))
    missing = object()
    shared = {}
    varied = []
    for name in names:
        values = [each.get(name, missing) for each in flat]
        if all(value == values[0] for value in values):
            shared[name] = values[0]
        else:
            varied.append(name)
    shared["seeds"] = len({row.cell.seed for row in view.rows})
    return shared, varied


def _flat(spec: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in spec.items():
        if isinstance(value, dict):
            found |= {f"{name}.{option}": each for option, each in value.items()}
        else:
            found[name] = value
    return found


def _field(field: str, shared: Mapping[str, Any], words: Words) -> Iterator[str]:
    value = shared.get(field, "none")
    if field == "batch_size" and value is None:
        yield words("recipe.full_batch")
    elif value not in (None, "none", 0, False):
        # A name has a sentence of its own, or for its family, or that of the catalogue; user code has none.
        keys = (
            f"recipe.{field}.{value}",
            f"recipe.{field}.{shared.get('family')}",
            f"name.{field}.{value}" if field in SUMMARISED else "",
            f"recipe.{field}",
        )
        key = next((each for each in keys if each in words.table), None)
        yield words(key, value=written(value)) if key else str(value)
    start = f"{_OPTIONS[field]}." if field in _OPTIONS else None
    for name, option in shared.items():
        if start and name.startswith(start) and option not in (None, "none", 0, False, ""):
            short = name.removeprefix(start)
            key = f"recipe.{field}.{short}"
            counted = f"{key}.{COUNTED.get(shared.get('data', ''), 'examples')}"
            if counted in words.table:
                yield words(counted, value=written(option))
            elif option is True and f"arms.field.{name}" in words.table:
                yield words(f"arms.field.{name}")
            elif key in words.table:
                yield words(key, value=written(option))
            else:
                yield words("recipe.option", name=short, value=written(option))


def _told(varied: Sequence[str], shared: Mapping[str, Any], view: View, words: Words) -> Iterator[str]:
    """What varies, the options of one name together."""
    options: dict[str, list[str]] = {}
    for name in varied:
        field, _, option = name.partition(".")
        if option and f"recipe.field.{name}" not in words.table:
            options.setdefault(field, []).append(option)
        else:
            yield _varied(name, view, words)
    for field, names in options.items():
        yield words(
            "recipe.options_of", options=words("list").join(names), name=shared.get(OPTION_FIELDS[field], field)
        )


def _varied(field: str, view: View, words: Words) -> str:
    key = f"recipe.field.{field}"
    if key not in words.table:
        return words.axis(field)
    depths = sorted({row.spec.depth for row in view.rows})
    return words(key, value=words("list").join(map(str, depths)))


def written(value: Any) -> str:
    """A setting as a reader wants it.

    >>> written(50_000), written(1e-08), written(1.4142135623730951), written([0.5, 0.75])
    ('50,000', '1e-08', '1.414', '0.5, 0.75')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(written(each) for each in value)
    return str(value)
