"""What was found of each parameter: norms of it and of its gradient, and whether it has one at all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from torch import Tensor

from depthscope.core.readings import Reading
from depthscope.core.structure import Status, Structure
from depthscope.probes.norms import norms, to_host, total


def parameter_readings(
    names: Collection[str], weight_norms: Tensor, gradients: Mapping[str, Tensor], *, step: int
) -> Iterator[Reading]:
    """|W|, |dW|, |dW|/|W| of each parameter, and the norm of the gradient by all together.

    A parameter without a gradient has no |dW|, never one of 0; one that is 0 has no ratio.

    Args:
        names: of the parameters, tied ones once.
        weight_norms: [number of names], by `norms`.
        gradients: of those that have one: sparse and complex ones too.
        step: written into the readings.
    """
    found = norms(list(gradients.values())) if gradients else weight_norms[:0]
    weights, sizes = to_host([weight_norms, found])
    by_name = dict(zip(gradients, sizes, strict=True))
    for name, weight in zip(names, weights, strict=True):
        yield Reading(step=step, place="parameter", name=name, quantity="weight_norm", value=weight)
        if name in by_name:
            gradient = by_name[name]
            yield Reading(step=step, place="parameter", name=name, quantity="weight_grad_norm", value=gradient)
            if weight:
                ratio = gradient / weight
                yield Reading(step=step, place="parameter", name=name, quantity="weight_grad_ratio", value=ratio)
    if sizes:
        yield Reading(step=step, place="model", name="", quantity="grad_norm", value=total(sizes))


def statuses(structure: Structure, reached: Collection[str]) -> dict[str, Status]:
    """Of each parameter, by its first name and by its aliases.

    Args:
        structure: of the model, as it was found.
        reached: names of those that had a gradient.
    """
    found: dict[str, Status] = {}
    for parameter in structure.parameters:
        if not parameter.trainable:
            found[parameter.name] = "frozen"
        elif parameter.name in reached:
            found[parameter.name] = "ok"
        else:
            found[parameter.name] = "no grad" if parameter.used else "unused"
        found.update((alias, "shared") for alias in parameter.aliases)
    return found
