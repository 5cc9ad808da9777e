"""The vanilla recurrent network by hand: forward, and backpropagation through time.

    form = Recurrent(num_inputs=2, width=64, num_outputs=1)
    params = init_params(form, seeds, gain=0.8)
    flow = backpropagated(form, params, x, y)
    flow.dh_norm()  # |dL/dh_t| of each step

Shape letters: S seeds (or perturbed copies of one), N examples, T steps, I inputs, W width, K outputs. As in `layers`
examples come last, and everything is analytic in its inputs, so that complex numbers give the complex-step derivative.

**Forward**, with h_0 = 0 and the same U, W, b at every step t = 1 ... T:

    z_t = U h_(t-1) + W x_t + b      f_t = tanh z_t      h_t = f_t, or h_(t-1) + f_t in a residual one
    o = V h_T + c                    L = mean over examples and outputs of (o - y)^2

**Backward.** Unrolled, this is a network of T layers whose weights happen to be equal. h_t reaches the loss through
h_(t+1) alone (h_T through o), so with dh_t for dL/dh_t

    do = 2 (o - y)/(N K)             dh_T = V^T do
    dz_t = dh_t (1 - f_t^2)          dh_(t-1) = U^T dz_t, and + dh_t in a residual one

A weight that serves T layers has T ways to the loss; their gradients add:

    dU = sum_t dz_t h_(t-1)^T        dW = sum_t dz_t x_t^T        db = sum_t dz_t (over examples too)

So over k steps dh_(t-k) = (U^T D_(t-k+1)) ... (U^T D_t) dh_t with D = diag(1 - f^2): a product of k matrices, as in a
plain network of k layers, and its size goes as the k-th power of a factor. Of a residual one each matrix is I + U^T D.

**The factor at initialisation.** U ~ N(0, g^2/W), W ~ N(0, g_in^2/I), inputs of mean square 1, wide limit: the variance
q of z settles where q = g^2 E[tanh^2(sqrt(q) u)] + g_in^2, u ~ N(0, 1), and a step toward the past multiplies
|dL/dh|^2 by chi = g^2 E[(1 - tanh^2(sqrt(q) u))^2]. That is the formula of a plain layer whose bias has the inputs'
variance g_in^2 (Poole et al. 2016, arXiv 1606.05340; for tied weights Chen et al. 2018, arXiv 1806.05394).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from depthscope.core import draws
from depthscope.core.errors import UserError, unknown_name
from depthscope.core.streams import stream
from depthscope.lab import layers
from depthscope.lab.given import check_count, check_seeds, check_shape
from depthscope.lab.gradcheck import relative_error

Array = NDArray[Any]
Init = Literal["gaussian", "orthogonal"]

INITS = ("gaussian", "orthogonal")
COMPLEX_STEP = 1e-20
_CHUNK = 16


@dataclass(frozen=True, kw_only=True)
class Recurrent:
    """The shape of a network; the number of steps is the data's.

    Attributes:
        num_inputs: numbers that describe one element of a sequence, I.
        width: units of the state, W.
        num_outputs: numbers that are asked at the end, K.
        residual: whether each step adds to the state, in place of a new one.

    Raises:
        UserError: a count below 1.
    """

    num_inputs: int
    width: int
    num_outputs: int
    residual: bool = False

    def __post_init__(self) -> None:
        for name in ("num_inputs", "width", "num_outputs"):
            check_count(name, getattr(self, name), 1)


def parameter_shapes(form: Recurrent) -> dict[str, tuple[int, ...]]:
    """Name and shape (of one seed) of W, U, b, V and c: those of family `recurrent`, cells rnn and residual_rnn.

    >>> shapes = parameter_shapes(Recurrent(num_inputs=2, width=64, num_outputs=1))
    >>> shapes["recurrent.weight"], sum(int(np.prod(shape)) for shape in shapes.values())
    ((64, 64), 4353)
    """
    return {
        "stem.weight": (form.width, form.num_inputs),
        "recurrent.weight": (form.width, form.width),
        "biases.state": (form.width,),
        "head.weight": (form.num_outputs, form.width),
        "head.bias": (form.num_outputs,),
    }


def init_params(
    form: Recurrent, seeds: Sequence[int], *, init: Init = "gaussian", gain: float = 1.0, stem_gain: float | None = None
) -> dict[str, Array]:
    """Draw the parameters of a group of seeds in float64, each weight from `(seed, "init", name)`; biases are 0.

    Args:
        form: the network.
        seeds: one a run.
        init: N(0, gain^2/fan_in), or gain times a matrix with orthonormal columns or rows.
        gain: of every weight.
        stem_gain: of W, where it has its own.

    Returns:
        Parameter name to array [S, *shape].

    Raises:
        UserError: an unknown `init`.
    """
    if init not in INITS:
        raise UserError(unknown_name("init", init, INITS))
    params: dict[str, Array] = {}
    for name, shape in parameter_shapes(form).items():
        if len(shape) == 1:
            params[name] = np.zeros((len(seeds), *shape))
            continue
        own = gain if name != "stem.weight" or stem_gain is None else stem_gain
        rngs = [stream(seed, "init", name) for seed in seeds]
        drawn = [
            draws.orthogonal(shape[0], shape[1], rng) if init == "orthogonal" else draws.gaussian(shape, shape[1], rng)
            for rng in rngs
        ]
        params[name] = np.stack(drawn) * own
    return params


@dataclass(frozen=True, kw_only=True, eq=False)
class Forward:
    """What one forward pass leaves.

    Attributes:
        x_TSIN: the inputs, step by step.
        f_TSWN: tanh z of each step.
        h_TSWN: the state behind each step.
        output_SKN: o.
    """

    x_TSIN: Array
    f_TSWN: Array
    h_TSWN: Array
    output_SKN: Array


def forward(form: Recurrent, params: Mapping[str, Array], x_SNTI: Array) -> Forward:
    """One forward pass, see the module. A seed axis of 1 in `x_SNTI` is broadcast.

    Raises:
        UserError: inputs of another shape.
    """
    check_shape("x", x_SNTI, "S", "N", "T", form.num_inputs)
    if (num_seeds := len(params["recurrent.weight"])) > 1:  # one network may read the sequences of many
        check_seeds("x", x_SNTI, num_seeds)
    x_TSIN = np.ascontiguousarray(x_SNTI.transpose(2, 0, 3, 1))
    # What the inputs bring does not wait for the state: all steps in one product.
    f_TSWN = layers.linear_forward(x_TSIN, params["stem.weight"], params["biases.state"])
    h_TSWN = np.empty_like(f_TSWN)
    h_SWN: Array = np.zeros_like(f_TSWN[0])
    for t, z_SWN in enumerate(f_TSWN):
        z_SWN += layers.linear_forward(h_SWN, params["recurrent.weight"], None)
        layers.tanh_forward(z_SWN, out=z_SWN)
        h_SWN = layers.skip_forward(h_SWN, z_SWN, out=h_TSWN[t]) if form.residual else z_SWN
        h_TSWN[t] = h_SWN
    output_SKN = layers.linear_forward(h_SWN, params["head.weight"], params["head.bias"])
    return Forward(x_TSIN=x_TSIN, f_TSWN=f_TSWN, h_TSWN=h_TSWN, output_SKN=output_SKN)


def squared_error(output_SKN: Array, y_SNK: Array) -> tuple[Array, Array]:
    """L = mean over examples and outputs of (o - y)^2 of each seed [S], and dL/do = 2 (o - y)/(N K) [S, K, N].

    A seed axis of 1 in `y_SNK` is broadcast.

    Raises:
        UserError: targets of another shape than the outputs.
    """
    check_shape("y", y_SNK, "S", *output_SKN.shape[:0:-1])
    check_seeds("y", y_SNK, len(output_SKN))
    apart_SKN = output_SKN - y_SNK.swapaxes(-1, -2)
    num = apart_SKN.shape[-1] * apart_SKN.shape[-2]
    # Not the square of an absolute value: analytic.
    return (apart_SKN * apart_SKN).sum(axis=(-1, -2)) / num, apart_SKN * (2 / num)


@dataclass(frozen=True, kw_only=True, eq=False)
class Flow:
    """What flows both ways in one pass.

    Attributes:
        loss_S: the mean squared error.
        h_TSWN: the state behind each step.
        dh_TSWN: dL/dh_t.
        grads: parameter name -> its gradient, [S, *shape].
    """

    loss_S: Array
    h_TSWN: Array
    dh_TSWN: Array
    grads: Mapping[str, Array]

    def dh_norm(self) -> Array:
        """|dL/dh_t|: Frobenius norm over units and examples, [T, S]. The distance in time of step t is T - 1 - t."""
        norm_TS: Array = np.sqrt(np.square(self.dh_TSWN).sum(axis=(2, 3)))
        return norm_TS

    def factor(self) -> Array:
        """Of |dL/dh_t|, a step toward the past: (first step / last step)^(1/(T-1)), the geometric mean [S].

        Raises:
            UserError: a sequence of one step, which has no way back.
        """
        norm_TS = self.dh_norm()
        if len(norm_TS) < 2:
            raise UserError("factor: wanted sequences of 2 steps or more, got 1.")
        factor_S: Array = np.exp((np.log(norm_TS[0]) - np.log(norm_TS[-1])) / (len(norm_TS) - 1))
        return factor_S


def backpropagated(form: Recurrent, params: Mapping[str, Array], x: Array, y: Array) -> Flow:
    """One forward pass and backpropagation through time, see the module.

    Args:
        form: the network.
        params: one row a seed, float64.
        x: sequences [S, N, T, I].
        y: targets [S, N, K].

    Raises:
        UserError: sequences or targets of another shape.
    """
    found = forward(form, params, x)
    loss_S, do_SKN = squared_error(found.output_SKN, y)
    dz_TSWN = np.empty_like(found.f_TSWN)
    dh_TSWN = np.empty_like(found.f_TSWN)
    head = layers.linear_backward(do_SKN, found.h_TSWN[-1], params["head.weight"])
    dh_SWN = head.dh
    for t in range(len(dz_TSWN) - 1, -1, -1):
        dh_TSWN[t] = dh_SWN
        dz_SWN = layers.tanh_backward(dh_TSWN[t], found.f_TSWN[t], out=dz_TSWN[t])
        through_SWN = np.matmul(params["recurrent.weight"].swapaxes(-1, -2), dz_SWN)
        dh_SWN = layers.skip_backward(dh_TSWN[t], through_SWN) if form.residual else through_SWN
    grads = {
        "stem.weight": np.einsum("tswn,tsin->swi", dz_TSWN, found.x_TSIN),
        "recurrent.weight": np.einsum("tswn,tsvn->swv", dz_TSWN[1:], found.h_TSWN[:-1]),  # h_0 = 0
        "biases.state": dz_TSWN.sum(axis=(0, 3)),
        "head.weight": head.dw,
        "head.bias": head.db,
    }
    return Flow(loss_S=loss_S, h_TSWN=found.h_TSWN, dh_TSWN=dh_TSWN, grads=grads)


def gradient_check(
    form: Recurrent, params: Mapping[str, Array], x: Array, y: Array, *, seed: int, entries: int | None = 100
) -> dict[str, Array]:
    """Relative error of backpropagation through time against the complex step Im L(p + ih)/h, entry by entry.

    Args:
        form: the network.
        params: the point, ONE seed: arrays [1, *shape].
        x: sequences [1, N, T, I].
        y: targets [1, N, K].
        seed: names the stream `(seed, "probe", "gradcheck", tensor)` that picks the entries.
        entries: how many of each tensor, where it has so many. None: all.

    Returns:
        Parameter name -> errors |a - n| / max(|a|, |n|) of the entries checked (see `gradcheck.GradcheckRow`).
    """
    exact = backpropagated(form, params, x, y).grads
    errors = {}
    for name, value in params.items():
        count = value.size if entries is None else min(entries, value.size)
        at_K = np.sort(stream(seed, "probe", "gradcheck", name).choice(value.size, count, replace=False))
        slopes = []
        for start in range(0, count, _CHUNK):
            chosen = at_K[start : start + _CHUNK]
            copies = {
                each: np.repeat(found.astype(np.complex128), len(chosen), axis=0) for each, found in params.items()
            }
            copies[name].reshape(len(chosen), -1)[np.arange(len(chosen)), chosen] += 1j * COMPLEX_STEP
            loss_K, _ = squared_error(forward(form, copies, x).output_SKN, y)
            slopes.append(loss_K.imag / COMPLEX_STEP)
        errors[name] = relative_error(exact[name].reshape(-1)[at_K], np.concatenate(slopes))
    return errors
