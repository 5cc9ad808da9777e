"""Damage to the official folder (that of the parquet layout is in test_parquet.py)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from depthscope.core.errors import UserError
from depthscope.data import cifar10_facts as facts
from depthscope.data.cifar10 import check_root, cifar10
from depthscope.data.search import file_digest
from depthscope.data.sources import OfficialFolder


@pytest.fixture
def linked(official_root: Path, tmp_path: Path) -> Path:
    """The official folder by links, so that one file can be replaced."""
    folder = tmp_path / facts.OFFICIAL_FOLDER
    folder.mkdir()
    for name in facts.OFFICIAL_FILES:
        (folder / name).symlink_to(official_root / facts.OFFICIAL_FOLDER / name)
    return folder


def refused(folder: Path, name: str, wanted: str) -> None:
    for call in (lambda: check_root(folder.parent), lambda: cifar10(0, folder, num_train=10, num_test=0)):
        with pytest.raises(UserError, match=wanted) as caught:
            call()
        message = str(caught.value)
        assert message.startswith(f"{folder / name}: wanted ")
        assert "\n" not in message
        assert "leave out --data" in message


@pytest.mark.parametrize("name", facts.OFFICIAL_FILES)
def test_a_missing_file(linked: Path, name: str) -> None:
    (linked / name).unlink()
    refused(linked, name, f"wanted a file of {facts.OFFICIAL_FILES[name][0]:,} bytes, got none")


@pytest.mark.parametrize("name", ["batches.meta", "data_batch_5", "test_batch"])
def test_a_cut_file(linked: Path, name: str) -> None:
    whole = (linked / name).read_bytes()
    (linked / name).unlink()
    (linked / name).write_bytes(whole[:-1])
    refused(linked, name, f"wanted {len(whole):,} bytes, got {len(whole) - 1:,}")


@pytest.mark.parametrize("name", ["batches.meta", "data_batch_2", "test_batch"])
def test_an_altered_file(linked: Path, name: str) -> None:
    content = bytearray((linked / name).read_bytes())
    content[len(content) // 2] ^= 1
    (linked / name).unlink()
    (linked / name).write_bytes(content)
    refused(linked, name, f"wanted md5 {facts.OFFICIAL_FILES[name][1]}, got [0-9a-f]+")
    if name == "data_batch_2":  # altered between the check and the reading
        with pytest.raises(UserError, match="wanted md5"):
            OfficialFolder(linked).read("train", 20_000)


def test_a_hostile_file_of_the_right_size_and_checksum_is_not_run(
    linked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Were md5 broken, the reader behind it would still run nothing.
    marker = tmp_path / "marker"
    hostile = b"cposix\nsystem\n(S'echo > " + str(marker).encode() + b"'\ntR."
    (linked / "data_batch_1").unlink()
    (linked / "data_batch_1").write_bytes(hostile)
    refused(linked, "data_batch_1", "wanted 31,035,704 bytes")
    known = dict(facts.OFFICIAL_FILES)
    known["data_batch_1"] = (len(hostile), file_digest(linked / "data_batch_1", "md5"))
    monkeypatch.setattr(facts, "OFFICIAL_FILES", known)
    with pytest.raises(UserError, match="data_batch_1: refused: it refers to 'posix system'"):
        cifar10(0, linked, num_train=10, num_test=0)
    assert not marker.exists()


@pytest.mark.parametrize("fault", ["shape", "labels", "range"])
def test_a_file_of_right_checksum_and_wrong_form(
    linked: Path, small_pickle: bytes, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    path = linked / "data_batch_1"
    content = small_pickle  # 1,500 images, where 10,000 are wanted
    if fault != "shape":
        monkeypatch.setattr(facts, "ROWS_PER_FILE", 1500)
    if fault == "labels":
        content = content.replace(b"U\x06labels", b"U\x06Labels")
    if fault == "range":
        content = content.replace(b"K\x09K\x00", b"K\x0aK\x00", 1)
    path.unlink()
    path.write_bytes(content)
    known = {**facts.OFFICIAL_FILES, "data_batch_1": (len(content), file_digest(path, "md5"))}
    monkeypatch.setattr(facts, "OFFICIAL_FILES", known)
    with pytest.raises(
        UserError, match=r"data_batch_1: wanted (data of shape \(10000, 3072\)|1,500 labels from 0 to 9)"
    ):
        cifar10(0, linked, num_train=10, num_test=0)


def test_a_broken_link_counts_as_missing(linked: Path) -> None:
    shutil.copy(linked / "batches.meta", linked / "copy")
    (linked / "batches.meta").unlink()
    (linked / "batches.meta").symlink_to(linked / "nowhere")
    refused(linked, "batches.meta", "got none")
