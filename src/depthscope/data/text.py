"""Text, a character at a time: the next one is asked at every position.

Shape letters: N examples, T positions.

Sources: tinyshakespeare is of Andrej Karpathy's char-rnn (2015), the names of his makemore (2022).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.core.streams import stream
from depthscope.data.dataset import IGNORED, Dataset, Split, make_dataset
from depthscope.data.fetch import Progress
from depthscope.data.options import held_out, within
from depthscope.data.text_files import TEXTS

NUM_CHARACTERS = 1_115_394
NUM_NAMES = 32_033
NUM_LETTERS = 26
BLOCK = 16
"""Positions of a name: the longest has 15 letters, and one more position asks for the end."""

_TRAIN_CHARACTERS = NUM_CHARACTERS * 9 // 10
_MOST = {"train": _TRAIN_CHARACTERS - 1, "test": NUM_CHARACTERS - _TRAIN_CHARACTERS - 1}
"""Characters of windows; the last one of a part is only ever asked for."""


def shakespeare(
    seed: int,
    root: Path | None,
    *,
    length: int = 64,
    num_train: int | None = None,
    num_test: int | None = None,
    validation: int = 0,
) -> Dataset:
    """Characters of Shakespeare's plays: of each the next one is asked.

    The first nine tenths of the text are to train on and the rest to test on, as in nanoGPT. Both are cut into
    windows that do not overlap.

    Args:
        seed: not used: all seeds share the data.
        root: a folder that holds `tinyshakespeare.txt` or `input.txt`, up to two folders deep; where it is None, the
            one that DEPTHSCOPE_DATA names; where that is not set, the cache, into which the text is downloaded.
        length: T, characters of a window.
        num_train: the first so many windows of the first nine tenths; None for all, 15,685 of 64 characters.
        num_test: the first so many windows of the rest; None for all, 1,742 of 64 characters; 0 for no test split.
        validation: how many, the last ones of the `num_train`, are held out as `validation`.

    Returns:
        Tokens, int64 `[N, T]`, 65 of them, in the order of their characters' codes; and the token that follows each,
        int64 `[N, T]`. `chance_loss` is the entropy of single characters.

    Raises:
        UserError: an option out of its range, or a file that is missing, cut short or altered.
    """
    within("shakespeare: data_options.length", length, 1, _MOST["test"], " characters")
    num_train = _MOST["train"] // length if num_train is None else num_train
    num_test = _MOST["test"] // length if num_test is None else num_test
    check_options("shakespeare", length=length, num_train=num_train, num_test=num_test, validation=validation)
    codes = np.frombuffer(TEXTS["shakespeare"].ready(root).read_bytes(), np.uint8)
    alphabet, tokens = np.unique(codes, return_inverse=True)
    tokens = tokens.astype(np.int64)
    kept = num_train - validation

    def windows(part: NDArray[np.int64], first: int, count: int) -> Split:
        start, end = first * length, (first + count) * length
        x, y = part[start:end], part[start + 1 : end + 1]
        return Split(x.reshape(count, length), y.reshape(count, length))

    train, test = tokens[:_TRAIN_CHARACTERS], tokens[_TRAIN_CHARACTERS:]
    return make_dataset(
        "shakespeare",
        windows(train, 0, kept),
        test=windows(test, 0, num_test) if num_test else None,
        validation=windows(train, kept, validation) if validation else None,
        num_classes=len(alphabet),
        num_tokens=len(alphabet),
        alphabet=tuple(map(chr, alphabet.tolist())),
        facts={"length": length, "num_train": kept, "num_validation": validation, "num_test": num_test},
    )


def names(
    seed: int, root: Path | None, *, num_train: int = 28_829, num_test: int = 3_204, validation: int = 0
) -> Dataset:
    """First names, one an example: of each letter the next one is asked, and after the last the end.

    The file has the most frequent names first, so that its names are put in an order drawn once, the same for every
    seed; the first of it are to train on and the last to test on. The file has 2,539 of its names twice: in the
    default split 462 of the 3,204 names to test on are among those to train on too.

    Args:
        seed: not used: all seeds share the data.
        root: a folder that holds `names.txt`, as in `shakespeare`.
        num_train: the first so many names.
        num_test: so many of the others; 0 for no test split.
        validation: how many, the last ones of the `num_train`, are held out as `validation`.

    Returns:
        Tokens, int64 `[N, 16]`: 26, which stands for both ends of a name, then its letters, 0 to 25, then 26 again to
        the end of the row. What follows each, int64 `[N, 16]`: the letters, 26 once, then `IGNORED`. In `alphabet`
        both ends have no text.

    Raises:
        UserError: an option out of its range, or a file that is missing, cut short or altered.
    """
    check_options("names", num_train=num_train, num_test=num_test, validation=validation)
    lines = TEXTS["names"].ready(root).read_text(encoding="ascii").split("\n")
    x = np.full((len(lines), BLOCK), NUM_LETTERS, np.int64)
    y = np.full((len(lines), BLOCK), IGNORED, np.int64)
    for row, at in enumerate(stream(0, "data", "names", "order").permutation(len(lines))):
        letters = [ord(letter) - ord("a") for letter in lines[at]]
        x[row, 1 : len(letters) + 1] = letters
        y[row, : len(letters) + 1] = [*letters, NUM_LETTERS]
    kept = num_train - validation
    return make_dataset(
        "names",
        Split(x[:kept], y[:kept]),
        test=Split(x[-num_test:], y[-num_test:]) if num_test else None,
        validation=Split(x[kept:num_train], y[kept:num_train]) if validation else None,
        num_classes=NUM_LETTERS + 1,
        num_tokens=NUM_LETTERS + 1,
        alphabet=(*(chr(ord("a") + letter) for letter in range(NUM_LETTERS)), ""),
        facts={"num_train": kept, "num_validation": validation, "num_test": num_test},
    )


def check_options(name: str, **options: Any) -> None:
    """Raise a UserError for an option of this data set that is out of its range. Reads nothing."""
    num_train, num_test, length = options["num_train"], options["num_test"], options.get("length")
    if length is None:
        within(f"{name}: data_options.num_train", num_train, 1, NUM_NAMES, " names")
        within(f"{name}: data_options.num_test", num_test, 0, NUM_NAMES - num_train, f" names beside the {num_train}")
    else:
        within(f"{name}: data_options.length", length, 1, _MOST["test"], " characters")
        for split, number, low in (("train", num_train, 1), ("test", num_test, 0)):
            within(
                f"{name}: data_options.num_{split}",
                number,
                low,
                _MOST[split] // length,
                f" windows of {length} characters",
            )
    held_out(name, options["validation"], num_train)


def prepare(name: str, root: Path | None, *, progress: Progress | None = None) -> None:
    """See to it that the text is at hand and whole, so that workers only read; see `TextFile.ready`."""
    TEXTS[name].ready(root, progress)
