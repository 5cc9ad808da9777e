"""What goes on in each layer, in float64, for a group of seeds.

Shape letters: S seeds, N examples, I inputs, W width, T positions.

A layer of a stack's profile is one linear layer with what follows it. Its h is:

- a plain layer: the output after the activation, the boundary tensor that the next layer reads;
- the last layer of a residual block: the block's output x + F(x), the boundary tensor too;
- the first layer of an `identity_2` block: the activation inside the branch, act(W1 x + b1);
- the head: the logits.

Of a transformer the layers are the embedding, the last linear layer of each branch (its h is what the next branch
reads, behind the addition, under `post` behind the norm too), and the head.

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
from depthscope.core.profile import Profile, Row
from depthscope.lab import layers
from depthscope.lab.forms import Form, as_input, as_labels, check_data, layer_table, make_network
from depthscope.lab.reading import Net

Array = NDArray[Any]


def gradients(form: Form, params: Mapping[str, Array], x: Array, y: Array) -> tuple[Net, dict[str, Array]]:
    """One forward and one backward pass in float64 (or complex128, where a parameter is complex).

    Args:
        form: the network.
        params: one row a seed, any precision.
        x: inputs [S, N, I], or tokens [S, N, T].
        y: labels [S, N], or [S, N, T].

    Returns:
        The network with its boundary tensors and their gradients kept, and the gradient of every parameter.

    Raises:
        UserError: data that the form does not take.
    """
    check_data(form, x, y)
    dtype = np.result_type(np.float64, *params.values())
    wide = {name: np.asarray(value, dtype) for name, value in params.items()}
    net, y_SN = make_network(form, x.shape[0], x.shape[1], dtype, keep_grads=True), as_labels(y)
    _, p_SCN = layers.cross_entropy_forward(net.forward(wide, as_input(form, x, dtype)), y_SN)
    grads = {name: np.empty_like(value) for name, value in wide.items()}
    net.backward(wide, layers.cross_entropy_backward(p_SCN, y_SN), grads)
    return net, grads


def profile(form: Form, params: Mapping[str, Array], x: Array, y: Array, step: int) -> list[Profile]:
    """One profile a seed: every quantity of `core.profile.QUANTITIES`, by layer.

    Changes nothing: parameters are read and cast up to float64. A ratio whose denominator is 0 gives no row.

    Args:
        form: the network.
        params: one row a seed.
        x: the probe batch [S, N, I], or [S, N, T].
        y: its labels [S, N], or [S, N, T].
        step: the training step to write into the rows.
    """
    net, grads = gradients(form, params, x, y)
    rows: list[list[Row]] = [[] for _ in range(len(y))]
    for layer, h, dh, f, x_skip in net.readings():
        assert layer.weight is not None
        w_norm_S = _norm(np.asarray(params[layer.weight], np.float64))
        dw_norm_S = _norm(grads[layer.weight])
        found = {
            "h_norm": _norm(h),
            "h_mean_abs": _mean_abs(h),
            "dh_norm": _norm(dh),
            "dh_mean_abs": _mean_abs(dh),
            "w_norm": w_norm_S,
            "dw_norm": dw_norm_S,
            "dw_ratio": np.divide(dw_norm_S, w_norm_S, out=np.full_like(w_norm_S, np.nan), where=w_norm_S > 0),
        }
        if f is not None and x_skip is not None:
            found["f_over_x"] = _mean_ratio(f, x_skip)
        for seed, mine in enumerate(rows):
            mine.extend(
                Row(step=step, layer=layer.index, quantity=quantity, value=float(value_S[seed]))
                for quantity, value_S in found.items()
                if not np.isnan(value_S[seed])
            )
    return [Profile(layers=layer_table(form), rows=tuple(mine)) for mine in rows]


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


def _mean_abs(array: Array) -> Array:
    """Mean absolute value of each seed's part."""
    mean_S: Array = np.abs(array).mean(axis=tuple(range(1, array.ndim)))
    return mean_S
