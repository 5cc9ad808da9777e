"""Measure a model layer by layer on a float64 copy of it, so that the model itself is only read.

Why float64: the gradient of a deep plain network with batch norm at initialisation is 13% off in
float32, and sums of squares of 1e-24 underflow there. Why a copy: whatever the measurement does (train
mode, batch statistics that move running ones, gradients, hooks), nothing of it can reach the caller's
model, after an exception either.

Shape letters: B batch.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError, unknown_name
from depthscope.core.profile import Addition, Layer, Point, Profile, Row
from depthscope.probes.guard import undisturbed

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
    """Measure once; see `Probe`, which to measure often costs less memory traffic.

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
        loss_fn: mean loss over the batch.
        points: where to measure, in forward order.
        additions: residual additions; each names one of the points' layers.

    Raises:
        UserError: a name that the model does not have.
    """

    def __init__(
        self, model: nn.Module, loss_fn: LossFn, *, points: Sequence[Point], additions: Sequence[Addition] = ()
    ) -> None:
        self.points = tuple(points)
        self.additions = tuple(additions)
        self._model = model
        self._loss_fn = loss_fn
        first = next(iter(_tensors(model).values()), None)
        if first is None:
            raise UserError("probe: the model holds no tensor, so there is no layer to measure.")
        # MPS has no float64: measure on the CPU.
        self.device = torch.device("cpu") if first.device.type == "mps" else first.device
        self._shadow = _float64_copy(model, self.device)
        self._weights = self._find_weights()
        self._indices = {point.layer: index for index, point in enumerate(self.points)}
        self._measured: dict[tuple[str, str], Tensor] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        for output in dict.fromkeys(point.output for point in self.points):
            self._module(output).register_forward_hook(self._watch_output(output))
        for addition in self.additions:
            if addition.layer not in self._indices:
                raise UserError(unknown_name("layer of an addition", addition.layer, self._indices))
            for operand in (addition.branch, addition.skip):
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
            UserError: a watched module was not called, was called more than once, or gave no tensor.
        """
        with undisturbed(self.device):
            self._refresh()
            self._shapes.clear()
            try:
                output = self._shadow(_to_float64(inputs, self.device))
                self._check_called()
                loss = self._loss_fn(output, _to_float64(targets, self.device))
                weights = {name: weight for name, weight in self._weights.items() if weight.requires_grad}
                # Not loss.backward(): nothing accumulates in a .grad, also not in a loss that has parameters.
                gradients = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
                for name, weight in self._weights.items():
                    self._measured[name, "w_norm"] = _norm(weight.detach())
                for name, gradient in zip(weights, gradients, strict=True):
                    if gradient is not None:
                        self._measured[name, "dw_norm"] = _norm(gradient)
                return Profile(layers=self._layers(), rows=tuple(self._rows(step)))
            finally:
                self._measured.clear()

    def _module(self, name: str) -> nn.Module:
        modules: dict[str, nn.Module] = dict(self._shadow.named_modules())
        if name not in modules:
            raise UserError(unknown_name("module", name, [each for each in modules if each]))
        return modules[name]

    def _find_weights(self) -> dict[str, Tensor]:
        parameters = dict(self._shadow.named_parameters(remove_duplicate=False))
        for point in self.points:
            if point.weight not in parameters:
                raise UserError(unknown_name("weight", point.weight, parameters))
        return {point.weight: parameters[point.weight] for point in self.points}

    def _refresh(self) -> None:
        """Copy the model's tensors into the shadow's, which keep their memory."""
        found, kept = _tensors(self._model), _tensors(self._shadow)
        if found.keys() != kept.keys():
            changed = sorted(found.keys() ^ kept.keys())
            raise UserError(
                f"probe: the model's tensors changed since the probe was made ({changed[0]}). Make a new one."
            )
        with torch.no_grad():
            for name, tensor in kept.items():
                tensor.copy_(_from_mps(found[name].detach()))
                if isinstance(tensor, nn.Parameter):
                    tensor.requires_grad_(found[name].requires_grad)
        # A caller may have switched parts of the model to eval: the copy measures in train mode.
        self._shadow.train()

    def _watch_output(self, name: str) -> Callable[[nn.Module, object, object], None]:
        def on_gradient(gradient: Tensor) -> None:
            self._keep(name, "dh_norm", _norm(gradient))
            self._keep(name, "dh_mean_abs", _mean_abs(gradient))

        def on_output(_module: nn.Module, _inputs: object, h: object) -> None:
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
            operand_B = _checked(name, operand).detach().flatten(1)
            self._keep(name, "norms_B", torch.linalg.vector_norm(operand_B, dim=1))

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
            yield Row(step=step, layer=index, quantity=quantity, value=value)


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _float64_copy(model: nn.Module, device: torch.device) -> nn.Module:
    """A copy in float64 on `device`, without the model's hooks."""
    # What deepcopy finds in its memo it does not copy: each hook table becomes an empty one, so that
    # neither the caller's hooks run in the copy nor the objects that they hold are duplicated.
    memo: dict[int, object] = {
        id(table): OrderedDict()
        for module in model.modules()
        for name, table in vars(module).items()
        if name.endswith("_hooks") and isinstance(table, dict)
    }
    shadow = copy.deepcopy(model, memo)
    # In two steps: MPS cannot make a float64, not even on its way to the CPU.
    return shadow.to(device=device).to(dtype=torch.float64)


def _from_mps(tensor: Tensor) -> Tensor:
    return tensor.cpu() if tensor.device.type == "mps" else tensor


def _to_float64(tensor: Tensor, device: torch.device) -> Tensor:
    moved = _from_mps(tensor.detach()).to(device)
    return moved.to(torch.float64) if moved.is_floating_point() else moved


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
