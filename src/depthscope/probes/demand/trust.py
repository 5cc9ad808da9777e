"""Numerical trust: does the gradient of the dtype in training point where the true gradient points?

Rounding errors grow through a deep network as the gradient itself does. That of a plain network of 56 layers with
batch norm at initialisation is 13% off in float32; in bfloat16 its direction has nothing to do with the true one.
No norm shows this, since the sizes are right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError, words_of
from depthscope.core.readings import Reading
from depthscope.core.structure import Structure
from depthscope.probes.demand.cost import Cost
from depthscope.probes.demand.linearise import with_gradients
from depthscope.probes.guard import as_found, unwrapped
from depthscope.probes.measure.batch import Batch, read_batch, taken
from depthscope.probes.measure.objective import LossFn, start_of
from depthscope.probes.shadow import bare_copy


@dataclass(frozen=True, kw_only=True)
class Trust:
    """The gradient by all parameters as training computes it, g, against the one in float64, G.

    Attributes:
        cosine: <g, G> / (|g| |G|), all parameters together; nan where one of them is 0 or not finite.
        relative_error: |g - G| / |G|.
        norm_ratio: |g| / |G|.
        by_parameter: the cosine of each parameter that has a gradient other than 0 in float64.
        by_layer: the same of each module's own parameters together.
        dtype: what g was computed in.
        draws: the pass drew random numbers although dropout modules were off. They may differ between the dtypes,
            so the cosine may be lower than rounding alone makes it.
    """

    cosine: float
    relative_error: float
    norm_ratio: float
    by_parameter: Mapping[str, float] = field(default_factory=dict)
    by_layer: Mapping[str, float] = field(default_factory=dict)
    dtype: str
    draws: bool = False

    def readings(self, step: int = 0) -> tuple[Reading, ...]:
        """As readings: of the model, and of each parameter."""
        model = Reading(step=step, place="model", name="", quantity="trust", value=self.cosine)
        return (
            model,
            *(
                Reading(step=step, place="parameter", name=name, quantity="trust", value=value)
                for name, value in self.by_parameter.items()
            ),
        )


def gradient_trust(
    model: nn.Module,
    batch: object,
    loss_fn: LossFn | None = None,
    *,
    autocast: torch.dtype | None = None,
    loss_scale: float = 1.0,
    seed: int = 0,
) -> Trust:
    """Compare the gradient in the model's dtype with that in float64, on two copies of the model.

    Both copies have the model's modes, batch norm in train mode too; their dropout modules are off, since equal masks
    in two dtypes cannot be promised. Hooks of modules do not run. The copy in float64 is as exact as the model's own
    code lets it be: what it casts to float32 by name stays rounded to that.

    Args:
        model: only read.
        batch: see `read_batch`; its tensors of floating point, targets too, become float64 in the second pass.
        loss_fn: see `start_of`, also for what None means.
        autocast: dtype of autocast for the first pass; None leaves autocast as the caller has it.
        loss_scale: the first pass multiplies the loss by it and divides the gradient, as a GradScaler does.
        seed: of the random direction at the output, where there is no loss; both passes get the same.

    Raises:
        UserError: `copy.deepcopy` cannot copy the model; it does not run in float64; no parameter gets a gradient; as
            for `read_batch` and `start_of`.
    """
    inner = unwrapped(model)
    read = read_batch(batch, inner, with_loss=loss_fn is not None)
    device = next((each.device for each in inner.parameters()), torch.device("cpu"))
    # MPS has no float64.
    exact_on = torch.device("cpu") if device.type == "mps" else device
    with as_found(inner), with_gradients(device):
        before = _generator_states(device)
        low = _quiet(bare_copy(inner))
        with _autocast(device.type, autocast):
            dtype = _dtype_name(low, device.type)
            read, found = taken(read, partial(_gradients, low, loss_fn=loss_fn, scale=loss_scale, seed=seed))
        del low
        draws = any(not torch.equal(a, b) for a, b in zip(before, _generator_states(device), strict=True))
        _set_generator_states(device, before)
        high = _quiet(bare_copy(inner)).to(device=exact_on).double()
        torch.set_default_dtype(torch.float64)  # as_found puts it back
        try:
            with torch.autocast(exact_on.type, enabled=False):
                exact = _gradients(high, read.converted(partial(_exact, device=exact_on)), loss_fn, 1.0, seed)
        except UserError:
            raise
        except (RuntimeError, TypeError, ValueError) as error:
            raise UserError(
                f"trust: the model does not run in float64: {words_of(error)}. It may name a dtype of its own "
                "somewhere; let it follow the dtype of its inputs or weights."
            ) from error
        return _compared(found, exact, loss_scale, dtype, draws)


def cost(structure: Structure, *, itemsize: int = 4) -> Cost:
    """Of `gradient_trust`: two copies of the model, never at once, and two gradients.

    Args:
        structure: of the model.
        itemsize: bytes of a number in the model's dtype.
    """
    return Cost(
        what="numerical trust",
        forwards=2,
        backwards=2,
        # The copy in float64, its gradient, and the gradient of the other; activations of twice float32's size.
        num_bytes=structure.num_parameters * (8 + 8 + itemsize),
        note="and the activations in float64; its passes take twice the time of float32 on a CPU, and up to 64 times "
        "on a GPU",
    )


def _quiet(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.eval()
    return model


def _gradients(model: nn.Module, batch: Batch, loss_fn: LossFn | None, scale: float, seed: int) -> dict[str, Tensor]:
    # Not autograd.grad: reentrant activation checkpoints refuse it; and the copy's .grad is nobody's.
    model.zero_grad(set_to_none=True)
    args, kwargs, _ = batch.fresh()
    start = start_of(model(*args, **kwargs), batch.fresh_targets(), loss_fn, seed=seed)
    backward = cast(Callable[..., None], torch.autograd.backward)
    backward([each * scale for each in start.tensors], start.cotangents)
    found = {
        name: (each.grad.to_dense() if each.grad.layout is not torch.strided else each.grad).detach()
        for name, each in model.named_parameters()
        if each.grad is not None
    }
    if not found:
        raise UserError(
            "trust: no parameter got a gradient. Let one be trainable (requires_grad), and the loss depend on it."
        )
    return found


def _exact(tensor: Tensor, *, device: torch.device) -> Tensor:
    # First to the device: MPS cannot make a float64, not even on its way to the CPU.
    moved = tensor.detach().to(device)
    return moved.double() if moved.is_floating_point() else moved


def _compared(found: dict[str, Tensor], exact: dict[str, Tensor], scale: float, dtype: str, draws: bool) -> Trust:
    # By parameter: <g, G>, |g|^2, |G|^2, |g - G|^2.
    sums = {name: _sums(found.get(name), gradient, scale) for name, gradient in exact.items()}
    layers: dict[str, list[tuple[float, ...]]] = {}
    for name, each in sums.items():
        layers.setdefault(name.rpartition(".")[0], []).append(each)
    product, low, high, off = _added(list(sums.values()))
    return Trust(
        cosine=_cosine(product, low, high),
        relative_error=math.sqrt(off / high) if high > 0 else math.nan,
        norm_ratio=math.sqrt(low / high) if high > 0 else math.nan,
        by_parameter={name: _cosine(*each[:3]) for name, each in sums.items() if each[2] != 0},
        by_layer={
            name: _cosine(*_added(each)[:3]) for name, each in layers.items() if any(part[2] != 0 for part in each)
        },
        dtype=dtype,
        draws=draws,
    )


def _sums(low: Tensor | None, high: Tensor, scale: float) -> tuple[float, ...]:
    if high.is_complex():
        high = torch.view_as_real(high)
        low = None if low is None else torch.view_as_real(low)
    high = high.double()
    # Divided in float64: in float16 it would vanish again.
    low = torch.zeros_like(high) if low is None else low.to(high.device).double() / scale
    four = torch.stack([(low * high).sum(), low.square().sum(), high.square().sum(), (low - high).square().sum()])
    return tuple(four.tolist())


def _added(parts: list[tuple[float, ...]]) -> tuple[float, float, float, float]:
    a, b, c, d = (sum(part[index] for part in parts) for index in range(4))
    return a, b, c, d


def _cosine(product: float, low: float, high: float) -> float:
    # Two roots: the product of the squares of 1e-100 would be 0.
    size = math.sqrt(low) * math.sqrt(high) if low >= 0 and high >= 0 else math.nan
    return product / size if size != 0 and math.isfinite(product) else math.nan


@contextmanager
def _autocast(kind: str, dtype: torch.dtype | None) -> Iterator[None]:
    if dtype is None:
        yield
    else:
        with torch.autocast(kind, dtype=dtype):
            yield


def _dtype_name(model: nn.Module, kind: str) -> str:
    own = next((each.dtype for each in model.parameters() if each.is_floating_point()), torch.get_default_dtype())
    name = str(own).removeprefix("torch.")
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):
        return f"{name} under autocast to {str(torch.get_autocast_dtype(kind)).removeprefix('torch.')}"
    return name


def _generator_states(device: torch.device) -> list[Tensor]:
    states = [torch.get_rng_state()]
    return [*states, torch.cuda.get_rng_state(device)] if device.type == "cuda" else states


def _set_generator_states(device: torch.device, states: list[Tensor]) -> None:
    torch.set_rng_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)
