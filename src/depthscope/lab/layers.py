"""The layers by hand: each a forward and a backward pass, with its derivation.

Shape letters: S seeds (or perturbed copies of one seed), N examples, I inputs, O outputs, C classes.
An array that ends in `_SON` has those axes in that order: examples come LAST. So a weight in torch's
layout [out, in] multiplies from the left, and what is summed over examples (a bias's gradient, batch
statistics) lies contiguous in memory, one row a unit: the order of such a sum cannot depend on
how many seeds share the array, which is half of the promise that a seed alone equals a seed in a group.

Every forward pass is analytic in its inputs as it is written: no conjugate and no absolute value, and
where a branch or a shift is needed it is chosen by the real part. So complex input gives the
complex-step derivative, Im f(x + ih)/h.

Every function takes `out` buffers. With none it allocates; with them the training loop allocates
nothing. A buffer may not be one of the inputs, unless the docstring allows it.

Notation of the derivations: L is the loss, dz stands for dL/dz, and the sums are over examples n.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[Any]


class LinearGrads(NamedTuple):
    """Gradients of a linear layer: input [S, I, N], weight [S, O, I], bias [S, O] (None without one)."""

    dh: Array | None
    dw: Array
    db: Array | None


class NormCache(NamedTuple):
    """What batch norm's backward pass needs: normalised input [S, O, N], 1/std [S, O]."""

    zhat: Array
    inv_std: Array


class NormGrads(NamedTuple):
    """Gradients of batch norm: input [S, O, N], scale [S, O], shift [S, O]."""

    dz: Array
    dgamma: Array
    dbeta: Array


def linear_forward(h_SIN: Array, w_SOI: Array, b_SO: Array | None, *, out: Array | None = None) -> Array:
    """The affine map z = W h + b of every example: z_on = sum_i w_oi h_in + b_o, [S, O, N]."""
    z_SON: Array = np.matmul(w_SOI, h_SIN, out=out)
    if b_SO is not None:
        z_SON = np.add(z_SON, b_SO[..., None], out=out)
    return z_SON


def linear_backward(
    dz_SON: Array,
    h_SIN: Array,
    w_SOI: Array,
    *,
    dh: Array | None = None,
    dw: Array | None = None,
    db: Array | None = None,
    has_bias: bool = True,
    needs_dh: bool = True,
) -> LinearGrads:
    """The gradients of z = W h + b.

    z_on depends on h_in through w_oi, on w_oi through h_in, on b_o through 1, so by the chain rule

        dh_in = sum_o w_oi dz_on    dh = W^T dz
        dw_oi = sum_n dz_on h_in    dW = dz h^T
        db_o  = sum_n dz_on

    Args:
        dz_SON: dL/dz.
        h_SIN: the layer's input.
        w_SOI: its weight.
        dh: buffer for dL/dh.
        dw: buffer for dL/dW.
        db: buffer for dL/db.
        has_bias: whether there is a b.
        needs_dh: False at the first layer, whose input is data.
    """
    w_grad: Array = np.matmul(dz_SON, h_SIN.swapaxes(-1, -2), out=dw)
    b_grad: Array | None = np.add.reduce(dz_SON, axis=-1, out=db) if has_bias else None
    h_grad: Array | None = np.matmul(w_SOI.swapaxes(-1, -2), dz_SON, out=dh) if needs_dh else None
    return LinearGrads(h_grad, w_grad, b_grad)


def tanh_forward(z: Array, *, out: Array | None = None) -> Array:
    """Hyperbolic tangent h = tanh z, entry by entry. `out` may be `z`."""
    h: Array = np.tanh(z, out=out)
    return h


def tanh_backward(dh: Array, h: Array, *, out: Array | None = None) -> Array:
    """The gradient dz = dh (1 - h^2): tanh' z = 1 - tanh^2 z, so the output alone is enough."""
    dz: Array = np.multiply(h, h, out=out)
    np.subtract(1, dz, out=dz)
    np.multiply(dz, dh, out=dz)
    return dz


def relu_forward(z: Array, *, out: Array | None = None) -> Array:
    """Rectifier: h = z where Re z > 0, else 0. `out` may be `z`. NaN stays NaN."""
    if np.iscomplexobj(z):
        return np.multiply(z, z.real > 0, out=out)
    h: Array = np.maximum(z, 0, out=out)
    return h


def relu_backward(dh: Array, h: Array, *, out: Array | None = None) -> Array:
    """The gradient dz = dh where Re h > 0, else 0: h > 0 exactly where z > 0, so the output alone is enough."""
    dz: Array = np.multiply(dh, h.real > 0, out=out)
    return dz


def skip_forward(x: Array, f: Array, *, out: Array | None = None) -> Array:
    """The residual addition h = x + f."""
    h: Array = np.add(x, f, out=out)
    return h


def skip_backward(dh: Array, dx_branch: Array, *, out: Array | None = None) -> Array:
    """The gradient dx = dh + (what came back through the branch), for h = x + F(x).

    dh/dx = I + F'(x), so dx = dh + F'(x)^T dh. The first term is the whole point of the shortcut: it
    reaches the input of every block undiminished. `out` may be `dx_branch`.
    """
    dx: Array = np.add(dh, dx_branch, out=out)
    return dx


def batch_norm_forward(
    z_SON: Array,
    gamma_SO: Array,
    beta_SO: Array,
    *,
    eps: float = 1e-5,
    out: Array | None = None,
    zhat: Array | None = None,
) -> tuple[Array, NormCache]:
    """Batch norm in train mode: y = gamma zhat + beta with zhat = (z - mean)/sqrt(var + eps).

    Mean and variance are over the N examples of each unit; the variance is the biased one (division by
    N), as the normalising pass of Ioffe & Szegedy 2015 (arXiv 1502.03167, algorithm 1) has it.

    Args:
        z_SON: input.
        gamma_SO: scale.
        beta_SO: shift.
        eps: added to the variance.
        out: buffer for y.
        zhat: buffer for the normalised input; may be `z_SON`.
    """
    num = z_SON.shape[-1]
    mean_SO = z_SON.sum(axis=-1) / num
    zhat_SON: Array = np.subtract(z_SON, mean_SO[..., None], out=zhat)
    y_SON: Array = np.multiply(zhat_SON, zhat_SON, out=out)
    inv_std_SO: Array = 1 / np.sqrt(y_SON.sum(axis=-1) / num + eps)
    zhat_SON *= inv_std_SO[..., None]
    np.multiply(zhat_SON, gamma_SO[..., None], out=y_SON)
    y_SON += beta_SO[..., None]
    return y_SON, NormCache(zhat_SON, inv_std_SO)


def batch_norm_backward(
    dy_SON: Array,
    cache: NormCache,
    gamma_SO: Array,
    *,
    dz: Array | None = None,
    dgamma: Array | None = None,
    dbeta: Array | None = None,
) -> NormGrads:
    """The gradients of y = gamma zhat + beta, zhat = (z - mean)/s, s = sqrt(var + eps).

    dgamma = sum_n dy_n zhat_n and dbeta = sum_n dy_n. With dzhat = gamma dy, and since mean and s hold
    every example (dmean/dz_m = 1/N; ds/dz_m = (z_m - mean)/(N s) = zhat_m/N),

        dzhat_n/dz_m = (delta_nm - 1/N - zhat_n zhat_m/N)/s
        dz_m = (1/s) (dzhat_m - (1/N) sum_n dzhat_n - zhat_m (1/N) sum_n dzhat_n zhat_n)
             = (gamma/s) (dy_m - dbeta/N - zhat_m dgamma/N).

    The two subtracted terms take out of the gradient its mean and its part along zhat: shifting or
    scaling a unit's whole batch changes nothing.
    """
    zhat_SON, inv_std_SO = cache
    num = dy_SON.shape[-1]
    scratch: Array = np.multiply(dy_SON, zhat_SON, out=dz)
    dgamma_SO: Array = np.add.reduce(scratch, axis=-1, out=dgamma)
    dbeta_SO: Array = np.add.reduce(dy_SON, axis=-1, out=dbeta)
    dz_SON: Array = np.multiply(zhat_SON, (dgamma_SO / -num)[..., None], out=scratch)
    dz_SON += dy_SON
    dz_SON -= (dbeta_SO / num)[..., None]
    dz_SON *= (gamma_SO * inv_std_SO)[..., None]
    return NormGrads(dz_SON, dgamma_SO, dbeta_SO)


def cross_entropy_forward(logits_SCN: Array, y_SN: Array) -> tuple[Array, Array]:
    """Mean over examples of -log softmax(logits)[label], and the probabilities.

    log p_c = (z_c - m) - log sum_k exp(z_k - m) for any m; m is the largest real part, so that no
    exponential overflows. A label below 0 says that nothing is asked there: the mean is over the others.

    Args:
        logits_SCN: one row a class.
        y_SN: labels, integers from 0; below 0 where nothing is asked.

    Returns:
        The loss of each seed [S], in nats, and the probabilities [S, C, N].
    """
    shifted_SCN = logits_SCN - logits_SCN.real.max(axis=-2, keepdims=True)
    p_SCN: Array = np.exp(shifted_SCN)
    total_SN = p_SCN.sum(axis=-2)
    p_SCN /= total_SN[..., None, :]
    num_S, _, num_N = shifted_SCN.shape
    picked_SN = shifted_SCN[np.arange(num_S)[:, None], np.maximum(y_SN, 0), np.arange(num_N)]
    each_SN = np.where(y_SN < 0, 0, np.log(total_SN) - picked_SN)
    loss_S: Array = each_SN.sum(axis=-1) / num_asked(y_SN, p_SCN.real.dtype)
    return loss_S, p_SCN


def cross_entropy_backward(p_SCN: Array, y_SN: Array) -> Array:
    """The gradient dlogits = (p - onehot(y))/N, N the number of labels that are asked; 0 where none is.

    For one example l = -z_y + log sum_k exp z_k, so dl/dz_c = -[c = y] + p_c; the mean divides by N.
    """
    classes_C1 = np.arange(p_SCN.shape[-2])[:, None]
    dlogits_SCN: Array = p_SCN - (y_SN[..., None, :] == classes_C1)
    dlogits_SCN /= num_asked(y_SN, p_SCN.real.dtype)[:, None, None]
    if (unasked_SN := y_SN < 0).any():
        dlogits_SCN *= ~unasked_SN[..., None, :]
    return dlogits_SCN


def num_asked(y_SN: Array, dtype: DTypeLike) -> Array:
    """How many labels of each seed are asked [S], as a number of this type."""
    num_S: Array = (y_SN >= 0).sum(axis=-1).astype(dtype)
    return num_S


ACTIVATIONS = {"tanh": (tanh_forward, tanh_backward), "relu": (relu_forward, relu_backward)}
"""Forward and backward pass of each activation by name. `linear` has none: it is the identity."""
