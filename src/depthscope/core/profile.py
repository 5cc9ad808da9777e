"""A profile: what was measured in each layer of a network, at each step.

One row is (step, layer index, quantity, value). Beside the rows stands the table of layers with the
facts that were recognised about each. Both engines (the NumPy laboratory and the torch probes) fill
the same quantities, so that the same figure can show either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType

QUANTITIES = MappingProxyType(
    {
        "h_norm": "|h|: Frobenius norm of the layer's output over the probe batch",
        "h_mean_abs": "mean |h| over examples and units",
        "dh_norm": "|dL/dh|: Frobenius norm, over the probe batch, of the gradient of the mean loss",
        "dh_mean_abs": "mean |dL/dh| over examples and units, of the gradient of the mean loss",
        "w_norm": "|W|: Frobenius norm of the layer's weight",
        "dw_norm": "|dW|: Frobenius norm of the weight's gradient",
        "dw_ratio": "|dW|/|W|",
        "f_over_x": "|F|/|x|: at a residual addition x + F(x), mean over examples of the ratio of norms",
        "lesion_loss": "loss, in nats, of the trained network without this residual branch, in evaluation mode",
        "lesion_accuracy": "accuracy of the trained network without this residual branch, in evaluation mode",
        "block_lesion_loss": "loss of the trained network without any branch of this block, whose last one ends here",
    }
)
"""Every quantity that a profile may hold, with its definition. All are reduced in float64."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer that a profile speaks of.

    Attributes:
        index: position from the input, from 0.
        name: fully qualified name, such as `blocks.3.conv1`.
        kind: what it is: `linear`, `conv`, `block`.
        weight: name of its weight parameter; None where it has none.
        shape: shape of its output for one example.
    """

    index: int
    name: str
    kind: str
    weight: str | None = None
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Point:
    """A place in a model where a layer is measured. Models name them, probes watch them.

    Attributes:
        layer: fully qualified name of the weighted module, such as `blocks.3.conv1`.
        kind: what it is: `linear`, `conv`.
        weight: name of its weight parameter, such as `blocks.3.conv1.weight`.
        output: the module whose output is the layer's h, such as `blocks.3.relu1`. Arms that differ
            in their shortcut alone have equal points, so that they can be compared position by position.
    """

    layer: str
    kind: str
    weight: str
    output: str


@dataclass(frozen=True, kw_only=True)
class Addition:
    """A residual addition skip(x) + F(x). Models name them, probes measure |F|/|x| there.

    Attributes:
        block: fully qualified name of the block, such as `blocks.3`.
        branch: the module whose output is F, such as `blocks.3.bn2`.
        skip: the module whose output is the other operand, such as `blocks.3.shortcut`.
        layer: the `Point.layer` whose h the addition makes, such as `blocks.3.conv2`; |F|/|x| is
            logged at that layer, so that every quantity shares one axis of positions.
    """

    block: str
    branch: str
    skip: str
    layer: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measured value. A quantity that a layer does not have gives no row (never a zero)."""

    step: int
    layer: int
    quantity: str
    value: float

    def __post_init__(self) -> None:
        assert self.quantity in QUANTITIES, f"{self.quantity!r} is not in QUANTITIES"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Layers and the rows measured in them, in the order of measurement."""

    layers: tuple[Layer, ...]
    rows: tuple[Row, ...]

    def values(self, quantity: str, step: int) -> dict[int, float]:
        """`{layer index: value}` of one quantity at one step."""
        return {row.layer: row.value for row in self.rows if row.quantity == quantity and row.step == step}

    def factor(self, quantity: str, step: int, first: int, last: int) -> float | None:
        """Factor of a quantity a layer, toward the input: (value at `first` / value at `last`)^(1/(last - first)).

        The geometric mean over the layers between: below 1 the quantity shrinks on its way to the input,
        above 1 it grows. None where either value is missing, zero or not finite, or no layer lies between.
        """
        values = self.values(quantity, step)
        ends = [values.get(first, math.nan), values.get(last, math.nan)]
        if last <= first or not all(math.isfinite(end) and end > 0 for end in ends):
            return None
        return math.exp((math.log(ends[0]) - math.log(ends[1])) / (last - first))

    def steps(self) -> tuple[int, ...]:
        """The steps measured, ascending."""
        return tuple(sorted({row.step for row in self.rows}))
