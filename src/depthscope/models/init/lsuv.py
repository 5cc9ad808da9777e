"""LSUV: each layer's weights divided by the deviation of its output on a batch, in the order of the forward pass."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn

from depthscope.core.errors import UserError
from depthscope.core.streams import stream
from depthscope.models.construct import seeded
from depthscope.models.init.rules import is_weighted
from depthscope.models.init.statistics import batch_statistics, widened


def lsuv(
    model: nn.Module,
    drawn: frozenset[str],
    examples: Tensor,
    *,
    seed: int,
    tolerance: float = 0.02,
    max_tries: int = 20,
) -> None:
    """Bring the variance of every layer's output on `examples` to 1.

    While |Var(out) - 1| > tolerance: W /= sqrt(Var(out)), at most `max_tries` times, layer by layer as they are called.
    The variance is that of all the output's entries about their mean, in float64. One forward pass does it all: a
    layer's output is made anew after each division, and what comes after it sees the last one. So projections on
    shortcuts and gates have their turn too, where the data reaches them; a layer that is called twice, at its first
    call. Layers that the pass does not call, and the joint projections of attention, keep their orthonormal weights.

    Batch norm uses the batch's statistics, as in the first training step, and keeps its running ones as they were.
    Everything else is as in evaluation, so that dropout and dropped branches draw nothing.

    Source: Mishkin & Matas 2016, arXiv 1511.06422, algorithm 1.

    Args:
        model: with orthonormal weights.
        drawn: names of the weights that may be changed; others are what a constructor has set.
        examples: inputs of the model, normalised as in training, [N, ...].
        seed: of the run, for models that draw all the same.
        tolerance: of the variance.
        max_tries: divisions a layer.

    Raises:
        UserError: an output's variance is 0 or not finite, or is not brought to 1.
    """
    names = {module: name or "the model" for name, module in model.named_modules()}
    done: set[nn.Module] = set()

    def scale(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        if module in done:
            return None
        done.add(module)
        weight: Any = module.weight
        for tries in range(max_tries + 1):
            variance = float(widened(output).var(correction=0))
            if not (math.isfinite(variance) and variance > 0):
                raise UserError(_hopeless(names[module], variance))
            if abs(variance - 1) <= tolerance:
                return output
            if tries < max_tries:
                weight.div_(math.sqrt(variance))
                output = module.forward(*args, **kwargs)  # (not a call: that would come here again)
        raise UserError(_unreached(names[module], module, variance, tolerance, max_tries))

    mine = [
        module
        for name, module in model.named_modules()
        if is_weighted(module) and (f"{name}.weight" if name else "weight") in drawn
    ]
    hooks = [module.register_forward_hook(scale, with_kwargs=True) for module in mine]
    place = next(model.parameters())
    try:
        with batch_statistics(model), seeded(int(stream(seed, "model", "lsuv").integers(2**63))):
            model(examples.to(place.device, place.dtype if examples.is_floating_point() else examples.dtype))
    finally:
        for hook in hooks:
            hook.remove()


def _hopeless(name: str, variance: float) -> str:
    return (
        f"lsuv: the output of {name} has variance {variance:g} on the examples, and no factor on its weights brings it "
        "to 1. Its input is constant or not finite: look at the data, and at what the network does before it."
    )


def _unreached(name: str, module: nn.Module, variance: float, tolerance: float, max_tries: int) -> str:
    return (
        f"lsuv: the output of {name} ({type(module).__name__}) has variance {variance:.4g} after {max_tries} divisions "
        f"of its weights; wanted 1 within {tolerance:g}. A layer that standardises its weights undoes each: choose "
        "another norm. Else raise init_options.max_tries or init_options.tolerance."
    )
