"""What trained variants show: paired differences from the first one, judged; what they share; what befell them.

The measure that decides is the training loss on clean examples at the end, named before any run: claims on it are
confirmatory and Holm-corrected over the variants. Accuracies and validation figures are exploratory. The rules for
runs that diverged are those of every claim: see `judging`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from depthscope.analysis.effects import with_effect
from depthscope.analysis.fates import DECIDES, Fate, arms_of
from depthscope.analysis.finding import Estimate, Finding, Pairing
from depthscope.analysis.findings import EQUAL_FEW, LEVEL, ONE_SEED
from depthscope.analysis.holm import holm
from depthscope.analysis.intervals import bounds_of, least_equal, paired_t_interval, t_interval
from depthscope.analysis.notes import key_of, note
from depthscope.analysis.rounding import scale_of_operands
from depthscope.analysis.samples import Census
from depthscope.analysis.verdicts import (
    Judgement,
    Says,
    against,
    diverged_value,
    divergence_says,
    noted,
    of_survivors,
)
from depthscope.analysis.wording import LANGS, VERDICTS, Lang, spoken, with_spread
from depthscope.record.variants import VariantRun
from depthscope.study.claims import Expect

METRICS = (DECIDES, "train_accuracy", "validation_loss", "validation_accuracy")


def judge_variants(runs: Sequence[VariantRun], *, level: float = LEVEL) -> tuple[Finding, ...]:
    """A finding for each variant but the first and each figure: is it better than the first by this figure?"""
    first, *others = arms_of(runs)
    measured = [metric for metric in METRICS if metric == DECIDES or any(metric in run.figures for run in runs)]
    judged = holm(others, lambda arm, at: _judge(runs, arm, first, DECIDES, at), level)
    pairs = {arm: pairing(runs, arm, first) for arm in others}
    return tuple(
        _finding(
            judged[arm] if metric == DECIDES else _judge(runs, arm, first, metric, level), arm, first, metric, pairs
        )
        for metric in measured
        for arm in others
    )


def _judge(runs: Sequence[VariantRun], a: str, b: str, metric: str, level: float) -> Judgement:
    """The difference a - b by seed, against 0."""
    sides = [[run for run in runs if run.arm == arm] for arm in (a, b)]
    columns = [{run.seed: run.figures.get(metric) for run in side} for side in sides]
    unit, expect = _unit(metric), _expect(metric)
    scale = scale_of_operands(value for column in columns for value in column.values())
    change = paired_t_interval(*columns, level=level, name=f"{metric}: {a} minus {b}", unit=unit)
    means = [
        t_interval(list(column.values()), name=f"{metric}: {arm}", unit=unit, bounds=bounds_of(metric))
        for arm, column in zip((a, b), columns, strict=True)
    ]
    worst = diverged_value(metric)
    signs = [sign for side, sign in zip(sides, (1, -1), strict=True) if any(_lost(run, "diverged") for run in side)]
    said: list[Says] = [divergence_says(None if worst is None else sign * worst, expect) for sign in signs]
    verdict = against(change.low, change.high, expect, 0.0, scale)
    if change.low == change.high == 0.0:
        verdict = "refuted"  # better was asked, and all are equal
    counts = Census(
        total=sum(map(len, sides)),
        missing=0,
        diverged=sum(_lost(run, "diverged") for side in sides for run in side),
        failed=sum(_lost(run, "failed") for side in sides for run in side),
        unmeasured=sum(run.outcome.status == "completed" and metric not in run.figures for s in sides for run in s),
    )
    return Judgement(
        verdict="undecided" if counts.silent else of_survivors(verdict, said),
        estimates=(with_effect(noted(change, counts, said)), *means),
        num_judged=1,
        census=counts,
        said=tuple(sorted(set(said))),
    )


def pairing(runs: Sequence[VariantRun], a: str, b: str) -> Pairing:
    """What two variants share at the start, from the digests of their tensors."""
    by_seed = {(run.arm, run.seed): run for run in runs if run.init}
    seeds = tuple(run.seed for run in runs if run.arm == a and run.init and (b, run.seed) in by_seed)
    left = [by_seed[a, seed] for seed in seeds]
    right = [by_seed[b, seed] for seed in seeds]
    names = [list(runs_[0].init) if runs_ else [] for runs_ in (left, right)]
    common = [name for name in names[0] if name in names[1]]
    reshaped = [name for name in common if left[0].shapes[name] != right[0].shapes[name]]
    differing = [
        name for name in common if any(x.init.get(name) != y.init.get(name) for x, y in zip(left, right, strict=True))
    ]
    return Pairing(
        a=a,
        b=b,
        seeds=seeds,
        num_shared=len(common) - len(differing),
        num_common=len(common),
        differing=tuple(differing),
        reshaped=tuple(reshaped),
        only_a=tuple(name for name in names[0] if name not in common),
        only_b=tuple(name for name in names[1] if name not in common),
        same_data=True,
        same_order=True,
        same_augment=None,
        fields=("model",),
        varied=("model",),  # its initial values too, where the factories draw others: that is no warning
        flags=(),
    )


def headline(findings: Sequence[Finding], ends: Sequence[Fate], lang: Lang) -> list[str]:
    """What was found, in sentences: the deciding figure of each variant, divergence, and what kind of harm it is."""
    decided = [each for each in findings if each.confirmatory]
    told = [*_best(decided, lang), *(_decided(each, lang) for each in decided)]
    for fate in ends:
        if fate.chance is not None:
            loss, chance = (f"{each:.4g}" for each in fate.chance)
            kind = "above_chance" if fate.above_chance else "chance"
            told.append(_SENTENCES[kind][lang].format(arm=fate.arm, loss=loss, chance=chance))
    for fate in ends:
        for kind, seeds in (("diverged", fate.diverged), ("failed", fate.failed)):
            if seeds:
                told.append(_SENTENCES[kind][lang].format(arm=fate.arm, k=len(seeds), n=fate.num_runs))
    by_claim = {each.claim: each for each in findings}
    for each in findings:
        arm = each.claim.partition(": ")[2]
        held_out = by_claim.get(f"validation_loss: {arm}")
        if each.confirmatory and each.verdict == "refuted" and not _equal(each.estimates[0]):
            told.append(_SENTENCES["degradation"][lang].format(arm=arm))
        if each.confirmatory and each.verdict == "supported" and held_out and held_out.verdict == "refuted":
            told.append(_SENTENCES["overfitting"][lang].format(arm=arm))
    return told


_SENTENCES: dict[str, dict[Lang, str]] = {
    "supported": {
        "en": "“{a}” ends with a lower training loss than “{b}”: difference {found}.",
        "zh": "“{a}”的最终训练损失低于“{b}”：差值 {found}。",
    },
    "refuted": {
        "en": "“{a}” ends with a higher training loss than “{b}”: difference {found}.",
        "zh": "“{a}”的最终训练损失高于“{b}”：差值 {found}。",
    },
    "equal": {
        "en": "“{a}” and “{b}” end with the same training loss on every seed.",
        "zh": "“{a}”与“{b}”在每个种子上的最终训练损失都相同。",
    },
    "undecided": {
        "en": "Whether “{a}” ends with a lower training loss than “{b}” is undecided: difference {found}{why}.",
        "zh": "“{a}”的最终训练损失是否低于“{b}”尚无定论：差值 {found}{why}。",
    },
    "diverged": {
        "en": "“{arm}” diverged in {k} of {n} runs.",
        "zh": "“{arm}”在 {n} 次运行中有 {k} 次发散。",
    },
    "failed": {
        "en": "“{arm}” failed in {k} of {n} runs.",
        "zh": "“{arm}”在 {n} 次运行中有 {k} 次出错。",
    },
    "best": {
        "en": "“{arm}” has the lowest mean training loss: {loss}.",
        "zh": "“{arm}”的平均训练损失最低：{loss}。",
    },
    "chance": {
        "en": "“{arm}” is at chance (training loss {loss}, a uniform guess has {chance}): it did not train.",
        "zh": "“{arm}”处于随机水平（训练损失 {loss}，均匀猜测为 {chance}）：它没有学到东西。",
    },
    "above_chance": {
        "en": "“{arm}” ends above chance (training loss {loss}, a uniform guess has {chance}): "
        "after these steps it is worse than a guess.",
        "zh": "“{arm}”结束时高于随机水平（训练损失 {loss}，均匀猜测为 {chance}）：训练这些步后仍不如猜测。",
    },
    "no_pair": {
        "en": "No seed on which both have it: “{a}” on {k} of {n}, “{b}” on {m} of {n}.",
        "zh": "没有两者都有该指标的种子：“{a}”有 {k} / {n} 个，“{b}”有 {m} / {n} 个。",
    },
    "measured": {"en": "{name} = {d}; means {a} and {b}.", "zh": "{name}：{d}；均值为 {a} 与 {b}。"},
    "degradation": {
        "en": "“{arm}” fits its own training data worse: that is no overfitting, and no divergence.",
        "zh": "“{arm}”对自身训练数据拟合得更差：这不是过拟合，也不是发散。",
    },
    "overfitting": {
        "en": "“{arm}” fits the training data better and the validation data worse: it overfits more.",
        "zh": "“{arm}”对训练数据拟合得更好，对验证数据更差：过拟合更重。",
    },
}


def _best(decided: Sequence[Finding], lang: Lang) -> list[str]:
    """The variant with the lowest mean loss, where three or more could have it."""
    means: dict[str, float | None] = {}
    for each in decided:
        means |= {each.pairing[0].a: each.estimates[1].value, each.pairing[0].b: each.estimates[2].value}
    known = {arm: value for arm, value in means.items() if value is not None and math.isfinite(value)}
    if len(decided) < 2 or len(known) < 2:
        return []
    arm = min(known, key=lambda each: known[each])
    return [_SENTENCES["best"][lang].format(arm=arm, loss=f"{known[arm]:.4g}")]


def _decided(finding: Finding, lang: Lang) -> str:
    pair, change = finding.pairing[0], finding.estimates[0]
    kind = "equal" if _equal(change) else finding.verdict
    reasons = _why(change, lang) if kind == "undecided" else []
    why = "".join(f"; {each}" if lang == "en" else f"；{each}" for each in reasons)
    return _SENTENCES[kind][lang].format(a=pair.a, b=pair.b, found=with_spread(change, lang, change=True), why=why)


def _equal(change: Estimate) -> bool:
    return bool(change.values) and not any(change.values) and change.low is not None


def _why(change: Estimate, lang: Lang) -> list[str]:
    keys = {key_of(phrase) for phrase in (change.note or "").split("; ")}
    if "equal_few" in keys:
        return [EQUAL_FEW[lang].format(least=least_equal(change.level))]
    return [ONE_SEED[lang]] if "one_pair" in keys else []


def _finding(judgement: Judgement, a: str, b: str, metric: str, pairs: dict[str, Pairing]) -> Finding:
    reasons = {lang: _reason(judgement, metric, a, b, lang) for lang in LANGS}
    better = {"en": "lower" if "loss" in metric else "higher", "zh": "更低" if "loss" in metric else "更高"}
    return Finding(
        claim=f"{metric}: {a}",
        text={
            "en": f"“{a}” ends with a {better['en']} {spoken(metric, 'en')} than “{b}”",
            "zh": f"“{a}”的{spoken(metric, 'zh')}比“{b}”{better['zh']}",
        },
        kind="difference",
        confirmatory=metric == DECIDES,
        family=len(pairs) if metric == DECIDES else 1,
        verdict=judgement.verdict,
        margin=0.0,
        expect=_expect(metric),
        estimates=judgement.estimates,
        num_judged=1,
        pairing=(pairs[a],),
        reason=reasons["en"],
        reasons={str(lang): text for lang, text in reasons.items()},
    )


def _reason(judgement: Judgement, metric: str, a: str, b: str, lang: Lang) -> str:
    change, *means = judgement.estimates
    # Where runs of both diverged, what they say cancels.
    said_by = judgement.said if len(judgement.said) == 1 else ()
    notes = [*judgement.census.notes(lang), *(note(each, lang) for each in said_by)]
    notes += _why(change, lang) if judgement.verdict == "undecided" and change.values else []
    because = ", ".join(notes) if lang == "en" else "，".join(notes)
    if change.values:
        found = [with_spread(change, lang, change=True), *(with_spread(each, lang) for each in means)]
        told = _SENTENCES["measured"][lang].format(name=spoken(change.name, lang), d=found[0], a=found[1], b=found[2])
    else:
        done, total = [len(each.values) for each in means], judgement.census.total // len(means)
        told = _SENTENCES["no_pair"][lang].format(a=a, b=b, k=done[0], m=done[1], n=total)
    verdict = VERDICTS[lang][judgement.verdict]
    if lang == "en":
        return f"{told} So: {verdict}{f' ({because})' if because else ''}."
    return f"{told}结论：{verdict}{f'（{because}）' if because else ''}。"


def _unit(metric: str) -> str:
    return "accuracy" if "accuracy" in metric else ""  # a loss of the user's own has a unit of its own


def _expect(metric: str) -> Expect:
    return "at_least" if "accuracy" in metric else "at_most"


def _lost(run: VariantRun, status: str) -> bool:
    return run.outcome.status == status
