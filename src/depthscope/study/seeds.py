"""Seeds as a study file writes them: a number of seeds, or the seeds themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, Discriminator, Field, Tag

from depthscope.study.run import Int
from depthscope.study.values import one_or_list


def repeated(seeds: Iterable[int]) -> int | None:
    """The first seed that comes a second time; None where each comes once."""
    return next((seed for seed, number in Counter(seeds).items() if number > 1), None)


def _each_once(seeds: list[int]) -> list[int]:
    twice = repeated(seeds)
    if twice is not None:
        raise ValueError(f"{twice} is given more than once; the same seed is the same run. Give each once.")
    return seeds


MAX_SEEDS = 10_000
Seed = Annotated[Int, Field(ge=0, lt=2**31)]
Seeds = Annotated[
    Annotated[Int, Field(ge=1, le=MAX_SEEDS), Tag("<one>")]
    | Annotated[list[Seed], Field(min_length=1, max_length=MAX_SEEDS), AfterValidator(_each_once), Tag("<list>")],
    Discriminator(one_or_list),
]
"""A number of seeds (0 to n-1), or the seeds themselves."""


def listed(seeds: int | list[int], first: int = 0) -> tuple[int, ...]:
    """The seeds, ascending and each once; a number of them counts from `first`.

    >>> listed(3), listed([7, 2, 7]), listed(2, first=10_000)
    ((0, 1, 2), (2, 7), (10000, 10001))
    """
    return tuple(range(first, first + seeds)) if isinstance(seeds, int) else tuple(sorted(set(seeds)))
