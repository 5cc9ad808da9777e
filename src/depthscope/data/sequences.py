"""Tasks made from random draws that ask what a network can carry: over time, between vectors, or through its layers.

The content of `adding`, `copy` and `nth_farthest` is the same for every seed of a study, as that of real data is; the
points of `identity_task` are drawn by the seed, as those of the spiral are. The first k examples are the same however
many are asked for.

Shape letters: N examples, T steps, M vectors of a set, I numbers of a vector.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from depthscope.core.streams import stream
from depthscope.data.dataset import Dataset, Split, make_dataset
from depthscope.data.options import at_least, held_out

NUM_SYMBOLS = 8
NUM_COPIED = 10
BLANK = NUM_SYMBOLS
MARKER = NUM_SYMBOLS + 1


def adding(
    seed: int,
    root: Path | None = None,
    *,
    depth: int,
    num_train: int = 10_000,
    num_test: int = 1_000,
    validation: int = 0,
) -> Dataset:
    """The adding problem: the sum of two marked numbers of a sequence, asked at its end.

    Source: Hochreiter and Schmidhuber, Long Short-Term Memory, 1997, in the form of Arjovsky, Shah and Bengio, Unitary
    Evolution Recurrent Neural Networks, 2016: one of the two stands anywhere in the first half, one in the second.

    Args:
        seed: not used: all seeds share the data.
        root: not used; every data set takes it.
        depth: T, numbers of a sequence: the depth in time.
        num_train: sequences to train on.
        num_test: sequences to test on; 0 for none.
        validation: how many, the last ones of the `num_train`, are held out as `validation`.

    Returns:
        Sequences, float64 `[N, T, 2]`: a number, uniform in [0, 1), and a mark, 1 where it is to be added, else 0; and
        the sum, float64 `[N, 1]`, of which the mean squared error of a constant tends to 1/6.

    Raises:
        UserError: an option out of its range.
    """
    at_least("adding: depth", depth, 2)

    def draw(split: str, count: int) -> Split:
        x = np.zeros((count, depth, 2))
        x[:, :, 0] = stream(0, "data", "adding", split, "numbers").random((count, depth))
        row = np.arange(count)
        # A stream for each mark, so that the first k do not depend on how many there are.
        first = stream(0, "data", "adding", split, "first").integers(0, depth // 2, count)
        second = stream(0, "data", "adding", split, "second").integers(depth // 2, depth, count)
        x[row, first, 1] = x[row, second, 1] = 1.0
        return Split(x, x[row, first, 0:1] + x[row, second, 0:1])

    return _made("adding", draw, num_train, num_test, validation, {"depth": depth}, task="regression")


def copy(
    seed: int,
    root: Path | None = None,
    *,
    depth: int,
    num_train: int = 10_000,
    num_test: int = 1_000,
    validation: int = 0,
) -> Dataset:
    """Copying memory: ten symbols are to be told again after `depth` steps.

    In the form of Arjovsky, Shah and Bengio, Unitary Evolution Recurrent Neural Networks, 2016 (after Hochreiter and
    Schmidhuber, 1997): ten symbols, drawn uniformly from eight; T - 1 blanks; the marker, which calls for them; ten
    blanks, at which the ten are asked in their order. At every step before, a blank is asked. The best that can be done
    without a memory is to answer the blanks rightly and the rest by chance: a loss of 10 ln 8 / (T + 20) a step, which
    is `chance_loss`.

    Args:
        seed: not used: all seeds share the data.
        root: not used; every data set takes it.
        depth: T, the depth in time: a symbol is asked T + 10 steps after it was read.
        num_train: sequences to train on.
        num_test: sequences to test on; 0 for none.
        validation: how many, the last ones of the `num_train`, are held out as `validation`.

    Returns:
        Tokens, int64 `[N, T + 20]`: symbols 0 to 7, the blank 8, the marker 9; and what is asked, int64 `[N, T + 20]`,
        in nine classes, 0 to 8.

    Raises:
        UserError: an option out of its range.
    """
    at_least("copy: depth", depth, 1)

    def draw(split: str, count: int) -> Split:
        symbols = stream(0, "data", "copy", split).integers(0, NUM_SYMBOLS, (count, NUM_COPIED))
        x = np.full((count, depth + 2 * NUM_COPIED), BLANK, np.int64)
        y = x.copy()
        x[:, :NUM_COPIED] = y[:, -NUM_COPIED:] = symbols
        x[:, NUM_COPIED + depth - 1] = MARKER
        return Split(x, y)

    return _made(
        "copy",
        draw,
        num_train,
        num_test,
        validation,
        {"depth": depth},
        num_classes=NUM_SYMBOLS + 1,
        num_tokens=NUM_SYMBOLS + 2,
        alphabet=(*"abcdefgh", "_", ":"),
        chance_loss=NUM_COPIED * math.log(NUM_SYMBOLS) / (depth + 2 * NUM_COPIED),
    )


def nth_farthest(
    seed: int,
    root: Path | None = None,
    *,
    num_train: int = 10_000,
    num_test: int = 1_000,
    num_vectors: int = 8,
    vector_size: int = 8,
    validation: int = 0,
) -> Dataset:
    """Of a set of vectors, which is the nth farthest from vector m? A guess is right once in `num_vectors`.

    Source: Santoro et al., Relational recurrent neural networks, 2018. Distances are Euclidean; n runs from 1, the
    farthest, to M, which is vector m itself. All that is asked about comes with every vector.

    Args:
        seed: not used: all seeds share the data.
        root: not used; every data set takes it.
        num_train: sets to train on.
        num_test: sets to test on; 0 for none.
        num_vectors: M, vectors of a set.
        vector_size: I, numbers of a vector, uniform in [-1, 1).
        validation: how many, the last ones of the `num_train`, are held out as `validation`.

    Returns:
        Sequences, float64 `[N, M, I + 3 M]`: of each vector its numbers; then, each with a 1 among zeros, its name (the
        M names of a set are in random order), n and m; and the name of the vector that is asked for, int64 `[N]`.

    Raises:
        UserError: an option out of its range.
    """
    at_least("nth_farthest: data_options.num_vectors", num_vectors, 2)
    at_least("nth_farthest: data_options.vector_size", vector_size, 1)

    def draw(split: str, count: int) -> Split:
        def of(what: str) -> np.random.Generator:
            return stream(0, "data", "nth_farthest", split, what)

        vectors_NMI = of("vectors").uniform(-1.0, 1.0, (count, num_vectors, vector_size))
        # The order of uniform numbers is a uniform permutation, drawn row by row.
        name_NM = np.argsort(of("names").random((count, num_vectors)), axis=1)
        asked_N2 = of("asked").integers(0, num_vectors, (count, 2))
        n_N, m_N = asked_N2.T
        row = np.arange(count)
        at_m = np.argmax(name_NM == m_N[:, None], axis=1)
        squared_NM = np.square(vectors_NMI - vectors_NMI[row, at_m][:, None]).sum(axis=2)
        farthest_first = np.argsort(-squared_NM, axis=1, kind="stable")
        one_hot = np.eye(num_vectors)
        about = np.broadcast_to(one_hot[asked_N2].reshape(count, 1, -1), (count, num_vectors, 2 * num_vectors))
        x = np.concatenate([vectors_NMI, one_hot[name_NM], about], axis=2)
        return Split(x, name_NM[row, farthest_first[row, n_N]].astype(np.int64))

    facts = {"num_vectors": num_vectors, "vector_size": vector_size}
    return _made("nth_farthest", draw, num_train, num_test, validation, facts, num_classes=num_vectors)


def identity_task(
    seed: int,
    root: Path | None = None,
    *,
    num_train: int = 256,
    num_test: int = 256,
    size: int = 8,
    validation: int = 0,
) -> Dataset:
    """Doing nothing: the answer is the input.

    Args:
        seed: the run's seed, which draws the points.
        root: not used; every data set takes it.
        num_train: points to train on.
        num_test: points to test on; 0 for none.
        size: I, numbers of a point, uniform in [-.8, .8), where tanh is not yet flat.
        validation: how many, the last ones of the `num_train`, are held out as `validation`.

    Returns:
        Vectors, float64 `[N, I]`, and the same as targets. The mean squared error of a constant tends to .64/3.

    Raises:
        UserError: an option out of its range.
    """
    at_least("identity_task: data_options.size", size, 1)

    def draw(split: str, count: int) -> Split:
        x = stream(seed, "data", "identity_task", split).uniform(-0.8, 0.8, (count, size))
        return Split(x, x.copy())

    return _made("identity_task", draw, num_train, num_test, validation, {"size": size}, task="regression")


def _made(
    name: str,
    draw: Callable[[str, int], Split],
    num_train: int,
    num_test: int,
    validation: int,
    facts: dict[str, int],
    **what: Any,
) -> Dataset:
    """The data set of these draws, its options checked."""
    at_least(f"{name}: data_options.num_train", num_train, 1)
    at_least(f"{name}: data_options.num_test", num_test, 0)
    held_out(name, validation, num_train)
    drawn, kept = draw("train", num_train), num_train - validation
    return make_dataset(
        name,
        Split(drawn.x[:kept], drawn.y[:kept]),
        test=draw("test", num_test) if num_test else None,
        validation=Split(drawn.x[kept:], drawn.y[kept:]) if validation else None,
        facts={**facts, "num_train": kept, "num_validation": validation, "num_test": num_test},
        **what,
    )
