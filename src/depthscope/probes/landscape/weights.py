"""The weights of a point: centre + a d_a + b d_b, in float64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from depthscope.core.errors import UserError, unknown_name
from depthscope.probes.landscape.directions import Directions


class Weights:
    """Those of the parameters that a direction moves, one after another in flat tensors.

    Args:
        model: has the weights of the centre; only read.
        directions: of its parameters, by name.

    Raises:
        UserError: a direction is of a parameter that the model does not have, or of another shape.
    """

    def __init__(self, model: nn.Module, directions: Directions) -> None:
        parameters = dict(model.named_parameters())
        for name, tensor in directions.axes[0].items():
            if name not in parameters:
                raise UserError(unknown_name("parameter of a direction", name, parameters))
            if tensor.shape != parameters[name].shape:
                raise UserError(
                    f"landscape: the direction of {name} has shape {list(tensor.shape)}; "
                    f"the model's parameter has {list(parameters[name].shape)}."
                )
        self.names = [name for name in directions.axes[0] if any(bool(axis[name].any()) for axis in directions.axes)]
        self._shapes = [parameters[name].shape for name in self.names]
        device = next((parameters[name].device for name in self.names), torch.device("cpu"))
        dtype = torch.float32 if device.type == "mps" else torch.float64  # MPS has no float64
        self._axes = [_flat([axis[name] for name in self.names], dtype).to(device) for axis in directions.axes]
        held = [parameters[name].detach() for name in self.names]
        self._centre: Tensor = _flat(held, dtype)

    def point(self, coordinates: Sequence[float]) -> Mapping[str, Tensor]:
        """The weights of a point, by name, in float64."""
        flat = self._centre
        for coordinate, axis in zip(coordinates, self._axes, strict=True):
            if coordinate != 0:  # so that the centre is the centre in every bit, -0 too
                flat = flat.add(axis, alpha=coordinate)
        parts = torch.split(flat, [shape.numel() for shape in self._shapes])
        return {name: part.view(shape) for name, part, shape in zip(self.names, parts, self._shapes, strict=True)}

    @property
    def num_axes(self) -> int:
        """How many coordinates a point has."""
        return len(self._axes)


def _flat(tensors: Sequence[Tensor], dtype: torch.dtype) -> Tensor:
    return torch.cat([each.reshape(-1).to(dtype) for each in tensors]) if tensors else torch.empty(0, dtype=dtype)
