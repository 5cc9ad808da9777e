"""How a model is run to be measured: as it is found, with gradients that reach everything there is to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import checkpoint

from depthscope.core.errors import UserError, place_of, words_of
from depthscope.core.structure import Structure
from depthscope.probes.measure.batch import Batch
from depthscope.probes.measure.objective import Start


@contextmanager
def with_gradients() -> Iterator[None]:
    """Gradients on, whatever the caller's mode; activations that are checkpointed are so without re-entering autograd.

    The re-entrant kind refuses to give gradients by chosen tensors, and hides what it runs from hooks. The other
    computes the same.
    """
    function: Any = checkpoint.CheckpointFunction

    def apply(run: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        return checkpoint.checkpoint(run, *args, use_reentrant=False, preserve_rng_state=preserve)

    with torch.inference_mode(False), torch.enable_grad():
        inherited = "apply" not in vars(function)  # not so where one measurement runs inside another
        if inherited:
            function.apply = apply
        try:
            yield
        finally:
            if inherited:
                del function.apply


@contextmanager
def told(model: nn.Module, batch: Batch) -> Iterator[None]:
    """Whatever a model raises on a batch becomes one line for its user, with the batch's shapes."""
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:  # that one would end the program as if all had gone well
        raise UserError(
            f"probe: the model ({type(model).__name__}) raised {type(error).__name__} on this batch "
            f"({batch.described()}): {words_of(error)}{f' ({place})' if (place := place_of(error)) else ''}"
        ) from error


def open_stem(model: nn.Module, structure: Structure) -> list[Tensor]:
    """Let the gradient through a frozen stem, so that boundaries have theirs although the input is integers.

    Only within `as_found`, which freezes it again.

    Returns:
        What was frozen.
    """
    by_name = dict(model.named_parameters(remove_duplicate=False))  # a scripted model has no `get_parameter`
    names = structure.blocks[0].weights if structure.blocks else ()
    opened = [each for each in map(by_name.__getitem__, names) if not each.requires_grad and _differentiable(each)]
    for weight in opened:
        weight.requires_grad = True
    return list(opened)


def _differentiable(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def dtype_of(model: nn.Module) -> str:
    """Of the parameters, the most frequent by numbers; float32 where there are none."""
    sizes: dict[torch.dtype, int] = {}
    for parameter in model.parameters():
        sizes[parameter.dtype] = sizes.get(parameter.dtype, 0) + parameter.numel()
    return str(max(sizes, key=lambda each: sizes[each])).removeprefix("torch.") if sizes else "float32"


def gradients_of(start: Start, parameters: Mapping[str, Tensor], others: Sequence[Tensor]) -> dict[str, Tensor]:
    """Gradients by parameters, those that there are; on the way to them and to the others the hooks fire.

    Not by `backward`: that would fill `.grad`, and run what hangs on it (an optimiser inside the backward pass, the
    reduction of DistributedDataParallel).
    """
    wanted = [*parameters.values(), *others]
    if not wanted:
        return {}
    found = torch.autograd.grad(start.tensors, wanted, start.cotangents, allow_unused=True)
    return {name: each for name, each in zip(parameters, found, strict=False) if each is not None}
