"""The table of strings in one language, with its braces filled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from depthscope.analysis.wording import spoken
from depthscope.report.strings import LANGS, STRINGS, Lang


class Words:
    """The table in one language.

    >>> Words("en")("seeds_count", n=3)
    '3 seeds'
    """

    def __init__(self, lang: Lang) -> None:
        if lang not in STRINGS:
            raise ValueError(f"unknown language {lang!r}. Known: {', '.join(LANGS)}.")
        self.lang: Lang = lang
        self.table = STRINGS[lang]

    def __call__(self, key: str, **values: object) -> str:
        """The text of a key, its braces filled."""
        return self.table[key].format(**values)

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

    def metric(self, metric: str) -> str:
        """The name of a summary's key for readers; where this table has none, that of `analysis`."""
        return self.table.get(f"metric.{metric}") or spoken(metric, self.lang)
