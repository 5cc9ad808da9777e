"""The same model, to be evaluated in less time: batch norms folded, channels last, ReLUs in place.

In evaluation mode a batch norm is gamma (x - mean) / sqrt(variance + eps) + beta, with statistics that do not depend on
the batch; after a layer W x + b it is a layer too, with the weight s W and the bias s (b - mean) + beta, where
s = gamma / sqrt(variance + eps). They are computed in float64 at every point, since gamma and beta may move too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from depthscope.probes.copies import cast, copy_of, recast, restarted
from depthscope.probes.guard import as_found
from depthscope.probes.landscape.filters import filters_of
from depthscope.probes.landscape.usage import Usage, usage_of
from depthscope.probes.landscape.weights import Weights
from depthscope.probes.measure.batch import Batch
from depthscope.probes.trace import tensors_of

_PROBED = (0.0, 0.25)
"""Where, on all axes, a twin has to agree with the model."""

_EXAMPLES = 8


class Plain:
    """A model at points, as it is.

    Attributes:
        model: a copy that is moved.
        weights: where to.
        lay_out: changes the memory format of a tensor of a batch.
    """

    def __init__(self, model: nn.Module, weights: Weights) -> None:
        self.model = model
        self.weights = weights
        self._parameters = dict(model.named_parameters())

    def move(self, coordinates: Sequence[float]) -> None:
        """Put a point's weights into the model."""
        with torch.no_grad():
            for name, value in self.weights.point(coordinates).items():
                self._parameters[name].copy_(value)

    def lay_out(self, tensor: Tensor) -> Tensor:
        """A tensor of a batch as the model has it fastest."""
        return tensor

    def anew(self, plain: nn.Module) -> Plain:
        """The same of a model as it was when this was made."""
        return Plain(copy_of(plain), self.weights)


class Quick(Plain):
    """The model changed; `plain` is only read.

    Args:
        plain: stands at the centre.
        weights: of the plain model.
        folds: (layer, batch norm) by name, of `usage.Usage`.
        overwrites: ReLUs by name.
        channels_last: the memory format of 4-dimensional tensors.
    """

    def __init__(
        self,
        plain: nn.Module,
        weights: Weights,
        *,
        folds: Sequence[tuple[str, str]] = (),
        overwrites: Sequence[str] = (),
        channels_last: bool = False,
    ) -> None:
        model = copy_of(plain)
        super().__init__(model, weights)
        self._changes: dict[str, Any] = {"folds": folds, "overwrites": overwrites, "channels_last": channels_last}
        modules: dict[str, Any] = dict(model.named_modules())
        self._folds = [_Fold(plain, modules, layer, norm) for layer, norm in folds]
        for name in overwrites:
            modules[name].inplace = True
        self._channels_last = channels_last
        if channels_last:
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def move(self, coordinates: Sequence[float]) -> None:
        """See `Plain`."""
        point = self.weights.point(coordinates)
        with torch.no_grad():
            for name, value in point.items():
                self._parameters[name].copy_(value)
            for fold in self._folds:
                fold.put(point)

    def lay_out(self, tensor: Tensor) -> Tensor:
        """See `Plain`."""
        last = self._channels_last and tensor.ndim == 4
        return tensor.contiguous(memory_format=torch.channels_last) if last else tensor

    def anew(self, plain: nn.Module) -> Plain:
        """See `Plain`."""
        return Quick(plain, self.weights, **self._changes)


class _Fold:
    """A batch norm in the layer before it; in the norm's place stands an identity."""

    def __init__(self, plain: nn.Module, modules: dict[str, Any], layer: str, norm: str) -> None:
        self._layer = modules[layer]
        self._filters = filters_of(self._layer, "weight", self._layer.weight)
        removed = modules[norm]
        for module in modules.values():
            for name, child in module._modules.items():
                if child is removed:
                    module._modules[name] = nn.Identity()
        found = dict(plain.named_modules())
        first, second = found[layer], found[norm]
        names = {id(each): name for name, each in plain.named_parameters()}
        # Under the names of the parameters, by which a point gives those that move.
        self._fixed = {
            key: (names.get(id(tensor), ""), tensor.detach().double())
            for key, tensor in (
                ("weight", first.weight),
                ("bias", first.bias),
                ("gamma", second.weight),
                ("beta", second.bias),
                ("mean", second.running_mean),
                ("variance", second.running_var),
            )
            if isinstance(tensor, Tensor)
        }
        self._eps = removed.eps
        if self._layer.bias is None:
            self._layer.bias = nn.Parameter(torch.zeros_like(removed.running_mean), requires_grad=False)

    def put(self, point: Mapping[str, Tensor]) -> None:
        """Fold at a point."""
        now = {key: point.get(name, tensor) for key, (name, tensor) in self._fixed.items()}
        scale = (now["variance"] + self._eps).rsqrt()
        scale = scale * now["gamma"] if "gamma" in now else scale
        shift = now["bias"] - now["mean"] if "bias" in now else -now["mean"]
        shift = scale * shift + now["beta"] if "beta" in now else scale * shift
        weight = self._filters.grouped(now["weight"]) * self._filters.shaped(scale, now["weight"])
        self._layer.weight.copy_(weight.reshape(now["weight"].shape))
        self._layer.bias.copy_(shift)


def quick(plain: nn.Module, weights: Weights, batches: Sequence[Batch], *, fold: bool) -> Plain:
    """The fastest twin of a model that computes what it computes.

    What can be changed is read from one pass (`usage`), and then believed only if, in float64, the changed model's
    outputs on the first examples are the model's to 1e-9 of the largest, at the centre and beside it; and if it runs on
    every shape of batch. A change that fails is left out: some models look at their own modules, or at strides.

    Args:
        plain: in evaluation mode, at the centre.
        weights: of it.
        batches: all of them.
        fold: batch norms, too: its statistics are the same at every point.
    """
    standing = Plain(copy_of(plain), weights)
    home = next((each.device.type for each in plain.parameters()), "cpu")
    if home == "mps":  # which has no float64 to compare in
        return standing
    wide = recast(copy_of(plain), torch.float64)
    few = _few(batches[0]).converted(lambda tensor: cast(tensor, torch.float64))
    try:
        usage = usage_of(wide, few)
    except Exception:  # whatever a model does that cannot be followed: it is evaluated as it is
        return standing
    wanted = [_outputs(Plain(copy_of(wide), weights), few, at) for at in _PROBED]
    kept: dict[str, Any] = {}
    for change in _changes(plain, usage, fold=fold):
        try:
            tried = Quick(wide, weights, **kept, **change)
            agrees = all(_same(_outputs(tried, few, at), of) for at, of in zip(_PROBED, wanted, strict=True))
            if agrees:
                found = Quick(plain, weights, **kept, **change)
                _rehearse(found, batches)
        except Exception:
            continue
        if agrees:
            kept.update(change)
            standing = found
    return standing


def _changes(plain: nn.Module, usage: Usage, *, fold: bool) -> list[dict[str, Any]]:
    changes: list[dict[str, Any]] = []
    if fold and usage.folds:
        changes.append({"folds": usage.folds})
    if any(isinstance(each, nn.Conv2d | nn.ConvTranspose2d) for each in plain.modules()):
        changes.append({"channels_last": True})
    if usage.overwrites:
        changes.append({"overwrites": usage.overwrites})
    return changes


def _rehearse(moved: Plain, batches: Sequence[Batch]) -> None:
    shapes: dict[str, Batch] = {each.described(): each for each in batches}
    for batch in shapes.values():
        _run(moved, batch)


def _outputs(moved: Plain, batch: Batch, coordinate: float) -> list[Tensor]:
    moved.move([coordinate] * moved.weights.num_axes)
    return _run(moved, batch)


def _run(moved: Plain, batch: Batch) -> list[Tensor]:
    args, kwargs, _ = batch.converted(moved.lay_out).fresh()
    with as_found(moved.model), torch.no_grad():
        restarted(next(iter(tensors_of((args, kwargs)))).device)
        return list(tensors_of(moved.model(*args, **kwargs)))


def _same(found: list[Tensor], wanted: list[Tensor]) -> bool:
    if [each.shape for each in found] != [each.shape for each in wanted]:
        return False
    for one, other in zip(found, wanted, strict=True):
        if not one.is_floating_point():
            if not torch.equal(one, other):
                return False
        elif other.numel() and not bool((one - other).abs().amax() <= 1e-9 * other.abs().amax()):
            return False  # of what is not finite too: it tells nothing
    return True


def _few(batch: Batch) -> Batch:
    """The first examples of a batch, where it is clear which they are."""
    num = batch.num_examples
    if not all(each.ndim and each.shape[0] == num for each in tensors_of((batch.args, dict(batch.kwargs)))):
        return batch
    return batch.converted(lambda tensor: tensor[:_EXAMPLES] if tensor.ndim else tensor)
