"""A small GPT: its shape, its parameters, and how a seed draws them.

Shape letters: S seeds, V tokens, D width, T positions.

Tokens and positions are embedded, `depth` blocks follow, and a linear head scores every token as the next one. A
block is two units, attention and a two-layer MLP of 4 D units inside. Where the norm stands is `placement`:

| placement | shortcut `identity` | shortcut `none` |
| --- | --- | --- |
| `pre` | h <- h + F(norm(h)), and a last norm before the head | h <- F(norm(h)) |
| `post` | h <- norm(h + F(h)) | h <- norm(F(h)) |

Both columns have the same tensors, so with the same seed they START identical and differ in two plus signs a block
alone. Names and shapes are those of the torch twin, `depthscope.models.gpt`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from depthscope.core.depth import gpt2_scale
from depthscope.core.draws import gaussian, orthogonal
from depthscope.core.errors import UserError, unknown_name
from depthscope.core.streams import stream
from depthscope.lab.given import check_count, check_real

Array = NDArray[Any]

Shortcut = Literal["none", "identity"]
Activation = Literal["relu", "tanh", "linear"]
Norm = Literal["none", "layer", "rms"]
Placement = Literal["pre", "post"]

SHORTCUTS = ("none", "identity")
ACTIVATIONS = ("relu", "tanh", "linear")
NORMS = ("none", "layer", "rms")
PLACEMENTS = ("pre", "post")
INITS = ("gaussian", "orthogonal", "gpt2", "depth_scaled", "zero_projection")


@dataclass(frozen=True, kw_only=True)
class Gpt:
    """The shape of a transformer.

    Attributes:
        depth: number of blocks, 1 or more.
        width: features of a place, D.
        num_tokens: tokens, V.
        length: positions, T.
        heads: of attention; they share the width.
        shortcut: what goes around attention and around the MLP.
        norm: normaliser: `layer`, or `rms`.
        norm_scale: whether `rms` has a learned scale.
        activation: between the two layers of the MLP.
        placement: where the norm stands.
        tied: whether the head is the table of tokens once more.
        bias: whether linear layers have a bias, and layer norm a shift.
        norm_embedding: whether a norm follows the embedding.
        norm_end: whether a norm stands before the head, under `pre`.

    Raises:
        UserError: a value that no network has.
    """

    depth: int
    width: int
    num_tokens: int
    length: int
    heads: int = 4
    shortcut: Shortcut = "identity"
    norm: Norm = "layer"
    norm_scale: bool = True
    activation: Activation = "relu"
    placement: Placement = "pre"
    tied: bool = True
    bias: bool = True
    norm_embedding: bool = False
    norm_end: bool = True

    def __post_init__(self) -> None:
        for what, value, least in (
            ("depth", self.depth, 1),
            ("width", self.width, 1),
            ("num_tokens", self.num_tokens, 2),
            ("length", self.length, 1),
            ("heads", self.heads, 1),
        ):
            check_count(what, value, least)
        for what, name, known in (
            ("shortcut", self.shortcut, SHORTCUTS),
            ("norm", self.norm, NORMS),
            ("activation", self.activation, ACTIVATIONS),
            ("placement", self.placement, PLACEMENTS),
        ):
            if name not in known:
                raise UserError(unknown_name(what, name, known))
        if self.width % self.heads:
            raise UserError(f"width {self.width} cannot be shared by {self.heads} heads; wanted a multiple of heads.")

    @property
    def has_last_norm(self) -> bool:
        """Whether a norm stands before the head; under `post` the last block ends in one."""
        return self.norm_end and self.placement == "pre"


EMBEDDING_NORM = "norm_embedding"
"""Name of the norm that follows the embedding."""


def _norm_shapes(form: Gpt, name: str) -> dict[str, tuple[int, ...]]:
    """The learned parameters of the norm of this name."""
    shapes: dict[str, tuple[int, ...]] = {}
    if form.norm == "layer" or (form.norm == "rms" and form.norm_scale):
        shapes[f"{name}.weight"] = (form.width,)
    if form.norm == "layer" and form.bias:
        shapes[f"{name}.bias"] = (form.width,)
    return shapes


def gpt_shapes(form: Gpt) -> dict[str, tuple[int, ...]]:
    """Name and shape (of one seed) of every parameter, from the input on.

    >>> bare = {"norm_scale": False, "tied": False, "bias": False}
    >>> microgpt = Gpt(depth=1, width=16, num_tokens=27, length=16, norm="rms", **bare)
    >>> sum(int(np.prod(shape)) for shape in gpt_shapes(microgpt).values())
    4192
    """
    width = form.width
    shapes: dict[str, tuple[int, ...]] = {
        "tokens.weight": (form.num_tokens, width),
        "positions.weight": (form.length, width),
    }
    if form.norm_embedding:
        shapes |= _norm_shapes(form, EMBEDDING_NORM)
    for at in range(form.depth):
        for part, inner, outer, rows, columns in (
            ("attention", "qkv", "proj", 3 * width, width),
            ("mlp", "up", "down", 4 * width, 4 * width),
        ):
            prefix = f"blocks.{at}.{part}"
            shapes |= _norm_shapes(form, f"{prefix}.norm")
            for name, shape in ((inner, (rows, width)), (outer, (width, columns))):
                shapes[f"{prefix}.{name}.weight"] = shape
                if form.bias:
                    shapes[f"{prefix}.{name}.bias"] = shape[:1]
    if form.has_last_norm:
        shapes |= _norm_shapes(form, "norm")
    if not form.tied:
        shapes["head.weight"] = (form.num_tokens, width)
    return shapes


def init_gpt(
    form: Gpt,
    seeds: Sequence[int],
    *,
    init: str = "gaussian",
    gain: float = 1.0,
    dtype: DTypeLike = np.float64,
) -> dict[str, Array]:
    """Draw the parameters of a group of seeds, each weight from its stream `(seed, "init", name)`.

    Args:
        form: the network.
        seeds: one a run.
        init: `orthogonal`, gain times a matrix with orthonormal columns or rows, each third of `qkv` by itself;
            `gaussian`, every weight ~ N(0, gain^2/fan_in), a table of D columns ~ N(0, gain^2/D); `gpt2`, all ~
            N(0, (.02 gain)^2); `depth_scaled`, the same with `proj` and `down` divided by the root of the number of
            branches; `zero_projection`, the same with both 0.
        gain: factor on the deviation.
        dtype: of the result.

    Returns:
        Parameter name to array [S, *shape]. Biases and shifts are 0, a norm's scales 1.

    Raises:
        UserError: an unknown `init`, or a type of integers.
    """
    check_real("dtype", dtype)
    if init not in INITS:
        raise UserError(unknown_name("init", init, INITS))
    params: dict[str, Array] = {}
    for name, shape in gpt_shapes(form).items():
        if len(shape) == 1:
            params[name] = np.full((len(seeds), *shape), 0.0 if name.endswith(".bias") else 1.0, dtype)
            continue
        draws = [_draw(form, name, shape, init, gain, stream(seed, "init", name)) for seed in seeds]
        params[name] = np.stack(draws).astype(dtype)
    return params


def _draw(form: Gpt, name: str, shape: tuple[int, ...], init: str, gain: float, rng: np.random.Generator) -> Array:
    if init == "gaussian":
        return gaussian(shape, shape[1], rng) * gain
    if init == "orthogonal":
        parts = 3 if name.endswith(".qkv.weight") else 1
        drawn = [orthogonal(shape[0] // parts, shape[1], rng) for _ in range(parts)]
        return np.concatenate(drawn) * gain
    # Rounded as the torch twin rounds it: first the deviation and the gain, then what the depth decides.
    draw: Array = rng.standard_normal(shape) * (0.02 * gain)
    if init != "gpt2" and name.endswith((".proj.weight", ".down.weight")):
        draw *= gpt2_scale(2 * form.depth) if init == "depth_scaled" else 0.0
    return draw
