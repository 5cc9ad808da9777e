"""One forward pass of a torch network, counted: FLOPs, and what it saves for the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from depthscope.models.checkpoint import Blocks, segments
from depthscope.models.construct import construct, seeded
from depthscope.study.catalog import is_user_code
from depthscope.study.run import RunSpec
from depthscope.train.build import Context, load_data
from depthscope.train.exact import exact
from depthscope.train.feed import taken
from depthscope.train.flops import Counter
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
        saved: bytes that are saved for the backward pass, without parameters, which are there anyway. Of a network
            that computes segments again, at the fullest moment: with what the largest segment saves.
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
    shape, kind = (_NUM, *data.input_shape), torch.int64 if data.num_tokens else torch.float32
    sizes = data.input_shape, data.num_outputs, data.num_tokens
    with as_user_error(network_name(spec)):
        if network_targets(spec):
            model, _ = construct(lambda: make_module(spec, *sizes))
            return model, torch.zeros(shape, dtype=kind)
        with torch.device("meta"):
            return make_module(spec, *sizes), torch.empty(shape, dtype=kind)


def count_passes(model: nn.Module, x: Tensor) -> Passes:
    """One forward pass in training mode, on `_NUM` examples."""
    ours = {_key(tensor) for tensor in (*model.parameters(), *model.buffers())}
    saved = _Saved()

    def pack(tensor: Tensor) -> Tensor:
        if _key(tensor) not in ours:
            saved.here[_key(tensor)] = tensor
        return tensor

    counter = Counter()
    hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
    with seeded(0), hooks, torch.enable_grad(), _told_apart(model.train(), saved), counter:
        output = model(x)
    del output
    num_bytes, largest = saved.fullest()
    return Passes(flops=counter.flops // _NUM, saved=num_bytes // _NUM, largest=largest // _NUM)


class _Saved:
    """What a forward pass saves, by the checkpointed segment that saves it.

    Attributes:
        always: what is there all the time: the inputs of segments, and what is saved outside of them.
        segments: what is there only while the backward pass is in that segment.
        here: the one of these that the pass is in now.
    """

    def __init__(self) -> None:
        # Tensors are kept until the end: the address of one that is gone may be given to the next.
        self.always: dict[object, Tensor] = {}
        self.segments: list[dict[object, Tensor]] = []
        self.here = self.always

    def enter(self, _module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        """A segment begins."""
        self.always.update((_key(tensor), tensor) for tensor in inputs)
        self.segments.append({})
        self.here = self.segments[-1]

    def leave(self, *_: object) -> None:
        """The last segment ends."""
        self.here = self.always

    def fullest(self) -> tuple[int, int]:
        """(bytes at the fullest moment, bytes of the largest tensor)."""
        moments = [{**self.always, **segment} for segment in self.segments or [{}]]
        sizes = [[tensor.untyped_storage().nbytes() for tensor in moment.values()] for moment in moments]
        return max(map(sum, sizes)), max((size for moment in sizes for size in moment), default=0)


@contextmanager
def _told_apart(model: nn.Module, saved: _Saved) -> Iterator[None]:
    """Inside, checkpointing is off: `saved` is told which segment the forward pass is in, and sees all of it."""
    chains = [each for each in model.modules() if isinstance(each, Blocks) and each.checkpointing]
    handles: list[RemovableHandle] = []
    for chain in chains:
        chain.checkpointing = False
        handles.extend(chain[start].register_forward_pre_hook(saved.enter) for start, _ in segments(len(chain)))
        handles.append(chain.register_forward_hook(saved.leave))
    try:
        yield
    finally:
        for chain in chains:
            chain.checkpointing = True
        for handle in handles:
            handle.remove()


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
