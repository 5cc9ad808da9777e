"""One forward pass of a torch network, counted: FLOPs, and what it saves for the backward pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from depthscope.models.construct import construct, seeded
from depthscope.study.catalog import is_user_code
from depthscope.study.run import RunSpec
from depthscope.train.build import Context, load_data
from depthscope.train.exact import exact
from depthscope.train.feed import taken
from depthscope.train.layout import lay_out
from depthscope.train.memory import DataShape
from depthscope.train.network import make_module, make_network
from depthscope.train.usercode import as_user_error, network_name, network_targets

_NUM = 2
"""Examples that are counted with. Figures of one example are theirs by two: a batch norm refuses a single one."""


@dataclass(frozen=True, kw_only=True)
class Passes:
    """Of one example.

    Attributes:
        flops: of the forward pass; a multiply and an add are two.
        saved: bytes that are saved for the backward pass, without parameters, which are there anyway.
        largest: bytes of the largest of them.
    """

    flops: int
    saved: int
    largest: int


def network_of(spec: RunSpec, data: DataShape) -> tuple[nn.Module, Tensor]:
    """(the network, two examples): on the meta device, or on the CPU where its code is the user's.

    Raises:
        UserError: user code that raises or gives no module.
    """
    shape = (_NUM, *data.input_shape)
    with as_user_error(network_name(spec)):
        if network_targets(spec):
            model, _ = construct(lambda: make_module(spec, data.input_shape, data.num_classes))
            return model, torch.zeros(shape)
        with torch.device("meta"):
            return make_module(spec, data.input_shape, data.num_classes), torch.empty(shape)


def count_passes(model: nn.Module, x: Tensor) -> Passes:
    """One forward pass in training mode, on `_NUM` examples."""
    ours = {_key(tensor) for tensor in (*model.parameters(), *model.buffers())}
    # Kept until the end: the address of a tensor that is gone may be given to the next.
    saved: dict[object, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        if _key(tensor) not in ours:
            saved[_key(tensor)] = tensor
        return tensor

    counter = FlopCounterMode(display=False)
    with seeded(0), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), torch.enable_grad(), counter:
        output = model.train()(x)
    del output
    sizes = [tensor.untyped_storage().nbytes() for tensor in saved.values()]
    return Passes(
        flops=counter.get_total_flops() // _NUM, saved=sum(sizes) // _NUM, largest=max(sizes, default=0) // _NUM
    )


def time_forward(spec: RunSpec, context: Context, num: int, clock: Callable[[], float]) -> float:
    """Seconds of a forward pass of `num` training examples in evaluation mode, the second of two."""
    with exact(context.threads), torch.no_grad():
        data = load_data(spec, context)
        model, _ = make_network(spec, data, device=context.device)
        if len(data.train.x.shape) == 4 and not is_user_code(spec.family):
            model = lay_out(model, context.device)
        x = taken(spec, data, data.train, num)[0].to(context.device)
        model.eval()
        model(x).cpu()
        begin = clock()
        model(x).cpu()
        return clock() - begin


def _key(tensor: Any) -> object:
    """Equal for tensors that share their memory."""
    return tensor.untyped_storage()._cdata
