"""What the two sides of a claim's comparison share, in a line, and what a reader must be warned of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from depthscope.analysis.finding import Finding, Flag, Pairing
from depthscope.report.words import Words

MOST = 4
"""Comparisons without a warning that are told under a claim; one with a warning always is."""


def pairing_lines(finding: Finding, words: Words) -> list[dict[str, Any]]:
    """Lines of (text, flagged), those with a warning first; comparisons with the same facts are one line."""
    groups: dict[tuple[Any, ...], list[Pairing]] = {}
    for each in finding.pairing:
        facts = (each.seeds, each.same_data, each.same_order, each.same_augment, each.same_code)
        groups.setdefault((*facts, each.varied, each.tuned, each.flags), []).append(each)
    lines: list[dict[str, Any]] = []
    clean = [group for group in groups.values() if not group[0].flags]
    for group in [*(each for each in groups.values() if each[0].flags), *clean[:MOST]]:
        head = words("pairing.between", a=group[0].a, b=group[0].b) if len(groups) > 1 else ""
        if group[0].seeds:
            lines.append({"flagged": False, "text": head + _shared(group, words)})
            head = ""
        lines += [{"flagged": True, "text": head + text} for text in flagged(group[0], words)]
    return lines


def flagged(pairing: Pairing, words: Words) -> list[str]:
    """The warnings about a comparison as sentences."""
    return [
        flag_text(flag, words, varied=pairing.varied, differing=_drawn_otherwise(pairing)) for flag in pairing.flags
    ]


def flag_text(flag: Flag, words: Words, *, varied: Sequence[str], differing: Sequence[str]) -> str:
    """One warning as a sentence."""
    return words(f"flag.{flag}", varied=words("list").join(varied), count=len(differing), names=some(differing))


def _drawn_otherwise(pairing: Pairing) -> list[str]:
    return [name for name in pairing.differing if name not in pairing.reshaped]


def named(field: str, words: Words, *, tuned: str | None, by: Sequence[str]) -> str:
    """A field in which two sides differ, with a word where it is the one that was tuned.

    Args:
        field: of a run.
        words: language.
        tuned: the field that was tuned for both sides, if one was.
        by: axes at each of whose values it was.
    """
    if field != tuned:
        return field
    if not by:
        return words("pairing.tuned", field=field)
    return words("pairing.tuned_by", field=field, axes=words("list").join(map(words.axis, by)))


def some(names: Sequence[str], most: int = 3) -> str:
    """The first names of a list."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


def span(counts: Sequence[int]) -> str:
    """One number, or the least and the most."""
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)}–{max(counts)}"


def _shared(group: Sequence[Pairing], words: Words) -> str:
    first = group[0]
    shared, common = [each.num_shared for each in group], [each.num_common for each in group]
    told = [words("pairing.no_tensor")]
    if max(common):
        told = [words("pairing.tensors", shared=span(shared), common=span(common), seeds=len(first.seeds))]
    reshaped = [len(each.reshaped) for each in group]
    if max(reshaped):
        told.append(words("pairing.reshaped", count=span(reshaped)))
    alone = [len(each.only_a) + len(each.only_b) for each in group]
    if max(alone):
        told.append(words("pairing.only", count=span(alone)))
    same = [key for key in ("data", "order", "augment", "code") if getattr(first, f"same_{key}")]
    if same:
        told.append(words("pairing.same", what=words("list").join(words(f"pairing.{key}") for key in same)))
    fields = [named(field, words, tuned=first.tuned, by=first.tuned_by) for field in first.varied]
    told.append(words("pairing.varied", fields=words("list").join(fields)) if fields else words("pairing.nothing"))
    text = words("recipe.comma").join(told)
    return text[:1].upper() + text[1:] + words("full_stop")
