"""A map at one point as a linear map: products with its Jacobian J and with J^T, through autograd.

Shape letters: B examples (first dimension), x the map's input, y its output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.nn.attention import SDPBackend, sdpa_kernel


class Anchor:
    """The place of a tensor in autograd's graph at this moment.

    A later in-place operation moves the tensor on in the graph; the anchor stays where it was.

    Args:
        tensor: part of a graph. It is kept, since views have their place made anew when their base is written.
    """

    def __init__(self, tensor: Tensor) -> None:
        self.shape = tuple(tensor.shape)
        self.dtype = tensor.dtype
        self.device = tensor.device
        self.edge = get_gradient_edge(tensor)
        self._tensor = tensor

    @property
    def output(self) -> Tensor | GradientEdge:
        """What to differentiate: the tensor where it still is here; else the edge.

        Raises:
            RuntimeError: this version of torch does not differentiate edges.
        """
        now = get_gradient_edge(self._tensor)
        if (now.node, now.output_nr) == (self.edge.node, self.edge.output_nr):
            return self._tensor
        if not _differentiates_edges():
            raise RuntimeError(f"its end is overwritten in place, for which torch {torch.__version__} is too old")
        return self.edge

    def zeros(self) -> Tensor:
        """Of the tensor's shape, dtype and place."""
        return torch.zeros(self.shape, dtype=self.dtype, device=self.device)


class Linearised:
    """J = dy/dx at one point, [y's entries, x's entries], by its products with vectors.

    J^T v is one backward pass between the two. J u is the gradient of <J^T v, u> by v: autograd differentiates the
    backward pass, which is linear in v, once; so that graph serves for every u.

    Args:
        x: where the map begins.
        y: where it ends, in the same graph.
    """

    def __init__(self, x: Anchor, y: Anchor) -> None:
        self.x = x
        self.y = y
        self._output = y.output
        self._transposed: tuple[Tensor, Tensor | None] | None = None

    def vjp(self, v: Tensor) -> Tensor:
        """J^T v, shaped as x; v is shaped as y. Entries of x on which y does not depend give 0."""
        found = _grad(self._output, self.x.edge, v.to(self.y.dtype), create_graph=False)
        return self.x.zeros() if found is None else found

    def jvp(self, u: Tensor) -> Tensor:
        """J u, shaped as y; u is shaped as x.

        Raises:
            RuntimeError: autograd cannot differentiate the backward pass of an operation between the two.
        """
        if self._transposed is None:
            v = self.y.zeros().requires_grad_(True)
            self._transposed = v, _grad(self._output, self.x.edge, v, create_graph=True)
        v, transposed = self._transposed
        found = None
        if transposed is not None and transposed.requires_grad:
            found = _grad(transposed, v, u.to(transposed.dtype), create_graph=False)
        return self.y.zeros() if found is None else found


@lru_cache(maxsize=1)
def _differentiates_edges() -> bool:
    y = torch.ones(1, requires_grad=True) * 1
    try:
        _grad(get_gradient_edge(y), get_gradient_edge(y), torch.ones(1), create_graph=False)
    except (AttributeError, TypeError, RuntimeError):  # torch 2.4
        return False
    return True


def _grad(output: Tensor | GradientEdge, by: Any, v: Tensor, *, create_graph: bool) -> Tensor | None:
    grad = cast(Callable[..., tuple[Tensor | None]], torch.autograd.grad)
    return grad((output,), (by,), (v,), create_graph=create_graph, retain_graph=True, allow_unused=True)[0]


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
