from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depthscope.core.errors import FaultsError, MissingDependencyError, UserError, nearest, shown, unknown_name


def test_an_unknown_name_is_told_in_one_line() -> None:
    told = unknown_name("study", "cifar", ["spiral", "cifar10"])
    assert told == "unknown study 'cifar'. Did you mean 'cifar10'? Known: cifar10, spiral."
    assert unknown_name("study", "xyzzy", ["spiral"]) == "unknown study 'xyzzy'. Known: spiral."
    assert unknown_name("option", "momentum", []) == "unknown option 'momentum'. There are none."


@pytest.mark.parametrize(("name", "guess"), [("DEPTH", "depth"), ("dept", "depth"), ("a", "A"), ("", None)])
def test_the_nearest_name(name: str, guess: str | None) -> None:
    assert nearest(name, ["depth", "width", "A"]) == guess


@given(st.text())
def test_any_name_is_one_line(name: str) -> None:
    assert len(unknown_name("study", name, ["spiral"]).splitlines()) == 1


def test_shown_is_short_whatever_comes() -> None:
    assert shown("a") == "'a'"
    assert len(shown("a" * 1_000)) == 60
    assert shown(10**5_000) == "a huge int"


@pytest.mark.parametrize(
    "error",
    [UserError("a"), MissingDependencyError("a"), FaultsError("my.toml", [("base.lr", "wanted a number."), ("", "b")])],
)
def test_errors_travel_between_processes(error: Exception) -> None:
    # A worker's error is pickled; one that cannot be unpickled breaks the whole pool of workers.
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert getattr(again, "faults", None) == getattr(error, "faults", None)


def test_faults_have_their_paths() -> None:
    assert (
        str(FaultsError("a.toml", [("base.lr", "bad."), ("", "worse.")]))
        == "a.toml: 2 faults\n  base.lr: bad.\n  worse."
    )
    assert str(FaultsError("a.toml", [("", "bad.")])).startswith("a.toml: 1 fault\n")
