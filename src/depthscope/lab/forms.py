"""The forms of network that the laboratory has, told apart in this one place.

A `Stack` takes points and gives one answer each; a `Gpt` takes rows of tokens and gives an answer at each position.
Inside, every answer is a column: scores are [S, classes, answers] and labels [S, answers] of either.

Shape letters: S seeds, N examples, I inputs, T positions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from depthscope.core.errors import UserError
from depthscope.core.profile import Layer
from depthscope.lab import stacks
from depthscope.lab.given import check_labels, check_shape, check_tokens
from depthscope.lab.network import Network, stack_layers
from depthscope.lab.reading import Net
from depthscope.lab.stacks import Stack
from depthscope.lab.transformer.model import Gpt, gpt_shapes, init_gpt
from depthscope.lab.transformer.network import GptNetwork, gpt_layers

Array = NDArray[Any]
Form = Stack | Gpt


def make_network(form: Form, num_seeds: int, num_examples: int, dtype: DTypeLike, *, keep_grads: bool = False) -> Net:
    """A network of this form.

    Args:
        form: its shape.
        num_seeds: S.
        num_examples: N.
        dtype: of what it computes.
        keep_grads: whether its `readings` will be asked for.
    """
    if isinstance(form, Gpt):
        return GptNetwork(form)
    return Network(form, num_seeds, num_examples, dtype, keep_grads=keep_grads)


def parameter_shapes(form: Form) -> dict[str, tuple[int, ...]]:
    """Name and shape (of one seed) of every parameter, from the input on."""
    return gpt_shapes(form) if isinstance(form, Gpt) else stacks.parameter_shapes(form)


def init_params(
    form: Form,
    seeds: Sequence[int],
    *,
    init: str = "gaussian",
    gain: float = 1.0,
    stem_gain: float | None = None,
    head_gain: float | None = None,
    dtype: DTypeLike = np.float64,
) -> dict[str, Array]:
    """Draw the parameters of a group of seeds; see `stacks.init_params` and `transformer.model.init_gpt`.

    Each weight of each seed comes from its own stream, `(seed, "init", name)`, in float64 and is then
    cast: one more layer, another seed in the group or another precision shifts no other draw.

    Raises:
        UserError: an unknown `init`, a gain that the form does not have, or a type of integers.
    """
    if not isinstance(form, Gpt):
        return stacks.init_params(
            form, seeds, init=init, gain=gain, stem_gain=stem_gain, head_gain=head_gain, dtype=dtype
        )
    if stem_gain is not None or head_gain is not None:
        raise UserError("gain: a Gpt has one gain, of all its weights; leave the stem's and the head's own away.")
    return init_gpt(form, seeds, init=init, gain=gain, dtype=dtype)


def forward_flops(form: Form) -> int:
    """Of one example's forward pass, in matrix products alone; a multiply and an add are two."""
    shapes = parameter_shapes(form)
    if not isinstance(form, Gpt):
        return 2 * sum(shape[0] * shape[1] for shape in shapes.values() if len(shape) == 2)
    tables = ("positions.weight",) if form.tied else ("positions.weight", "tokens.weight")  # looked up, not multiplied
    products = sum(math.prod(shape) for name, shape in shapes.items() if len(shape) == 2 and name not in tables)
    # Scores and gathered values: T rows of T products, over D features of all heads together.
    return 2 * form.length * products + 4 * form.depth * form.length**2 * form.width


def layer_table(form: Form) -> tuple[Layer, ...]:
    """The layers that a profile of this network speaks of, from the input on."""
    return gpt_layers(form) if isinstance(form, Gpt) else stack_layers(form)


def check_inputs(form: Form, x: Array) -> None:
    """Refuse inputs that the form does not take: it wants points [S, N, I], or tokens [S, N, T]."""
    if isinstance(form, Gpt):
        check_shape("x", x, "S", "N", form.length)
        check_tokens("x", x, form.num_tokens)
    else:
        check_shape("x", x, "S", "N", form.num_inputs)


def check_data(form: Form, x: Array, y: Array) -> None:
    """Refuse inputs that the form does not take, and labels that do not answer them: [S, N], or [S, N, T]."""
    check_inputs(form, x)
    check_shape("y", y, *x.shape[: 3 if isinstance(form, Gpt) else 2])
    check_labels("y", y, form.num_tokens if isinstance(form, Gpt) else form.num_classes)


def as_input(form: Form, x: Array, dtype: DTypeLike) -> Array:
    """Inputs as the network takes them: points [S, N, I] features first, [S, I, N]; tokens [S, N, T] as they are."""
    if isinstance(form, Gpt):
        return x
    return np.ascontiguousarray(np.swapaxes(x, -1, -2), dtype=dtype)


def as_labels(y: Array) -> Array:
    """Labels [S, N], or [S, N, T] one a position, as one row a seed."""
    return y.reshape(len(y), -1)
