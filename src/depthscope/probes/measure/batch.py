"""A batch as a caller has it, read as what a model is called with, the targets, and the number of examples."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from torch import Tensor, nn

from depthscope.core.errors import UserError, shown
from depthscope.probes.contents import GENERATORS, copied_generator

Result = TypeVar("Result")

WANTED = "a tensor, (inputs, targets), (inputs, ..., targets) or a mapping of the model's arguments"


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What a model is called with.

    Attributes:
        args: by position.
        kwargs: by name.
        targets: what the loss is given beside the output; None where the batch holds none.
        num_examples: length of the first dimension of the first tensor.
        closed: the model's input requires no gradient.
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    targets: Any
    num_examples: int
    closed: bool = False

    def fresh(self) -> tuple[tuple[Any, ...], dict[str, Any], list[Tensor]]:
        """Arguments for one call of the model, and the leaves to which their gradients go.

        Every tensor and generator is a clone, since a model may write its input; any other object is the caller's own.
        A tensor of floating point depends on a leaf, so that the gradient flows through all of the model although
        parameters may be frozen; the clone itself is no leaf, which an in-place operation could not write. Not where
        `closed`.
        """
        leaves: list[Tensor] = []

        def clone(tensor: Tensor) -> Tensor:
            if self.closed or not (tensor.is_floating_point() or tensor.is_complex()):
                return tensor.detach().clone()
            leaf = tensor.detach().clone()
            leaf.requires_grad = True  # `requires_grad_` would load torch's compiler, which takes seconds
            leaves.append(leaf)
            return leaf.clone()

        return _mapped(self.args, clone), _mapped(dict(self.kwargs), clone), leaves

    def fresh_targets(self) -> Any:
        """Targets for one call of a loss, cloned likewise."""
        return _mapped(self.targets, lambda tensor: tensor.detach().clone())

    def described(self) -> str:
        """The arguments' dtypes and shapes, for messages."""
        parts = [_described(each) for each in self.args]
        parts += [f"{name}: {_described(each)}" for name, each in self.kwargs.items()]
        return ", ".join(parts)

    def converted(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """The same batch with each tensor changed, targets too."""
        args, kwargs, targets = (_mapped(each, change) for each in (self.args, dict(self.kwargs), self.targets))
        return replace(self, args=args, kwargs=kwargs, targets=targets)


def taken(batch: Batch, run: Callable[[Batch], Result]) -> tuple[Batch, Result]:
    """Run a model on a batch, and tell how it takes it.

    Some models demand that their input requires no gradient: they set the flag themselves, which torch lets them do to
    none that depends on a leaf (Wav2Vec2 in train mode). The model's input then has no gradient.

    Returns:
        The batch, `closed` where it had to be, and what `run` gave with it.
    """
    try:
        return batch, run(batch)
    except RuntimeError as error:
        if batch.closed or "requires_grad flags of leaf" not in str(error):
            raise
    batch = replace(batch, closed=True)
    return batch, run(batch)


def read_batch(batch: object, model: nn.Module, *, with_loss: bool) -> Batch:
    """Read a batch.

    A tensor is the input. The last of a tuple or list of several is the targets, what stands before it the inputs. A
    mapping, as a tokenizer or a Hugging Face data collator makes, gives arguments by name; its `labels` are the targets
    too. In (mapping, targets) the mapping is the inputs.

    Args:
        batch: what the caller gave.
        model: unwrapped; its `forward` must take the inputs.
        with_loss: a loss function is there; `labels` that the model does not take are then left to it.

    Raises:
        UserError: it is none of these, holds no tensor or no example, does not fit the model's `forward`, or lies on
            another device than the model.
    """
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    targets: Any = None
    if isinstance(batch, Tensor):
        args = (batch,)
    elif isinstance(batch, Mapping):
        kwargs = dict(batch)
        targets = kwargs.get("labels")
    elif isinstance(batch, tuple | list) and batch:
        *inputs, targets = batch if len(batch) > 1 else (*batch, None)
        if len(inputs) == 1 and isinstance(inputs[0], Mapping):
            kwargs = dict(inputs[0])
        else:
            args = tuple(inputs)
    else:
        raise UserError(f"probe: batch: wanted {WANTED}; got {_described(batch)}.")
    if not all(isinstance(name, str) for name in kwargs):
        raise UserError(f"probe: batch: wanted argument names as the mapping's keys; got {shown(list(kwargs))}.")
    if with_loss and "labels" in kwargs and not _takes(model, args, kwargs):
        without = {name: value for name, value in kwargs.items() if name != "labels"}
        kwargs = without if _takes(model, args, without) else kwargs
    _check(model, args, kwargs)
    tensors = [*_tensors(args), *_tensors(kwargs)]
    num_examples = next((each.shape[0] for each in tensors if each.ndim), 1)
    return Batch(args=args, kwargs=kwargs, targets=targets, num_examples=num_examples)


def _check(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    tensors = [*_tensors(args), *_tensors(kwargs)]
    if not tensors:
        what = _described(args[0] if args else kwargs)
        raise UserError(f"probe: batch: wanted {WANTED}, with tensors as inputs; got {what}. See torch.as_tensor.")
    if not all(each.numel() for each in tensors):
        raise UserError("probe: batch: it has no example: a tensor in it is empty. Give at least one.")
    try:
        inspect.signature(model.forward).bind(*args, **kwargs)
    except ValueError:  # a forward without a signature, such as a scripted one
        pass
    except TypeError as error:
        given = ", ".join([*(f"input {index}" for index in range(len(args))), *kwargs])
        raise UserError(
            f"probe: batch: it gives the model {given}; {type(model).__name__}.forward"
            f"{inspect.signature(model.forward)} does not take that: {error}. Several inputs are "
            "(inputs, ..., targets) or a mapping of argument names."
        ) from error
    homes = {each.device for each in (*model.parameters(), *model.buffers())}
    for tensor in tensors:
        if len(homes) == 1 and tensor.ndim and tensor.device not in homes:
            raise UserError(
                f"probe: batch: a tensor lies on {tensor.device}, the model on {next(iter(homes))}. "
                "Move one with `.to(device)`."
            )


def _takes(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(model.forward).bind(*args, **kwargs)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _tensors(value: object) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """`value` with each tensor changed; generators are copied; tuples, lists and dicts are made anew."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, GENERATORS):
        return copied_generator(value)
    if type(value) is dict:
        return {name: _mapped(item, change) for name, item in value.items()}
    if type(value) in (tuple, list):
        return type(value)(_mapped(item, change) for item in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(item, change) for item in value))
    return value


def _described(value: object) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    shape = getattr(value, "shape", None)
    return type(value).__name__ + (f" {list(shape)}" if isinstance(shape, tuple) else "")
