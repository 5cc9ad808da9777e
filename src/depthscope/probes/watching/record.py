"""One finished step brought to the host: readings, conditions, statuses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from depthscope.core.readings import Conditions, Objective, Place, Reading
from depthscope.core.structure import Status, Structure
from depthscope.probes.measure.listener import Recorder
from depthscope.probes.norms import to_host, total
from depthscope.probes.watching.attempt import Attempt
from depthscope.probes.watching.parameters import Parameters
from depthscope.probes.watching.passes import Pass
from depthscope.probes.watching.scaling import Unscaled, unscaled
from depthscope.probes.watching.skipped import why_skipped

DIFFER = "the micro-batches of this step did not run the same blocks, so that they cannot be put together"


@dataclass(frozen=True, kw_only=True)
class Record:
    """What was measured at one step.

    Attributes:
        step: attempts at an update before it, skipped ones too.
        readings: boundaries, blocks, additions and the model's multiplier on scheduled steps; parameters always.
        conditions: under which they were taken.
        statuses: of the parameters, aliases too.
    """

    step: int
    readings: tuple[Reading, ...]
    conditions: Conditions
    statuses: Mapping[str, Status] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Numbers:
    """An attempt's numbers on the host."""

    gradients: Mapping[str, float]
    weights: Mapping[str, float]
    clipped: Mapping[str, float]
    scale: float | None
    clipped_scale: float | None
    found_inf: bool
    losses: Sequence[float]


def make_record(
    attempt: Attempt, parameters: Parameters, structure: Structure, *, silent: str, changes: bool, training: bool
) -> Record:
    """Bring an attempt to the host.

    Args:
        attempt: finished.
        parameters: of the model.
        structure: what was recognised in it.
        silent: why places give no readings.
        changes: the model runs other operations from pass to pass.
        training: whether the model is in train mode.
    """
    numbers = _on_host(attempt)
    passes = [each for each in attempt.passes if each.reached]
    together = _together(passes)
    if changes and together is None:  # which blocks ran is not known
        unused = set(parameters.names) - set(numbers.gradients)
    else:
        of = structure if together is None else together[1]
        unused = {each.name for each in of.parameters if not each.used}
    statuses = parameters.statuses(numbers.gradients, unused)
    seen = unscaled(
        # An unused or frozen parameter may still hold an old gradient, or one of zeros: that is no number of this step.
        {name: norm for name, norm in numbers.gradients.items() if statuses.get(name) == "ok"},
        {name: norm for name, norm in numbers.clipped.items() if statuses.get(name) == "ok"},
        scale=numbers.scale,
        after_scale=numbers.clipped_scale,
        dtype=parameters.dtype,
    )
    readings = [] if together is None else [*together[0].readings(together[1], step=attempt.step, scale=seen.scale)]
    differ = DIFFER if together is None and passes and not silent else ""
    silences = (silent, differ, _without_gradient(readings, structure), attempt.note)
    readings += _of_parameters(attempt.step, seen, numbers.weights)
    objective: Objective = "loss"
    if passes and len(numbers.losses) == len(passes):
        objective = "model loss"
        readings.append(_reading(attempt.step, "model", "", "loss", math.fsum(numbers.losses) / len(passes)))
    did_skip = attempt.skipped or numbers.found_inf
    return Record(
        step=attempt.step,
        readings=tuple(readings),
        conditions=Conditions(
            objective=objective,
            batch=sum(each.num_examples for each in passes),
            training=training,
            dtype=parameters.dtype,
            device=parameters.device.type,
            loss_scale=seen.scale,
            clipped=bool(seen.after),
            skipped=why_skipped(readings, structure) if did_skip else "",
            silent="; ".join(each for each in silences if each),
        ),
        statuses=statuses,
    )


def _on_host(attempt: Attempt) -> _Numbers:
    named = [attempt.gradients, *attempt.clipped]
    losses = [each.loss for each in attempt.passes if each.reached and each.loss is not None]
    singles = [attempt.scale, attempt.clipped_scale, attempt.found_inf]
    wanted = [*(None if each is None else each.values for each in named), attempt.weights, *singles, *losses]
    numbers = iter(to_host([each for each in wanted if each is not None]))
    found = [[] if each is None else next(numbers) for each in wanted]
    by_name = [
        {} if each is None else dict(zip((attempt.names[index] for index in each.indices), values, strict=True))
        for each, values in zip(named, found, strict=False)
    ]
    weights, scale, clipped_scale, found_inf, *of_losses = found[len(named) :]
    return _Numbers(
        gradients=by_name[0],
        weights=dict(zip(attempt.names, weights, strict=False)),
        clipped={name: norm for each in by_name[1:] for name, norm in each.items()},
        scale=scale[0] if scale else None,
        clipped_scale=clipped_scale[0] if clipped_scale else None,
        found_inf=bool(found_inf and found_inf[0]),
        losses=[each[0] for each in of_losses],
    )


def _together(passes: Sequence[Pass]) -> tuple[Recorder, Structure] | None:
    """The micro-batches of a step as one; None where one of them was not measured, or ran other blocks."""
    together, structure = Recorder(0), None  # a new one: a record may be made of the same attempt again
    for each in passes:
        if each.recorder is None or each.structure is None:
            return None
        if structure is not None and _places(each.structure) != _places(structure):
            return None
        structure = each.structure
        together.absorb(each.recorder)
    return None if structure is None else (together, structure)


def _places(structure: Structure) -> list[str]:
    return [*(each.name for each in structure.boundaries), *(each.name for each in structure.additions)]


def _without_gradient(readings: Sequence[Reading], structure: Structure) -> str:
    seen = {each.name for each in readings if each.place == "boundary" and each.quantity == "norm"}
    reached = {each.name for each in readings if each.place == "boundary" and each.quantity == "grad_norm"}
    # Boundary 0 is the data, which needs no gradient.
    names = [each.name for each in structure.boundaries[1:] if each.name in seen - reached]
    if not names:
        return ""
    others = f" and {len(names) - 1} more boundaries" if len(names) > 1 else ""
    return (
        f"no gradient passes {names[0]}{others}: all before is frozen, or lies in a re-entrant activation checkpoint "
        "(use_reentrant=False shows it)"
    )


def _of_parameters(step: int, seen: Unscaled, weights: Mapping[str, float]) -> Iterator[Reading]:
    for name, norm in weights.items():
        yield _reading(step, "parameter", name, "weight_norm", norm)
        if name in seen.before:
            yield _reading(step, "parameter", name, "weight_grad_norm", seen.before[name])
            if norm > 0:
                yield _reading(step, "parameter", name, "weight_grad_ratio", seen.before[name] / norm)
        if name in seen.after:
            yield _reading(step, "parameter", name, "clipped_grad_norm", seen.after[name])
    if seen.before:
        yield _reading(step, "model", "", "grad_norm", total(list(seen.before.values())))
    if seen.after:
        got = {**seen.before, **seen.after}
        yield _reading(step, "model", "", "clipped_grad_norm", total(list(got.values())))


def _reading(step: int, place: Place, name: str, quantity: str, value: float) -> Reading:
    return Reading(step=step, place=place, name=name, quantity=quantity, value=value)
