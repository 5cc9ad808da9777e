"""Measure a model layer by layer on a float64 copy of it, so that the model itself is only read.

Why float64: the gradient of a deep plain network with batch norm at initialisation is 13% off in
float32, and sums of squares of 1e-24 underflow there. Why a copy: whatever the measurement does (train
mode, batch statistics that move running ones, gradients, hooks), nothing of it can reach the caller's
model, after an exception either.

Shape letters: B batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError, unknown_name
from depthscope.core.profile import Addition, Layer, Point, Profile, Row
from depthscope.probes.guard import undisturbed
from depthscope.probes.shadow import Shadow

LossFn = Callable[[Tensor, Tensor], Tensor]
"""`(output, targets) -> scalar`, the mean loss over the batch."""


def profile(
    model: nn.Module,
    loss_fn: LossFn,
    inputs: Tensor,
    targets: Tensor,
    *,
    points: Sequence[Point],
    additions: Sequence[Addition] = (),
    step: int = 0,
) -> Profile:
    """Measure once: `Probe(...).measure(...)`. Keep a `Probe` to measure a model many times.

    >>> layer = nn.Linear(2, 1, bias=False)
    >>> _ = nn.init.constant_(layer.weight, 3.0)
    >>> point = Point(layer="0", kind="linear", weight="0.weight", output="0")
    >>> x = torch.tensor([[1.0, 1.0]])
    >>> measured = profile(nn.Sequential(layer), lambda y, t: (y - t).square().mean(), x, x[:, :1], points=[point])
    >>> {row.quantity: round(row.value, 6) for row in measured.rows if row.quantity in ("h_norm", "dh_norm")}
    {'h_norm': 6.0, 'dh_norm': 10.0}
    """
    return Probe(model, loss_fn, points=points, additions=additions).measure(inputs, targets, step=step)


class Probe:
    """Keeps one float64 copy of a model and measures in it, after refreshing its tensors from the model.

    At each point: `h_norm`, `h_mean_abs`, `dh_norm`, `dh_mean_abs`, `w_norm`, `dw_norm`, `dw_ratio`; at
    the layer of each addition: `f_over_x`. Definitions in `core.profile.QUANTITIES`. The copy is in train
    mode: batch norm uses the statistics of the probe batch. A frozen weight has no `dw_norm`.

    The model is only read: its weights, buffers, `.grad`, flags and hooks cannot change, nor do any
    generators. Hooks that the model carries do not run in the copy.

    Args:
        model: any module that `copy.deepcopy` can copy. It is kept, and read at each `measure`.
        loss_fn: mean loss over the batch; it is given float64 outputs.
        points: where to measure, in forward order.
        additions: residual additions; each names one of the points' layers.
        channels_last: lay the copy's images out so. The values are equal to rounding; a deep network on
            small images takes a third less time on a CPU. Not for a model that calls `view` on images.

    Raises:
        UserError: a name that the model does not have.
    """

    def __init__(
        self,
        model: nn.Module,
        loss_fn: LossFn,
        *,
        points: Sequence[Point],
        additions: Sequence[Addition] = (),
        channels_last: bool = False,
    ) -> None:
        self.points = tuple(points)
        self.additions = tuple(additions)
        self._loss_fn = loss_fn
        self._shadow = Shadow(model, channels_last=channels_last)
        self._weights = self._find_weights()
        self._indices = {point.layer: index for index, point in enumerate(self.points)}
        self._measured: dict[tuple[str, str], Tensor] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._listens = False
        for output in dict.fromkeys(point.output for point in self.points):
            self._module(output).register_forward_hook(self._watch_output(output))
        for addition in self.additions:
            if addition.layer not in self._indices:
                raise UserError(unknown_name("layer of an addition", addition.layer, self._indices))
        for operand in dict.fromkeys(name for each in self.additions for name in (each.branch, each.skip)):
            self._module(operand).register_forward_hook(self._watch_operand(operand))

    def measure(self, inputs: Tensor, targets: Tensor, *, step: int = 0) -> Profile:
        """One forward and one backward pass of the copy on one batch.

        Args:
            inputs: [B, ...], floating point (converted to float64) or integers; on any device.
            targets: whatever the loss takes, likewise.
            step: written into the rows: the number of updates that the model has had.

        Returns:
            A profile with one layer a point. A loss or gradient that is not finite gives values that
            are not finite: judging is not the probe's business.

        Raises:
            UserError: a watched module was not called, was called more than once, or gave no tensor; the
                loss is not one number, or does not depend on the parameters.
        """
        with undisturbed(self._shadow.device):
            self._shadow.refresh()
            self._shapes.clear()
            try:
                self._listens = True
                output = self._shadow.model(self._shadow.lay_out(inputs))
                # Activation checkpointing computes in the backward pass again what has been measured.
                self._listens = False
                self._check_called()
                loss = self._loss_fn(output, self._shadow.lay_out(targets))
                for name, weight in self._weights.items():
                    self._keep(name, "w_norm", _norm(weight.detach()))
                for name, gradient in self._gradients(loss).items():
                    if name in self._weights:
                        self._keep(name, "dw_norm", _norm(gradient))
                return Profile(layers=self._layers(), rows=tuple(self._rows(step)))
            finally:
                self._measured.clear()

    def _module(self, name: str) -> nn.Module:
        modules: dict[str, nn.Module] = dict(self._shadow.model.named_modules())
        if name not in modules:
            raise UserError(unknown_name("module", name, [each for each in modules if each]))
        return modules[name]

    def _find_weights(self) -> dict[str, Tensor]:
        parameters = dict(self._shadow.model.named_parameters())
        for point in self.points:
            if point.weight not in parameters:
                raise UserError(unknown_name("weight", point.weight, parameters))
        return {point.weight: parameters[point.weight] for point in self.points}

    def _gradients(self, loss: Tensor) -> dict[str, Tensor]:
        """Of the loss by each trainable parameter that it depends on; on the way the points' hooks fire."""
        trainable = {name: each for name, each in self._shadow.model.named_parameters() if each.requires_grad}
        if not trainable:
            return {}
        if loss.numel() != 1 or not loss.requires_grad:
            raise UserError(
                "probe: wanted a loss of one number that depends on the model's parameters, "
                f"got shape {tuple(loss.shape)}, requires_grad {loss.requires_grad}."
            )
        # Not loss.backward(): nothing accumulates in a .grad, also not in a loss that has parameters. By
        # all parameters, not only the points' weights: a frozen weight's h still has its gradient.
        found = torch.autograd.grad(loss, list(trainable.values()), allow_unused=True)
        return {name: each for name, each in zip(trainable, found, strict=True) if each is not None}

    def _watch_output(self, name: str) -> Callable[[nn.Module, object, object], None]:
        def on_gradient(gradient: Tensor) -> None:
            self._keep(name, "dh_norm", _norm(gradient))
            self._keep(name, "dh_mean_abs", _mean_abs(gradient))

        def on_output(_module: nn.Module, _inputs: object, h: object) -> None:
            if not self._listens:
                return
            h = _checked(name, h)
            # Reduced here and now: keeping h would hold its memory, and a later in-place operation
            # would overwrite it. A tensor's own hook, unlike a full backward hook, bears such operations.
            self._keep(name, "h_norm", _norm(h.detach()))
            self._keep(name, "h_mean_abs", _mean_abs(h.detach()))
            self._shapes[name] = tuple(h.shape[1:])
            if h.requires_grad:
                register: Callable[..., object] = h.register_hook  # untyped in torch
                register(on_gradient)

        return on_output

    def _watch_operand(self, name: str) -> Callable[[nn.Module, object, object], None]:
        def on_output(_module: nn.Module, _inputs: object, operand: object) -> None:
            if not self._listens:
                return
            values = _checked(name, operand).detach()
            # Over all but the first dimension, without flattening: that would copy a channels-last tensor.
            norms_B = torch.linalg.vector_norm(values, dim=tuple(range(1, values.ndim)))
            self._keep(name, "norms_B", norms_B)

        return on_output

    def _keep(self, name: str, quantity: str, value: Tensor) -> None:
        if (name, quantity) in self._measured:
            raise UserError(
                f"probe: module {name!r} was called more than once in a forward pass; watch modules called once."
            )
        self._measured[name, quantity] = value

    def _check_called(self) -> None:
        wanted = [(point.output, "h_norm") for point in self.points]
        wanted += [(name, "norms_B") for each in self.additions for name in (each.branch, each.skip)]
        for name, quantity in wanted:
            if (name, quantity) not in self._measured:
                raise UserError(
                    f"probe: module {name!r} was not called in the forward pass, so it has nothing to measure."
                )

    def _layers(self) -> tuple[Layer, ...]:
        return tuple(
            Layer(
                index=index,
                name=point.layer,
                kind=point.kind,
                weight=point.weight,
                shape=self._shapes[point.output],
            )
            for index, point in enumerate(self.points)
        )

    def _rows(self, step: int) -> Iterator[Row]:
        scalars: dict[tuple[int, str], Tensor] = {}
        ratios = {
            self._indices[each.layer]: (
                self._measured[each.branch, "norms_B"] / self._measured[each.skip, "norms_B"]
            ).mean()
            for each in self.additions
        }
        for index, point in enumerate(self.points):
            for name, quantities in (
                (point.output, ("h_norm", "h_mean_abs", "dh_norm", "dh_mean_abs")),
                (point.weight, ("w_norm", "dw_norm")),
            ):
                for quantity in quantities:
                    if (name, quantity) in self._measured:
                        scalars[index, quantity] = self._measured[name, quantity]
            if (index, "dw_norm") in scalars:
                scalars[index, "dw_ratio"] = scalars[index, "dw_norm"] / scalars[index, "w_norm"]
            if index in ratios:
                scalars[index, "f_over_x"] = ratios[index]
        # One transfer for all of them: on a GPU each would wait for the device.
        values = torch.stack(list(scalars.values())).tolist() if scalars else []
        for (index, quantity), value in zip(scalars, values, strict=True):
            # Over a weight or a skip that is 0 there is no ratio: no row, as in the laboratory.
            if quantity not in ("dw_ratio", "f_over_x") or math.isfinite(value):
                yield Row(step=step, layer=index, quantity=quantity, value=value)


def _checked(name: str, value: object) -> Tensor:
    if not isinstance(value, Tensor):
        raise UserError(
            f"probe: module {name!r} gave {type(value).__name__}, wanted a tensor. Watch a module that gives one."
        )
    return value


def _norm(tensor: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(tensor)
    return norm


def _mean_abs(tensor: Tensor) -> Tensor:
    total: Tensor = torch.linalg.vector_norm(tensor, ord=1)
    return total / tensor.numel()
