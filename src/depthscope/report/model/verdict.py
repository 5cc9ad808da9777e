"""A diagnosis in the words of a page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from depthscope.analysis.model import CAUSES, Fault, ModelDiagnosis
from depthscope.report.model.places import figure, some
from depthscope.report.words import Words

Tone = Literal["supported", "refuted", "undecided"]
"""The colour of a verdict: as those of claims."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A named fact of the diagnosis; `inferred` is what no reading shows by itself."""

    name: str
    text: str
    inferred: bool = False


@dataclass(frozen=True, kw_only=True)
class Told:
    """A diagnosis in one language.

    Attributes:
        verdict: in a word or two.
        tone: its colour.
        sentences: what was found, the first large.
        rows: where, numbers, rule, cause, repair and what else was seen.
    """

    verdict: str
    tone: Tone
    sentences: tuple[str, ...]
    rows: tuple[Row, ...]


def tell(diagnosis: ModelDiagnosis, words: Words) -> Told:
    """A diagnosis in one language; what `analysis` says in English is said of its codes and numbers elsewhere."""
    verdict = words(f"verdict.{diagnosis.verdict}")
    tones: Mapping[str, Tone] = {"healthy": "supported", "cannot tell": "undecided"}
    rows = [Row(name=words("model.where"), text=_where(diagnosis, words))] if diagnosis.verdict != "healthy" else []
    for name, numbers in (("model.numbers", diagnosis.numbers), ("model.rule", diagnosis.thresholds)):
        if numbers:
            rows.append(Row(name=words(name), text=_numbers(numbers, words)))
    rate = diagnosis.rate
    if rate is not None and rate.low is not None and rate.high is not None:
        text = words(
            "model.rate", value=figure(rate.value), low=figure(rate.low), high=figure(rate.high), n=rate.num_blocks
        )
        rows.append(Row(name=words("number.rate"), text=text))
    if diagnosis.cause:
        rows.append(Row(name=words("model.cause"), text=_cause(diagnosis, words), inferred=diagnosis.inferred))
    if repair := _repair(diagnosis, words):
        rows.append(Row(name=words("model.repair"), text=repair))
    for fault in diagnosis.others:
        head = words(f"verdict.{fault.verdict}")
        said = f"{head}{words('colon')}{sentence(fault, words)}"
        rows.append(Row(name=words("model.also"), text=said, inferred=fault.inferred))
    if words.lang == "en" and diagnosis.notes:  # each is said elsewhere on the page, by conditions and statuses
        rows.append(Row(name=words("model.notes"), text="; ".join(diagnosis.notes) + "."))
    return Told(
        verdict=verdict,
        tone=tones.get(diagnosis.verdict, "refuted"),
        sentences=(sentence(diagnosis, words),),
        rows=tuple(rows),
    )


def sentence(fault: Fault | ModelDiagnosis, words: Words) -> str:
    """What was found, in one: that of `analysis` in English, the place and the cause in other languages."""
    if words.lang == "en":
        return fault.sentence
    where = f"{_where(fault, words)}{words('colon')}" if fault.where else ""
    return f"{where}{_cause(fault, words)}{words('full_stop')}"


def _where(fault: Fault | ModelDiagnosis, words: Words) -> str:
    return some(fault.where, words.table["model.and_more"]) if fault.where else words("model.whole_body")


def _cause(fault: Fault | ModelDiagnosis, words: Words) -> str:
    return words.table.get(f"cause.{fault.cause}") or CAUSES.get(fault.cause, fault.cause)


def _repair(diagnosis: ModelDiagnosis, words: Words) -> str:
    if words.lang == "en" or not diagnosis.repair:
        return diagnosis.repair
    return words.table.get(f"repair.{diagnosis.cause}", diagnosis.repair)


def _numbers(numbers: Mapping[str, float], words: Words) -> str:
    told = [
        f"{words.table.get(f'number.{name}', name)}{words('colon')}{figure(value)}"
        for name, value in numbers.items()
        if not math.isnan(value)
    ]
    return ("; " if words.lang == "en" else "；").join(told)
