"""Error rates of rankings, by simulation from fixed seeds: how often equal arms are called different.

`moderated` is a vectorised twin of `analysis.simultaneous.compare_all`, which `tests/docs/test_statistics.py` holds to
the real one; the other two rules are those that were not taken.

    python docs/make_statistics.py        # runs this, and writes the tables
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from calibration import Array, Draw, Rate, collapsing, generator, heavy_tailed, normal, skewed
from scipy import special, stats

NUM_DRAWS = 2000
ARMS, SEEDS = (4, 10, 18), (3, 5)
LADDER = 2.0
"""Standard deviations of a run by which an arm of the ladder stands above the one before."""


def scattered(*scales: float) -> Callable[[int], Array]:
    """Scatter of each of k arms: these, then the last of them again and again."""
    return lambda num_arms: np.array([*scales, *[scales[-1]] * num_arms])[:num_arms]


Law = tuple[Draw, Callable[[int], Array]]
SCATTERS: Mapping[str, Law] = MappingProxyType(
    {
        "normal, equal scatter": (normal, scattered(1.0)),
        "normal, two arms scatter 10 times as much": (normal, scattered(10.0, 10.0, 1.0)),
        "normal, two arms scatter 100 times as much": (normal, scattered(100.0, 100.0, 1.0)),
        "normal, scatter over three decades": (normal, lambda num_arms: np.logspace(-3, 0, num_arms)),
        "one collapse in ten": (collapsing, scattered(1.0)),
        "skewed (log-normal)": (skewed, scattered(1.0)),
        "heavy tails (t, 3 degrees)": (heavy_tailed, scattered(1.0)),
    }
)
"""Name -> (distribution of a run, scale of each arm); all arms have the same mean."""


def draw(name: str, num_arms: int, n: int, num_draws: int = NUM_DRAWS) -> Array:
    """Figures of arms whose means are equal, [D, K, N]."""
    law, scale = SCATTERS[name]
    rng = generator(21, list(SCATTERS).index(name), num_arms, n)
    values = law(rng, (num_draws, num_arms, n))
    if law is normal:
        values = values - 1.0  # scaled about its mean
    return np.asarray(values * scale(num_arms)[None, :, None])


def pairs(values_DKN: Array) -> tuple[Array, Array]:
    """(mean [D, P], variance [D, P]) of the differences of all pairs."""
    first, second = np.triu_indices(values_DKN.shape[1], 1)
    differences = values_DKN[:, first] - values_DKN[:, second]
    return differences.mean(axis=2), differences.var(axis=2, ddof=1)


def moderated(values_DKN: Array) -> Array:
    """How many pairs are settled, [D], with moderated variances; no pair may be without a variance."""
    _, num_arms, n = values_DKN.shape
    means, s2 = pairs(values_DKN)
    d, most = n - 1, (num_arms - 2) / 4
    z = np.log(s2) - special.digamma(d / 2) + np.log(d / 2)
    excess = z.var(axis=1, ddof=1) - special.polygamma(1, d / 2)
    half = inverse_trigamma(np.maximum(excess, 1e-8))
    d0 = np.where(excess > 0, np.minimum(2 * half, most), most)[:, None]
    s0 = np.exp(z.mean(axis=1) + np.where(excess > 0, special.digamma(half) - np.log(half), 0.0))[:, None]
    lent = np.maximum(s2, (d0 * s0 + d * s2) / (d0 + d))
    return holm(stats.t.sf(np.abs(means) * np.sqrt(n / lent), d0 + d))


def alone(values_DKN: Array) -> Array:
    """The same with each pair's own t interval."""
    n = values_DKN.shape[2]
    means, s2 = pairs(values_DKN)
    return holm(stats.t.sf(np.abs(means) * np.sqrt(n / s2), n - 1))


def pooled(values_DKN: Array) -> Array:
    """The same with one variance for all arms (analysis of variance by arm and seed) and Tukey's range."""
    _, num_arms, n = values_DKN.shape
    rest = values_DKN - values_DKN.mean(axis=1, keepdims=True)
    rest = rest - rest.mean(axis=2, keepdims=True)
    df = (num_arms - 1) * (n - 1)
    variance = (rest**2).sum(axis=(1, 2)) / df
    widest = stats.studentized_range.ppf(0.95, num_arms, df)
    means, _ = pairs(values_DKN)
    return np.asarray((np.abs(means) > widest * np.sqrt(variance / n)[:, None]).sum(axis=1))


RULES: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {
        "each pair's own variance": alone,
        "one variance for all (Tukey)": pooled,
        "moderated variances (the rule)": moderated,
    }
)


def holm(p_DP: Array, error: float = 0.05) -> Array:
    """How many of the smaller one-sided p values Holm's procedure rejects, [D], among 2 P hypotheses."""
    ordered = np.sort(p_DP, axis=1)
    held = ordered <= error / (2 * p_DP.shape[1] - np.arange(p_DP.shape[1]))
    return np.asarray(np.where(held.all(axis=1), p_DP.shape[1], held.argmin(axis=1)))


def inverse_trigamma(value: Array) -> Array:
    """By Newton's method on 1 / trigamma, which is nearly a line (Smyth 2004, appendix)."""
    x = 0.5 + 1.0 / value
    for _ in range(30):
        at = special.polygamma(1, x)
        x = x + at * (1.0 - at / value) / special.polygamma(2, x)
    return np.asarray(x)


def called_different(
    name: str, num_arms: int, n: int, rule: Callable[[Array], Array] = moderated, num_draws: int = NUM_DRAWS
) -> Rate:
    """How often any of several equal arms is called better than another."""
    return Rate(value=float(np.mean(rule(draw(name, num_arms, n, num_draws)) > 0)), num_draws=num_draws)


def settled(num_arms: int, n: int, rule: Callable[[Array], Array]) -> float:
    """Share of pairs settled, of arms of equal scatter that stand `LADDER` standard deviations above one another."""
    values = draw("normal, equal scatter", num_arms, n) / 0.1 + LADDER * np.arange(num_arms)[None, :, None]
    return float(rule(values).mean() / (num_arms * (num_arms - 1) / 2))
