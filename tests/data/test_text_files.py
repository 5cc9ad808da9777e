"""Where the texts are found, and their download, with small texts in place of the real ones."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from depthscope.core.errors import UserError
from depthscope.data import text, text_files
from depthscope.data.text_files import TEXTS, TextFile

CONTENT = b"to be, or not to be\n" * 50
KNOWN = replace(TEXTS["shakespeare"], size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture(autouse=True)
def small_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "TEXTS", {**TEXTS, "shakespeare": KNOWN})
    monkeypatch.setattr(text, "TEXTS", text_files.TEXTS)


def put(path: Path, content: bytes = CONTENT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


class Quiet(SimpleHTTPRequestHandler):
    asked = 0

    def log_message(self, format: str, *args: Any) -> None:
        type(self).asked += 1


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> Iterator[Path]:
    """A folder behind a loopback server, named as the mirror, with the text in it."""
    folder = tmp_path / "mirror"
    put(folder / "plays.txt")
    Quiet.asked = 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    monkeypatch.setenv(KNOWN.mirror, f"http://127.0.0.1:{server.server_address[1]}/plays.txt")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield folder
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_addresses_and_mirrors_of_the_two_texts() -> None:
    for known in TEXTS.values():
        assert known.url.startswith("https://raw.githubusercontent.com/karpathy/")
        assert known.mirror.startswith("DEPTHSCOPE_")
    assert len({known.mirror for known in TEXTS.values()}) == len({known.url for known in TEXTS.values()}) == 2


@pytest.mark.parametrize("name", ["tinyshakespeare.txt", "text/tinyshakespeare.txt", "a/b/input.txt"])
def test_found_by_each_of_its_names_two_folders_deep(tmp_path: Path, name: str) -> None:
    path = put(tmp_path / name)
    put(tmp_path / "a" / "b" / "c" / "tinyshakespeare.txt")
    assert KNOWN.find(tmp_path) == path


def test_another_file_of_its_name_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path / "input.txt", b"another")
    same_size = put(tmp_path / "tinyshakespeare.txt", CONTENT.upper())
    with pytest.raises(UserError, match=rf"^{same_size}: wanted sha256 {KNOWN.sha256}, got [0-9a-f]+\. .*--data"):
        KNOWN.find(tmp_path)
    assert KNOWN.find(put(tmp_path / "z" / "input.txt").parents[1]) == tmp_path / "z" / "input.txt"


def test_what_cannot_be_found_is_one_line(tmp_path: Path, mirror: Path) -> None:
    cut = put(tmp_path / "cut" / "input.txt", CONTENT[:-1]).parent
    (tmp_path / "empty").mkdir()
    for root, message in (
        (cut, r"input\.txt: wanted 1,000 bytes, got 999\. Fetch the data again, or leave out --data"),
        (tmp_path / "empty", r"empty: holds no tinyshakespeare\.txt or input\.txt, at most 2 folders deep; leave out"),
        (tmp_path / "nowhere", r"nowhere: no such folder\. Wanted one that holds tinyshakespeare\.txt"),
    ):
        with pytest.raises(UserError, match=message) as told:
            text.prepare("shakespeare", root)
        assert "\n" not in str(told.value)
    assert Quiet.asked == 0, "a folder that was named is never replaced by a download"


def test_the_environment_names_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mirror: Path) -> None:
    path = put(tmp_path / "data" / "input.txt")
    monkeypatch.setenv("DEPTHSCOPE_DATA", str(tmp_path / "data"))
    assert KNOWN.ready(None) == path
    monkeypatch.setenv("DEPTHSCOPE_DATA", str(mirror))
    with pytest.raises(UserError, match=r"^DEPTHSCOPE_DATA: .*mirror: holds no tinyshakespeare\.txt"):
        KNOWN.ready(None)
    assert KNOWN.ready(tmp_path / "data") == path
    assert Quiet.asked == 0


def test_with_no_folder_named_the_cache_is_filled_once(mirror: Path, empty_cache: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    text.prepare("shakespeare", None, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (1000, 1000)
    kept = empty_cache / "text" / "tinyshakespeare.txt"
    assert kept.read_bytes() == CONTENT
    assert KNOWN.ready(None) == kept
    assert Quiet.asked == 1
    kept.write_bytes(CONTENT.upper())
    assert KNOWN.ready(None).read_bytes() == CONTENT
    assert Quiet.asked == 2


def test_another_text_is_refused_and_a_missing_one_told(mirror: Path, empty_cache: Path) -> None:
    put(mirror / "plays.txt", CONTENT.upper())
    with pytest.raises(UserError, match=rf"plays\.txt: wanted a file of sha256 {KNOWN.sha256}"):
        text.prepare("shakespeare", None)
    put(mirror / "plays.txt", CONTENT[:-1])
    with pytest.raises(UserError, match=r"wanted a file of 1,000 bytes, the server offers 999\."):
        text.prepare("shakespeare", None)
    (mirror / "plays.txt").unlink()
    with pytest.raises(UserError, match=r"answers 404 .*\. Name a mirror in DEPTHSCOPE_SHAKESPEARE_URL, or a folder"):
        text.prepare("shakespeare", None)
    assert not (empty_cache / "text" / "tinyshakespeare.txt").exists()


def test_a_cache_that_cannot_be_written(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPTHSCOPE_CACHE", str(put(tmp_path / "file", b"")))
    with pytest.raises(UserError, match=r"cannot be written .*DEPTHSCOPE_CACHE"):
        text.prepare("shakespeare", None)


def test_a_file_that_goes_away_is_told(tmp_path: Path) -> None:
    known: TextFile = KNOWN
    with pytest.raises(UserError, match=r"gone: wanted a file of 1,000 bytes, got none"):
        known.verify(tmp_path / "gone")
