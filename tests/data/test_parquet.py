"""Damage of every kind to the parquet layout, most of it done to copies of the (smaller) test file."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from depthscope.core.errors import UserError
from depthscope.data import cifar10_facts as facts
from depthscope.data import parquet
from depthscope.data.cache import load_arrays
from depthscope.data.cifar10 import check_root, cifar10
from depthscope.data.sources import ParquetFolder

KEY = "2a8ebd84c3ffa69c"  # of the parquet file that the project's own data folder holds
TEST, TRAIN = facts.PARQUET_FILES["test"], facts.PARQUET_FILES["train"]


@pytest.fixture
def folder(parquet_folder: Path, tmp_path: Path, empty_cache: Path) -> Path:
    """The train file as it is (linked), for tests that put a test file of their own beside it."""
    (tmp_path / TRAIN).symlink_to(parquet_folder / TRAIN)
    return tmp_path


@pytest.fixture(scope="module")
def all_rows(parquet_folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(parquet_folder / TEST).to_pylist()
    return rows


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows that are decoded, as they are."""
    rows: list[int] = []
    pixels = parquet._pixels

    def counted(png: object, path: Path, row: int) -> Any:
        rows.append(row)
        return pixels(png, path, row)

    monkeypatch.setattr(parquet, "_pixels", counted)
    return rows


def write(folder: Path, rows: list[dict[str, Any]], row_group_size: int = 10_000) -> None:
    pq.write_table(pa.Table.from_pylist(rows), folder / TEST, row_group_size=row_group_size)


def png(array: np.ndarray, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.fromarray(array).save(out, kind)
    return out.getvalue()


def changed(rows: list[dict[str, Any]], row: int, **values: Any) -> list[dict[str, Any]]:
    return [*rows[:row], {**rows[row], **values}, *rows[row + 1 :]]


def refused(folder: Path, wanted: str, count: int = 1000) -> None:
    with pytest.raises(UserError, match=wanted) as caught:
        ParquetFolder(folder).read("test", count)
    message = str(caught.value)
    assert message.startswith(f"{folder / TEST}: wanted ")
    assert "\n" not in message
    assert "leave out --data" in message


def test_another_writing_of_the_same_images_is_accepted_and_cached(
    folder: Path, all_rows: list[dict[str, Any]], decoded: list[int]
) -> None:
    # Other row groups (so batches end in the middle of blocks), columns in another order, no paths.
    write(folder, [{"label": row["label"], "img": {"bytes": row["img"]["bytes"]}} for row in all_rows], 700)
    x, y = ParquetFolder(folder).read("test", 10)
    assert len(decoded) == 10_000, "of a file that nobody vouches for, all is decoded once"
    assert y.tolist() == [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]
    again, _ = ParquetFolder(folder).read("test", 10)
    assert len(decoded) == 10_000, "and then it comes out of the cache"
    np.testing.assert_array_equal(x, again)


def test_an_altered_image(folder: Path, all_rows: list[dict[str, Any]]) -> None:
    pixels = np.array(Image.open(io.BytesIO(all_rows[1234]["img"]["bytes"])))
    pixels[0, 0, 0] ^= 1
    write(folder, changed(all_rows, 1234, img={"bytes": png(pixels)}))
    refused(folder, "wanted the official images and labels in rows 1000 to 1999, got others")


def test_an_altered_label(folder: Path, all_rows: list[dict[str, Any]]) -> None:
    write(folder, changed(all_rows, 999, label=(all_rows[999]["label"] + 1) % 10))
    refused(folder, "wanted the official images and labels in rows 0 to 999, got others")


def test_images_in_another_order(folder: Path, all_rows: list[dict[str, Any]]) -> None:
    write(folder, [all_rows[1], all_rows[0], *all_rows[2:]])
    refused(folder, "official images and labels in rows 0 to 999")


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"label": 10}, "wanted a label from 0 to 9 in row 5, got 10"),
        ({"label": -1}, "wanted a label from 0 to 9 in row 5, got -1"),
        ({"label": None}, "wanted a label from 0 to 9 in row 5, got None"),
        ({"img": {"bytes": None}}, "wanted a PNG image in row 5, got none"),
        ({"img": None}, "wanted a PNG image in row 5, got none"),
        ({"img": {"bytes": b"\x89PNG"}}, "wanted a PNG image in row 5, got bytes that are none"),
        ({"img": {"bytes": png(np.zeros((32, 32, 3), np.uint8))[:60]}}, "wanted a PNG image in row 5, got bytes"),
        ({"img": {"bytes": png(np.zeros((32, 32, 3), np.uint8), "BMP")}}, "wanted a PNG image in row 5, got bytes"),
        ({"img": {"bytes": png(np.zeros((31, 32, 3), np.uint8))}}, "an image of 32x32 in row 5, got 32x31"),
        ({"img": {"bytes": png(np.zeros((5000, 5000), np.uint8))}}, "an image of 32x32 in row 5, got 5000x5000"),
    ],
)
def test_one_bad_row(folder: Path, all_rows: list[dict[str, Any]], values: dict[str, Any], wanted: str) -> None:
    write(folder, changed(all_rows, 5, **values))
    refused(folder, wanted)


def test_too_few_rows(folder: Path, all_rows: list[dict[str, Any]]) -> None:
    write(folder, all_rows[:-1])
    refused(folder, "wanted 10,000 images, got 9,999")


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ([{"image": b"", "label": 0}], "wanted a column img with a field bytes, got columns image, label"),
        ([{"img": b"", "label": 0}], "wanted a column img with a field bytes"),
        ([{"img": {"bytes": b""}, "label": "cat"}], "wanted a column label of integers"),
        ([{"img": {"bytes": b""}, "fine_label": 0}], "wanted a column label of integers, got columns img, fine_label"),
    ],
)
def test_other_columns(folder: Path, rows: list[dict[str, Any]], wanted: str) -> None:
    write(folder, rows)
    refused(folder, wanted)


@pytest.mark.parametrize("keep", [0, 3, 100_000])
def test_a_cut_file(folder: Path, parquet_folder: Path, keep: int) -> None:
    with (parquet_folder / TEST).open("rb") as file:
        (folder / TEST).write_bytes(file.read(keep))
    refused(folder, "wanted a whole parquet file")
    with pytest.raises(UserError, match="wanted a whole parquet file"):
        check_root(folder)


def test_a_missing_file(folder: Path) -> None:
    refused(folder, "wanted a parquet file of 10,000 images, got none")
    with pytest.raises(UserError, match=r"test-00000-of-00001\.parquet: wanted a parquet file of 10,000 images"):
        check_root(folder)


@pytest.mark.parametrize("place", [0.01, 0.5, 0.99])
def test_a_flipped_byte_is_found_before_anything_is_written(folder: Path, parquet_folder: Path, place: float) -> None:
    content = bytearray((parquet_folder / TEST).read_bytes())
    content[int(place * len(content))] ^= 255
    (folder / TEST).write_bytes(content)
    with pytest.raises(UserError, match=r"test-00000-of-00001\.parquet: wanted") as caught:
        check_root(folder)
    assert "\n" not in str(caught.value)


def test_only_the_rows_asked_for_are_decoded(parquet_folder: Path, empty_cache: Path, decoded: list[int]) -> None:
    data = cifar10(0, parquet_folder, num_train=1500, num_test=10)
    assert decoded == [*range(2000), *range(1000)], "whole blocks of 1,000, which are checked"
    assert len(data.train) == 1500
    assert not empty_cache.exists(), "a part is decoded again rather than cached"


def test_a_read_only_cache_is_no_fault(parquet_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("DEPTHSCOPE_CACHE", str(tmp_path / "file"))
    x, y = ParquetFolder(parquet_folder).read("test", 10_000)
    assert x.shape == (10_000, 3, 32, 32)
    assert np.bincount(y).tolist() == [1000] * 10


@pytest.fixture
def kept(parquet_folder: Path, session_cache: Path, empty_cache: Path) -> tuple[Path, Path]:
    """The cached arrays of the test split, images and labels, in a cache of this test's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEPTHSCOPE_CACHE", str(session_cache))
        ParquetFolder(parquet_folder).read("test", 10_000)
    folder = empty_cache / "cifar10-arrays"
    folder.mkdir(parents=True)
    for axis in "xy":
        shutil.copy(session_cache / "cifar10-arrays" / f"test-{KEY}-{axis}.npy", folder)
    return folder / f"test-{KEY}-x.npy", folder / f"test-{KEY}-y.npy"


DAMAGE: dict[str, Callable[[Path, Path], object]] = {
    "a flipped bit": lambda x, y: x.write_bytes(x.read_bytes()[:-1] + bytes([x.read_bytes()[-1] ^ 1])),
    "cut": lambda x, y: x.write_bytes(x.read_bytes()[:-1]),
    "empty": lambda x, y: x.write_bytes(b""),
    "a pickle": lambda x, y: np.save(x, np.array([print], dtype=object), allow_pickle=True),
    "another shape": lambda x, y: np.save(x, np.load(x)[:9000]),
    "another type": lambda x, y: np.save(x, np.load(x).astype(np.int16)),
    "other labels": lambda x, y: np.save(y, (np.load(y) + 1) % 10),
    "half gone": lambda x, y: y.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_cache_is_not_believed(kept: tuple[Path, Path], damage: str) -> None:
    assert load_arrays("test", KEY, 10_000) is not None
    DAMAGE[damage](*kept)
    assert load_arrays("test", KEY, 10_000) is None


def test_a_damaged_cache_is_made_again(parquet_folder: Path, kept: tuple[Path, Path], decoded: list[int]) -> None:
    whole = [path.read_bytes() for path in kept]
    source = ParquetFolder(parquet_folder)
    source.read("test", 10_000)
    assert decoded == [], "it is used as long as it is whole"
    DAMAGE["a flipped bit"](*kept)
    x, y = source.read("test", 10_000)
    assert [path.read_bytes() for path in kept] == whole
    np.testing.assert_array_equal(x, np.load(kept[0]))
    np.testing.assert_array_equal(y, np.load(kept[1]))
    assert len(decoded) == 10_000
    assert {path.suffix for path in kept[0].parent.iterdir()} == {".npy"}, "no temporary file is left"


def test_any_whole_cache_will_do_when_no_file_is_named(kept: tuple[Path, Path]) -> None:
    for path in kept:
        (path.parent / path.name.replace(KEY, "0000")).write_bytes(b"damaged")
    assert load_arrays("test", "*", 10_000) is not None
    kept[0].unlink()
    assert load_arrays("test", "*", 10_000) is None
