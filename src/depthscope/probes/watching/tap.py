"""Hooks on a model and its optimisers that tell what a training loop does, and change nothing of it.

What is told, in the order of one step: a training pass begins and ends; its gradient begins (before any parameter
has received its part); the backward pass is over; the optimiser is about to step, and has stepped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from depthscope.probes.guard import is_under_way
from depthscope.probes.trace.outputs import tensors_of


class Listener(Protocol):
    """What a `Tap` tells."""

    def pass_begins(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """A forward pass in train mode with gradients on; what is returned stands for it from here on."""

    def follow(
        self, ahead: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> AbstractContextManager[Any] | None:
        """The inner module is about to run: a mode to run it under, with the arguments that it got."""

    def pass_ends(self, ahead: Any, output: object, tensors: Sequence[Tensor]) -> None:
        """It gave an output, which holds these tensors with a gradient to come."""

    def gradient_begins(self, ahead: Any) -> bool:
        """The gradient has reached a pass's output, once or more a backward pass; True: tell `backward_over`."""

    def backward_over(self) -> None:
        """All gradients are where they belong, those of DistributedDataParallel averaged."""

    def step_begins(self, optimizer: Optimizer, closure: bool) -> None:
        """An optimiser is about to step; with a closure, the passes are still to come, inside the step."""

    def step_ends(self, optimizer: Optimizer) -> None:
        """It has stepped."""


class Tap:
    """The hooks. `open` sets them, `close` takes away every one.

    Args:
        outer: the model as the training loop calls it: the wrapper, where there is one.
        inner: the model without its wrappers.
        follow: whether its operations are to be followed.
        optimizers: whose steps are told.
        listener: who is told.
    """

    def __init__(
        self, outer: nn.Module, inner: nn.Module, *, follow: bool, optimizers: Sequence[Optimizer], listener: Listener
    ) -> None:
        self._outer = outer
        self._inner = inner
        self._follow = follow
        self._optimizers = optimizers
        self._listener = listener
        self._handles: list[Any] = []
        self._outer_depth = 0
        self._inner_depth = 0
        self._pass: Any = None
        self._mode: AbstractContextManager[Any] | None = None
        self._closed = True

    def open(self) -> None:
        """Set the hooks: before all others on the way in, after all others on the way out."""
        self._closed = False
        self._outer_depth = self._inner_depth = 0
        pre: dict[str, Any] = {"with_kwargs": True, "prepend": True}
        post: dict[str, Any] = {"with_kwargs": True, "always_call": True}
        if self._follow:
            self._handles.append(self._inner.register_forward_pre_hook(Hook(self._inner_begins), **pre))
            self._handles.append(self._inner.register_forward_hook(Hook(self._inner_ends), **post))
        self._handles.append(self._outer.register_forward_pre_hook(Hook(self._outer_begins), **pre))
        self._handles.append(self._outer.register_forward_hook(Hook(self._outer_ends), **post))
        for optimizer in self._optimizers:
            self._handles.append(optimizer.register_step_pre_hook(Hook(self._step_begins)))
            self._handles.append(optimizer.register_step_post_hook(Hook(self._step_ends)))

    def close(self) -> None:
        """Take every hook away. Those on a graph that still lives do nothing from here on."""
        self._leave_mode()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._pass = None
        self._closed = True

    @property
    def _deaf(self) -> bool:
        """Whether what is heard is none of the training: after `close`, and while a measurement runs the model."""
        return self._closed or is_under_way(self._inner)

    def _outer_begins(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._deaf or module is not self._outer:  # a replica of DataParallel carries our hooks too
            return
        self._outer_depth += 1
        if self._outer_depth == 1:
            training = self._inner.training and torch.is_grad_enabled()
            self._pass = self._listener.pass_begins(args, kwargs) if training else None

    def _outer_ends(self, module: nn.Module, _args: object, _kwargs: object, output: object) -> None:
        if self._deaf or module is not self._outer or self._outer_depth == 0:
            return
        self._outer_depth -= 1
        if self._outer_depth or self._pass is None:
            return
        ahead, self._pass = self._pass, None
        tensors = [each for each in tensors_of(output) if each.requires_grad]
        self._listener.pass_ends(ahead, output, tensors)
        for tensor in tensors:
            register: Callable[..., object] = tensor.register_hook  # untyped in torch
            register(Hook(lambda _grad, ahead=ahead: self._gradient_begins(ahead)))

    def _inner_begins(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._deaf or module is not self._inner:
            return
        self._inner_depth += 1
        if self._inner_depth == 1 and self._pass is not None:
            self._mode = self._listener.follow(self._pass, args, kwargs)
            if self._mode is not None:
                self._mode.__enter__()

    def _inner_ends(self, module: nn.Module, _args: object, _kwargs: object, _output: object) -> None:
        if self._deaf or module is not self._inner or self._inner_depth == 0:
            return
        self._inner_depth -= 1
        if self._inner_depth == 0:
            self._leave_mode()

    def _leave_mode(self) -> None:
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.__exit__(None, None, None)

    def _gradient_begins(self, ahead: Any) -> None:
        if not self._deaf and self._listener.gradient_begins(ahead):
            # Twice: DistributedDataParallel queues the end of its reduction after us, in this same backward pass.
            _at_end_of_backward(lambda: _at_end_of_backward(self._backward_over))

    def _backward_over(self) -> None:
        if not self._deaf:
            self._listener.backward_over()

    def _step_begins(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        if not self._deaf:
            closure = args[1] if len(args) > 1 else kwargs.get("closure")  # args[0] is the optimiser
            self._listener.step_begins(optimizer, callable(closure))

    def _step_ends(self, optimizer: Optimizer, _args: object, _kwargs: object) -> None:
        if not self._deaf:
            self._listener.step_ends(optimizer)


class Hook:
    """A hook that stays behind where its module is copied or saved (an average of weights, a best model kept).

    A module's copy holds its hooks too: a copied hook must not copy what it tells to, nor tell of the copy.
    """

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Tell; in code that is being compiled nothing, so that no break is put into its graph."""
        if torch.compiler.is_compiling():
            return None
        return self._call(*args, **kwargs)

    def __reduce__(self) -> tuple[type[Hook], tuple[Callable[..., None]]]:
        return Hook, (_nothing,)


def _nothing(*_args: object, **_kwargs: object) -> None:
    return None


def _at_end_of_backward(call: Callable[[], None]) -> None:
    # The engine's own list of callbacks, on which DistributedDataParallel and FSDP stand too.
    torch.autograd.Variable._execution_engine.queue_callback(call)
