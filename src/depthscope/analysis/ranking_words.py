"""What a ranking came to, in a sentence or two: who may be the best, and what depth did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from depthscope.analysis import places
from depthscope.analysis.ranking import LEVEL, RankedArm, Ranking, rankings
from depthscope.analysis.table import Results
from depthscope.analysis.units import layers
from depthscope.analysis.wording import Lang, pick, spoken
from depthscope.study.metrics import worse_side

MOST_NAMED = 4
"""Arms that a list of them names; of more, the first and how many others."""


def ranking_sentences(results: Results, lang: Lang) -> Iterator[str]:
    """The outcome of each ranked part, in the study's order. A part with further axes is told at one place of them."""
    found = [each for each in rankings(results) if dict(each.further) == places.held(results, each.part)]
    stop, colon, between = (".", ": ", "; ") if lang == "en" else ("。", "：", "；")
    for each in found:
        part = results.study.parts[each.part]
        names = {arm.name: _unbroken(pick(arm.label, lang) if arm.label else arm.name, lang) for arm in part.arms}
        opening = _opening(results, each, lang, titled=len(found) > 1)
        counted = layers([row for row in results.rows if row.cell.part == each.part], lang)
        best = _best(each, names, lang, counted)
        yield (f"{opening}{colon}{best}" if opening else best[:1].upper() + best[1:]) + stop
        tail = between.join(filter(None, (_change(each, names, lang, counted), _lost(each, names, lang))))
        if tail:
            yield tail[:1].upper() + tail[1:] + stop


def saturated(ranking: Ranking) -> bool:
    """Whether every run of every arm, at the depth that decides, has an accuracy of 1: nothing is left to rank by."""
    cells = [arm.deepest for arm in ranking.arms]
    return ranking.unit == "accuracy" and all(
        not cell.num_lost and cell.by_seed and set(cell.by_seed.values()) == {1.0} for cell in cells
    )


def _opening(results: Results, ranking: Ranking, lang: Lang, *, titled: bool) -> str:
    title = results.study.parts[ranking.part].title
    name = (pick(title, lang) if title else ranking.part) if titled else ""
    at = places.told(results, ranking.part, ranking.further)
    if not at:
        return name
    if lang == "en":
        return f"{name} ({at})" if name else f"At {at}"
    return f"{name}（{at}）" if name else f"{at} 时"


def _best(ranking: Ranking, names: Mapping[str, str], lang: Lang, counted: str) -> str:
    """Which arms the order leaves in the first place."""
    english, count, metric = lang == "en", len(ranking.arms), spoken(ranking.metric, lang)
    at = ""
    if ranking.depths:
        at = f" at {ranking.depths[-1]} {counted}" if english else f"在 {ranking.depths[-1]} {counted}处，"
    known = [arm for arm in ranking.arms if arm.deepest.estimate.value is not None]
    if not known:
        return (
            f"none of the {count} arms{at} has a {metric}" if english else f"{at}{count} 组中没有一组有{metric}的数值"
        )
    if saturated(ranking):
        if english:
            return f"all {count} arms{at} have a {metric} of 100%, which cannot tell them apart"
        return f"{at}全部 {count} 组的{metric}都是 100%，它无法区分这些组"
    silent = sum(arm.deepest.census.silent > 0 for arm in ranking.arms if arm not in known)
    behind = ""
    if silent:
        behind = f"; {silent} {'has' if silent == 1 else 'have'} no figure" if english else f"；{silent} 组没有数值"
    if not ranking.num_settled + ranking.num_by_loss:
        if english:
            return f"by {metric} the order of the {count} arms{at} is open: no pair is settled{behind}"
        return f"{at}按{metric}，{count} 组的名次尚无定论：没有一对可以分出高下{behind}"
    first = [arm for arm in known if arm.low == 1]
    listed = _list(first, names, lang)
    if len(first) == 1 and not silent:  # all others are surely worse than one that is better than they
        if english:
            return f"of {count} arms{at}, {listed} is the best by {metric}"
        return f"{at}{count} 组中按{metric}最好的是{listed}"
    if english:
        return f"of {count} arms{at}, {len(first)} may be the best by {metric}: {listed}{behind}"
    return f"{at}{count} 组中按{metric}可能最好的有 {len(first)} 组：{listed}{behind}"


def _change(ranking: Ranking, names: Mapping[str, str], lang: Lang, counted: str) -> str:
    """What depth did, each arm by its own interval; empty where no arm has a pair of depths."""
    english, training = lang == "en", ranking.metric.startswith("train")
    worse, better, unclear = _by_change(ranking)
    changed = [*worse, *better, *unclear]
    if not changed:
        return ""
    ends = {(arm.cells[0].depth, arm.cells[-1].depth) for arm in changed}
    counts = {arm.change.n for arm in changed if arm.change is not None}
    low, high = next(iter(ends))
    if english:
        opening = f"from {low} to {high} {counted}" if len(ends) == 1 else "with growing depth"
        verbs = ("degrades", "degrade") if training else ("gets worse", "get worse")
        told = [f"{_num(worse, verbs)} ({_list(worse, names, lang)})"] if worse else []
        told += [_num(better, ("improves", "improve"))] if better else []
        told += [_num(unclear, ("shows no clear change", "show no clear change"))] if unclear else []
        seeds = f", {n} seed{'s' if n > 1 else ''}" if len(counts) == 1 and (n := next(iter(counts))) else ""
        return f"{opening}, {_joined(told)} [each by its own {100 * LEVEL:.0f}% CI{seeds}]"
    opening = f"从 {low} {counted}加深到 {high} {counted}" if len(ends) == 1 else "随着网络加深"
    told = [f"{len(worse)} 组{'退化' if training else '变差'}（{_list(worse, names, lang)}）"] if worse else []
    told += [f"{len(better)} 组改善"] if better else []
    told += [f"{len(unclear)} 组看不出变化"] if unclear else []
    seeds = f"，{next(iter(counts))} 个种子" if len(counts) == 1 else ""
    return f"{opening}，{'，'.join(told)} [各按自己的 {100 * LEVEL:.0f}% CI{seeds}]"


def _by_change(ranking: Ranking) -> tuple[list[RankedArm], list[RankedArm], list[RankedArm]]:
    """Arms that depth made worse, better, and neither as far as can be told; those without a pair of runs are in none.

    Of an arm that lost runs the survivors may show that it is worse, and never that it is better.
    """
    worse: list[RankedArm] = []
    better: list[RankedArm] = []
    unclear: list[RankedArm] = []
    up_is_worse = worse_side(ranking.metric) == "up"
    for arm in ranking.arms:
        made = arm.change
        if made is None or made.value is None:
            continue
        up, down = made.low is not None and made.low > 0, made.high is not None and made.high < 0
        if up if up_is_worse else down:
            worse.append(arm)
        elif (up or down) and not arm.deepest.num_lost:
            better.append(arm)
        else:
            unclear.append(arm)
    return worse, better, unclear


def _lost(ranking: Ranking, names: Mapping[str, str], lang: Lang) -> str:
    gone = [arm for arm in ranking.arms if any(cell.num_lost for cell in arm.cells)]
    if not gone:
        return ""
    listed = _list(gone, names, lang)
    if lang == "en":
        return f"of {len(gone)} {'arm' if len(gone) == 1 else 'arms'} runs diverged or failed ({listed})"
    return f"{len(gone)} 组有运行发散或出错（{listed}）"


def _list(arms: Sequence[RankedArm], names: Mapping[str, str], lang: Lang) -> str:
    named = [names[arm.arm] for arm in arms]
    more = len(named) - MOST_NAMED + 1
    if lang == "zh":
        return "、".join(named) if more < 2 else "、".join(named[:-more]) + f"等 {len(named)} 组"
    return _joined(named if more < 2 else [*named[:-more], f"{more} others"])


def _num(arms: Sequence[RankedArm], verbs: tuple[str, str]) -> str:
    return f"{len(arms)} {verbs[len(arms) != 1]}"


def _joined(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def _unbroken(label: str, lang: Lang) -> str:
    """A label for a list: a comma inside it would cut it in two."""
    head, comma, rest = label.partition(", " if lang == "en" else "，")
    if not comma:
        return label
    return f"{head} ({rest})" if lang == "en" else f"{head}（{rest}）"
