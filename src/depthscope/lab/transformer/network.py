"""A transformer, forward and backward, for many seeds side by side.

Shape letters: S seeds (or perturbed copies of one seed), N examples, T positions, M = N T places, D width, V tokens.

Passes go through the pairs of `lab.layers` and `lab.transformer.layers` and hold no mathematics of their own, but for
one line: a tied table is read twice, so its gradient is the sum of two. Unit 0 is the embedding; then attention
and MLP of each block take turns; the last unit is the head. What a unit's backward pass needs is kept under its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from depthscope.core.profile import Layer
from depthscope.lab import layers
from depthscope.lab.given import check_shape
from depthscope.lab.reading import Reading
from depthscope.lab.transformer import layers as own
from depthscope.lab.transformer.model import EMBEDDING_NORM, Gpt

Array = NDArray[Any]
Params = Mapping[str, Array]


class _Kept(NamedTuple):
    """Of a unit: what its inner layers read and gave.

    `branch` is F; `read` what the first linear layer read; `inner` what its second one read (of attention, the
    gathered values; of an MLP, the activations; None in embedding and head); `attention` and `norm` the caches.
    """

    branch: Array
    read: Array
    inner: Array | None = None
    attention: own.AttentionCache | None = None
    norm: own.NormCache | None = None


class GptNetwork:
    """Forward and backward passes of a transformer.

    Attributes:
        inputs: after a forward pass, the input of each unit (`inputs[0]` the tokens), and last the logits.
        grads_out: after a backward pass, dL/d(output of unit u), for every unit.

    Args:
        form: the network's shape.
    """

    def __init__(self, form: Gpt) -> None:
        self.form = form
        self.num_units = 2 * form.depth + 2
        self.inputs: list[Array] = []
        self.grads_out: list[Array] = []
        self._kept: dict[int, _Kept] = {}

    def unit_of(self, parameter: str) -> int:
        """The first unit that a parameter takes part in."""
        parts = parameter.split(".")
        if parts[0] == "blocks":
            return 1 + 2 * int(parts[1]) + (parts[2] == "mlp")
        return self.num_units - 1 if parts[0] in ("norm", "head") else 0

    @property
    def num_bytes(self) -> int:
        """Of what the last forward and backward pass kept; proportional to seeds and examples."""
        found = [*self.inputs, *self.grads_out]
        for kept in self._kept.values():
            found += [kept.branch, kept.read, *(kept.attention or ()), *(kept.norm or ())]
            found += [] if kept.inner is None else [kept.inner]
        return sum({id(each): each.nbytes for each in found}.values())

    def forward(self, params: Params, x: Array, *, first: int = 0) -> Array:
        """The logits [S, V, M].

        Args:
            params: name to array with leading S. An axis S of 1 is broadcast.
            x: the input of unit `first`: tokens [S, N, T], or [S, D, M]. An axis S of 1 is broadcast.
            first: the unit to start from, for a caller that holds its input already.

        Raises:
            UserError: texts of another length than the form's.
        """
        if first == 0:
            check_shape("x", x, "S", "N", self.form.length)
        self.inputs = [x] * (first + 1)
        for at in range(first, self.num_units):
            self.inputs.append(self._forward(at, params, self.inputs[at]))
        return self.inputs[-1]

    def _forward(self, at: int, params: Params, x: Array) -> Array:
        form = self.form
        if at == 0:
            h = own.embedding_forward(x, params["tokens.weight"], params["positions.weight"])
            y, norm = self._norm(params, EMBEDDING_NORM, h) if form.norm_embedding else (h, None)
            self._kept[at] = _Kept(h, x, norm=norm)
            return y
        if at == self.num_units - 1:
            read, norm = self._norm(params, "norm", x) if form.has_last_norm else (x, None)
            logits = layers.linear_forward(read, params[self._head], None)
            self._kept[at] = _Kept(logits, read, norm=norm)
            return logits
        name = _unit_name(at)
        pre, post = (form.placement == each for each in ("pre", "post"))
        read, norm = self._norm(params, f"{name}.norm", x) if pre else (x, None)
        attention = None
        first, second = _PARTS[name.rpartition(".")[2]]
        inner = layers.linear_forward(read, params[f"{name}.{first}.weight"], params.get(f"{name}.{first}.bias"))
        if first == "qkv":
            inner, attention = own.attention_forward(inner, form.heads, form.length)
        elif form.activation != "linear":
            inner = layers.ACTIVATIONS[form.activation][0](inner)
        f = layers.linear_forward(inner, params[f"{name}.{second}.weight"], params.get(f"{name}.{second}.bias"))
        h = layers.skip_forward(x, f) if form.shortcut == "identity" else f
        if post:
            h, norm = self._norm(params, f"{name}.norm", h)
        self._kept[at] = _Kept(f, read, inner, attention, norm)
        return h

    @property
    def _head(self) -> str:
        return "tokens.weight" if self.form.tied else "head.weight"

    def _norm(self, params: Params, name: str, x: Array) -> tuple[Array, own.NormCache | None]:
        if self.form.norm == "none":
            return x, None
        if self.form.norm == "layer":
            return own.layer_norm_forward(x, params[f"{name}.weight"], params.get(f"{name}.bias"))
        return own.rms_norm_forward(x, params.get(f"{name}.weight"))

    def _norm_backward(self, params: Params, grads: Params, name: str, dy: Array, cache: own.NormCache | None) -> Array:
        if cache is None:
            return dy
        scale = params.get(f"{name}.weight")
        if self.form.norm == "layer":
            assert scale is not None
            found = own.layer_norm_backward(dy, cache, scale, has_shift=self.form.bias)
        else:
            found = own.rms_norm_backward(dy, cache, scale)
        for which, value in (("weight", found.dscale), ("bias", found.dshift)):
            if value is not None:
                grads[f"{name}.{which}"][...] = value
        return found.dx

    def backward(self, params: Params, dlogits_SVM: Array, grads: Params) -> None:
        """Fill `grads` (the parameters' names and shapes) from dL/dlogits, after a forward pass from unit 0."""
        self.grads_out = [dlogits_SVM] * self.num_units
        for at in range(self.num_units - 1, 0, -1):
            step = self._head_backward if at == self.num_units - 1 else self._unit_backward
            self.grads_out[at - 1] = step(at, params, grads)
        kept = self._kept[0]
        dh = self._norm_backward(params, grads, EMBEDDING_NORM, self.grads_out[0], kept.norm)
        dtable, dpositions = own.embedding_backward(dh, kept.read, self.form.num_tokens)
        # A table that is the head too is read twice: the loss depends on it by both ways.
        grads["tokens.weight"][...] = grads["tokens.weight"] + dtable if self.form.tied else dtable
        grads["positions.weight"][...] = dpositions

    def _head_backward(self, at: int, params: Params, grads: Params) -> Array:
        kept = self._kept[at]
        found = layers.linear_backward(
            self.grads_out[at], kept.read, params[self._head], dw=grads[self._head], has_bias=False
        )
        assert found.dh is not None
        return self._norm_backward(params, grads, "norm", found.dh, kept.norm)

    def _unit_backward(self, at: int, params: Params, grads: Params) -> Array:
        form, name, kept = self.form, _unit_name(at), self._kept[at]
        first, second = _PARTS[name.rpartition(".")[2]]
        dh = self.grads_out[at]
        if form.placement == "post":
            dh = self._norm_backward(params, grads, f"{name}.norm", dh, kept.norm)
        assert kept.inner is not None
        dinner = self._linear_backward(f"{name}.{second}", params, grads, dh, kept.inner)
        if kept.attention is not None:
            dinner = own.attention_backward(dinner, kept.attention)
        elif form.activation != "linear":
            dinner = layers.ACTIVATIONS[form.activation][1](dinner, kept.inner)
        dx = self._linear_backward(f"{name}.{first}", params, grads, dinner, kept.read)
        if form.placement == "pre":
            dx = self._norm_backward(params, grads, f"{name}.norm", dx, kept.norm)
        return layers.skip_backward(dh, dx) if form.shortcut == "identity" else dx

    def _linear_backward(self, name: str, params: Params, grads: Params, dz: Array, h: Array) -> Array:
        bias = f"{name}.bias"
        found = layers.linear_backward(
            dz,
            h,
            params[f"{name}.weight"],
            dw=grads[f"{name}.weight"],
            db=grads.get(bias),
            has_bias=bias in params,
        )
        assert found.dh is not None
        return found.dh

    def readings(self) -> Iterator[Reading]:
        """What a profile holds of each place where it measures, after a backward pass: see `gpt_layers`.

        h and its gradient belong to the unit's output; F and x to its addition.
        """
        for at, layer in zip(range(self.num_units), gpt_layers(self.form), strict=True):
            f = x = None
            if self.form.shortcut == "identity" and 0 < at < self.num_units - 1:
                f, x = self._examples(self._kept[at].branch), self._examples(self.inputs[at])
            yield Reading(layer, self.inputs[at + 1], self.grads_out[at], f, x)

    def _examples(self, h_SDM: Array) -> Array:
        """All features and positions of an example together, [S, D T, N]."""
        num_seeds, width, num_places = h_SDM.shape
        length = self.form.length
        by_example = h_SDM.reshape(num_seeds, width, num_places // length, length).swapaxes(-1, -2)
        return by_example.reshape(num_seeds, width * length, -1)


_PARTS = {"attention": ("qkv", "proj"), "mlp": ("up", "down")}


def _unit_name(at: int) -> str:
    """`blocks.0.attention` of unit 1, `blocks.0.mlp` of unit 2."""
    block, second = divmod(at - 1, 2)
    return f"blocks.{block}.{'mlp' if second else 'attention'}"


def gpt_layers(form: Gpt) -> tuple[Layer, ...]:
    """The layers that a profile speaks of: the embedding, what follows each block's two additions, the head.

    >>> [layer.name for layer in gpt_layers(Gpt(depth=1, width=4, num_tokens=3, length=2))]
    ['tokens', 'blocks.0.attention.proj', 'blocks.0.mlp.down', 'head']
    """
    inner = [f"{_unit_name(at)}.{_PARTS[_unit_name(at).rpartition('.')[2]][1]}" for at in range(1, 2 * form.depth + 1)]
    table: list[Layer] = []
    for name in ("tokens", *inner, "head"):
        kind = "embedding" if name == "tokens" else "linear"
        weight = "tokens.weight" if name == "head" and form.tied else f"{name}.weight"
        shape = (form.length, form.num_tokens if name == "head" else form.width)
        table.append(Layer(index=len(table), name=name, kind=kind, weight=weight, shape=shape))
    return tuple(table)
