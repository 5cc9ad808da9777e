"""Where the tests of this room find real images, and a cache that is not the user's."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from depthscope.data import cifar10_facts as facts
from depthscope.data.sources import ParquetFolder, find


def real_data_root() -> Path | None:
    """The folder that holds real data: DEPTHSCOPE_DATA, else shared/data beside the repository."""
    named = os.environ.get("DEPTHSCOPE_DATA")
    root = Path(named) if named else Path(__file__).parents[3] / "shared" / "data"
    return root if root.is_dir() else None


NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
REAL_ROOT = real_data_root()  # at import, because the fixture below takes the variable away


@pytest.fixture(autouse=True)
def _private(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may see the user's data, nor send a request through a proxy."""
    monkeypatch.setenv("no_proxy", "*")
    for name in ("CIFAR10", "SHAKESPEARE", "NAMES"):
        monkeypatch.delenv(f"DEPTHSCOPE_{name}_URL", raising=False)


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "empty-cache"
    monkeypatch.setenv("DEPTHSCOPE_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def real_root() -> Path:
    if REAL_ROOT is None:
        pytest.skip("no real data: set DEPTHSCOPE_DATA to a folder that holds CIFAR-10")
    return REAL_ROOT


@pytest.fixture(scope="session")
def parquet_folder(real_root: Path) -> Path:
    source = find(real_root)
    if not isinstance(source, ParquetFolder):
        pytest.skip(f"the real data is a {source.layout}, not the parquet layout")
    return source.folder


@pytest.fixture(scope="session")
def official_root(parquet_folder: Path, session_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds `cifar-10-batches-py`, rebuilt from the parquet files (about 10 s, once)."""
    root = tmp_path_factory.mktemp("official")
    folder = root / facts.OFFICIAL_FOLDER
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEPTHSCOPE_CACHE", str(session_cache))
        files = {"train": [f"data_batch_{k}" for k in range(1, 6)], "test": ["test_batch"]}
        for split, rows_in_all in facts.NUM_ROWS.items():
            x, y = ParquetFolder(parquet_folder).read(split, rows_in_all)
            table = pq.ParquetFile(parquet_folder / facts.PARQUET_FILES[split]).read(columns=["img.path"])
            paths = [each["path"] for each in table.column("img").to_pylist()]
            for k, name in enumerate(files[split]):
                rows = slice(10_000 * k, 10_000 * (k + 1))
                title = f"{split}ing batch {k + 1} of {len(files[split])}"
                (folder / name).write_bytes(batch_pickle(title, x[rows], y[rows].tolist(), paths[rows]))
    (folder / "batches.meta").write_bytes(meta_pickle())
    return root


@pytest.fixture(scope="session")
def small_pickle() -> bytes:
    """A file like an official one, of 1,500 images."""
    x = np.random.default_rng(0).integers(0, 256, size=(1500, 3, 32, 32), dtype=np.uint8)
    return batch_pickle("training batch 1 of 1", x, [n % 10 for n in range(1500)], [f"{n}.png" for n in range(1500)])


class Python2Pickle:
    """Writes what Python 2's cPickle wrote: text is byte strings, and most values go to the memo."""

    def __init__(self) -> None:
        self.out = bytearray(b"\x80\x02")
        self.memos = 0

    def raw(self, *pieces: bytes) -> Python2Pickle:
        for piece in pieces:
            self.out += piece
        return self

    def memo(self) -> Python2Pickle:
        self.memos += 1
        number = self.memos
        return self.raw(struct.pack("<cB", b"q", number) if number < 256 else struct.pack("<cI", b"r", number))

    def text(self, value: str) -> Python2Pickle:
        return self.raw(b"U", bytes([len(value)]), value.encode("ascii")).memo()


def batch_pickle(title: str, x: np.ndarray, labels: list[int], paths: list[str]) -> bytes:
    """One batch file of the official folder, byte for byte."""
    file = Python2Pickle().raw(b"}").memo().raw(b"(")
    file.text("batch_label").text(title).text("labels").raw(b"]").memo()
    for start in range(0, len(labels), 1000):
        file.raw(b"(", *(b"K" + bytes([label]) for label in labels[start : start + 1000]), b"e")
    file.text("data")
    file.raw(b"cnumpy.core.multiarray\n_reconstruct\n").memo().raw(b"cnumpy\nndarray\n").memo()
    file.raw(b"K\x00\x85U\x01b\x87R").memo()
    file.raw(b"(K\x01M", struct.pack("<H", len(x)), b"M", struct.pack("<H", 3072), b"\x86")
    file.raw(b"cnumpy\ndtype\n").memo().raw(b"U\x02u1K\x00K\x01\x87R").memo()
    file.raw(b"(K\x03U\x01|NNN", 2 * struct.pack("<ci", b"J", -1), b"K\x00tb\x89")
    file.raw(b"T", struct.pack("<i", x.size), np.ascontiguousarray(x).tobytes(), b"tb")
    file.text("filenames").raw(b"]").memo()
    for start in range(0, len(paths), 1000):
        file.raw(b"(")
        for path in paths[start : start + 1000]:
            file.text(path)
        file.raw(b"e")
    return bytes(file.raw(b"u.").out)


def meta_pickle() -> bytes:
    """`batches.meta`, byte for byte."""
    file = Python2Pickle().raw(b"}").memo().raw(b"(")
    file.text("num_cases_per_batch").raw(b"M", struct.pack("<H", 10_000)).text("label_names").raw(b"]").memo()
    file.raw(b"(")
    for name in NAMES:
        file.text(name)
    file.raw(b"e").text("num_vis").raw(b"M", struct.pack("<H", 3072), b"u.")
    return bytes(file.out)
