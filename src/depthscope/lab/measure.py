"""What goes on in each layer, in float64, for a group of seeds.

Shape letters: S seeds, N examples, I inputs, W width.

A layer of a profile is one linear layer with what follows it. Its h is:

- a plain layer: the output after the activation, the boundary tensor that the next layer reads;
- the last layer of a residual block: the block's output x + F(x), the boundary tensor too;
- the first layer of an `identity_2` block: the activation inside the branch, act(W1 x + b1);
- the head: the logits.

dL/dh is the gradient with respect to that same tensor, of the MEAN loss over the examples: so |dL/dh|
of one example carries a factor 1/N. |dW| is a forward signal times a backward one and hides which of
the two is small; the quantities stand apart for that reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.core.profile import Layer, Profile, Row
from depthscope.lab import layers
from depthscope.lab.fit import feature_major
from depthscope.lab.network import Network
from depthscope.lab.stacks import Stack, units

Array = NDArray[Any]


def gradients(stack: Stack, params: Mapping[str, Array], x: Array, y: Array) -> tuple[Network, dict[str, Array]]:
    """One forward and one backward pass in float64 (or complex128, where a parameter is complex).

    Args:
        stack: the network.
        params: one row a seed, any precision.
        x: inputs [S, N, I].
        y: labels [S, N].

    Returns:
        The network with its boundary tensors and their gradients kept, and the gradient of every parameter.
    """
    dtype = np.result_type(np.float64, *params.values())
    wide = {name: np.asarray(value, dtype) for name, value in params.items()}
    net = Network(stack, x.shape[0], x.shape[1], dtype, keep_grads=True)
    _, p_SCN = layers.cross_entropy_forward(net.forward(wide, feature_major(x, dtype)), y)
    grads = {name: np.empty_like(value) for name, value in wide.items()}
    net.backward(wide, layers.cross_entropy_backward(p_SCN, y), grads)
    return net, grads


def layer_table(stack: Stack) -> tuple[Layer, ...]:
    """The layers that a profile of this stack speaks of, from the input on.

    >>> table = layer_table(Stack(depth=2, width=4, num_inputs=2, num_classes=3, shortcut="identity_2"))
    >>> [(layer.name, layer.kind) for layer in table]
    [('stem', 'linear'), ('blocks.0.linear1', 'linear'), ('blocks.0.linear2', 'block'), ('head', 'linear')]
    """
    table: list[Layer] = []
    for unit in units(stack):
        for step in unit.steps:
            kind = "block" if unit.skip and step is unit.steps[-1] else "linear"
            table.append(Layer(index=len(table), name=step.name, kind=kind, weight=step.weight, shape=(step.fan_out,)))
    return tuple(table)


def profile(stack: Stack, params: Mapping[str, Array], x: Array, y: Array, step: int) -> list[Profile]:
    """One profile a seed: every quantity of `core.profile.QUANTITIES`, by layer.

    Changes nothing: parameters are read and cast up to float64. A ratio whose denominator is 0 gives no row.

    Args:
        stack: the network.
        params: one row a seed.
        x: the probe batch [S, N, I].
        y: its labels [S, N].
        step: the training step to write into the rows.
    """
    net, grads = gradients(stack, params, x, y)
    table = layer_table(stack)
    rows: list[list[Row]] = [[] for _ in range(len(y))]
    at = 0
    for index, unit in enumerate(net.units):
        for one in unit.steps:
            last = one is unit.steps[-1]
            h_SWN = net.inputs[index + 1] if last else net.outputs[one.name]
            dh_SWN = net.grads_out[index] if last else net.grads_step[one.name]
            w_norm_S = _norm(np.asarray(params[one.weight], np.float64))
            dw_norm_S = _norm(grads[one.weight])
            found = {
                "h_norm": _norm(h_SWN),
                "h_mean_abs": np.abs(h_SWN).mean(axis=(1, 2)),
                "dh_norm": _norm(dh_SWN),
                "dh_mean_abs": np.abs(dh_SWN).mean(axis=(1, 2)),
                "w_norm": w_norm_S,
                "dw_norm": dw_norm_S,
                "dw_ratio": np.divide(dw_norm_S, w_norm_S, out=np.full_like(w_norm_S, np.nan), where=w_norm_S > 0),
            }
            if unit.skip and last:
                found["f_over_x"] = _mean_ratio(net.outputs[one.name], net.inputs[index])
            for seed, mine in enumerate(rows):
                mine.extend(
                    Row(step=step, layer=at, quantity=quantity, value=float(value_S[seed]))
                    for quantity, value_S in found.items()
                    if not np.isnan(value_S[seed])
                )
            at += 1
    return [Profile(layers=table, rows=tuple(mine)) for mine in rows]


def flow_factor(found: Profile, step: int, quantity: str = "dh_norm") -> float:
    """Factor a layer, toward the input, of a quantity between the stem's output and the last square layer's.

    The geometric mean over the D square layers: (value at x_0 / value at x_D)^(1/D). Below 1 the
    gradient shrinks on its way to the input, above 1 it grows.
    """
    factor = found.factor(quantity, step, 0, len(found.layers) - 2)
    if factor is None:
        raise UserError(f"flow factor: {quantity} at step {step} is missing, zero or not finite at either end.")
    return factor


def _mean_ratio(f_SWN: Array, x_SWN: Array) -> Array:
    """Mean of |F|/|x| over the examples with |x| > 0 (behind a ReLU an x may be all zeros); NaN where none has."""
    f_SN, x_SN = (np.sqrt(np.square(array).sum(axis=1)) for array in (f_SWN, x_SWN))
    ratio_SN = np.divide(f_SN, x_SN, out=np.zeros_like(f_SN), where=x_SN > 0)
    count_S = (x_SN > 0).sum(axis=1)
    mean_S: Array = np.where(count_S > 0, ratio_SN.sum(axis=1) / np.maximum(count_S, 1), np.nan)
    return mean_S


def _norm(array: Array) -> Array:
    """Frobenius norm of each seed's part."""
    flat = array.reshape(len(array), -1)
    norm_S: Array = np.sqrt(np.square(flat).sum(axis=1))
    return norm_S
