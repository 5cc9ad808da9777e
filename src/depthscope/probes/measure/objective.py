"""Of what the gradients are: the caller's loss, the model's own, or a random direction at the output."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from depthscope.core.errors import UserError, words_of
from depthscope.core.readings import Objective

LossFn = Callable[[Any, Any], Tensor]
"""`(output, targets) -> loss`: what the model gave, and the targets of the batch (None where it holds none)."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """Where the backward pass starts.

    Attributes:
        objective: what it is the gradient of.
        tensors: differentiated.
        cotangents: of each; None for a loss.
        num_classes: of a loss with class targets.
    """

    objective: Objective
    tensors: tuple[Tensor, ...]
    cotangents: tuple[Tensor, ...] | None = None
    num_classes: int | None = None

    @property
    def loss(self) -> Tensor | None:
        """The loss, where there is one."""
        return None if self.objective == "cotangent" else self.tensors[0].detach()


def start_of(output: Any, targets: Any, loss_fn: LossFn | None, *, seed: int) -> Start:
    """Where the backward pass starts for what the model gave.

    With a `loss_fn` at `loss_fn(output, targets)`. Without, at `output.loss` or `output["loss"]` where that is a
    tensor. Else no loss is invented: a cotangent of standard normal entries (the same on every device) is put at each
    floating-point tensor of the output, which measures the network alone.

    Raises:
        UserError: the loss is not one number, or depends on nothing; the output holds no tensor with a gradient;
            `loss_fn` raised.
    """
    if loss_fn is not None:
        try:
            loss: Any = loss_fn(output, targets)
        except UserError:
            raise
        except (Exception, SystemExit) as error:  # that one would end the program as if all had gone well
            raise UserError(
                f"probe: loss_fn raised {type(error).__name__}: {words_of(error)}; it was given the output "
                f"{described(output)} and the targets {described(targets)}.{_mend(output, targets)}"
            ) from error
        scores = output if isinstance(output, Tensor) else _entry(output, "logits")
        return Start(objective="loss", tensors=(_checked(loss, "loss_fn"),), num_classes=_classes(scores, targets))
    own = _entry(output, "loss")
    if isinstance(own, Tensor):
        classes = _classes(_entry(output, "logits"), targets)
        return Start(objective="model loss", tensors=(_checked(own, "the model's loss"),), num_classes=classes)
    reached = list({id(each): each for each in results(output) if each.requires_grad}.values())
    if not reached:
        raise UserError(
            f"probe: the model's output ({type(output).__name__}) holds no floating-point tensor that depends on its "
            "parameters or inputs, so that there is no gradient. Is the forward pass under no_grad?"
        )
    generator = torch.Generator().manual_seed(seed)
    cotangents = tuple(_normal(each, generator) for each in reached)
    return Start(objective="cotangent", tensors=tuple(reached), cotangents=cotangents)


INNER = ("hidden_states", "attentions", "past_key_values", "encoder_last_hidden_state")
"""Ends of the names under which Hugging Face's models hand out, beside their results, what lies inside the pass."""


def results(output: Any) -> Iterator[Tensor]:
    """Floating-point tensors of an output: of tensors, tuples, lists, mappings and dataclasses, nested at will."""
    if isinstance(output, Tensor):
        if output.is_floating_point() or output.is_complex():
            yield output
    elif isinstance(output, Mapping):
        for name, item in output.items():
            if not (isinstance(name, str) and name.endswith(INNER)):
                yield from results(item)
    elif isinstance(output, tuple | list):
        for item in output:
            yield from results(item)
    elif dataclasses.is_dataclass(output) and not isinstance(output, type):
        yield from results({field.name: getattr(output, field.name) for field in dataclasses.fields(output)})


def described(value: object) -> str:
    """A tensor by dtype and shape, of integers with its range; another thing by its type."""
    if not isinstance(value, Tensor):
        return type(value).__name__
    text = f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    whole = not (value.is_floating_point() or value.is_complex() or value.dtype == torch.bool)
    return f"{text} of {int(value.min())} to {int(value.max())}" if whole and value.numel() else text


def _mend(output: Any, targets: Any) -> str:
    """What a loss that raised may have wanted."""
    if targets is None:
        return " The batch holds no targets: give (inputs, targets)."
    if isinstance(output, Tensor):
        return ""
    tensors = [name for name, item in output.items() if isinstance(item, Tensor)] if isinstance(output, Mapping) else []
    pick = (
        f"output[{tensors[-1]!r}]" if tensors else "output[0]" if isinstance(output, tuple | list) else "output.logits"
    )
    return f" Select the tensor in loss_fn: lambda output, targets: loss({pick}, targets)."


def _entry(output: Any, name: str) -> Any:
    """`output.name` or `output[name]`; None where it has neither."""
    return output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)


def _checked(loss: Any, source: str) -> Tensor:
    if not isinstance(loss, Tensor):
        raise UserError(f"probe: {source}: wanted a tensor of one number, got {type(loss).__name__}.")
    if loss.numel() != 1:
        mend = " Reduce it, as by `.mean()`."
        raise UserError(f"probe: {source}: wanted a tensor of one number, got shape {tuple(loss.shape)}.{mend}")
    if not loss.requires_grad:
        raise UserError(
            f"probe: {source}: it does not depend on the model's parameters or inputs, so that it has no gradient. Was "
            "it detached, or computed under no_grad?"
        )
    return loss


def _classes(scores: Any, targets: Any) -> int | None:
    """How many classes integer targets are out of; None where the targets are no classes of these scores."""
    if not (isinstance(scores, Tensor) and isinstance(targets, Tensor)) or scores.ndim < 2:
        return None
    if targets.dtype not in (torch.int64, torch.int32, torch.uint8):
        return None
    if targets.shape == scores.shape[:-1]:
        return scores.shape[-1]
    # Cross entropy of images takes the classes from the second dimension.
    return scores.shape[1] if targets.shape == scores.shape[:1] + scores.shape[2:] else None


def _normal(like: Tensor, generator: torch.Generator) -> Tensor:
    # Drawn on the CPU in float32, so that every device and dtype gets the same direction.
    shape = (*like.shape, 2) if like.is_complex() else like.shape
    parts = torch.randn(shape, generator=generator, dtype=torch.float32)
    drawn = torch.view_as_complex(parts) if like.is_complex() else parts
    return drawn.to(like.device, like.dtype)
