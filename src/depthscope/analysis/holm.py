"""Several confirmatory claims together: Holm 1979, Scandinavian Journal of Statistics 6."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from depthscope.analysis.verdicts import Judgement


def holm(names: Sequence[str], judge: Callable[[str, float], Judgement], level: float) -> dict[str, Judgement]:
    """Judge claims so that the chance of deciding any of them wrongly is at most 1 - level.

    With k of them left, each is tried with intervals of coverage 1 - (1 - level)/k; those that are decided leave,
    and the rest is tried again; when none is decided, all that are left are undecided at that coverage. The
    intervals shown are those that decided.

    Args:
        names: of the claims.
        judge: `(name, coverage) -> judgement`.
        level: coverage for a single claim.
    """
    done: dict[str, Judgement] = {}
    left = list(names)
    while left:
        tried = {name: judge(name, 1.0 - (1.0 - level) / len(left)) for name in left}
        decided = {name for name, judgement in tried.items() if judgement.verdict != "undecided"}
        if not decided:
            return done | tried
        done |= {name: tried[name] for name in decided}
        left = [name for name in left if name not in decided]
    return done
