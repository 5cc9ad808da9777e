"""The real texts: their published facts, and the examples that are made of them."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from depthscope.core.errors import UserError
from depthscope.data.dataset import IGNORED, Dataset
from depthscope.data.text import check_options, names, shakespeare
from depthscope.data.text_files import TEXTS


@pytest.fixture(scope="session")
def plays(real_root: Path) -> str:
    try:
        return TEXTS["shakespeare"].find(real_root).read_text(encoding="ascii")
    except UserError as error:
        pytest.skip(f"the text is not here: {error}")


@pytest.fixture(scope="session")
def lines(real_root: Path) -> list[str]:
    try:
        return TEXTS["names"].find(real_root).read_text(encoding="ascii").split("\n")
    except UserError as error:
        pytest.skip(f"the names are not here: {error}")


def text_of(data: Dataset, tokens: np.ndarray) -> str:
    return "".join(data.alphabet[token] for token in tokens.ravel())


def entropy(counts: Counter[str]) -> float:
    total = counts.total()
    return -sum(count / total * math.log(count / total) for count in counts.values())


# Shakespeare


def test_the_plays_are_the_published_ones(plays: str) -> None:
    assert (len(plays), len(set(plays))) == (1_115_394, 65)
    assert plays.startswith("First Citizen:\nBefore we proceed any further, hear me speak.\n")
    # nanoGPT's split of the same file has 1,003,854 and 111,540 tokens.
    assert len(plays) * 9 // 10 == 1_003_854


def test_windows_are_the_text_cut_and_what_is_asked_is_the_next_character(plays: str, real_root: Path) -> None:
    data = shakespeare(0, real_root)
    assert data.test is not None
    assert (data.train.x.shape, data.test.x.shape) == ((15_685, 64), (1_742, 64))
    assert data.train.x.dtype == data.train.y.dtype == np.int64
    assert (data.num_tokens, data.num_classes, data.num_outputs) == (65, 65, 65)
    assert "".join(data.alphabet) == "".join(sorted(set(plays)))
    for split, part in ((data.train, plays[:1_003_854]), (data.test, plays[1_003_854:])):
        count = split.x.size
        assert text_of(data, split.x) == part[:count]
        assert text_of(data, split.y) == part[1 : count + 1]
        assert len(part) - count - 1 < 64, "no whole window is left over"
    assert data.alphabet[0] == "\n"


def test_the_chance_of_the_plays_is_the_entropy_of_single_characters(plays: str, real_root: Path) -> None:
    asked = Counter(plays[1 : 15_685 * 64 + 1])
    assert shakespeare(0, real_root).chance_loss == pytest.approx(entropy(asked), rel=1e-13)
    assert entropy(asked) == pytest.approx(3.309087, abs=1e-6)
    assert round(entropy(Counter(plays)), 3) == 3.313, "of the whole text"


def test_fewer_and_longer_windows(plays: str, real_root: Path) -> None:
    data = shakespeare(5, real_root, length=100, num_train=30, num_test=0, validation=10)
    assert data.test is None
    assert data.validation is not None
    assert text_of(data, data.train.x) == plays[:2000]
    assert text_of(data, data.validation.x) == plays[2000:3000]
    assert text_of(data, data.validation.y) == plays[2001:3001]
    whole = shakespeare(0, real_root, length=100, num_train=30, num_test=0)
    assert data.digest != whole.digest == shakespeare(9, real_root, length=100, num_train=30, num_test=0).digest


# Names


def test_the_names_are_the_published_ones(lines: list[str]) -> None:
    assert (len(lines), lines[0], max(map(len, lines)), min(map(len, lines))) == (32_033, "emma", 15, 2)
    assert set("".join(lines)) == set("abcdefghijklmnopqrstuvwxyz")


def test_every_name_is_there_once_and_asked_for_letter_by_letter(lines: list[str], real_root: Path) -> None:
    data = names(0, real_root)
    assert data.test is not None
    assert (data.train.x.shape, data.test.x.shape) == ((28_829, 16), (3_204, 16))
    assert (data.num_tokens, data.num_classes, data.alphabet[26]) == (27, 27, "")
    found = []
    for split in (data.train, data.test):
        for x, y in zip(split.x.tolist(), split.y.tolist(), strict=True):
            asked = [token for token in y if token != IGNORED]
            letters = asked[:-1]
            assert asked[-1] == 26
            assert y == asked + [IGNORED] * (16 - len(asked))
            assert x == [26, *letters] + [26] * (15 - len(letters))
            found.append("".join(data.alphabet[token] for token in letters))
    assert sorted(found) == sorted(lines)
    assert found[:100] != lines[:100]
    # In the file short, frequent names come first; in an order that was drawn, test names are like the others.
    mean, test = np.mean([len(name) for name in lines]), np.mean([len(name) for name in found[28_829:]])
    assert abs(test - mean) < 4 * np.std([len(name) for name in lines]) / math.sqrt(3_204)


def test_the_chance_of_names_is_the_entropy_of_what_is_asked(real_root: Path, lines: list[str]) -> None:
    data = names(0, real_root)
    asked = Counter(data.alphabet[token] for token in data.train.y[data.train.y != IGNORED])
    assert asked[""] == 28_829
    assert data.chance_loss == pytest.approx(entropy(asked), rel=1e-13)
    assert 2.82 < data.chance_loss < 2.83 < math.log(27)


def test_fewer_names(real_root: Path, lines: list[str]) -> None:
    whole, few = names(0, real_root), names(4, real_root, num_train=100, num_test=50, validation=30)
    assert whole.test is not None
    assert few.test is not None
    assert few.validation is not None
    np.testing.assert_array_equal(few.train.x, whole.train.x[:70])
    np.testing.assert_array_equal(few.validation.y, whole.train.y[70:100])
    np.testing.assert_array_equal(few.test.x, whole.test.x[-50:])
    assert names(0, real_root, num_test=0).test is None


@pytest.mark.parametrize(("length", "num_train", "num_test"), [(128, 7_842, 871), (32, 31_370, 3_485)])
def test_the_windows_are_all_that_there_are(real_root: Path, length: int, num_train: int, num_test: int) -> None:
    data = shakespeare(0, real_root, length=length)
    assert data.test is not None
    assert (data.train.x.shape, data.test.x.shape) == ((num_train, length), (num_test, length))


# Options


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("shakespeare", {"length": 0}, "length: wanted 1 to 111539 characters, got 0."),
        ("shakespeare", {"length": 128}, "num_train: wanted 1 to 7842 windows of 128 characters, got 15685."),
        ("shakespeare", {"num_train": 15_686}, "num_train: wanted 1 to 15685 windows of 64 characters, got 15686."),
        ("shakespeare", {"num_test": 1_743}, "num_test: wanted 0 to 1742 windows of 64 characters, got 1743."),
        ("shakespeare", {"validation": 15_685}, "validation: wanted 0 to 15684 of the 15685, got 15685."),
        ("names", {"num_train": 0}, "num_train: wanted 1 to 32033 names, got 0."),
        ("names", {"num_test": 3_205}, "num_test: wanted 0 to 3204 names beside the 28829, got 3205."),
        ("names", {"validation": -1}, "validation: wanted 0 to 28828 of the 28829, got -1."),
    ],
)
def test_an_option_out_of_range_is_one_line_and_reads_nothing(
    name: str, options: dict[str, int], message: str, tmp_path: Path
) -> None:
    given = {
        "shakespeare": {"length": 64, "num_train": 15_685, "num_test": 1_742},
        "names": {"num_train": 28_829, "num_test": 3_204},
    }[name]
    with pytest.raises(UserError) as told:
        check_options(name, **{**given, "validation": 0, **options})
    assert str(told.value) == f"{name}: data_options.{message}"
    make = {"shakespeare": shakespeare, "names": names}[name]
    with pytest.raises(UserError, match=f"^{name}: "):
        make(0, tmp_path, **{**given, **options})
