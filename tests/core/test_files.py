from __future__ import annotations

import errno
import json
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from depthscope.core.errors import UserError
from depthscope.core.files import check_named, place_new, staged, write_bytes, write_json, write_named


def failing(code: int) -> Callable[..., NoReturn]:
    def fail(*_: Any, **__: Any) -> NoReturn:
        raise OSError(code, os.strerror(code))

    return fail


def create(path: Path, content: bytes) -> bool:
    with staged(path, content) as temporary:
        return place_new(temporary, path)


def test_replaces_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "a.bin"
    write_bytes(path, b"a long first content")
    write_bytes(path, b"second")
    assert path.read_bytes() == b"second"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize(
    ("code", "mend"),
    [
        (errno.ENOSPC, "No space left on device). Free some space, or choose another folder with --out."),
        (errno.EROFS, "Read-only file system). Choose another folder with --out, or change its permissions."),
        (errno.EIO, "Input/output error)"),
    ],
)
def test_a_failing_write_leaves_all_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, code: int, mend: str
) -> None:
    path = tmp_path / "a.bin"
    write_bytes(path, b"old")
    monkeypatch.setattr(os, step, failing(code))
    with pytest.raises(UserError) as told:
        write_bytes(path, b"new")
    with pytest.raises(UserError):
        write_bytes(tmp_path / "new" / "folder" / "b.bin", b"new")
    assert str(told.value).startswith(f"{path}: cannot be written (")
    assert mend in str(told.value)
    assert "\n" not in str(told.value)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == b"old"


def test_a_full_disk_in_mid_file(tmp_path: Path) -> None:
    # A real one: /dev/full takes no byte. (Through a link, since the temporary file is what is written.)
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    with pytest.raises(OSError, match="No space left"), open("/dev/full", "wb", buffering=0) as file:
        file.write(b"x")
    with pytest.raises(UserError, match="cannot be written"):
        write_bytes(Path("/dev/full/a.bin"), b"x")


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: int) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_bytes(tmp_path / "new" / "a.bin", b"x")
    assert list(tmp_path.iterdir()) == []


def test_folders_that_were_there_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(os, "replace", failing(errno.ENOSPC))
    with pytest.raises(UserError):
        write_bytes(tmp_path / "empty" / "a.bin", b"x")
    assert (tmp_path / "empty").is_dir()


def test_a_file_or_a_folder_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="cannot be written"):
        write_bytes(tmp_path / "file" / "a.bin", b"x")
    with pytest.raises(UserError, match="Is a directory"):
        write_bytes(tmp_path / "folder", b"x")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("write", [write_bytes, write_named, lambda path, _: check_named(path)])
@pytest.mark.parametrize("linked", [False, True])
def test_what_is_no_regular_file_is_refused_and_stays(
    tmp_path: Path, write: Callable[[Path, bytes], None], linked: bool
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    path = tmp_path / "link" if linked else pipe
    if linked:
        path.symlink_to(pipe)
    names = sorted(tmp_path.iterdir())
    with pytest.raises(UserError, match="not a regular file") as told:
        write(path, b"x")
    assert str(told.value).startswith(f"{path}: ")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert path.is_symlink() == linked
    assert sorted(tmp_path.iterdir()) == names


@pytest.mark.parametrize("write", [write_bytes, write_named])
@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_what_it_points_to_is_written(
    tmp_path: Path, write: Callable[[Path, bytes], None], there: bool
) -> None:
    (tmp_path / "folder").mkdir()
    file, link = tmp_path / "folder" / "file", tmp_path / "link"
    link.symlink_to(Path("folder") / "file")
    if there:
        file.write_bytes(b"old")
    write(link, b"new")
    assert link.is_symlink()
    assert not file.is_symlink()
    assert file.read_bytes() == b"new"
    assert list(file.parent.iterdir()) == [file]


def test_a_file_that_its_user_names_stands_in_a_folder_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "nowhere" / "page.html"
    for refuse in (check_named, lambda each: write_named(each, b"x")):
        with pytest.raises(UserError, match="there is no folder"):
            refuse(path)
    write_named(tmp_path / "old", b"old")
    check_named(tmp_path / "old")
    check_named(tmp_path / "new")
    monkeypatch.setattr(os, "fsync", failing(errno.EACCES))
    with pytest.raises(UserError, match=r"denied\)\. Name another file, or change its permissions\.$"):
        check_named(tmp_path / "new")
    assert (tmp_path / "old").read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [tmp_path / "old"]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions_honour_the_umask(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_bytes(tmp_path / "a.bin", b"x")
        assert os.umask(mask) == mask  # and it is as it was
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.bin").stat().st_mode) == 0o666 & ~mask


def test_the_temporary_file_is_on_disk_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    def noting(name: str, act: Callable[..., None]) -> Callable[..., None]:
        def noted(*arguments: Any) -> None:
            steps.append(name)
            act(*arguments)

        return noted

    for name in ("fsync", "replace"):
        monkeypatch.setattr(os, name, noting(name, getattr(os, name)))
    write_bytes(tmp_path / "a.bin", b"x")
    assert steps == ["fsync", "replace"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.recursive(st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), st.lists))
def test_json_round_trip(tmp_path: Path, value: object) -> None:
    write_json(tmp_path / "a.json", value)
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == value
    assert (tmp_path / "a.json").read_text(encoding="utf-8").endswith("\n")


def test_json_without_nan(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", 1)
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "a.json", {"loss": float("nan")})
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == 1


@pytest.mark.parametrize("links", [True, False], ids=["hard links", "no hard links"])
def test_exactly_one_creates_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    if not links:
        monkeypatch.setattr(os, "link", failing(errno.EPERM))
    path = tmp_path / "new" / "a.bin"
    gate = threading.Barrier(8)
    created: list[int] = []

    def attempt(number: int) -> None:
        gate.wait()
        if create(path, b"%d" % number * 100_000):
            created.append(number)

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = created
    assert path.read_bytes() == b"%d" % winner * 100_000
    assert list(path.parent.iterdir()) == [path]


def test_a_link_that_was_made_and_reported_as_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS: the answer to the first try is lost, and the second finds the file that the first made."""
    link = os.link

    def twice(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", twice)
    assert create(tmp_path / "a.bin", b"mine")
    assert not create(tmp_path / "a.bin", b"another's")
    assert (tmp_path / "a.bin").read_bytes() == b"mine"


@pytest.mark.parametrize("step", ["link", "fsync"])
def test_a_failing_creation_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    monkeypatch.setattr(os, step, failing(errno.ENOSPC))
    with pytest.raises(UserError, match="No space left on device"):
        create(tmp_path / "new" / "a.bin", b"content")
    assert not list(tmp_path.iterdir())
