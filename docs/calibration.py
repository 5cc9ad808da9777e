"""Error rates of intervals and verdicts, by simulation from fixed seeds: what `docs/statistics.md` prints.

Every draw of a table goes through vectorised twins of `paired_t_interval` and of the verdicts, because the real
functions take a millisecond each; `tests/docs/test_statistics.py` holds the twins to the real ones.

    python docs/make_statistics.py        # runs this, and writes the tables
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Array]

NUM_DRAWS = 4000
SIZES = (3, 5, 10)
SEED = 20260101


def normal(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """N(1, .1)."""
    return rng.normal(1.0, 0.1, size=shape)


def collapsing(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """A run in ten collapses: .9 N(1, .01) + .1 N(.5, .05), deviations in brackets; its mean is .95."""
    collapsed = rng.random(shape) < 0.1
    return np.where(collapsed, rng.normal(0.5, 0.05, size=shape), rng.normal(1.0, 0.01, size=shape))


def skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Log-normal, exp N(0, .75): a loss that is sometimes several times the usual one."""
    return np.asarray(np.exp(rng.normal(0.0, 0.75, size=shape)))


def heavy_tailed(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Student's t of 3 degrees: symmetric, with far outliers."""
    return np.asarray(rng.standard_t(3, size=shape))


@dataclass(frozen=True, kw_only=True)
class Law:
    """A distribution of one arm's figure over seeds, with its mean and median."""

    name: str
    draw: Draw
    mean: float
    median: float


# The median of the mixture solves .9 Phi((x - 1) / .01) + .1 = .5, as all collapsed runs lie below.
LAWS: Mapping[str, Law] = MappingProxyType(
    {
        law.name: law
        for law in (
            Law(name="normal", draw=normal, mean=1.0, median=1.0),
            Law(
                name="one collapse in ten",
                draw=collapsing,
                mean=0.95,
                median=1.0 + 0.01 * float(stats.norm.ppf(0.4 / 0.9)),
            ),
            Law(name="skewed (log-normal)", draw=skewed, mean=float(np.exp(0.75**2 / 2)), median=1.0),
            Law(name="heavy tails (t, 3 degrees)", draw=heavy_tailed, mean=0.0, median=0.0),
        )
    }
)


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A share of draws."""

    value: float
    num_draws: int

    @property
    def error(self) -> float:
        """Standard error of the share."""
        return float(np.sqrt(self.value * (1.0 - self.value) / self.num_draws))


def t_ends(values_DN: Array, level: float = 0.95) -> tuple[Array, Array]:
    """Ends of the t interval of each row of draws: the twin of `t_interval`, for values with a spread."""
    n = values_DN.shape[1]
    half = stats.t.ppf(0.5 + level / 2.0, n - 1) * values_DN.std(axis=1, ddof=1) / np.sqrt(n)
    mean = values_DN.mean(axis=1)
    return mean - half, mean + half


def median_ends(values_DN: Array, level: float = 0.95) -> tuple[Array, Array] | None:
    """The twin of `intervals.median_ends`; None where n values have no interval."""
    n = values_DN.shape[1]
    ranks = [rank for rank in range(1, n // 2 + 1) if 1.0 - 2.0 * stats.binom.cdf(rank - 1, n, 0.5) >= level]
    if not ranks:
        return None
    ordered = np.sort(values_DN, axis=1)
    return ordered[:, ranks[-1] - 1], ordered[:, n - ranks[-1]]


def generator(*key: int) -> np.random.Generator:
    """A stream of its own for each row of a table."""
    return np.random.default_rng([SEED, *key])


Against = Literal["none", "alike", "steady"]
"""What an arm is compared with: nothing (its own mean), an arm like it, or one that never goes wrong, N(1, .01)."""


def misses(law: Law, n: int, against: Against, *, num_draws: int = NUM_DRAWS) -> tuple[Rate, Rate]:
    """How often the 95% interval of a mean, or of a mean paired difference, lies wholly above and wholly below it."""
    rng = generator(list(LAWS).index(law.name), n, ("none", "alike", "steady").index(against))
    values, truth = law.draw(rng, (num_draws, n)), law.mean
    if against == "alike":
        values, truth = values - law.draw(rng, (num_draws, n)), 0.0
    elif against == "steady":
        values, truth = values - rng.normal(1.0, 0.01, size=(num_draws, n)), law.mean - 1.0
    low, high = t_ends(values)
    above, below = (Rate(value=float(np.mean(miss)), num_draws=num_draws) for miss in (low > truth, high < truth))
    return above, below


def coverage(law: Law, n: int, against: Against, *, num_draws: int = NUM_DRAWS) -> Rate:
    """How often the 95% interval holds the true mean, or the true mean difference."""
    above, below = misses(law, n, against, num_draws=num_draws)
    return Rate(value=1.0 - above.value - below.value, num_draws=num_draws)


def median_coverage(law: Law, n: int, *, num_draws: int = NUM_DRAWS) -> Rate | None:
    """How often the interval between order statistics holds the true median; None where n gives none."""
    values = law.draw(generator(list(LAWS).index(law.name), n, 3), (num_draws, n))
    ends = median_ends(values)
    if ends is None:
        return None
    return Rate(value=float(np.mean((ends[0] <= law.median) & (law.median <= ends[1]))), num_draws=num_draws)


# ---- Families of confirmatory claims --------------------------------------------------------------

Supported = Callable[[Array, float], Array]
"""(values of the cells of a claim, [D, cells, N]; level) -> the verdict of each draw: 1 supported, -1 refuted, 0."""

MARGIN = 0.05


def _verdicts(low: Array, high: Array, than: float) -> Array:
    """At least `than`."""
    return np.where(low >= than, 1.0, np.where(high < than, -1.0, 0.0))


def difference(cells_DCN: Array, level: float) -> Array:
    """Cell 1 minus cell 0 is at least 0."""
    return _verdicts(*t_ends(cells_DCN[:, 1] - cells_DCN[:, 0], level), 0.0)


def twofold(cells_DCN: Array, level: float) -> Array:
    """(cell 1 - cell 0) - (cell 3 - cell 2) is at least 0."""
    changes = (cells_DCN[:, 1] - cells_DCN[:, 0]) - (cells_DCN[:, 3] - cells_DCN[:, 2])
    return _verdicts(*t_ends(changes, level), 0.0)


def no_degradation(cells_DCN: Array, level: float) -> Array:
    """The loss of cell 1 is above that of cell 0 by at most the margin."""
    low, high = t_ends(cells_DCN[:, 1] - cells_DCN[:, 0], level)
    return _verdicts(-high, -low, -MARGIN)


def monotone(cells_DCN: Array, level: float) -> Array:
    """Cells 0 to 2 rise: all of both steps for support, any of them, corrected, for refutation."""
    steps = [cells_DCN[:, at + 1] - cells_DCN[:, at] for at in (0, 1)]
    each = np.array([_verdicts(*t_ends(step, level), 0.0) for step in steps])
    wide = np.array([_verdicts(*t_ends(step, 1.0 - (1.0 - level) / 2), 0.0) for step in steps])
    return np.where((each == 1).all(axis=0), 1.0, np.where((wide == -1).any(axis=0), -1.0, 0.0))


def some(cells_DCN: Array, level: float) -> Array:
    """Any of cells 1 to 3 is at least cell 0: the best of three, corrected; refuted where all are at 95%."""
    steps = [cells_DCN[:, at] - cells_DCN[:, 0] for at in (1, 2, 3)]
    each = np.array([_verdicts(*t_ends(step, level), 0.0) for step in steps])
    wide = np.array([_verdicts(*t_ends(step, 1.0 - (1.0 - level) / 3), 0.0) for step in steps])
    return np.where((wide == 1).any(axis=0), 1.0, np.where((each == -1).all(axis=0), -1.0, 0.0))


def median(cells_DCN: Array, level: float) -> Array:
    """The median of cell 0 is at least 1."""
    ends = median_ends(cells_DCN[:, 0], level)
    return np.zeros(len(cells_DCN)) if ends is None else _verdicts(*ends, 1.0)


KINDS: Mapping[str, Supported] = MappingProxyType(
    {
        "difference": difference,
        "difference_in_differences": twofold,
        "no_degradation": no_degradation,
        "monotone": monotone,
        "some_difference": some,
        "median": median,
    }
)
FAMILIES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "1: a difference": ("difference",),
        "1: no degradation": ("no_degradation",),
        "1: monotone": ("monotone",),
        "1: some of three differences": ("some_difference",),
        "2: differences": ("difference", "difference"),
        "2: difference, median": ("difference", "median"),
        "3: difference, difference in differences, no degradation": (
            "difference",
            "difference_in_differences",
            "no_degradation",
        ),
        "4: difference, no degradation, monotone, median": ("difference", "no_degradation", "monotone", "median"),
        "4: differences": ("difference",) * 4,
    }
)
NUM_CELLS = 4


def null_cells(kind: str, law: Law, rng: np.random.Generator, num_draws: int, n: int) -> Array:
    """Cells [D, 4, N] on the bound of a claim: the null under which `supported` is false, or as near as can be.

    All cells are alike, so that differences are 0 on average; of no degradation, the deeper one is worse by
    exactly the margin; of a median, it lies at the bound. A monotone claim is false with one of its steps on the
    bound and the other far up, which is where its error is largest.
    """
    cells = law.draw(rng, (num_draws, NUM_CELLS, n))
    if kind == "no_degradation":
        cells[:, 1] += MARGIN
    elif kind == "monotone":
        cells[:, 2] += 100.0
    elif kind == "median":
        cells[:, 0] += 1.0 - law.median
    return cells


def holm(cells: Sequence[Array], kinds: Sequence[str], level: float = 0.95) -> Array:
    """The verdicts of a family, [K, D]: the twin of `findings.judge` on confirmatory claims."""
    num_draws = len(cells[0])
    out = np.zeros((len(kinds), num_draws))
    left = np.ones((len(kinds), num_draws), dtype=bool)
    for _ in kinds:
        tried = np.zeros_like(out)
        for count in range(1, len(kinds) + 1):
            rows = left.sum(axis=0) == count
            for at, kind in enumerate(kinds):
                tried[at, rows] = KINDS[kind](cells[at][rows], 1.0 - (1.0 - level) / count)
        decided = left & (tried != 0)
        out[decided] = tried[decided]
        left &= ~decided
    return out


def false_support(
    kinds: Sequence[str], law: Law, n: int, *, held: Sequence[bool] | None = None, num_draws: int = NUM_DRAWS
) -> Rate:
    """How often a family supports any claim that is false.

    Args:
        kinds: its claims, all of them on their bound.
        law: of every cell.
        n: seeds.
        held: claims that are true instead, by far: they leave Holm's procedure at once, and the others get its
            easier levels.
        num_draws: draws.
    """
    rng = generator(9, list(LAWS).index(law.name), n, len(kinds), sum(map(len, kinds)))
    true = held or [False] * len(kinds)
    cells = [null_cells(kind, law, rng, num_draws, n) for kind in kinds]
    for at, kind in enumerate(kinds):
        if true[at]:
            cells[at][:, 1 if kind != "median" else 0] += -100.0 if kind == "no_degradation" else 50.0
    verdicts = holm(cells, kinds)
    wrong = [verdicts[at] == 1 for at in range(len(kinds)) if not true[at]]
    return Rate(value=float(np.mean(np.any(wrong, axis=0))), num_draws=num_draws)
