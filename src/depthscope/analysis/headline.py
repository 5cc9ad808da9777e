"""The finding in a sentence or two, made from the estimates: other numbers, other words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from depthscope.analysis import places, samples
from depthscope.analysis.choosing import choice_sentence
from depthscope.analysis.finding import Estimate, Finding
from depthscope.analysis.intervals import has_no_spread, paired_t_interval
from depthscope.analysis.ranking_words import ranking_sentences
from depthscope.analysis.samples import Sample
from depthscope.analysis.table import Results
from depthscope.analysis.units import layers, unit_in
from depthscope.analysis.verdict_words import verdict_sentence
from depthscope.analysis.wording import Lang, pick, quantity, scale_of, spread, whole_percent
from depthscope.study.claims import confirmatory_at, selects
from depthscope.study.study import Arm, Part

METRICS = ("train_accuracy", "train_loss", "train_accuracy_running", "train_loss_running")
"""The metrics that a headline may speak of, the first that was measured."""
MAX_ARMS = 3
"""Arms that a headline speaks of: those of the confirmatory claim first."""

RECURRENT = ("RNN", "GRU", "LSTM")
"""Names that say network already."""

_NO_INTERVAL: dict[Lang, str] = {"en": "with too few seeds to tell chance by", "zh": "种子太少，无从判断是否偶然"}
# Of an arm that also diverged "may be no change" would be said of the seeds that it did not destroy.
_SURVIVORS: dict[Lang, str] = {"en": "which decides nothing", "zh": "不足以下结论"}


@dataclass(frozen=True, kw_only=True)
class DepthChange:
    """What depth did to one arm: deepest minus shallowest, paired by seed.

    Attributes:
        part: name of the part.
        arm: the arm.
        metric: a training figure.
        shallow: runs at the least depth.
        deep: runs at the greatest.
        change: paired difference, deep minus shallow.
    """

    part: str
    arm: Arm
    metric: str
    shallow: Sample
    deep: Sample
    change: Estimate


def depth_changes(results: Results, part: str, *, level: float = 0.95) -> tuple[DepthChange, ...]:
    """The change from the least to the greatest depth of each arm; empty where the part has no two depths.

    Other axes than depth are held at the values of `places.held`.
    """
    rows = [row for row in results.rows if row.cell.part == part and "depth" in row.cell.axes]
    held = places.held(results, part)
    rows = [row for row in rows if all(row.cell.axes[key] == value for key, value in held.items())]
    metric = next((name for name in METRICS if any(row.value(name) is not None for row in rows)), METRICS[0])
    unit = unit_in(rows, metric)
    out = []
    for arm in results.study.parts[part].arms:
        found = sorted(
            samples.group(row for row in rows if row.cell.arm == arm.name), key=lambda each: int(each.axes["depth"])
        )
        if len(found) < 2:
            continue
        change = paired_t_interval(
            found[-1].by_seed(metric),
            found[0].by_seed(metric),
            level=level,
            name=f"{metric}: {found[-1].label} minus {found[0].label}",
            unit=unit,
        )
        out.append(DepthChange(part=part, arm=arm, metric=metric, shallow=found[0], deep=found[-1], change=change))
    return tuple(out)


def headline(results: Results, findings: Sequence[Finding], lang: Lang) -> str:
    """What was found, in a few sentences.

    First what depth did to the training figure of the arms under comparison, or where they are ranked what the ranking
    came to; then the verdict on the confirmatory claim. Every verb is chosen by the interval it stands beside. Where a
    part has further axes, the sentence names the values that it speaks at. A selection study tells its choices instead.

    Args:
        results: plan and records.
        findings: from `judge`.
        lang: `en` or `zh`.
    """
    chosen = choice_sentence(results, lang)
    if chosen:
        return chosen
    told = [*_depth_sentence(results, findings, lang), *ranking_sentences(results, lang)]
    sentences = [*told, *verdict_sentence(findings, lang)]
    return (" " if lang == "en" else "").join(sentences)


def _depth_sentence(results: Results, findings: Sequence[Finding], lang: Lang) -> Iterator[str]:
    chosen = main_part(results)
    if chosen is None or results.study.parts[chosen[0]].ranked:
        return
    part, first = chosen
    # Where confirmatory claims were corrected for their number, no narrower interval stands beside them.
    level = max([0.95, *(finding.estimates[0].level for finding in findings if finding.confirmatory)])
    changes = depth_changes(results, part, level=level)
    shown = sorted(changes, key=lambda each: _rank(each.arm.name, results.study.parts[part], first))[:MAX_ARMS]
    low, high = shown[0].shallow.axes["depth"], shown[0].deep.axes["depth"]
    own = {(each.shallow.axes["depth"], each.deep.axes["depth"]) for each in shown}
    told = next((each for each in shown if each.change.value is not None), None)
    phrases = [_phrase(each, lang, full=each is told, depths=len(own) > 1) for each in shown]
    at = places.told(results, part, places.held(results, part))
    counts = layers(shown[0].deep.rows, lang)
    if lang == "en":
        opening = "With growing depth" if len(own) > 1 else f"Going from {low} to {high} {counts}"
        yield f"{opening}{f' at {at}' if at else ''}, {'; '.join(phrases)}."
    else:
        opening = "随着网络加深" if len(own) > 1 else f"从 {low} {counts}加深到 {high} {counts}"
        yield f"{opening}{f'（{at}）' if at else ''}，{'；'.join(phrases)}。"


def main_part(results: Results) -> tuple[str, tuple[str, ...]] | None:
    """(part, arms to speak of) of the confirmatory claim, or of the first part with two depths."""
    study = results.study
    for claim in study.claims:
        if confirmatory_at(claim, study.size) and depth_changes(results, claim.part):
            arms = [select.arm for select in selects(claim)]
            changing = {each.arm.name for each in depth_changes(results, claim.part)}
            kept = dict.fromkeys([_baseline(study.parts[claim.part]), *arms])
            return claim.part, tuple(name for name in kept if name in changing)
    for name, part in study.parts.items():
        changes = depth_changes(results, name)
        if changes:
            return name, tuple(dict.fromkeys([_baseline(part), *(each.arm.name for each in changes)]))
    return None


def _baseline(part: Part) -> str:
    return part.baseline or part.arms[0].name


def _rank(arm: str, part: Part, first: Sequence[str]) -> tuple[int, int]:
    names = [each.name for each in part.arms]
    return (list(first).index(arm) if arm in first else len(first), names.index(arm))


def _phrase(each: DepthChange, lang: Lang, *, full: bool, depths: bool) -> str:
    """Such as `the plain network lost 23.1 points of accuracy on its own training images [...]`."""
    change, english = each.change, lang == "en"
    name = _name(each.arm, lang)
    if depths:
        low, high = each.shallow.axes["depth"], each.deep.axes["depth"]
        counts = layers(each.deep.rows, lang)
        name += f" (from {low} to {high} {counts})" if english else f"（{low} {counts}到 {high} {counts}）"
    diverged = _diverged(each, lang)
    census = samples.census([each.shallow, each.deep], each.metric)
    absent = replace(census, diverged=0).notes(lang)  # what diverged is told first, before any number
    behind = (f" ({', '.join(absent)})" if english else f"（{'，'.join(absent)}）") if absent else ""
    if change.value is None:
        if diverged:
            return f"{name} {diverged}{behind}" if english else f"{name}的 {diverged}{behind}"
        if _more_may_come(each):
            return f"{name} has no pair of results yet{behind}" if english else f"{name}尚无成对的结果{behind}"
        return f"{name} has no pair of results{behind}" if english else f"{name}没有成对的结果{behind}"
    subject = name
    if diverged:
        subject = "that network" if english else "该网络"
    if full and not english:
        subject += _object(each, lang)
    text = _moved(each, change, change.value, subject, lang, full=full, survivors=bool(diverged)) + behind
    if not diverged:
        return text
    if english:
        return f"{name} {diverged}, and on the {change.n} {'seed' if change.n == 1 else 'seeds'} left {text}"
    return f"{name}的 {diverged}，在其余 {change.n} 个种子上，{text}"


def _more_may_come(each: DepthChange) -> bool:
    """Whether runs that are still missing can complete a pair."""
    deep = {row.cell.seed: row for row in each.deep.rows}
    pairs = [(row, deep[row.cell.seed]) for row in each.shallow.rows if row.cell.seed in deep]
    return any(all(row.record is None or row.value(each.metric) is not None for row in pair) for pair in pairs)


def _diverged(each: DepthChange, lang: Lang) -> str:
    """How many runs diverged, as a verb with its object; empty where none did."""
    sides = ((each.deep, "deep", "深层"), (each.shallow, "shallow", "浅层"))
    counts = [(sum(samples.status(row) == "diverged" for row in side.rows), len(side.rows)) for side, _, _ in sides]
    if lang == "en":
        told = [f"{k} of {n} {word} runs" for (k, n), (_, word, _) in zip(counts, sides, strict=True) if k]
        return f"diverged in {' and '.join(told)}" if told else ""
    told = [f"{n} 次{word}运行中有 {k} 次发散" for (k, n), (_, _, word) in zip(counts, sides, strict=True) if k]
    return "、".join(told)


def _moved(
    each: DepthChange, change: Estimate, value: float, subject: str, lang: Lang, *, full: bool, survivors: bool
) -> str:
    english, accuracy, low, high = lang == "en", change.unit == "accuracy", change.low, change.high
    scale = scale_of(change)
    shown = quantity(abs(value), change.unit, lang, change=True, scale=scale)
    of_what = _object(each, lang) if full and english else ""
    what = "accuracy" if accuracy else "loss"
    if has_no_spread(change) and value == 0:
        behind = spread(change, lang)
        level = _level(each, lang)
        if english:
            where = of_what.removeprefix(" of accuracy")
            stayed = f"stayed at {level} on every seed" if level else "stayed exactly the same on every seed"
            return f"the {what} of {subject}{where} {stayed} {behind}"
        stayed = f"在每个种子上都保持 {level}" if level else "在每个种子上都完全没有变化"
        return f"{subject}{'' if full else '的准确率' if accuracy else '的损失'}{stayed} {behind}"
    if low is not None and high is not None and (low > 0 or high < 0):
        behind = spread(change, lang, flip=value < 0)
        if english:
            verb = ("gained" if value > 0 else "lost") if accuracy else ("rose by" if value > 0 else "fell by")
            return (
                f"{subject} {verb} {shown}{of_what} {behind}"
                if accuracy
                else f"the loss of {subject} {verb} {shown}{of_what} {behind}"
            )
        verb = "上升了" if value > 0 else "下降了"
        return f"{subject}{'' if full or accuracy else '的损失'}{verb} {shown} {behind}"
    behind = spread(change, lang)
    signed = quantity(value, change.unit, lang, change=True, signed=True, scale=scale)
    if english:
        doubt = "which may be no change" if low is not None else _NO_INTERVAL[lang]
        doubt = _SURVIVORS[lang] if survivors else doubt
        thing = subject if accuracy else f"the loss of {subject}"
        return f"{thing} changed by {signed}{of_what} {behind}, {doubt}"
    doubt = "不能排除没有变化" if low is not None else _NO_INTERVAL[lang]
    doubt = _SURVIVORS[lang] if survivors else doubt
    return f"{subject}{'' if full or accuracy else '的损失'}变化了 {signed} {behind}，{doubt}"


def _level(each: DepthChange, lang: Lang) -> str:
    """The one figure that all pairs have at both depths; empty where seeds differ in it."""
    shallow, deep = each.shallow.by_seed(each.metric), each.deep.by_seed(each.metric)
    levels = {value for seed, value in deep.items() if value is not None and shallow.get(seed) is not None}
    if len(levels) != 1:
        return ""
    (level,) = levels
    return whole_percent(level) if each.change.unit == "accuracy" else quantity(level, each.change.unit, lang)


def _object(each: DepthChange, lang: Lang) -> str:
    images = each.deep.rows[0].spec.data in ("cifar10", "images")
    accuracy = "accuracy" in each.metric
    if lang == "en":
        examples = "images" if images else "examples"
        return f" of accuracy on its own training {examples}" if accuracy else f" on its own training {examples}"
    examples = "训练图像" if images else "训练样本"
    return f"在自己的{examples}上的{'准确率' if accuracy else '损失'}"


def _name(arm: Arm, lang: Lang) -> str:
    label = pick(arm.label, lang) if arm.label else arm.name
    # A comma inside a name would cut the sentence in two.
    head, comma, rest = label.partition(", " if lang == "en" else "，")
    words = head.replace("-", " ").split()
    if lang == "en" and head[:1].islower() and len(words) <= 3 and all(each.isalpha() or each == "+" for each in words):
        own = f"the network {head}" if words[0] in ("with", "without") else f"the {head} network"
        named = "network" in words
        head = head if named else f"the {head}" if words[-1] in RECURRENT else own
    if not comma:
        return head
    return f"{head} ({rest})" if lang == "en" else f"{head}（{rest}）"
