"""What every network of the laboratory can do, and what it shows of itself.

Shape letters: S seeds, N examples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from numpy.typing import NDArray

from depthscope.core.profile import Layer

Array = NDArray[Any]


class Reading(NamedTuple):
    """One layer after a forward and a backward pass.

    Attributes:
        layer: its facts.
        h: its output, [S, ...].
        dh: dL/dh.
        f: at a residual addition x + F, the branch F as [S, features, N]; None elsewhere.
        x: the other operand.
    """

    layer: Layer
    h: Array
    dh: Array
    f: Array | None = None
    x: Array | None = None


class Net(Protocol):
    """A network of units, one after the other: what training, measuring and checking ask of it.

    Attributes:
        inputs: after a forward pass, the input of each unit, and last the scores.
        grads_out: after a backward pass, dL/d(output) of each unit.
    """

    inputs: list[Array]
    grads_out: list[Array]

    @property
    def num_bytes(self) -> int:
        """Of what it keeps; proportional to seeds and examples."""

    def forward(self, params: Mapping[str, Array], x: Array, /, *, first: int = 0) -> Array:
        """The scores, from the input of unit `first`."""

    def backward(self, params: Mapping[str, Array], dscores: Array, grads: Mapping[str, Array], /) -> None:
        """Fill `grads`."""

    def unit_of(self, parameter: str, /) -> int:
        """The first unit that a parameter takes part in."""

    def readings(self) -> Iterator[Reading]:
        """Each layer that a profile speaks of."""
