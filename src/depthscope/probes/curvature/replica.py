"""A copy of a model to differentiate twice, and the pass that each product with a Hessian makes on it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from depthscope.core.errors import UserError, unknown_name
from depthscope.core.streams import stream
from depthscope.probes.copies import cast, copy_of, recast
from depthscope.probes.curvature.plain import PlainOperations
from depthscope.probes.guard import as_found, set_generator

DRAWERS = (nn.modules.dropout._DropoutNd, nn.MultiheadAttention, nn.RNNBase)
"""Modules that draw in train mode, by torch's own dropout, and do nothing else there."""


class Replica:
    """The copy: in the dtype asked for, without the hooks of modules, dropout off.

    Args:
        model: unwrapped; only read.
        train: its other modules are in train mode, so that batch norm takes each batch's own statistics.
        dtype: of its numbers of floating point; complex ones become as precise.

    Raises:
        UserError: see `shadow.bare_copy`.
    """

    def __init__(self, model: nn.Module, *, train: bool, dtype: torch.dtype) -> None:
        first = next((each.device for each in (*model.parameters(), *model.buffers())), torch.device("cpu"))
        # MPS has no float64.
        self.device = torch.device("cpu") if first.type == "mps" and dtype is torch.float64 else first
        self._on_cuda = self.device.type == "cuda"
        self.dtype = dtype
        # A tensor made in inference mode could never have a gradient.
        with as_found(model), torch.inference_mode(False):
            self.model = recast(copy_of(model).to(device=self.device), dtype)
        self.model.train(train)
        for module in self.model.modules():
            if isinstance(module, DRAWERS):
                module.eval()
            if isinstance(module, nn.Embedding | nn.EmbeddingBag):
                module.sparse = False  # autograd cannot differentiate a sparse gradient
        self._plain: dict[int, bool] = {}  # by number of the stream, whether the pass needs `PlainOperations`
        self._recurrent = any(isinstance(module, nn.RNNBase) for module in self.model.modules())

    def lay_out(self, tensor: Tensor) -> Tensor:
        """A tensor of a batch as the copy wants it."""
        return cast(tensor.detach().to(self.device), self.dtype)

    def selected(self, names: Sequence[str] | None) -> dict[str, nn.Parameter]:
        """Parameters by name, each once however many names it has; None for all that are trainable.

        Raises:
            UserError: none, or one that has no real derivative; an unknown name.
        """
        known = dict(self.model.named_parameters(remove_duplicate=False))
        for name in names or ():
            if name not in known:
                raise UserError(f"curvature: parameters: {unknown_name('parameter', name, known)}")
        chosen = {name: each for name, each in known.items() if each.requires_grad} if names is None else {}
        chosen |= {name: known[name] for name in names or ()}
        found: dict[str, nn.Parameter] = {}
        for name, each in chosen.items():
            if not each.is_floating_point():
                kind = "complex" if each.is_complex() else "no number of floating point"
                raise UserError(
                    f"curvature: parameter {name} is {kind} ({str(each.dtype).removeprefix('torch.')}); a Hessian "
                    "needs real numbers of floating point. Freeze it (requires_grad_(False)), or name others in "
                    "parameters=."
                )
            if not any(each is other for other in found.values()):
                each.requires_grad = True
                found[name] = each
        if not found:
            raise UserError(
                "curvature: no parameter is trainable. Let one be (requires_grad_(True)), or name some in parameters=."
            )
        return found

    @contextmanager
    def running(self, draws: int) -> Iterator[None]:
        """Run a pass that can be differentiated twice; the copy and all else is put back after it.

        Fused attention has no second derivative, nor have cuDNN's recurrent kernels, and that of a fused weight norm is
        wrong; the same mathematics in plain operations has one.

        Args:
            draws: number of the stream that the model draws from, if it draws: always the same for a batch.
        """
        with ExitStack() as stack:
            stack.enter_context(as_found(self.model))
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.enable_grad())
            stack.enter_context(torch.autocast(self.device.type, enabled=False))
            stack.enter_context(sdpa_kernel([SDPBackend.MATH]))
            plain = PlainOperations()
            if self._plain.get(draws, True):  # it takes a tenth of the time of small operations
                stack.enter_context(plain)
            if self._recurrent and self._on_cuda:
                stack.enter_context(torch.backends.cudnn.flags(enabled=False))
            torch.set_default_dtype(self.dtype)  # as_found puts it back, and the generators
            self._seed(draws)
            yield
            self._plain.setdefault(draws, plain.used)

    def _seed(self, draws: int) -> None:
        seeds = [int(each) for each in stream(0, "probe", "curvature", "draws", draws).integers(2**32, size=3)]
        set_generator("cpu", seeds[0])
        if self._on_cuda:
            with torch.cuda.device(self.device):  # that of the others as_found would not put back
                torch.cuda.manual_seed(seeds[0])
        np.random.seed(seeds[1])  # noqa: NPY002 - other people's models may draw from it
        random.seed(seeds[2])

    def generator_states(self) -> tuple[object, ...]:
        """Of all generators that a model may draw from, to be compared."""
        numpy_state: Any = np.random.get_state(legacy=False)  # noqa: NPY002 - see above
        states = [torch.get_rng_state(), *([torch.cuda.get_rng_state(self.device)] if self._on_cuda else [])]
        return random.getstate(), repr(numpy_state), *(each.numpy().tobytes() for each in states)
