"""Slow twins of layers in NumPy, pixel by pixel and channel by channel."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def conv_naive(x_BCHW: Array, weight: Array, stride: int) -> Array:
    """Every output pixel by itself: the sum of a window times the kernel."""
    num_out, _, kernel, _ = weight.shape
    pad = kernel // 2
    padded = np.pad(x_BCHW, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    batch, _, height, width = x_BCHW.shape
    out = np.empty((batch, num_out, -(-height // stride), -(-width // stride)))
    for row in range(out.shape[2]):
        for column in range(out.shape[3]):
            top, left = row * stride, column * stride
            window = padded[:, :, top : top + kernel, left : left + kernel]
            out[:, :, row, column] = np.tensordot(window, weight, axes=([1, 2, 3], [1, 2, 3]))
    return out


def norm_naive(x_BCHW: Array, state: Mapping[str, Array], name: str, training: bool) -> Array:
    out = np.empty_like(x_BCHW)
    for channel in range(x_BCHW.shape[1]):
        values = x_BCHW[:, channel]
        mean = values.mean() if training else state[f"{name}.running_mean"][channel]
        variance = values.var() if training else state[f"{name}.running_var"][channel]
        scale = state[f"{name}.weight"][channel] / np.sqrt(variance + 1e-5)
        out[:, channel] = (values - mean) * scale + state[f"{name}.bias"][channel]
    return out


def pad_naive(x_BCHW: Array, num_out: int, stride: int, *, pool: bool = False) -> Array:
    """Every `stride`-th pixel, or the mean of its window, in the first channels; zeros in the others."""
    batch, channels, height, width = x_BCHW.shape
    out = np.zeros((batch, num_out, -(-height // stride), -(-width // stride)))
    for row in range(out.shape[2]):
        for column in range(out.shape[3]):
            top, left = row * stride, column * stride
            size = stride if pool else 1
            window = x_BCHW[:, :, top : top + size, left : left + size]
            out[:, :channels, row, column] = window.mean(axis=(2, 3))
    return out
