"""A float64 copy of a model that follows the model's tensors and shares nothing with it."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError, words_of


class Shadow:
    """The copy, in train mode, on the model's device (on the CPU where that is MPS, which has no float64).

    Args:
        model: what to follow. It is only read. Its hooks are not copied.
        channels_last: keep 4-dimensional weights and inputs in that memory format.

    Raises:
        UserError: the model holds no tensor, or cannot be copied.
    """

    def __init__(self, model: nn.Module, *, channels_last: bool = False) -> None:
        first = next(iter(_tensors(model).values()), None)
        if first is None:
            raise UserError("probe: the model holds no tensor, so there is no layer to measure.")
        self.device = torch.device("cpu") if first.device.type == "mps" else first.device
        self._channels_last = channels_last
        self._followed = model
        # A tensor made in inference mode could never have a gradient. To the device and to float64 in two
        # steps: MPS cannot make a float64, not even on its way to the CPU.
        with torch.inference_mode(False):
            self.model = bare_copy(model).to(device=self.device).to(dtype=torch.float64)
        if channels_last:
            for parameter in self.model.parameters():
                if parameter.ndim == 4:
                    parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)

    def refresh(self) -> None:
        """Copy the followed model's tensors into the copy's, which keep their memory.

        Raises:
            UserError: the model has gained or lost a tensor, or one has another shape.
        """
        found, kept = _tensors(self._followed), _tensors(self.model)
        changed = {name for name in found.keys() | kept.keys() if _shape(found, name) != _shape(kept, name)}
        if changed:
            raise UserError(f"probe: {min(changed)} of the model changed since the probe was made. Make a new probe.")
        with torch.no_grad():
            for name, tensor in kept.items():
                tensor.copy_(_from_mps(found[name].detach()))
                if isinstance(tensor, nn.Parameter):
                    tensor.requires_grad_(found[name].requires_grad)
        self.model.train()

    def lay_out(self, tensor: Tensor) -> Tensor:
        """`tensor` as the copy wants it: on its device, float64 where it is floating point."""
        moved = _from_mps(tensor.detach()).to(self.device)
        if moved.is_inference():
            moved = moved.clone()
        if moved.is_floating_point():
            moved = moved.to(torch.float64)
        if self._channels_last and moved.ndim == 4:
            moved = moved.contiguous(memory_format=torch.channels_last)
        return moved


def bare_copy(model: nn.Module, given: Mapping[int, object] | None = None) -> nn.Module:
    """A deep copy without the hooks of modules, of the same dtype and on the same device.

    Args:
        model: only read.
        given: what stands in the copy in place of objects of the model, by their `id`.

    Raises:
        UserError: `copy.deepcopy` cannot copy the model.
    """
    # What deepcopy finds in its memo it does not copy: each hook table becomes an empty one, so that
    # neither the caller's hooks run in the copy nor the objects that they hold are duplicated.
    memo: dict[int, object] = {
        id(table): OrderedDict()
        for module in model.modules()
        for name, table in vars(module).items()
        if name.endswith("_hooks") and isinstance(table, dict)
    } | dict(given or {})
    try:
        return copy.deepcopy(model, memo)
    except Exception as error:  # whatever the model's own attributes raise
        raise UserError(
            f"probe: this measurement needs a copy of the model, and copy.deepcopy cannot copy {type(model).__name__}: "
            f"{type(error).__name__}: {words_of(error)}. Take out what cannot be copied (a lock, an open file, a "
            "tensor with a history), or give the class a __deepcopy__."
        ) from error


def _tensors(module: nn.Module) -> dict[str, Tensor]:
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _shape(tensors: dict[str, Tensor], name: str) -> torch.Size | None:
    return tensors[name].shape if name in tensors else None


def _from_mps(tensor: Tensor) -> Tensor:
    return tensor.cpu() if tensor.device.type == "mps" else tensor
