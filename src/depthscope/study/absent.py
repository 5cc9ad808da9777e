"""Claims about figures that their runs cannot have, told before anything is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from depthscope.study.catalog import CATALOG, Entry
from depthscope.study.cells import Cell, matching
from depthscope.study.claims import judged_at, selects
from depthscope.study.run import RunSpec
from depthscope.study.scale import unit_of
from depthscope.study.selection import is_selection
from depthscope.study.study import StudySpec

MEASURED: Mapping[str, str] = MappingProxyType(
    {
        "lesion_": "lesion",
        "dh_factor_": "layers",
        "dw_factor_": "layers",
        "gradcheck_": "gradcheck",
        "smoothness_": "smoothness",
        "sharpness_": "sharpness",
    }
)
"""What metrics are measured by, by how their names begin."""

CONSTRUCTED = (
    *("train_loss_start", "train_accuracy_start", "train_loss_start_batch", "train_accuracy_start_batch"),
    *("construction_loss_change", "construction_accuracy_change"),
)
"""Figures of a network that was put together from a shallower one."""

OF_SPLIT = MappingProxyType({"test_": "test", "validation_": "validation"})
"""The examples that metrics are of, by how their names begin, where a run may have none."""

_BRANCHLESS = ("none", "dense")
"""Shortcuts with which no family of the catalogue adds anything."""


def absent_faults(study: StudySpec, cells: Sequence[Cell], runs: Mapping[str, RunSpec]) -> Iterator[tuple[str, str]]:
    """(path, message) of claims and rankings whose metric some of their arms cannot have, a line for each reason.

    Args:
        study: whose claims they are.
        cells: of the study; those of a faulty run, which has no id, are passed over.
        runs: run_id -> spec, with the measures of all its cells.
    """
    for index, claim in enumerate(study.claims):
        asked = selects(claim) if judged_at(claim, study.size) else ()
        meant = [cell for select in asked for cell in matching(cells, claim.part, select)]
        yield from _told(f"claims.{index}.metric", claim.metric, meant, runs)
    for name, part in study.parts.items():
        # Runs that choose open no test set and measure nothing, whatever the study itself is ranked by.
        if part.ranked is not None and not is_selection(study):
            meant = [cell for cell in cells if cell.part == name]
            yield from _told(f"parts.{name}.ranked", part.ranked, meant, runs)


def _told(path: str, metric: str, cells: Sequence[Cell], runs: Mapping[str, RunSpec]) -> Iterator[tuple[str, str]]:
    arms: dict[str, list[str]] = {}
    for cell in cells:
        why = _why_absent(metric, runs[cell.run_id]) if cell.run_id else None
        if why is not None and cell.arm not in arms.setdefault(why, []):
            arms[why].append(cell.arm)
    for why, names in arms.items():
        told = f"arm {names[0]!r}" if len(names) == 1 else f"arms {', '.join(map(repr, names))}"
        yield path, f"{told} cannot have {metric!r}: {why}"


def _why_absent(metric: str, spec: RunSpec) -> str | None:
    """Why a run will have no such figure, and what to do; None where it may have one."""
    data = CATALOG["data"].get(spec.data)
    if data and data.regression and unit_of(metric) == "accuracy":
        return f"what data {spec.data!r} asks for is near or far, not right or wrong; judge a loss."
    if metric in CONSTRUCTED and spec.init != "constructed":
        return f"it is of init 'constructed' alone, not of {spec.init!r}."
    split = next((each for prefix, each in OF_SPLIT.items() if metric.startswith(prefix)), None)
    if data and split and (without := _emptied(split, data, spec)):
        return f"with {without} its runs have no {split} examples."
    if metric == "dw_end_log_first" and spec.family in CATALOG["family"] and spec.family != "gpt":
        return f"it is of a transformer, family 'gpt', not of {spec.family!r}."
    if metric == "sharpness_ratio_last" and spec.optimizer in CATALOG["optimizer"] and spec.optimizer != "sgd":
        return f"the bound is one of optimizer 'sgd'; {spec.optimizer!r} scales its gradients. Judge 'sharpness_last'."
    measure = next((each for prefix, each in MEASURED.items() if metric.startswith(prefix)), None)
    if measure == "lesion" and spec.family in CATALOG["family"] and spec.shortcut in _BRANCHLESS:
        return f"a network with shortcut {spec.shortcut!r} has no branch to take out."
    if measure is not None and measure not in spec.measures:
        return f"put {measure!r} among the measures of its runs."
    return None


def _emptied(split: str, data: Entry, spec: RunSpec) -> str:
    """The options with which a run has no such examples, as they are written; empty where it has some."""
    options = data.untested if split == "test" else {"validation": 0} if "validation" in data.options else {}
    given = spec.data_options
    if not options or any(given[name] != value for name, value in options.items()):
        return ""
    return " and ".join(f"data_options.{name} = {str(value).lower()}" for name, value in options.items())
