"""Gradient check: backpropagation against three ways of differentiating the loss from outside.

Shape letters: K perturbed copies (they stand on the seed axis), N examples, I inputs, W width, C classes.

| method | estimate of f'(t) | error |
| --- | --- | --- |
| `central` | (f(t+h) - f(t-h)) / 2h | h^2 f'''/6 + roundoff e f/h |
| `five_point` | (8 (f(t+h) - f(t-h)) - (f(t+2h) - f(t-2h))) / 12h | h^4 f'''''/30 + roundoff 3 e f/2h |
| `complex` | Im f(t+ih) / h | h^2 f'''/6, and nothing is subtracted |

(Taylor expansion; e is the rounding unit. Complex step: Squire & Trapp 1998, SIAM Review 40(1); its h may
be so small that the error vanishes.) The relative error of finite differences grows as gradients shrink,
since the roundoff does not shrink with them. That is not a fault of the backward pass; the complex step tells.
A ReLU has a kink, and differences that straddle it are wrong in a way that no power of h describes: take h
of 1e-6 or so there. The complex step stays on the point's own side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from depthscope.core.errors import UserError
from depthscope.core.streams import stream
from depthscope.lab import layers
from depthscope.lab.forms import Form, as_labels, make_network
from depthscope.lab.measure import gradients
from depthscope.lab.reading import Net

Array = NDArray[Any]
Method = Literal["central", "five_point", "complex"]

STEP_SIZES: Mapping[Method, tuple[float, ...]] = MappingProxyType(
    {
        "central": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8),
        "five_point": (1e-1, 1e-2, 3e-3, 1e-3, 1e-4),
        "complex": (1e-20,),
    }
)
"""Step sizes for a picture of the error against h; the usual ones, 1e-4, 3e-3 and 1e-20, are among them."""

SINGLE_STEP: Mapping[Method, tuple[float, ...]] = MappingProxyType(
    {"central": (1e-4,), "five_point": (3e-3,), "complex": (1e-20,)}
)
"""One usual step size a method."""

_CHUNK = 16


@dataclass(frozen=True, kw_only=True)
class GradcheckRow:
    """Agreement of one method at one step size, on one tensor or on all.

    The relative error of an entry with gradient a by backpropagation and n by the method is
    |a - n| / max(|a|, |n|), and 0 where both are 0. It is taken entry by entry: an entry much smaller than its
    tensor's others is judged by its own size, so the worst is often such an entry; see where it is.

    Attributes:
        method: `central`, `five_point` or `complex`.
        h: step size.
        tensor: parameter name; None in the row over all tensors.
        median: median relative error over the entries checked.
        worst: largest.
        worst_tensor: the parameter that holds it.
        worst_index: its index there.
        count: number of entries checked.
    """

    method: Method
    h: float
    tensor: str | None
    median: float
    worst: float
    worst_tensor: str
    worst_index: tuple[int, ...]
    count: int


def gradient_check(
    form: Form,
    params: Mapping[str, Array],
    x: Array,
    y: Array,
    *,
    seed: int,
    entries: int | None = 100,
    step_sizes: Mapping[Method, Sequence[float]] = SINGLE_STEP,
) -> list[GradcheckRow]:
    """Check the backward pass of a whole network at one point, in float64.

    Args:
        form: the network.
        params: the point, ONE seed: arrays [1, *shape].
        x: inputs [1, N, I], or tokens [1, N, T].
        y: labels [1, N], or [1, N, T].
        seed: names the stream `(seed, "probe", "gradcheck", tensor)` that picks the entries.
        entries: about how many of all parameters are checked; each tensor gets its share by size and at least 1,
            so that the median over all rows estimates the median over all parameters, and none is left out.
            None: all.
        step_sizes: step sizes of each method.

    Returns:
        For every method and step size a row for each tensor, then one over all tensors.

    Raises:
        UserError: more than one seed, or data that the form does not take.
    """
    if len(y) != 1:
        raise UserError(f"gradient check: wanted one seed, got {len(y)}. Slice params, x and y to [k : k + 1].")
    wide = {name: np.asarray(value, np.float64) for name, value in params.items()}
    net, grads = gradients(form, wide, x, y)
    checker = _Checker(form, wide, net, as_labels(y), x.shape[1])
    errors: dict[tuple[Method, float], dict[str, Array]] = {
        (method, h): {} for method, sizes in step_sizes.items() for h in sizes
    }
    picked: dict[str, Array] = {}
    num_parameters = sum(value.size for value in wide.values())
    for first, name in checker.tensors():
        size = wide[name].size
        count = size if entries is None else min(size, max(1, round(entries * size / num_parameters)))
        rng = stream(seed, "probe", "gradcheck", name)
        picked[name] = np.sort(rng.choice(size, count, replace=False))
        exact_K = grads[name].reshape(-1)[picked[name]]
        for key, estimate_K in checker.estimates(first, name, picked[name], list(errors)).items():
            errors[key][name] = relative_error(exact_K, estimate_K)
    rows: list[GradcheckRow] = []
    for (method, h), found in errors.items():
        own = [
            _row(method, h, name, {name: error_K}, picked, {name: wide[name].shape[1:]})
            for name, error_K in found.items()
        ]
        shapes = {name: wide[name].shape[1:] for name in found}
        rows += [*own, _row(method, h, None, found, picked, shapes)]
    return rows


def relative_error(a: Array, b: Array) -> Array:
    """|a - b| / max(|a|, |b|), entry by entry; 0 where both are 0.

    >>> relative_error(np.array([1.0, 0.0]), np.array([2.0, 0.0]))
    array([0.5, 0. ])
    """
    scale = np.maximum(np.abs(a), np.abs(b))
    error: Array = np.abs(a - b) / np.where(scale == 0, 1.0, scale)
    return error


class _Checker:
    """Differentiates the loss of one network with respect to chosen entries, many at once."""

    def __init__(self, form: Form, params: dict[str, Array], net: Net, y: Array, num_examples: int) -> None:
        self._form, self._params, self._y_1N, self._num_examples = form, params, y, num_examples
        self._inputs, self._unit_of = net.inputs, net.unit_of
        self._nets: dict[tuple[int, str], Net] = {}

    def tensors(self) -> list[tuple[int, str]]:
        """(first unit that reads it, name) of every tensor."""
        return [(self._unit_of(name), name) for name in self._params]

    def estimates(
        self, first: int, name: str, picked_K: Array, wanted: Sequence[tuple[Method, float]]
    ) -> dict[tuple[Method, float], Array]:
        """Every method's derivative at each picked entry of one tensor, by (method, h)."""
        shifts = dict.fromkeys(shift for method, h in wanted for shift in _shifts(method, h))  # methods share some
        loss: dict[complex, Array] = {}
        for kind in (float, complex):
            own = [shift for shift in shifts if isinstance(shift, kind)]
            # Every pair of a shift and an entry is a copy of its own, all on one axis.
            rows, moves = np.tile(picked_K, len(own)), np.repeat(np.array(own, kind), len(picked_K))
            found = [
                self._losses(first, name, rows[start : start + _CHUNK], moves[start : start + _CHUNK])
                for start in range(0, len(rows), _CHUNK)
            ]
            if own:
                loss |= zip(own, np.concatenate(found).reshape(len(own), -1), strict=True)
        return {(method, h): _derivative(method, h, loss) for method, h in wanted}

    def _losses(self, first: int, name: str, at_K: Array, shift_K: Array) -> Array:
        """The loss of each copy, whose entry `at` is shifted. What lies below unit `first` is not redone."""
        num, dtype = len(at_K), shift_K.dtype
        moved = np.repeat(self._params[name].astype(dtype), num, axis=0)
        moved.reshape(num, -1)[np.arange(num), at_K] += shift_K
        key = (num, dtype.str)
        if key not in self._nets:
            self._nets[key] = make_network(self._form, num, self._num_examples, dtype)
        logits_KCN = self._nets[key].forward({**self._params, name: moved}, self._inputs[first], first=first)
        return layers.cross_entropy_forward(logits_KCN, self._y_1N)[0]


def _shifts(method: Method, h: float) -> tuple[complex, ...]:
    """Where the method asks for the loss."""
    return {"complex": (1j * h,), "central": (h, -h), "five_point": (h, -h, 2 * h, -2 * h)}[method]


def _derivative(method: Method, h: float, loss: Mapping[complex, Array]) -> Array:
    """The method's formula on the losses at its shifts."""
    if method == "complex":
        return np.asarray(loss[1j * h].imag / h)
    near = loss[h] - loss[-h]
    if method == "central":
        return np.asarray(near / (2 * h))
    return np.asarray((8 * near - (loss[2 * h] - loss[-2 * h])) / (12 * h))


def _row(
    method: Method,
    h: float,
    tensor: str | None,
    errors: Mapping[str, Array],
    picked: Mapping[str, Array],
    shapes: Mapping[str, tuple[int, ...]],
) -> GradcheckRow:
    worst_tensor = max(errors, key=lambda name: float(errors[name].max()))
    worst_at = int(errors[worst_tensor].argmax())
    flat = int(picked[worst_tensor][worst_at])
    every = np.concatenate(list(errors.values()))
    return GradcheckRow(
        method=method,
        h=h,
        tensor=tensor,
        median=float(np.median(every)),
        worst=float(errors[worst_tensor][worst_at]),
        worst_tensor=worst_tensor,
        worst_index=tuple(int(i) for i in np.unravel_index(flat, shapes[worst_tensor])),
        count=len(every),
    )
