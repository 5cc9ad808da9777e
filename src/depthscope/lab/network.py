"""A stack with its buffers: forward and backward pass of many seeds side by side.

Shape letters: S seeds (or perturbed copies of one seed), N examples, I inputs, W width, C classes.

One implementation serves training (float32), measuring and gradient checks (float64), and the complex
step (complex128). Passes go through the pairs of `layers` and hold no mathematics of their own: the
forward pass walks the units and keeps each step's input and output, the backward pass walks back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from depthscope.core.profile import Layer
from depthscope.lab import layers
from depthscope.lab.reading import Reading
from depthscope.lab.stacks import Stack, Step, Unit, units

Array = NDArray[Any]


class Network:
    """Buffers for `num_seeds` copies of a stack on `num_examples` examples.

    Attributes:
        units: the stack's units.
        inputs: after a forward pass, the input of each unit: `inputs[0]` the data, `inputs[u]` the
            output of unit u-1.
        outputs: after a forward pass, by step name, the step's output after norm and activation. In a
            unit with a skip the last step's output is the branch F.
        grads_out: after a backward pass, dL/d(output of unit u), for every unit if `keep_grads`.
        grads_step: after a backward pass with `keep_grads`, by step name, dL/d(`outputs`) of the steps
            inside a unit (not of its last).

    Args:
        stack: the network's shape.
        num_seeds: S.
        num_examples: N.
        dtype: of all buffers.
        keep_grads: keep dL/dh of every unit; without, two buffers take turns.
    """

    def __init__(
        self, stack: Stack, num_seeds: int, num_examples: int, dtype: DTypeLike, *, keep_grads: bool = False
    ) -> None:
        self.stack = stack
        self.units = units(stack)
        self.keep_grads = keep_grads
        self.inputs: list[Array] = []
        self.outputs: dict[str, Array] = {}
        self.grads_out: list[Array] = []
        self.grads_step: dict[str, Array] = {}
        self._shape = (num_seeds, stack.width, num_examples)
        self._dtype = np.dtype(dtype)
        self._norms: dict[str, layers.NormCache] = {}
        self._buffers: dict[str, Array] = {}

    def _buffer(self, name: str, width: int) -> Array:
        """The buffer with this name, [S, width, N], made at its first use."""
        if name not in self._buffers:
            self._buffers[name] = np.empty((self._shape[0], width, self._shape[2]), self._dtype)
        return self._buffers[name]

    @property
    def num_bytes(self) -> int:
        """Of the buffers made so far; proportional to seeds and examples."""
        return sum(buffer.nbytes for buffer in self._buffers.values())

    def unit_of(self, parameter: str) -> int:
        """The unit that holds a parameter."""
        layer = parameter.rsplit(".", 1)[0].removesuffix(".norm")  # `layers.3` of `layers.3.norm.weight`
        return next(at for at, unit in enumerate(self.units) if any(step.name == layer for step in unit.steps))

    def forward(self, params: Mapping[str, Array], h_SIN: Array, *, first: int = 0) -> Array:
        """The logits [S, C, N].

        Args:
            params: name to array with leading S. An axis S of 1 is broadcast.
            h_SIN: the input of unit `first`; with `first` 0 the data. An axis S of 1 is broadcast.
            first: the unit to start from, for a caller that holds its input already.
        """
        self.inputs = [h_SIN] * (first + 1)
        for at in range(first, len(self.units)):
            unit, x = self.units[at], self.inputs[at]
            f = x
            for step in unit.steps:
                f = self._step_forward(step, params, f)
            if unit.skip:
                f = layers.skip_forward(x, f, out=self._buffer(f"sum.{at}", unit.steps[-1].fan_out))
            self.inputs.append(f)
        return self.inputs[-1]

    def _step_forward(self, step: Step, params: Mapping[str, Array], h: Array) -> Array:
        out = self._buffer(f"out.{step.name}", step.fan_out)
        if step.norm:
            z = layers.linear_forward(h, params[step.weight], None, out=self._buffer(f"z.{step.name}", step.fan_out))
            out, self._norms[step.name] = layers.batch_norm_forward(
                z, params[step.norm_weight], params[step.norm_bias], out=out, zhat=z
            )
        else:
            out = layers.linear_forward(h, params[step.weight], params[step.bias], out=out)
        if step.activation != "linear":
            out = layers.ACTIVATIONS[step.activation][0](out, out=out)
        self.outputs[step.name] = out
        return out

    def backward(self, params: Mapping[str, Array], dlogits_SCN: Array, grads: Mapping[str, Array]) -> None:
        """Fill `grads` (the parameters' names and shapes) from dL/dlogits, after a forward pass from unit 0."""
        self.grads_out = [dlogits_SCN] * len(self.units)
        for at in range(len(self.units) - 1, -1, -1):
            dx = self._unit_backward(at, self.units[at], params, grads)
            if at:
                self.grads_out[at - 1] = dx

    def _unit_backward(self, at: int, unit: Unit, params: Mapping[str, Array], grads: Mapping[str, Array]) -> Array:
        dh = self.grads_out[at]
        df = dh
        width_in = unit.steps[0].fan_in
        dx = self._buffer(f"dx.{at if self.keep_grads else at % 2}", width_in) if at else dh
        for index in range(len(unit.steps) - 1, -1, -1):
            step = unit.steps[index]
            h = self.outputs[unit.steps[index - 1].name] if index else self.inputs[at]
            if index:
                out = self._buffer(f"df.{step.name}" if self.keep_grads else "df", step.fan_in)
                self.grads_step[unit.steps[index - 1].name] = out
            else:
                out = self._buffer("branch", width_in) if unit.skip else dx
            df = self._step_backward(step, params, grads, df, h, out if at else None)
        if unit.skip:
            return layers.skip_backward(dh, df, out=dx)
        return df

    def _step_backward(
        self,
        step: Step,
        params: Mapping[str, Array],
        grads: Mapping[str, Array],
        dout: Array,
        h: Array,
        dh: Array | None,
    ) -> Array:
        dz = dout
        if step.activation != "linear":
            backward = layers.ACTIVATIONS[step.activation][1]
            dz = backward(dout, self.outputs[step.name], out=self._buffer("dz", step.fan_out))
        if step.norm:
            dz = layers.batch_norm_backward(
                dz,
                self._norms[step.name],
                params[step.norm_weight],
                dz=self._buffer("dz.norm", step.fan_out),
                dgamma=grads[step.norm_weight],
                dbeta=grads[step.norm_bias],
            ).dz
        found = layers.linear_backward(
            dz,
            h,
            params[step.weight],
            dh=dh,
            dw=grads[step.weight],
            db=None if step.norm else grads[step.bias],
            has_bias=not step.norm,
            needs_dh=dh is not None,
        )
        return dz if found.dh is None else found.dh

    def readings(self) -> Iterator[Reading]:
        """What a profile holds of each layer, after a backward pass with `keep_grads`: see `lab.measure`."""
        table = iter(stack_layers(self.stack))
        for at, unit in enumerate(self.units):
            for step in unit.steps:
                if step is not unit.steps[-1]:
                    yield Reading(next(table), self.outputs[step.name], self.grads_step[step.name])
                    continue
                f, x = (self.outputs[step.name], self.inputs[at]) if unit.skip else (None, None)
                yield Reading(next(table), self.inputs[at + 1], self.grads_out[at], f, x)


def stack_layers(stack: Stack) -> tuple[Layer, ...]:
    """The layers that a profile of this stack speaks of, from the input on.

    >>> table = stack_layers(Stack(depth=2, width=4, num_inputs=2, num_classes=3, shortcut="identity_2"))
    >>> [(layer.name, layer.kind) for layer in table]
    [('stem', 'linear'), ('blocks.0.linear1', 'linear'), ('blocks.0.linear2', 'block'), ('head', 'linear')]
    """
    table: list[Layer] = []
    for unit in units(stack):
        for step in unit.steps:
            kind = "block" if unit.skip and step is unit.steps[-1] else "linear"
            table.append(Layer(index=len(table), name=step.name, kind=kind, weight=step.weight, shape=(step.fan_out,)))
    return tuple(table)
