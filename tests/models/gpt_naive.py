"""The logits of a GPT, written out."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

Array = NDArray[Any]

ACTIVATIONS: dict[str, Any] = {
    "relu": lambda z: np.maximum(z, 0),
    "gelu": lambda z: z * (1 + erf(z / np.sqrt(2))) / 2,
    "silu": lambda z: z / (1 + np.exp(-z)),
    "tanh": np.tanh,
}


def written_out(
    state: dict[str, Array],
    tokens: Array,
    *,
    heads: int,
    depth: int,
    shortcut: str,
    norm: str,
    activation: str,
    placement: str,
) -> Array:
    """The logits from the tensors alone, one example, one position, one head at a time."""
    width = state["tokens.weight"].shape[1]

    def affine(name: str, h: Array) -> Array:
        out: Array = h @ state[f"{name}.weight"].T + state.get(f"{name}.bias", 0.0)
        return out

    def normalised(name: str, h: Array) -> Array:
        if f"{name}.weight" not in state and norm != "rms_plain":
            return h
        centred = h if norm.startswith("rms") else h - h.mean(axis=-1, keepdims=True)
        size = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-5)
        out: Array = centred / size * state.get(f"{name}.weight", 1.0) + state.get(f"{name}.bias", 0.0)
        return out

    def attention(name: str, h: Array) -> Array:
        mixed = np.zeros_like(h)
        q, k, v = (affine(f"{name}.qkv", h)[:, at * width : (at + 1) * width] for at in range(3))
        size = width // heads
        for head, at in itertools.product(range(heads), range(len(h))):
            own = slice(head * size, (head + 1) * size)
            scores = np.array([q[at, own] @ k[other, own] / np.sqrt(size) for other in range(at + 1)])
            shares = np.exp(scores - scores.max())
            mixed[at, own] = sum(share * v[other, own] for other, share in enumerate(shares / shares.sum()))
        return affine(f"{name}.proj", mixed)

    def feed_forward(name: str, h: Array) -> Array:
        return affine(f"{name}.down", ACTIVATIONS[activation](affine(f"{name}.up", h)))

    def joined(block: str, s: Array, f: Array) -> Array:
        y: Array
        match shortcut:
            case "none":
                y = f
            case "identity":
                y = s + f
            case "scaled":
                y = s + f / np.sqrt(2 * depth)
            case "deepnorm":
                y = (2 * depth) ** 0.25 * s + f
            case "rezero":
                y = s + state[f"{block}.attention.join.a"] * f
            case _:
                raise AssertionError(shortcut)
        return y

    logits = []
    for example in tokens:
        h = state["tokens.weight"][example] + state["positions.weight"][: len(example)]
        for at in range(depth):
            for name, branch in (("attention", attention), ("mlp", feed_forward)):
                holder = f"blocks.{at}.{name}"
                if placement == "pre":
                    h = joined(f"blocks.{at}", h, branch(holder, normalised(f"{holder}.norm", h)))
                else:
                    h = normalised(f"{holder}.norm", joined(f"blocks.{at}", h, branch(holder, h)))
        if placement == "pre":
            h = normalised("norm", h)
        logits.append(h @ state.get("head.weight", state["tokens.weight"]).T)
    return np.array(logits)
