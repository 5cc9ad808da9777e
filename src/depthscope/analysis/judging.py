"""One claim, judged at one level of confidence. The rules in a table:

| claim | judged by | supported | refuted |
| --- | --- | --- | --- |
| difference (in differences) | paired t interval over seeds | all of it satisfies | all of it violates |
| some difference | paired t interval of each | any satisfies (Holm) | all violate |
| no degradation | paired t interval of the worsening | all at most the margin | all above the margin |
| monotone | paired t interval of each step | every step's satisfies | any step's violates (Bonferroni) |
| level, every seed | each seed: all its observed cells | all satisfy, none is absent | any cell violates |
| level, median | order-statistics interval of each cell's median | all satisfy | any wholly violates |
| ratio to theory | the same, of measured / expected | all within 1 +- tolerance | any wholly outside |

Else it is undecided. No degradation is a claim of non-inferiority: an interval that reaches beyond the margin
leaves it undecided, however near 0 its middle; lack of power is no evidence of absence.

What happens to runs that gave no figure, or the same figure:

| case | difference | level, median | level, every seed |
| --- | --- | --- | --- |
| all values equal | interval of the median difference, from 6 seeds on at 95% | likewise | a count as any |
| a run is missing, failed or lacks the metric | undecided | undecided | not supported |
| a run diverged, which speaks against the claim | not supported | takes the far end of the order | violates |
| a run diverged, which speaks for the claim | not refuted | out of the order, and not refuted | not supported |

A run that diverged has no figure, yet it says something: it is worse than any run that ended. "Speaks
against" means that a worse figure there would violate the claim: of "a's loss minus b's is at most m" a
diverged a, of "accuracy is at least" any. Its pair drops out of a difference, whose interval is then of
the survivors. They were selected by the very thing that is judged, so they may confirm what the
diverged runs say and never overrule it: where a diverged run speaks against, the claim is refuted if
the survivors' interval violates it, else undecided; where it speaks for, supported if their interval
satisfies it, else undecided; where both happen, or the metric has no worse side (as the gradient's
factor and a ratio to theory), undecided. The note says how many diverged, and what that speaks for.
A figure that was measured before training (`table.BEFORE_TRAINING`) knows nothing of a later
divergence: it is read from such a run as from any, and there is nothing to tell.

The steps of a monotone claim are differences, and the rules of a difference hold for each; so are the
alternatives of some difference, of which one without all its runs is undecided by itself.

A bound (`than`) is in the metric's own scale: of an accuracy a fraction, .1 for ten points.
"""

from __future__ import annotations

from depthscope.analysis.differences import judge_difference
from depthscope.analysis.levels import judge_every_seed, judge_median, judge_theory
from depthscope.analysis.monotone import judge_monotone
from depthscope.analysis.several import judge_some
from depthscope.analysis.table import Results
from depthscope.analysis.verdicts import Judgement
from depthscope.study.claims import (
    Claim,
    DifferenceClaim,
    DifferenceInDifferencesClaim,
    LevelClaim,
    MonotoneClaim,
    NoDegradationClaim,
    SomeDifferenceClaim,
    TheoryClaim,
)


def judge_claim(results: Results, claim: Claim, level: float = 0.95) -> Judgement:
    """Judge a claim from the records, with intervals of this coverage."""
    match claim:
        case DifferenceClaim() | DifferenceInDifferencesClaim() | NoDegradationClaim():
            return judge_difference(results, claim, level)
        case SomeDifferenceClaim():
            return judge_some(results, claim, level)
        case MonotoneClaim():
            return judge_monotone(results, claim, level)
        case LevelClaim(statistic="every_seed"):
            return judge_every_seed(results, claim, level)
        case LevelClaim():
            return judge_median(results, claim, level)
        case TheoryClaim():
            return judge_theory(results, claim, level)
