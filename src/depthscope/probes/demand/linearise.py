"""A map at one point as a linear map: products with its Jacobian J and with J^T, through autograd.

Shape letters: B examples (first dimension), x the map's input, y its output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge
from torch.nn.attention import SDPBackend, sdpa_kernel


class Anchor:
    """The place of a tensor in autograd's graph at this moment.

    A later in-place operation moves the tensor on in the graph; the anchor stays where it was.

    Args:
        tensor: part of a graph.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.shape = tuple(tensor.shape)
        self.dtype = tensor.dtype
        self.device = tensor.device
        self.edge = get_gradient_edge(tensor)


class Linearised:
    """J = dy/dx at one point, [y's entries, x's entries], by its products with vectors.

    J^T v is one backward pass between the two. J u is the gradient of <J^T v, u> by v: autograd differentiates the
    backward pass, which is linear in v, once; so that graph serves for every u.

    Args:
        x: where the map begins.
        y: where it ends, of the same graph; it must not be changed in place afterwards.
    """

    def __init__(self, x: Anchor, y: Tensor) -> None:
        self.x = x
        self.y = y
        self._transposed: tuple[Tensor, Tensor | None] | None = None

    def vjp(self, v: Tensor) -> Tensor:
        """J^T v, shaped as x; v is shaped as y. Entries of x on which y does not depend give 0."""
        return self._filled(_grad(self.y, self.x.edge, v.to(self.y.dtype), create_graph=False))

    def jvp(self, u: Tensor) -> Tensor:
        """J u, shaped as y; u is shaped as x.

        Raises:
            RuntimeError: autograd cannot differentiate the backward pass of an operation between the two.
        """
        if self._transposed is None:
            v = torch.zeros_like(self.y, requires_grad=True)
            self._transposed = v, _grad(self.y, self.x.edge, v, create_graph=True)
        v, transposed = self._transposed
        found = None
        if transposed is not None and transposed.requires_grad:
            found = _grad(transposed, v, u.to(transposed.dtype), create_graph=False)
        return torch.zeros_like(self.y) if found is None else found

    def _filled(self, gradient: Tensor | None) -> Tensor:
        if gradient is None:
            return torch.zeros(self.x.shape, dtype=self.x.dtype, device=self.x.device)
        return gradient


def _grad(output: Tensor, by: Any, v: Tensor, *, create_graph: bool) -> Tensor | None:
    grad = cast(Callable[..., tuple[Tensor | None]], torch.autograd.grad)
    return grad(output, [by], v, create_graph=create_graph, retain_graph=True, allow_unused=True)[0]


@contextmanager
def with_gradients(device: torch.device) -> Iterator[None]:
    """Run a pass with gradients on, whatever the caller has; the global generators of the device are put back.

    Args:
        device: where the pass computes.
    """
    with (
        torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
        torch.inference_mode(False),
        torch.enable_grad(),
    ):
        yield


@contextmanager
def differentiating(device: torch.device) -> Iterator[None]:
    """`with_gradients`, and by operations whose backward pass autograd can differentiate.

    Fused attention and cuDNN's recurrent kernels have no derivative of their backward pass; the same mathematics in
    plain operations has one.

    Args:
        device: where the pass computes.
    """
    with ExitStack() as stack:
        stack.enter_context(with_gradients(device))
        stack.enter_context(sdpa_kernel([SDPBackend.MATH]))
        if device.type == "cuda":
            stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        yield
