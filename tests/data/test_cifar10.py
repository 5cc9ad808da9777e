from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.data import cifar10_facts as facts
from depthscope.data import search
from depthscope.data.cifar10 import averaged, check_options, check_root, cifar10, prepare
from depthscope.data.dataset import Dataset
from depthscope.data.sources import CachedArrays, OfficialFolder, ParquetFolder, find


@pytest.fixture(scope="module", params=["parquet", "official"])
def root(request: pytest.FixtureRequest) -> Path:
    """A folder in each layout; every test that takes it runs on both."""
    path: Path = request.getfixturevalue("parquet_folder" if request.param == "parquet" else "official_root")
    return path


def averaged_naive(x: NDArray[np.uint8], size: int) -> NDArray[np.float64]:
    side = x.shape[2] // size
    out = np.zeros((*x.shape[:2], size, size))
    for row in range(size):
        for column in range(size):
            square = x[:, :, row * side : (row + 1) * side, column * side : (column + 1) * side]
            out[:, :, row, column] = square.astype(np.float64).mean(axis=(2, 3))
    return out


# Content


def test_published_facts(root: Path) -> None:
    data = cifar10(0, root)
    assert data.test is not None
    assert data.validation is None
    assert data.train.x.shape == (50_000, 3, 32, 32)
    assert data.test.x.shape == (10_000, 3, 32, 32)
    assert data.train.x.dtype == data.test.x.dtype == np.uint8
    assert data.train.y[:10].tolist() == [6, 9, 9, 4, 1, 1, 2, 7, 8, 3]
    assert data.test.y[:10].tolist() == [3, 8, 8, 0, 6, 6, 1, 6, 3, 1]
    assert np.bincount(data.train.y).tolist() == [5000] * 10
    assert np.bincount(data.test.y).tolist() == [1000] * 10
    np.testing.assert_allclose(data.mean, [125.307, 122.950, 113.865], rtol=0, atol=5e-4)
    np.testing.assert_allclose(data.std, [62.993, 62.089, 66.705], rtol=0, atol=5e-4)
    assert data.num_classes == 10
    # Both layouts, to the last bit.
    assert data.digest == "6901e550a712fd77"


def test_the_rebuilt_official_files_have_the_published_checksums(official_root: Path) -> None:
    OfficialFolder(official_root / facts.OFFICIAL_FOLDER).verify()


def test_arrays_may_be_written_to(root: Path) -> None:
    # torch warns about arrays that it must not write to.
    for options in ({"num_train": 10, "num_test": 10}, {"num_train": 10, "num_test": 10_000}):
        data = cifar10(0, root, **options)
        assert data.test is not None
        for split in (data.train, data.test):
            assert split.x.flags.writeable
            assert split.y.flags.writeable
            split.x[0] = 0
    again = cifar10(0, root, num_train=10, num_test=10_000)
    assert again.test is not None
    assert again.test.x[0].any(), "what was written stayed in that copy"


def test_first_rows_are_the_first_rows_of_all(root: Path) -> None:
    x, y = find(root).read("train", 50_000)
    for count in (1, 1000, 1001):
        data = cifar10(0, root, num_train=count, num_test=0)
        assert data.test is None
        np.testing.assert_array_equal(data.train.x, x[:count])
        np.testing.assert_array_equal(data.train.y, y[:count])


def test_rows_of_two_official_files_are_joined_in_order(official_root: Path, parquet_folder: Path) -> None:
    x, y = find(official_root).read("train", 10_001)
    wanted_x, wanted_y = find(parquet_folder).read("train", 10_001)
    np.testing.assert_array_equal(x[9_999:], wanted_x[9_999:])
    np.testing.assert_array_equal(y, wanted_y)


def test_the_seed_changes_nothing(root: Path) -> None:
    options: dict[str, Any] = {"num_train": 100, "num_test": 100}
    assert cifar10(0, root, **options).digest == cifar10(9, root, **options).digest


def test_validation_is_the_last_of_the_training_images_and_no_other_split_has_it(root: Path) -> None:
    whole = cifar10(0, root, num_train=1000, num_test=50)
    data = cifar10(0, root, num_train=1000, num_test=50, validation=100)
    assert data.validation is not None
    assert (len(data.train), len(data.validation)) == (900, 100)
    np.testing.assert_array_equal(data.train.x, whole.train.x[:900])
    np.testing.assert_array_equal(data.validation.x, whole.train.x[900:])
    np.testing.assert_array_equal(data.validation.y, whole.train.y[900:])
    np.testing.assert_allclose(data.mean, whole.train.x[:900].mean(axis=(0, 2, 3)), rtol=1e-12)
    assert data.digest != whole.digest
    full = cifar10(0, root, num_test=0, validation=5000)
    assert full.validation is not None
    assert (len(full.train), len(full.validation)) == (45_000, 5000)


def test_smaller_images_are_exact_averages(root: Path) -> None:
    full = cifar10(0, root, num_train=200, num_test=50)
    small = cifar10(0, root, num_train=200, num_test=50, image_size=16)
    assert full.test is not None
    assert small.test is not None
    for before, after in ((full.train, small.train), (full.test, small.test)):
        assert after.x.dtype == np.float32
        assert after.x.shape[1:] == (3, 16, 16)
        np.testing.assert_array_equal(after.x, averaged_naive(before.x, 16))
    np.testing.assert_allclose(small.mean, full.mean, rtol=1e-12)
    assert (small.std < full.std).all()


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_averages_are_exact_at_every_size(size: int) -> None:
    x = np.random.default_rng(size).integers(0, 256, size=(3, 2, 32, 32), dtype=np.uint8)
    x[0] = 255
    np.testing.assert_array_equal(averaged(x, size), averaged_naive(x, size))
    assert averaged(x, 32) is x


def test_facts_say_how_it_was_made(root: Path) -> None:
    data: Dataset = cifar10(0, root, num_train=100, num_test=10, image_size=16, validation=20)
    layout = data.facts.pop("layout")
    assert layout in ("parquet", "cifar-10-batches-py")
    assert data.facts == {"num_train": 80, "num_validation": 20, "num_test": 10, "image_size": 16}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("num_train", 0),
        ("num_train", 50_001),
        ("num_test", -1),
        ("num_test", 10_001),
        ("image_size", 5),
        ("image_size", 0),
        ("image_size", 64),
        ("validation", -1),
        ("validation", 100),
    ],
)
def test_options_out_of_range_are_refused_before_anything_is_read(option: str, value: int) -> None:
    options = {"num_train": 100, "num_test": 10, "image_size": 32, "validation": 0, option: value}
    with pytest.raises(UserError, match=rf"^cifar10: data_options\.{option}: wanted .*, got {value}\.$"):
        check_options(**options)
    with pytest.raises(UserError, match=option):
        cifar10(0, Path("no such folder"), **options)


def test_prepared_arrays_are_cached_where_most_of_a_split_is_wanted(parquet_folder: Path, empty_cache: Path) -> None:
    prepare(parquet_folder, num_train=5000, num_test=1000)
    assert not empty_cache.exists()
    prepare(parquet_folder, num_train=5000, num_test=10_000)
    assert len(list((empty_cache / "cifar10-arrays").glob("test-*.npy"))) == 2
    assert not list((empty_cache / "cifar10-arrays").glob("train-*"))


# Search


def test_found_two_folders_deep_and_the_official_one_first(tmp_path: Path) -> None:
    deep = tmp_path / "b" / "c"
    deep.mkdir(parents=True)
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "data_batch_1").write_bytes(b"")
    (deep / facts.PARQUET_FILES["test"]).write_bytes(b"")
    assert find(tmp_path) == ParquetFolder(deep)
    (deep / "data_batch_3").write_bytes(b"")
    assert find(tmp_path) == OfficialFolder(deep)
    (tmp_path / "z").mkdir()
    (tmp_path / "z" / "test_batch").write_bytes(b"")
    assert find(tmp_path) == OfficialFolder(tmp_path / "z"), "the nearest"


def test_not_found_three_folders_deep(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "data_batch_1").write_bytes(b"")
    with pytest.raises(UserError, match=r"holds no CIFAR-10\. Wanted cifar-10-batches-py/data_batch_1 .*--data"):
        find(tmp_path)


def test_another_data_set_in_the_same_file_names_is_passed_over(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (tmp_path / "a").mkdir()
    pq.write_table(pa.table({"text": ["x"]}), tmp_path / "a" / facts.PARQUET_FILES["train"])
    with pytest.raises(UserError, match="holds no CIFAR-10"):
        find(tmp_path)


def test_the_search_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SEARCH_FOLDERS", 10)
    for k in range(20):
        (tmp_path / f"{k:02}").mkdir()
    (tmp_path / "19" / "data_batch_1").write_bytes(b"")
    with pytest.raises(UserError, match="holds no CIFAR-10"):
        find(tmp_path)


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_root_that_is_no_folder(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "data"
    if kind == "file":
        path.write_bytes(b"")
    with pytest.raises(UserError, match=r"data: no such folder\. .*--data") as caught:
        check_root(path)
    assert "\n" not in str(caught.value)


def test_the_environment_names_a_folder(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPTHSCOPE_DATA", str(root))
    check_root(None)
    assert len(cifar10(0, None, num_train=10, num_test=10).train) == 10


def test_an_environment_that_names_a_wrong_folder_is_blamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPTHSCOPE_DATA", str(tmp_path))
    with pytest.raises(UserError, match=r"^DEPTHSCOPE_DATA: .*: holds no CIFAR-10"):
        check_root(None)


def test_without_a_folder_the_cached_arrays_serve(
    parquet_folder: Path, monkeypatch: pytest.MonkeyPatch, session_cache: Path
) -> None:
    prepare(parquet_folder)
    monkeypatch.setenv("DEPTHSCOPE_CIFAR10_URL", "http://127.0.0.1:9/")
    data = cifar10(0, None, num_train=1000)
    assert data.digest == cifar10(0, parquet_folder, num_train=1000).digest
    assert data.facts["layout"] == "cached arrays"


def test_an_empty_cache_says_so(empty_cache: Path) -> None:
    with pytest.raises(UserError, match="holds no whole train split"):
        CachedArrays().verify()
