"""Study files: their sizes, where they come from, and files that are none."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tomli_w

from depthscope.core.errors import FaultsError, UserError
from depthscope.study.expand import expand
from depthscope.study.toml import MAX_CHARACTERS, dump, load, parse, read_source

Document = dict[str, Any]


# ---- sizes ------------------------------------------------------------------------------------------


def test_a_size_lies_over_the_rest(document: Document) -> None:
    text = tomli_w.dumps(document)
    small, large = parse(text, source="mine", size="small"), parse(text, source="mine", size="large")
    assert (small.size, small.base["steps"], small.base["depth"], small.seeds) == ("small", 5, 4, 2)
    assert (large.size, large.base["steps"], large.base["depth"], large.seeds) == ("large", 10, 4, 4)
    assert parse(text, source="mine").size == "small"  # the first, where there is no `quick`
    document["sizes"]["quick"] = {}
    assert parse(tomli_w.dumps(document), source="mine").size == "quick"


def test_a_size_replaces_lists_and_merges_tables(document: Document) -> None:
    document["sizes"]["small"]["parts"] = {"main": {"axes": {"depth": [2]}}, "more": {"arms": [{"name": "plain"}]}}
    document["sizes"]["small"]["claims"] = document["claims"][:1]
    study = parse(tomli_w.dumps(document), source="mine", size="small")
    assert study.parts["main"].axes == {"depth": [2]}
    assert [arm.name for arm in study.parts["main"].arms] == ["plain", "skip"]
    assert set(study.parts) == {"main", "flow", "more"}
    assert [claim.name for claim in study.claims] == ["one"]


def test_a_file_without_sizes(document: Document) -> None:
    del document["sizes"]
    document["claims"][1]["confirmatory"] = True
    text = tomli_w.dumps(document)
    assert parse(text, source="mine").size == ""
    with pytest.raises(
        UserError, match=r"^mine: unknown size 'smoke'\. This file has one size only; leave --size away\.$"
    ):
        parse(text, source="mine", size="smoke")


def test_an_unknown_size(document: Document) -> None:
    with pytest.raises(UserError, match=r"unknown size 'smal'\. Did you mean 'small'\? Known: large, small\.$"):
        parse(tomli_w.dumps(document), source="mine", size="smal")


def test_the_study_of_a_dumped_size_keeps_its_size(document: Document) -> None:
    study = parse(tomli_w.dumps(document), source="mine", size="large")
    assert parse(dump(study), source="again").size == "large"
    assert parse(dump(study), source="again", size="large") == study
    assert "sizes" not in tomllib.loads(dump(study))


# ---- sources ----------------------------------------------------------------------------------------

Make = Callable[[Path], Any]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "cannot be read (No such file or directory)."),
        (lambda path: path.mkdir(), "cannot be read (Is a directory)."),
        (lambda path: path.write_bytes(b"name = '\xff'"), "byte 8 is not UTF-8 text."),
        (lambda path: path.write_text("#" * (MAX_CHARACTERS + 1)), "too long (over 1,000,000 characters)"),
        (lambda path: path.symlink_to(path), "cannot be read (Too many levels of symbolic links)."),
        (lambda path: path.write_text("name = mine"), "not TOML: "),
        (lambda path: path.write_text('a = 1\na = "2"'), "not TOML: "),
        (lambda path: path.write_text("a = " + "9" * 5_000), "not TOML: "),
        (lambda path: path.write_text("a = " + "[" * 50_000), "not TOML: "),
    ],
    ids=["missing", "folder", "not UTF-8", "huge", "a loop", "no quotes", "a key twice", "a huge number", "endless"],
)
def test_files_that_are_no_study(tmp_path: Path, make: Make, says: str) -> None:
    path = tmp_path / "mine.toml"
    make(path)
    with pytest.raises(UserError) as told:
        load(path)
    assert str(told.value).startswith(str(path))
    assert says in str(told.value)
    assert len(str(told.value).splitlines()) <= 2


def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    (tmp_path / "mine.toml").touch()
    monkeypatch.setattr(os, "open", refuse)  # the tests may run as root, whom no permission stops
    with pytest.raises(UserError, match=r"cannot be read \(Permission denied\)\.$"):
        load(tmp_path / "mine.toml")


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    text = read_source("spiral")[1]
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8-sig")
    assert load(tmp_path / "mine.toml") == load("spiral")


def test_a_pipe_that_nobody_fills_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mine.toml")
    with pytest.raises(UserError, match="not a regular file"):
        load(tmp_path / "mine.toml")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "plain"', 'name = "plain"\nlabel = { en = "a\\u0000b" }', "holds the control character"),
        ('name = "plain"', 'name = "plain"\nset = { data_options = { noise = 0.3 } }', "arm 'plain' sets"),
        ("depth = 4", "depth = 4\n[base.model_options" + ".a" * 400 + "]\nb = 1\n[base.data_options]", "no such value"),
    ],
)
def test_what_no_page_can_show_or_no_run_can_mean(old: str, new: str, says: str) -> None:
    text = """
name = "mine"
title = { en = "Mine" }
[base]
backend = "numpy"
family = "mlp"
width = 4
activation = "tanh"
init = "gaussian"
data = "spiral"
steps = 1
depth = 4
[parts.main]
axes = { "data_options.noise" = [0.1, 0.2] }
[[parts.main.arms]]
name = "plain"
"""
    assert old in text
    expand(parse(text, source="mine.toml"))
    with pytest.raises(FaultsError, match=says):
        expand(parse(text.replace(old, new), source="mine.toml"))


@pytest.mark.parametrize("name", ["cifar", "x" * 5_000, "a\0b", "spiral.tml"])
def test_an_unknown_study_is_one_line(name: str) -> None:
    with pytest.raises(UserError) as told:
        load(name)
    assert len(str(told.value).splitlines()) == 1
    assert len(str(told.value)) < 6_000


def test_the_nearest_study_is_named() -> None:
    with pytest.raises(
        UserError, match=r"^unknown study 'cifar'\. Did you mean 'cifar10'\? .*\. Or give the path of a"
    ):
        load("cifar")


def test_a_path_needs_no_suffix(tmp_path: Path, document: Document) -> None:
    (tmp_path / "mine").write_text(tomli_w.dumps(document), encoding="utf-8")
    assert load(tmp_path / "mine").name == "mine"
