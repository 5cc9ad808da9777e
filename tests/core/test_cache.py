"""What the cache keeps is given back, and no cache, however broken, is a fault."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from depthscope.core.cache import CACHE_VARIABLE, kept_text

TEXT = "first line\nsecond — 第二行\r\nthird"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "new" / "cache"
    monkeypatch.setenv(CACHE_VARIABLE, str(folder))
    return folder


def refuse() -> str:
    raise AssertionError("made again")


def test_a_text_is_made_once(cache: Path) -> None:
    assert kept_text("a.js", lambda: TEXT) == TEXT
    assert kept_text("a.js", refuse) == TEXT
    assert kept_text("b.js", lambda: "another") == "another"
    assert sorted(path.name for path in cache.iterdir()) == ["a.js", "b.js"]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda whole: whole[:-1],
    "one letter": lambda whole: whole[:-1] + b"T",
    "no digest": lambda whole: whole.partition(b"\n")[2],
    "empty": lambda whole: b"",
    "no UTF-8": lambda whole: b"\xff\xfe\n\xff",
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_text_is_made_again(how: str, cache: Path) -> None:
    kept_text("a.js", lambda: TEXT)
    path = cache / "a.js"
    path.write_bytes(DAMAGE[how](path.read_bytes()))
    assert kept_text("a.js", lambda: TEXT) == TEXT
    assert kept_text("a.js", refuse) == TEXT


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owner here")
def test_what_another_user_put_there_is_not_believed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept_text("a.js", lambda: "theirs")
    other = os.getuid() + 1
    monkeypatch.setattr("os.getuid", lambda: other)
    assert kept_text("a.js", lambda: "ours") == "ours"


def test_a_cache_that_cannot_be_used_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    monkeypatch.setenv(CACHE_VARIABLE, str(file))
    assert kept_text("a.js", lambda: TEXT) == TEXT
    assert file.read_text() == "no folder"
    (tmp_path / "a.js").mkdir()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    assert kept_text("a.js", lambda: TEXT) == TEXT
    monkeypatch.setenv(CACHE_VARIABLE, "~nobody-of-this-name/cache")
    assert kept_text("a.js", lambda: TEXT) == TEXT
