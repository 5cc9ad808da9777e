"""Each repair does what its paper says; and a test that could not see a wrong formula would be none.

A part's cases stand in a file `cases_<part>.py` beside this one, as a list `CASES`.
"""

from __future__ import annotations

import importlib
import traceback
from collections import Counter
from pathlib import Path

import pytest
from tests.conformance.case import Case

import depthscope
from depthscope.study.catalog import CATALOG, Kind

KINDS: tuple[Kind, ...] = ("shortcut", "norm", "activation", "init", "clip", "family")

EXEMPT: dict[tuple[Kind, str], str] = {
    ("shortcut", "none"): "the control: nothing is added",
    ("norm", "none"): "the control: nothing is normalised",
    ("clip", "none"): "the control: nothing is clipped",
    ("activation", "linear"): "the control: the identity",
    ("init", "torch"): "PyTorch's own reset_parameters; tests/models/test_own_init.py holds it to that",
    ("init", "constructed"): "a training and no formula; tests of train/constructed.py and models/embed.py hold it",
}
"""Names without a case of their own, with the reason."""

PRODUCT = str(Path(depthscope.__file__).parent)


def _collected() -> list[Case]:
    files = sorted(path.stem for path in Path(__file__).parent.glob("cases_*.py"))
    return [case for file in files for case in importlib.import_module(f"tests.conformance.{file}").CASES]


def _ids(cases: list[Case]) -> list[str]:
    seen: Counter[str] = Counter()
    ids = []
    for case in cases:
        name = f"{case.kind}-{case.name}"
        seen[name] += 1
        ids.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return ids


CASES = _collected()
each_case = pytest.mark.parametrize("case", CASES, ids=_ids(CASES))


@each_case
def test_it_does_what_its_paper_says(case: Case) -> None:
    case.check()


@each_case
def test_a_wrong_formula_is_seen(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.alter(monkeypatch)
    with pytest.raises((AssertionError, ArithmeticError)) as seen:
        case.check()
    # The check must see it. A product that breaks on the altered formula by itself would prove nothing of the check.
    inside = [frame.filename for frame in traceback.extract_tb(seen.value.__traceback__)]
    assert not any(each.startswith(PRODUCT) for each in inside), "the product failed, and not the check"


def test_every_name_has_a_case() -> None:
    covered = {(case.kind, case.name) for case in CASES}
    known = {(kind, name) for kind in KINDS for name in CATALOG[kind]}
    assert not EXEMPT.keys() - known, "exempted, but not in the catalogue"
    assert not EXEMPT.keys() & covered, "exempted, but there is a case"
    missing = sorted(f"{kind} {name}" for kind, name in known - covered - EXEMPT.keys())
    assert not missing, f"no conformance case: {', '.join(missing)}"
