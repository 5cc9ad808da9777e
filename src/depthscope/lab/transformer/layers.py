"""What a transformer has beside `lab.layers`: embedding, norms over the features, attention to the past.

Shape letters: S seeds (or perturbed copies of one seed), N examples, T positions, M = N T places, D features,
H heads, E = D/H features of a head, V tokens.

As in `lab.layers`, examples come last; here every position of every example is one: activations are [S, D, M], the
places of an example side by side. So linear layers, activations and the two additions of a block are those of
`lab.layers`, unchanged: they know nothing of positions. Attention alone does, and takes T.

The same rules hold: forward passes are analytic as they are written (no conjugate, no absolute value; a shift is
chosen by the real part), sums run over axes within one seed, and dx stands for dL/dx.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class NormCache(NamedTuple):
    """What a norm's backward pass needs: normalised input [S, D, M], 1/root [S, 1, M]."""

    xhat: Array
    inv_root: Array


class NormGrads(NamedTuple):
    """Gradients of a norm: input [S, D, M]; scale and shift [S, D], None where there is none."""

    dx: Array
    dscale: Array | None
    dshift: Array | None


class AttentionCache(NamedTuple):
    """What attention's backward pass needs: q, k, v [S, H, N, T, E] each, and the weights [S, H, N, T, T]."""

    q: Array
    k: Array
    v: Array
    weights: Array


def embedding_forward(tokens_SNT: Array, table_SVD: Array, positions_STD: Array) -> Array:
    """The token's row of one table plus the position's of another: h_dm = A_{v(m) d} + P_{t(m) d}, [S, D, M].

    Args:
        tokens_SNT: integers from 0. An axis S of 1 is broadcast.
        table_SVD: one row a token.
        positions_STD: one row a position.
    """
    num_seeds = max(len(tokens_SNT), len(table_SVD), len(positions_STD))
    every_SNT = np.broadcast_to(tokens_SNT, (num_seeds, *tokens_SNT.shape[1:]))
    own_S = np.arange(num_seeds)[:, None, None] % len(table_SVD)
    h_SNTD = table_SVD[own_S, every_SNT] + positions_STD[:, None]
    h_SDM: Array = np.ascontiguousarray(h_SNTD.reshape(num_seeds, -1, h_SNTD.shape[-1]).swapaxes(-1, -2))
    return h_SDM


def embedding_backward(dh_SDM: Array, tokens_SNT: Array, num_tokens: int) -> tuple[Array, Array]:
    """The gradients of both tables, [S, V, D] and [S, T, D].

    h_dm holds the entry A_vd once where the token at m is v, and not at all elsewhere; so for the positions:

        dA_vd = sum_m [v(m) = v] dh_dm          dP_td = sum_m [t(m) = t] dh_dm

    A look-up's transpose is a scatter that ADDS: a token that stands at seven places gets seven gradients, and a row
    that no example names gets none.

    Args:
        dh_SDM: dL/dh.
        tokens_SNT: as in the forward pass.
        num_tokens: V.
    """
    num_seeds, width, num_places = dh_SDM.shape
    length = tokens_SNT.shape[-1]
    dtable_SVD = np.zeros((num_seeds, num_tokens, width), dh_SDM.dtype)
    row_SM = np.broadcast_to(tokens_SNT.reshape(len(tokens_SNT), -1), (num_seeds, num_places))
    row_SM = row_SM + num_tokens * np.arange(num_seeds)[:, None]
    at_SMD = row_SM[..., None] * width + np.arange(width)
    # `table[tokens] += dh` would keep one of the seven; `add.at` adds in the order of the places.
    np.add.at(dtable_SVD.reshape(-1), at_SMD.reshape(-1), dh_SDM.swapaxes(-1, -2).reshape(-1))
    dpositions_SDT = dh_SDM.reshape(num_seeds, width, -1, length).sum(axis=2)
    return dtable_SVD, np.ascontiguousarray(dpositions_SDT.swapaxes(-1, -2))


def rms_norm_forward(x_SDM: Array, scale_SD: Array | None = None, *, eps: float = 1e-5) -> tuple[Array, NormCache]:
    """Root-mean-square norm y = scale xhat, xhat = x/r, r = sqrt(mean_d x_d^2 + eps), at each place by itself.

    Source: Zhang & Sennrich 2019, arXiv 1910.07467.

    Args:
        x_SDM: input.
        scale_SD: one factor a feature; None: none is learned.
        eps: added to the mean square.
    """
    inv_S1M: Array = 1 / np.sqrt((x_SDM * x_SDM).sum(axis=-2, keepdims=True) / x_SDM.shape[-2] + eps)
    xhat_SDM: Array = x_SDM * inv_S1M
    y_SDM = xhat_SDM if scale_SD is None else xhat_SDM * scale_SD[..., None]
    return y_SDM, NormCache(xhat_SDM, inv_S1M)


def rms_norm_backward(dy_SDM: Array, cache: NormCache, scale_SD: Array | None = None) -> NormGrads:
    """The gradients of y = scale xhat, xhat = x/r, r = sqrt(mean_d x_d^2 + eps).

    dscale_d = sum_m dy_dm xhat_dm. With dxhat = scale dy, and since r holds every feature
    (dr/dx_j = x_j/(D r) = xhat_j/D),

        dxhat_i/dx_j = (delta_ij - xhat_i xhat_j/D)/r
        dx_j = (1/r) (dxhat_j - xhat_j (1/D) sum_i dxhat_i xhat_i).

    The subtracted term is the gradient's part along xhat: making x longer changes nothing.
    """
    xhat_SDM, inv_S1M = cache
    dscale_SD = None if scale_SD is None else (dy_SDM * xhat_SDM).sum(axis=-1)
    dxhat_SDM = dy_SDM if scale_SD is None else dy_SDM * scale_SD[..., None]
    along_S1M = (dxhat_SDM * xhat_SDM).sum(axis=-2, keepdims=True) / xhat_SDM.shape[-2]
    dx_SDM: Array = (dxhat_SDM - xhat_SDM * along_S1M) * inv_S1M
    return NormGrads(dx_SDM, dscale_SD, None)


def layer_norm_forward(
    x_SDM: Array, scale_SD: Array, shift_SD: Array | None = None, *, eps: float = 1e-5
) -> tuple[Array, NormCache]:
    """Layer norm y = scale xhat + shift, xhat = (x - mean)/sqrt(var + eps), at each place by itself.

    Mean and (biased) variance are over the D features. Source: Ba et al. 2016, arXiv 1607.06450.

    Args:
        x_SDM: input.
        scale_SD: one factor a feature.
        shift_SD: one term a feature; None: none is learned.
        eps: added to the variance.
    """
    centred_SDM = x_SDM - x_SDM.sum(axis=-2, keepdims=True) / x_SDM.shape[-2]
    xhat_SDM, cache = rms_norm_forward(centred_SDM, eps=eps)
    y_SDM = xhat_SDM * scale_SD[..., None]
    return y_SDM if shift_SD is None else y_SDM + shift_SD[..., None], cache


def layer_norm_backward(dy_SDM: Array, cache: NormCache, scale_SD: Array, *, has_shift: bool = True) -> NormGrads:
    """The gradients of y = scale xhat + shift: layer norm is the RMS norm of c = x - mean.

    dscale_d = sum_m dy_dm xhat_dm and dshift_d = sum_m dy_dm. dc comes back through the RMS norm, and as
    c_i = x_i - (1/D) sum_j x_j, so that dc_i/dx_j = delta_ij - 1/D,

        dx_j = dc_j - (1/D) sum_i dc_i:

    shifting x changes nothing either.
    """
    dc_SDM, dscale_SD, _ = rms_norm_backward(dy_SDM, cache, scale_SD)
    dx_SDM = dc_SDM - dc_SDM.sum(axis=-2, keepdims=True) / dc_SDM.shape[-2]
    return NormGrads(dx_SDM, dscale_SD, dy_SDM.sum(axis=-1) if has_shift else None)


def attention_forward(qkv_SCM: Array, num_heads: int, length: int) -> tuple[Array, AttentionCache]:
    """Causal attention of H heads, before the projection: each place gathers values of its own past, [S, D, M].

    In a head, of the query q_t at place t, and keys k_u and values v_u at the places u <= t of the same example,

        a_tu = q_t . k_u / sqrt(E)      p_tu = e^{a_tu} / sum_{w <= t} e^{a_tw}      o_t = sum_{u <= t} p_tu v_u.

    Before the exponential the largest real part of a row is taken off: p is the same, and nothing overflows. Source:
    Vaswani et al. 2017, arXiv 1706.03762, section 3.2.

    Args:
        qkv_SCM: queries, keys and values, C = 3D rows in thirds; in each third a head has E rows side by side.
        num_heads: H.
        length: T, positions of an example.
    """
    num_seeds, rows, num_places = qkv_SCM.shape
    shape = (num_seeds, 3, num_heads, rows // (3 * num_heads), num_places // length, length)
    # Contiguous, so that a product is one call of the same shape for each seed, head and example.
    q, k, v = np.ascontiguousarray(qkv_SCM.reshape(shape).transpose(1, 0, 2, 4, 5, 3))
    a_SHNTT = np.matmul(q, k.swapaxes(-1, -2)) / _root(q)
    past_TT = np.tri(length, dtype=bool)
    top = np.where(past_TT, a_SHNTT.real, -np.inf).max(axis=-1, keepdims=True)
    p_SHNTT: Array = np.exp(np.where(past_TT, a_SHNTT - top, 0)) * past_TT
    p_SHNTT /= p_SHNTT.sum(axis=-1, keepdims=True)
    return _joined(np.matmul(p_SHNTT, v)), AttentionCache(q, k, v, p_SHNTT)


def attention_backward(do_SDM: Array, cache: AttentionCache) -> Array:
    """The gradient of queries, keys and values together, [S, 3D, M].

    o_t = sum_u p_tu v_u holds v_u with the factor p_tu, and p_tu with v_u:

        dv_u = sum_t p_tu do_t       dp_tu = do_t . v_u.

    A row p_t is a softmax, dp_tu/da_tw = p_tu (delta_uw - p_tw), so

        da_tw = sum_u dp_tu p_tu (delta_uw - p_tw) = p_tw (dp_tw - sum_u p_tu dp_tu):

    the row's weighted mean is taken off, since adding a constant to a row of scores changes nothing. Where u > t, p
    is 0 and da with it: nothing comes back from the future. Last, a_tu = q_t . k_u / sqrt(E):

        dq_t = sum_u da_tu k_u / sqrt(E)       dk_u = sum_t da_tu q_t / sqrt(E).
    """
    q, k, v, p_SHNTT = cache
    num_seeds, num_heads, num_examples, length, size = q.shape
    do = do_SDM.reshape(num_seeds, num_heads, size, num_examples, length).transpose(0, 1, 3, 4, 2)
    do = np.ascontiguousarray(do)
    dv = np.matmul(p_SHNTT.swapaxes(-1, -2), do)
    dp_SHNTT = np.matmul(do, v.swapaxes(-1, -2))
    da_SHNTT = p_SHNTT * (dp_SHNTT - (p_SHNTT * dp_SHNTT).sum(axis=-1, keepdims=True))
    da_SHNTT /= _root(q)
    dq = np.matmul(da_SHNTT, k)
    dk = np.matmul(da_SHNTT.swapaxes(-1, -2), q)
    return np.concatenate([_joined(each) for each in (dq, dk, dv)], axis=-2)


def _root(q: Array) -> Any:
    """sqrt(E) in q's own precision."""
    return np.sqrt(q.real.dtype.type(q.shape[-1]))


def _joined(heads_SHNTE: Array) -> Array:
    """The heads one below the other: [S, D, M]."""
    num_seeds, num_heads, num_examples, length, size = heads_SHNTE.shape
    rows = heads_SHNTE.transpose(0, 1, 4, 2, 3)
    return np.ascontiguousarray(rows).reshape(num_seeds, num_heads * size, num_examples * length)
