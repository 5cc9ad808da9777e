"""One conformance case: a name of the catalogue, its paper's invariant, and a wrong formula that must break it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from depthscope.study.catalog import CATALOG, Kind


@dataclass(frozen=True, kw_only=True)
class Case:
    """The claim that a name of the catalogue makes about itself.

    Attributes:
        kind: of the name: `shortcut`, `norm`, `activation`, `init`, `clip`, `family`.
        name: as the catalogue has it. A name may have several cases.
        check: asserts the invariant, measured through the real layers at unequal widths.
        alter: plants a wrong formula in the product (never in the check), so that `check` must fail.
    """

    kind: Kind
    name: str
    check: Callable[[], None]
    alter: Callable[[pytest.MonkeyPatch], None]

    def __post_init__(self) -> None:
        assert self.name in CATALOG[self.kind], f"{self.kind} {self.name!r} is not in the catalogue"
