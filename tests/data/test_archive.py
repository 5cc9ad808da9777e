"""The archive, with small files in place of the official ones: sizes and checksums are swapped for theirs."""

from __future__ import annotations

import functools
import hashlib
import io
import tarfile
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from depthscope.core.errors import UserError
from depthscope.data import archive
from depthscope.data import cifar10_facts as facts
from depthscope.data.archive import download, downloaded_folder, extract
from depthscope.data.cifar10 import check_root, prepare

FILES = {name: f"content of {name}".encode() for name in facts.OFFICIAL_FILES}
TOP = facts.OFFICIAL_FOLDER


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {name: (len(content), hashlib.md5(content).hexdigest()) for name, content in FILES.items()}
    monkeypatch.setattr(facts, "OFFICIAL_FILES", MappingProxyType(known))


def pack(path: Path, members: dict[str, bytes], extra: Callable[[tarfile.TarFile], None] | None = None) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        if extra is not None:
            extra(tar)
    return path


def official(**changed: bytes) -> dict[str, bytes]:
    return {f"{TOP}/{name}": content for name, content in {**FILES, **changed}.items()}


def files_under(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_seven_files_come_out(tmp_path: Path) -> None:
    extract(pack(tmp_path / "a.tar.gz", official()), tmp_path / "out")
    assert files_under(tmp_path / "out") == FILES


def test_nothing_else_comes_out_and_nothing_elsewhere(tmp_path: Path) -> None:
    def links(tar: tarfile.TarFile) -> None:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            info = tarfile.TarInfo(f"{TOP}/data_batch_1")
            info.type, info.linkname = kind, "/etc/passwd"
            tar.addfile(info)

    hostile = {
        f"{TOP}/readme.html": b"x",
        f"{TOP}/../escaped": b"x",
        "../escaped": b"x",
        str(tmp_path / "escaped"): b"x",
        f"../{TOP}/data_batch_1": b"x",
        f"elsewhere/{TOP}/data_batch_1": b"x",
        f"{TOP}/sub/data_batch_1": b"x",
        "elsewhere/data_batch_1": b"x",
        **official(),
    }
    (tmp_path / "in").mkdir()
    extract(pack(tmp_path / "in" / "a", hostile, links), tmp_path / "out" / TOP)
    assert files_under(tmp_path / "out") == {f"{TOP}/{name}": content for name, content in FILES.items()}
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out"}


def test_a_link_in_place_of_a_file_counts_as_missing(tmp_path: Path) -> None:
    def link(tar: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(f"{TOP}/test_batch")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(info)

    members = official()
    del members[f"{TOP}/test_batch"]
    with pytest.raises(UserError, match="wanted an archive that holds test_batch, got one without"):
        extract(pack(tmp_path / "a", members, link), tmp_path / "out")


def test_an_altered_member_is_refused(tmp_path: Path) -> None:
    path = pack(tmp_path / "a", official(data_batch_2=b"content of data_batch_3"))
    with pytest.raises(UserError, match=r"a: data_batch_2: wanted md5 [0-9a-f]{32}, got [0-9a-f]{32}\."):
        extract(path, tmp_path / "out")
    assert "data_batch_2" not in files_under(tmp_path / "out")


@pytest.mark.parametrize("keep", [0, 10, 150])
def test_a_cut_archive_is_refused(tmp_path: Path, keep: int) -> None:
    path = pack(tmp_path / "a", official())
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(UserError, match=r"wanted a whole tar\.gz archive, got a damaged one"):
        extract(path, tmp_path / "out")


class Quiet(SimpleHTTPRequestHandler):
    asked = 0

    def log_message(self, format: str, *args: Any) -> None:
        type(self).asked += 1


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: Path) -> Iterator[Path]:
    """A folder behind a loopback server, named as the mirror, with the archive in it."""
    folder = tmp_path / "mirror"
    folder.mkdir()
    path = pack(folder / "cifar.tar.gz", official())
    monkeypatch.setattr(facts, "ARCHIVE_SIZE", path.stat().st_size)
    monkeypatch.setattr(facts, "ARCHIVE_MD5", hashlib.md5(path.read_bytes()).hexdigest())
    Quiet.asked = 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    monkeypatch.setenv("DEPTHSCOPE_CIFAR10_URL", f"http://127.0.0.1:{server.server_address[1]}/cifar.tar.gz")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield folder
    server.shutdown()
    thread.join()
    server.server_close()


def test_with_no_folder_named_the_cache_is_filled_once(mirror: Path, empty_cache: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    prepare(None, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (facts.ARCHIVE_SIZE, facts.ARCHIVE_SIZE)
    assert {name for name in files_under(empty_cache) if not name.endswith(".lock")} == {
        f"{TOP}/{name}" for name in FILES
    }
    prepare(None)
    assert Quiet.asked == 1


def test_a_damaged_cache_is_filled_again(mirror: Path, empty_cache: Path) -> None:
    prepare(None)
    (empty_cache / TOP / "data_batch_4").write_bytes(b"content of data_batch_9")
    assert downloaded_folder() is None
    prepare(None)
    assert (empty_cache / TOP / "data_batch_4").read_bytes() == FILES["data_batch_4"]
    assert Quiet.asked == 2


def test_checking_downloads_nothing(mirror: Path, empty_cache: Path) -> None:
    check_root(None)
    assert Quiet.asked == 0
    assert not empty_cache.exists()


def test_a_folder_that_was_named_is_never_replaced_by_a_download(mirror: Path, tmp_path: Path) -> None:
    (tmp_path / "no-data").mkdir()
    with pytest.raises(UserError, match="holds no CIFAR-10"):
        prepare(tmp_path / "no-data")
    assert Quiet.asked == 0


def test_another_archive_is_refused(mirror: Path, empty_cache: Path) -> None:
    content = bytearray((mirror / "cifar.tar.gz").read_bytes())
    content[50] ^= 1
    (mirror / "cifar.tar.gz").write_bytes(content)
    with pytest.raises(UserError, match=r"cifar.tar.gz: wanted a file of md5"):
        download()
    assert all(name.endswith(".lock") for name in files_under(empty_cache))


def test_a_cache_that_cannot_be_written(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("DEPTHSCOPE_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match=r"file: cannot be written .*DEPTHSCOPE_CACHE"):
        download()


def test_a_full_disk_while_unpacking(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        raise UserError("no space; --out") from OSError(28, "No space left on device")

    monkeypatch.setattr(archive, "write_bytes", full)
    with pytest.raises(UserError, match=r"cannot be written \(No space left on device\).*DEPTHSCOPE_CACHE"):
        download()
