"""What a map is of, in words: its examples, batch norm, directions and precision; and what its words mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from depthscope.record.landscape import MapRecord
from depthscope.report.words import Words


def conditions(records: Sequence[MapRecord], words: Words) -> str:
    """One sentence on what these maps have in common: what they differ in is named by all its values.

    Args:
        records: of the same study, or one alone.
        words: language.
    """
    told = [
        *_distinct(words("land.examples", n=f"{each.spec.examples:,}") for each in records),
        *_distinct(norm(each, words) for each in records),
    ]
    if any(each.spec.directions == "trajectory" for each in records):
        told.append(words("land.directions.trajectory"))
    for way in ("filter", "none"):
        seeds = sorted({e.spec.seed for e in records if e.spec.directions == "random" and e.spec.normalise == way})
        if seeds:
            told.append(words(f"land.directions.{way}", seeds=named_seeds(seeds, words)))
    told += _distinct(each.spec.precision for each in records)
    text = words("list").join(told)
    return f"{text[:1].upper()}{text[1:]}{words('full_stop')}"


def norm(record: MapRecord, words: Words) -> str:
    """What batch norm did at each point."""
    without = record.head.facts.get("batch_norms") == 0
    return words("land.norm.none" if without else f"land.norm.{record.spec.norm}")


def way(record: MapRecord, words: Words) -> str:
    """What the directions are."""
    spec = record.spec
    if spec.directions == "trajectory":
        return words("land.directions.trajectory")
    return words(f"land.directions.{spec.normalise}", seeds=named_seeds([spec.seed], words))


def named_seeds(seeds: Sequence[int], words: Words) -> str:
    """The seeds that name directions."""
    return words("land.seeds", n=len(seeds), seeds=words("list").join(map(str, seeds)))


def terms(records: Sequence[MapRecord], words: Words) -> list[tuple[str, str]]:
    """A gloss for each term that figures of these maps use."""
    used = {
        "landscape": True,
        "filter_normalised": any(
            each.spec.directions == "random" and each.spec.normalise == "filter" for each in records
        ),
        "isoline": any(each.spec.axes == 2 for each in records),
        "hessian": any(each.hessian is not None for each in records),
    }
    return [(words(f"gloss.{key}"), words(f"gloss.{key}.text")) for key, here in used.items() if here]


def _distinct(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
