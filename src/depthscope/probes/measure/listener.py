"""What is read off boundary tensors and residual additions while a model runs, reduced at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from depthscope.core.readings import Place, Reading
from depthscope.core.structure import Structure
from depthscope.probes.measure import reduce
from depthscope.probes.norms import to_host

Reducer = Callable[[int, Tensor], Mapping[str, float | Tensor | None]]
"""`(index of the boundary, tensor) -> {quantity of a boundary: its value}`: a further reading, such as the effective
rank. It is given the tensor detached, and must keep nothing of it."""


class Recorder:
    """The listener of a `Follow`: keeps a few numbers of each tensor, on its device, until `readings` is called.

    Several passes, the micro-batches of one step, are put together as if their batches had been one: norms by
    the sum of squares, means over all entries or examples. The gradients must then be those of the summed loss, as
    they are where a training accumulates them.

    Args:
        num_examples: in each pass; set `num_examples` before a pass of another size. An addition is read for each.
        reducers: further readings of boundary tensors; of several passes the mean is taken.
    """

    def __init__(self, num_examples: int, *, reducers: Sequence[Reducer] = ()) -> None:
        self.num_examples = num_examples
        self._reducers = tuple(reducers)
        self._values: dict[int, list[Tensor]] = defaultdict(list)
        self._gradients: dict[int, list[Tensor]] = defaultdict(list)
        self._settled: dict[int, int] = {}
        self._additions: dict[int, list[Tensor]] = defaultdict(list)
        self._further: dict[tuple[int, str], list[float | Tensor]] = defaultdict(list)

    def boundary(self, index: int, tensor: Tensor) -> None:
        """Read a boundary tensor now, and its gradient when that comes."""
        if not (tensor.is_floating_point() or tensor.is_complex()):
            return
        with torch.no_grad():
            self._values[index] += reduce.moments(tensor.detach())
            for reducer in self._reducers:
                for quantity, value in reducer(index, tensor.detach()).items():
                    if value is not None:
                        self._further[index, quantity].append(value)
        if tensor.requires_grad:
            gradients = self._gradients[index]

            def on_gradient(gradient: Tensor) -> None:
                with torch.no_grad():
                    gradients.extend(reduce.sizes(gradient.detach()))

            # A tensor's own hook: unlike a module's full backward hook it bears that an in-place operation follows.
            register: Callable[..., object] = tensor.register_hook  # untyped in torch
            register(on_gradient)

    def addition(self, index: int, branch: Tensor, skip: Tensor) -> None:
        """Read both operands of a residual addition."""
        with torch.no_grad():
            self._additions[index] += reduce.comparisons(branch.detach(), skip.detach(), self.num_examples)

    def backward_over(self, *, counts: bool) -> None:
        """Keep the gradients that came since the last call; where they do not count, forget them.

        Those of `torch.autograd.grad` on the way to the loss, as a gradient penalty takes them, do not.
        """
        for index, rows in self._gradients.items():
            if counts:
                self._settled[index] = len(rows)
            else:
                del rows[self._settled.get(index, 0) :]

    def absorb(self, other: Recorder) -> None:
        """Take in what another one read, as if its passes had been this one's."""
        for mine, its in (
            (self._values, other._values),
            (self._gradients, other._gradients),
            (self._additions, other._additions),
        ):
            for index, rows in its.items():
                mine[index] += rows
        for key, values in other._further.items():
            self._further[key] += values

    def readings(self, structure: Structure, *, step: int, scale: float = 1.0) -> tuple[Reading, ...]:
        """All that was read, by one transfer from the device.

        Args:
            structure: of the model that ran.
            step: written into the readings.
            scale: what the loss was multiplied by for the backward pass: gradients are divided by it.

        Returns:
            Of boundaries, blocks and additions, in the structure's order, and the model's `grad_multiplier`. Where
            nothing was seen, or a ratio has nothing to divide by, there is no reading.
        """
        read = _Host(self)
        norms = {index: norm / scale for index, norm in read.gradient_norms.items()}
        found: list[Reading] = []

        def add(place: Place, name: str, quantity: str, value: float | None) -> None:
            if value is not None:
                found.append(Reading(step=step, place=place, name=name, quantity=quantity, value=value))

        for boundary in structure.boundaries:
            for quantity, value in read.moments.get(boundary.index, {}).items():
                add("boundary", boundary.name, quantity, value)
            add("boundary", boundary.name, "grad_norm", norms.get(boundary.index))
            add("boundary", boundary.name, "grad_nonfinite", read.gradient_nonfinite.get(boundary.index))
            for quantity, value in read.further.get(boundary.index, {}).items():
                add("boundary", boundary.name, quantity, value)
        for block in structure.blocks:
            add("block", block.name, "grad_multiplier", _ratio(norms, block.index, block.index + 1))
        for addition in structure.additions:
            for quantity, value in read.additions.get(addition.index, {}).items():
                add("addition", addition.name, quantity, value)
        if structure.body:
            # The blocks' product, whose inner norms cancel.
            ends = structure.body[0].index, structure.body[-1].index + 1
            add("model", "", "grad_multiplier", _ratio(norms, *ends))
        return tuple(found)


class _Host:
    """A recorder's numbers brought to the host and put together."""

    def __init__(self, recorder: Recorder) -> None:
        kept: list[tuple[str, Any, Tensor]] = []
        for kind, table in (
            ("moments", recorder._values),
            ("sizes", recorder._gradients),
            ("comparisons", recorder._additions),
        ):
            kept += [(kind, index, row) for index, rows in table.items() for row in rows]
        further: dict[tuple[int, str], list[float]] = defaultdict(list)
        for key, values in recorder._further.items():
            for value in values:
                if isinstance(value, Tensor):
                    kept.append(("further", key, value.reshape(1)))
                else:
                    further[key].append(value)
        rows: dict[tuple[str, Any], list[list[float]]] = defaultdict(list)
        for (kind, index, _), numbers in zip(kept, to_host([row for _, _, row in kept]), strict=True):
            rows[kind, index].append(numbers)
        self.moments = {index: reduce.merged_moments(each) for index, each in _of("moments", rows)}
        sizes = {index: reduce.merged_sizes(each) for index, each in _of("sizes", rows)}
        self.gradient_norms = {index: norm for index, (norm, _) in sizes.items()}
        self.gradient_nonfinite = {index: count for index, (_, count) in sizes.items()}
        self.additions = {index: reduce.merged_comparisons(each) for index, each in _of("comparisons", rows)}
        for key, each in _of("further", rows):
            further[key] += [number for (number,) in each]
        self.further: dict[int, dict[str, float]] = defaultdict(dict)
        for (index, quantity), numbers in further.items():
            self.further[index][quantity] = sum(numbers) / len(numbers)


def _of(kind: str, rows: Mapping[tuple[str, Any], list[list[float]]]) -> Iterator[tuple[Any, list[list[float]]]]:
    return ((index, each) for (found, index), each in rows.items() if found == kind)


def _ratio(norms: Mapping[int, float], over: int, under: int) -> float | None:
    if over not in norms or not norms.get(under):
        return None
    return norms[over] / norms[under]
