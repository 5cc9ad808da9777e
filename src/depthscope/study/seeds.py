"""Seeds as a study file writes them: a number of seeds, or the seeds themselves."""

from __future__ import annotations

from typing import Annotated

from pydantic import Discriminator, Field, Tag

from depthscope.study.claims import one_or_list
from depthscope.study.run import Int

MAX_SEEDS = 10_000
Seed = Annotated[Int, Field(ge=0, lt=2**31)]
Seeds = Annotated[
    Annotated[Int, Field(ge=1, le=MAX_SEEDS), Tag("<one>")]
    | Annotated[list[Seed], Field(min_length=1, max_length=MAX_SEEDS), Tag("<list>")],
    Discriminator(one_or_list),
]
"""A number of seeds (0 to n-1), or the seeds themselves."""


def listed(seeds: int | list[int], first: int = 0) -> tuple[int, ...]:
    """The seeds, ascending and each once; a number of them counts from `first`.

    >>> listed(3), listed([7, 2, 7]), listed(2, first=10_000)
    ((0, 1, 2), (2, 7), (10000, 10001))
    """
    return tuple(range(first, first + seeds)) if isinstance(seeds, int) else tuple(sorted(set(seeds)))
