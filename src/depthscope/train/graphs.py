"""The passes of an update recorded once and replayed: on a GPU a step is then one launch, and not a thousand.

Shape letters: B batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from depthscope.study.catalog import CATALOG, is_user_code
from depthscope.study.run import RunSpec
from depthscope.train.build import Context
from depthscope.train.usercode import network_targets

Passes = Callable[[Tensor, Tensor], tuple[Tensor, Tensor | None]]
"""Inputs and labels of a batch -> (loss, right answers or None); every parameter that took part has its gradient."""

Record = Callable[
    [Callable[[], tuple[Tensor, Tensor | None]]], tuple[Callable[[], object], tuple[Tensor, Tensor | None]]
]
"""Work -> (what does it again, on the same memory; the results, which that overwrites)."""

_WARM = 3
"""Times that work is done before it is recorded: libraries choose their algorithms and make their handles then."""


def recorder(spec: RunSpec, context: Context) -> Record | None:
    """How the passes of a run's updates are recorded; None where each is launched as it comes.

    Asked for by `Context.graphs`, on CUDA. A network that draws (dropped branches) would draw the same again in each
    replay, one that computes blocks again saves states of generators on its way, and what code of the user's does
    between its operations would not be done again: those are launched as ever.
    """
    if not context.graphs or not context.device.startswith("cuda"):
        return None
    own = bool(network_targets(spec)) or is_user_code(spec.family)
    return None if own or CATALOG["shortcut"][spec.shortcut].draws or spec.model_options.get("checkpointing") else cuda


def cuda(work: Callable[[], tuple[Tensor, Tensor | None]]) -> tuple[Callable[[], object], tuple[Tensor, Tensor | None]]:
    """A CUDA graph of the work (`torch.cuda.CUDAGraph`)."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_WARM):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = work()
    return graph.replay, found


class Replayed:
    """Passes that are recorded at the first batch, and replayed for every batch of its size; a `Passes` itself.

    The kernels are those that would be launched one by one, so the numbers should be the same; the plain passes are
    its twin. A smaller last batch goes through the plain passes.

    Args:
        model: whose parameters the passes give gradients to. Its tensors stay where they are.
        passes: the plain ones.
        record: see `Record`.
        num: examples of a batch that is recorded.
    """

    def __init__(self, model: nn.Module, passes: Passes, record: Record, num: int) -> None:
        self._model, self._passes, self._record, self._num = model, passes, record, num
        self._parameters = list(model.parameters())
        self._again: Callable[[], object] | None = None
        self._x_B = self._y_B = torch.empty(0)
        self._found: tuple[Tensor, Tensor | None] = (self._x_B, None)
        self._grads: list[Tensor | None] = []

    def __call__(self, x_B: Tensor, y_B: Tensor) -> tuple[Tensor, Tensor | None]:
        """See `Passes`."""
        if len(x_B) != self._num:
            return self._passes(x_B, y_B)
        again = self._again or self._begin(x_B, y_B)
        self._x_B.copy_(x_B)
        self._y_B.copy_(y_B)
        again()
        # A plain pass in between, or a measurement, has left other tensors there.
        for parameter, grad in zip(self._parameters, self._grads, strict=True):
            parameter.grad = grad
        loss, hits = self._found
        return loss.clone(), None if hits is None else hits.clone()  # the next replay overwrites them

    def _begin(self, x_B: Tensor, y_B: Tensor) -> Callable[[], object]:
        self._x_B, self._y_B = x_B.clone(), y_B.clone()
        # To record is to compute a few times: running statistics are put back.
        buffers: Iterable[Tensor] = list(self._model.buffers())
        before = [buffer.clone() for buffer in buffers]
        self._again, self._found = self._record(self._work)
        with torch.no_grad():
            for buffer, value in zip(buffers, before, strict=True):
                buffer.copy_(value)
        self._grads = [parameter.grad for parameter in self._parameters]
        return self._again

    def _work(self) -> tuple[Tensor, Tensor | None]:
        # Without one, a gradient is written and not added to; recorded, always to the same place.
        for parameter in self._parameters:
            parameter.grad = None
        return self._passes(self._x_B, self._y_B)
