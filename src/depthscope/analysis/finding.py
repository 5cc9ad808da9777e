"""Estimate and Finding: the numbers that a claim is judged by, and the judgement."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from depthscope.study.run import Frozen

FINDINGS_SCHEMA = 1
Verdict = Literal["supported", "refuted", "undecided"]


class EffectSize(Frozen):
    """Hedges' g_z of paired differences: their mean in units of their spread, corrected for small samples.

    Attributes:
        value: g_z; None where there is none (see `note`).
        low: lower end of the interval of the population's effect.
        high: upper end.
        level: coverage of the interval; that of the estimate beside it.
        note: why there is no effect size, in English, from `notes.NOTES`.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    note: str | None = None


class Estimate(Frozen):
    """A number with its interval.

    Attributes:
        name: what is estimated.
        value: the estimate; None where no run gives it.
        low: lower end of the interval; None where there is no interval (see `note`).
        high: upper end.
        n: number of seeds (or pairs) behind it.
        num_runs: number of runs behind it, where a seed has several; else None.
        unit: unit of value, low and high; empty for a pure number.
        method: how the interval was made: `paired t`, `t`, `order statistics`, `Clopper-Pearson` (a fraction of
            seeds); or `closed form`. A mean or difference whose values are all equal has `order statistics`: its
            interval is that of the median.
        level: coverage of the interval; above .95 where it is adjusted for several confirmatory claims.
        values: the single values by seed, ascending by seed, so that a reader can see the spread; of a fraction,
            1 for a seed that satisfies and 0 for one that does not.
        note: why there is no interval, or what else must be known, in English; made of phrases from
            `notes.NOTES`, and said in other languages by `notes.spoken_note`.
        effect: the effect size of a mean paired difference; None for other estimates.
    """

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int
    num_runs: int | None = None
    unit: str = ""
    method: str | None = None
    level: float = 0.95
    values: tuple[float, ...] = ()
    note: str | None = None
    effect: EffectSize | None = None


Flag = Literal["data", "order", "augment", "code", "several", "implied", "unknown"]
"""What a reader must be warned of in a comparison; see `Pairing`."""


class Pairing(Frozen):
    """What the two sides of a comparison share, from the digests of their records, and in what they differ.

    Attributes:
        a: the side before the minus sign.
        b: the side after it.
        seeds: seeds whose digests both sides have.
        num_shared: tensors that both have and that start equal on every seed.
        num_common: tensors that both have.
        differing: names of those that start otherwise on some seed.
        reshaped: names of those that have another shape there: other tensors under one name.
        only_a: names of the tensors of `a` alone.
        only_b: names of the tensors of `b` alone.
        same_data: whether both saw the same data; None where a record does not tell.
        same_order: whether the batches came in the same order, likewise.
        same_augment: whether the augmentation drew the same, likewise.
        same_code: whether the user's code that both name was the same; None where there is none.
        fields: fields of a run in which the sides differ, depth among them.
        varied: the same where the options of a name that differs are one with it: what varies.
        tuned: one of `fields` that was chosen for both sides by tuning: that it differs makes the comparison fair.
        tuned_by: the axes at each of whose values it was chosen by itself.
        flags: `data`, `order`, `augment`, `code`: not the same, so that the pairs are not pairs in this; `several`:
            more than one thing varies; `implied`: tensors of the same shape start otherwise though no setting
            of the initialiser differs; `unknown`: the records do not tell.
    """

    a: str
    b: str
    seeds: tuple[int, ...]
    num_shared: int
    num_common: int
    differing: tuple[str, ...] = ()
    reshaped: tuple[str, ...] = ()
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    same_data: bool | None
    same_order: bool | None
    same_augment: bool | None
    same_code: bool | None = None
    fields: tuple[str, ...]
    varied: tuple[str, ...]
    tuned: str | None = None
    tuned_by: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()


class Finding(Frozen):
    """A claim, judged.

    Attributes:
        claim: the claim's name.
        text: the claim as a sentence, by language.
        kind: the claim's kind.
        confirmatory: whether the study declared it as the one that it stands or falls with; else it is exploratory.
        family: number of confirmatory claims that share the error rate (Holm); 1 for an exploratory claim, whose
            interval is corrected for nothing.
        verdict: supported, refuted or undecided.
        margin: the bound that the claim names.
        expect: on which side of `margin` the estimate must lie.
        estimates: the judged estimates first, then those they were made from.
        num_judged: how many of the estimates carry the verdict.
        num_met: how many of those, the first, meet the bound of a claim that takes one of several differences.
        pairing: what the sides of each comparison that the claim makes share; empty where it makes none.
        reason: the judgement in a sentence made from the estimates, in English.
        reasons: the same by language.
    """

    claim: str
    text: dict[str, str]
    kind: str
    confirmatory: bool
    family: int = 1
    verdict: Verdict
    margin: float
    expect: Literal["at_least", "at_most", "within"]
    estimates: tuple[Estimate, ...]
    num_judged: int = 1
    num_met: int = 0
    pairing: tuple[Pairing, ...] = ()
    reason: str
    reasons: dict[str, str] = Field(default_factory=dict)
