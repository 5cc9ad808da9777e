"""A stack of square layers: its shape, its parameters, and how a seed draws them.

Shape letters: S seeds, I inputs, O outputs, W width, C classes.

A stack is a stem (linear from the inputs to the width, batch norm if any, activation), `depth` square
layers, and a linear head. In between, by `shortcut`:

| shortcut | one unit | units | parameters of the square layers |
| --- | --- | --- | --- |
| `none` | h <- act(norm(W h + b)) | depth | `layers.{l}` |
| `identity` | h <- h + act(norm(W h + b)) | depth | `layers.{l}`, the same names and shapes |
| `identity_2` | h <- h + W2 act(norm(W1 h + b1)) + b2 | depth/2 | `blocks.{l}.linear1`, `blocks.{l}.linear2` |

`none` and `identity` have the same tensors, so with the same seed they START identical and differ in
the skip alone: the strict control. `identity_2` has as many parameters (without batch norm).

Weights are [out, in], as in torch's `nn.Linear`; their names end in `.weight` and `.bias`. Under
batch norm (`{layer}.norm.weight`, `{layer}.norm.bias`) the linear layer before it has no bias: the
batch mean would take it out again, and its gradient would be nothing but roundoff.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from depthscope.core.draws import gaussian, orthogonal
from depthscope.core.errors import UserError, unknown_name
from depthscope.core.streams import stream
from depthscope.lab.given import check_count, check_real

Array = NDArray[Any]

Shortcut = Literal["none", "identity", "identity_2"]
Activation = Literal["tanh", "relu", "linear"]
Norm = Literal["none", "batch"]

SHORTCUTS = ("none", "identity", "identity_2")
ACTIVATIONS = ("tanh", "relu", "linear")
NORMS = ("none", "batch")
INITS = ("gaussian", "orthogonal")


@dataclass(frozen=True, kw_only=True)
class Stack:
    """The shape of a network.

    Attributes:
        depth: number of square layers, D; even under `identity_2`, whose blocks hold two.
        width: units of each, W.
        num_inputs: numbers that describe one example, I.
        num_classes: outputs of the head, C.
        shortcut: what goes around the layers.
        activation: applied in the stem and in the square layers.
        norm: normaliser between a linear layer and its activation.

    Raises:
        UserError: a value that no stack has.
    """

    depth: int
    width: int
    num_inputs: int
    num_classes: int
    shortcut: Shortcut = "none"
    activation: Activation = "tanh"
    norm: Norm = "none"

    def __post_init__(self) -> None:
        for what, value, least in (
            ("depth", self.depth, 0),
            ("width", self.width, 1),
            ("num_inputs", self.num_inputs, 1),
            ("num_classes", self.num_classes, 2),
        ):
            check_count(what, value, least)
        for what, name, known in (
            ("shortcut", self.shortcut, SHORTCUTS),
            ("activation", self.activation, ACTIVATIONS),
            ("norm", self.norm, NORMS),
        ):
            if name not in known:
                raise UserError(unknown_name(what, name, known))
        if self.shortcut == "identity_2" and self.depth % 2:
            raise UserError(
                f"depth {self.depth} is odd, and a block of shortcut 'identity_2' holds two layers. "
                f"The nearest even depths are {self.depth - 1} and {self.depth + 1}."
            )


@dataclass(frozen=True, kw_only=True)
class Step:
    """One linear layer and what follows it.

    Attributes:
        name: prefix of its parameters, such as `layers.3`.
        fan_in: inputs.
        fan_out: outputs.
        norm: whether batch norm follows; then there is no bias.
        activation: what follows last.
    """

    name: str
    fan_in: int
    fan_out: int
    norm: bool
    activation: Activation

    @property
    def weight(self) -> str:
        """Name of the weight, [out, in]."""
        return f"{self.name}.weight"

    @property
    def bias(self) -> str:
        """Name of the bias, [out]."""
        return f"{self.name}.bias"

    @property
    def norm_weight(self) -> str:
        """Name of batch norm's scale, [out]."""
        return f"{self.name}.norm.weight"

    @property
    def norm_bias(self) -> str:
        """Name of batch norm's shift, [out]."""
        return f"{self.name}.norm.bias"


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A function F made of steps, with a skip around it (h + F(h)) or without (F(h))."""

    steps: tuple[Step, ...]
    skip: bool


def units(stack: Stack) -> tuple[Unit, ...]:
    """The units of a stack from the input on: stem, layers or blocks, head.

    >>> [step.name for unit in units(Stack(depth=2, width=4, num_inputs=2, num_classes=3)) for step in unit.steps]
    ['stem', 'layers.0', 'layers.1', 'head']
    """
    width, norm, act = stack.width, stack.norm == "batch", stack.activation

    def square(name: str) -> Step:
        return Step(name=name, fan_in=width, fan_out=width, norm=norm, activation=act)

    def linear(name: str, fan_out: int) -> Step:
        return Step(name=name, fan_in=width, fan_out=fan_out, norm=False, activation="linear")

    stem = Step(name="stem", fan_in=stack.num_inputs, fan_out=width, norm=norm, activation=act)
    if stack.shortcut == "identity_2":
        body = [
            Unit(steps=(square(f"blocks.{at}.linear1"), linear(f"blocks.{at}.linear2", width)), skip=True)
            for at in range(stack.depth // 2)
        ]
    else:
        skip = stack.shortcut == "identity"
        body = [Unit(steps=(square(f"layers.{at}"),), skip=skip) for at in range(stack.depth)]
    head = Unit(steps=(linear("head", stack.num_classes),), skip=False)
    return (Unit(steps=(stem,), skip=False), *body, head)


def parameter_shapes(stack: Stack) -> dict[str, tuple[int, ...]]:
    """Name and shape (of one seed) of every parameter, from the input on.

    >>> shapes = parameter_shapes(Stack(depth=8, width=16, num_inputs=2, num_classes=3))
    >>> shapes["stem.weight"], sum(int(np.prod(shape)) for shape in shapes.values())
    ((16, 2), 2275)
    """
    shapes: dict[str, tuple[int, ...]] = {}
    for unit in units(stack):
        for step in unit.steps:
            shapes[step.weight] = (step.fan_out, step.fan_in)
            if step.norm:
                shapes[step.norm_weight] = shapes[step.norm_bias] = (step.fan_out,)
            else:
                shapes[step.bias] = (step.fan_out,)
    return shapes


def init_params(
    stack: Stack,
    seeds: Sequence[int],
    *,
    init: str = "gaussian",
    gain: float = 1.0,
    stem_gain: float | None = None,
    head_gain: float | None = None,
    dtype: DTypeLike = np.float64,
) -> dict[str, Array]:
    """Draw the parameters of a group of seeds.

    Each weight of each seed comes from its own stream, `(seed, "init", name)`, in float64 and is then
    cast: one more layer, another seed in the group or another precision shifts no other draw. A draw
    is an array [out, in], so a torch twin that fills `nn.Linear.weight` from the same stream starts identical.

    Args:
        stack: the network.
        seeds: one a run.
        init: `gaussian`, every weight ~ N(0, gain^2/fan_in); or `orthogonal`, gain times a matrix with
            orthonormal columns or rows.
        gain: of the square layers; also of stem and head where they are not given their own.
        stem_gain: of the stem.
        head_gain: of the head.
        dtype: of the result.

    Returns:
        Parameter name to array [S, *shape]. Biases and batch norm's shift are 0, its scale 1.

    Raises:
        UserError: an unknown `init`, or a type of integers.
    """
    check_real("dtype", dtype)
    if init not in INITS:
        raise UserError(unknown_name("init", init, INITS))
    gains = {
        "stem.weight": gain if stem_gain is None else stem_gain,
        "head.weight": gain if head_gain is None else head_gain,
    }
    params: dict[str, Array] = {}
    for name, shape in parameter_shapes(stack).items():
        if len(shape) == 2:
            scale = gains.get(name, gain)
            draws = [_draw(shape[0], shape[1], init, stream(seed, "init", name)) * scale for seed in seeds]
            params[name] = np.stack(draws).astype(dtype)
        else:
            fill = 1.0 if name.endswith(".norm.weight") else 0.0
            params[name] = np.full((len(seeds), *shape), fill, dtype)
    return params


def _draw(num_out: int, num_in: int, init: str, rng: np.random.Generator) -> Array:
    return orthogonal(num_out, num_in, rng) if init == "orthogonal" else gaussian((num_out, num_in), num_in, rng)
