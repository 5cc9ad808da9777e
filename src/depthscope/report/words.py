"""The table of strings in one language, with its braces filled."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

from depthscope.analysis.wording import spoken
from depthscope.report.strings import LANGS, STRINGS, Lang
from depthscope.study.scale import unit_of


class _Counting(string.Formatter):
    """Braces as of `str.format`, and `{n:seed|seeds}`: the first form where n is 1, else the second."""

    def format_field(self, value: Any, format_spec: str) -> str:
        one, bar, many = format_spec.partition("|")
        if bar:
            return one if str(value) == "1" else many
        return str(super().format_field(value, format_spec))


_FORMATTER = _Counting()


class Words:
    """The table in one language.

    >>> Words("en")("seeds_count", n=3), Words("en")("seeds_count", n=1)
    ('3 seeds', '1 seed')
    """

    def __init__(self, lang: Lang) -> None:
        if lang not in STRINGS:
            raise ValueError(f"unknown language {lang!r}. Known: {', '.join(LANGS)}.")
        self.lang: Lang = lang
        self.table = STRINGS[lang]

    def __call__(self, key: str, **values: object) -> str:
        """The text of a key, its braces filled."""
        return _FORMATTER.vformat(self.table[key], (), values)

    def pick(self, text: Mapping[Any, str] | None, otherwise: str = "") -> str:
        """A text by language: this one, or English, or whichever there is."""
        if not text:
            return otherwise
        for lang in (self.lang, *LANGS):
            if lang in text:
                return text[lang]
        return next(iter(text.values()))

    def axis(self, axis: str) -> str:
        """The name of an axis for readers: `depth`, that of a field where this table has one, or the field itself."""
        return self.table["depth"] if axis == "depth" else self.table.get(f"axis.{axis}", axis)

    def metric(self, metric: str, *, unit: str | None = None, in_time: bool = False) -> str:
        """The name of a summary's key for readers; where this table has none, that of `analysis`.

        Args:
            metric: the key.
            unit: what it is measured in; by default what the key alone tells. Nats alone stand behind a name.
            in_time: whether depth is a number of steps in time.
        """
        name = self.table.get(f"metric.{metric}") or spoken(metric, self.lang, in_time=in_time)
        return self.nats(name) if (unit_of(metric) if unit is None else unit) == "nats" else name

    def nats(self, name: str) -> str:
        """A name with the unit of a cross entropy behind it."""
        return self("aside", text=name, more="nats")
