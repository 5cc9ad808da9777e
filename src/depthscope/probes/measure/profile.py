"""Measure a model once: its structure, and what one forward and one backward pass show in it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

import torch
from torch import nn

from depthscope.core.errors import UserError, shown, unknown_name
from depthscope.core.readings import Conditions, ModelProfile, Reading
from depthscope.probes.guard import as_found, unwrapped
from depthscope.probes.measure.batch import Batch, read_batch, taken
from depthscope.probes.measure.common import common
from depthscope.probes.measure.draws import with_other_draws
from depthscope.probes.measure.listener import Recorder, Reducer
from depthscope.probes.measure.objective import LossFn, Start, start_of
from depthscope.probes.measure.parameters import parameter_readings, statuses
from depthscope.probes.measure.passes import dtype_of, gradients_of, open_stem, told, with_gradients
from depthscope.probes.norms import norms, to_host
from depthscope.probes.trace import Follow, Traced, trace

_SHARDED = ("FullyShardedDataParallel", "FSDPModule")


def profile_model(
    model: nn.Module,
    batch: object,
    loss_fn: LossFn | None = None,
    *,
    step: int = 0,
    data: Literal["given", "noise"] = "given",
    seed: int = 0,
    reducers: Sequence[Reducer] = (),
    traced: Traced | None = None,
) -> ModelProfile:
    """Measure any model on one batch, as it is: in its dtype, its mode, its autocast; and leave it as found.

    Two forward passes, the first to find the structure, and one backward pass. Both start from the same generators, so
    that dropout and dropped layers fall alike. Buffers, `.grad`, generators, hooks: see `guard.as_found`. The batch is
    cloned, its generators too; an argument of another kind that the model changes stays changed.

    Args:
        model: bare, or wrapped by `torch.compile`, DataParallel or DistributedDataParallel: it is then run without its
            wrapper, and names carry no prefix. Not sharded by FSDP.
        batch: a tensor, (inputs, targets), (inputs, ..., targets), or a mapping of the model's arguments; the last of a
            tuple is its targets, and so are a mapping's `labels`.
        loss_fn: `(output, targets) -> loss`, the mean over the batch as a rule. None: the model's own `output.loss`
            or `output["loss"]` where it gives one, else a random direction at all floating-point outputs, and no loss.
        step: updates done before, written into the readings.
        data: whether the batch is the caller's, or noise made up from a shape.
        seed: of the random direction.
        reducers: further readings of each boundary tensor, such as its effective rank.
        traced: of an earlier `trace` of this model with such a batch, to spare the first pass.

    Returns:
        Of boundaries, blocks, additions, parameters and the whole model, the quantities of `core.readings`. What a
        place does not have gives no reading. Values that are not finite stand as they are. Where the second
        pass ran other operations than the first, `conditions[step].silent` says so, and what came after is missing; and
        so it does where the model drops layers at random (see `draws`).

    Raises:
        UserError: bad input, in one line: what was wanted, what came, how to mend it. An exception of the model's
            or of `loss_fn` is its `__cause__`.

    >>> body = nn.Linear(2, 2, bias=False)
    >>> _ = nn.init.constant_(body.weight, 0.5)
    >>> profile = profile_model(nn.Sequential(body, nn.Linear(2, 1)), torch.ones(3, 2))
    >>> profile.conditions[0].objective
    'cotangent'
    >>> round(profile.values("boundary", "norm")["0"], 6) == round(6**0.5, 6)
    True
    """
    if not isinstance(model, nn.Module):
        raise UserError(f"probe: model: wanted a torch.nn.Module, got {shown(model)}.")
    for what, number in (("step", step), ("seed", seed)):
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise UserError(f"probe: {what}: wanted an integer of 0 or more, got {shown(number)}.")
    if data not in ("given", "noise"):
        raise UserError(f"probe: data: {unknown_name('origin', str(data), ('given', 'noise'))}")
    inner = unwrapped(model)
    if any(kind.__name__ in _SHARDED for each in model.modules() for kind in type(each).__mro__):
        raise UserError(
            "probe: model: FSDP holds each weight in shards, and its gradient where only its own backward pass finds "
            "it. Probe the model before it is sharded."
        )
    given = read_batch(batch, inner, with_loss=loss_fn is not None)
    with with_gradients():
        while True:
            given, known = (given, traced) if traced is not None else _traced(inner, given)
            with as_found(inner):
                profile = _measured(inner, given, loss_fn, known, step=step, data=data, seed=seed, reducers=reducers)
            if traced is not None or not profile.conditions[step].silent:
                return with_other_draws(inner, profile, partial(_trace, inner, given))
            # Perhaps the model keeps what its first pass computed, where `as_found` does not see it (`lru_cache`).
            traced = _traced(inner, given)[1]


def _traced(model: nn.Module, batch: Batch) -> tuple[Batch, Traced]:
    with told(model, batch):
        return taken(batch, partial(_trace, model))


def _trace(model: nn.Module, batch: Batch) -> Traced:
    args, kwargs, _ = batch.fresh()
    return trace(model, args, kwargs)


def _measured(
    model: nn.Module,
    batch: Batch,
    loss_fn: LossFn | None,
    traced: Traced,
    *,
    step: int,
    data: Literal["given", "noise"],
    seed: int,
    reducers: Sequence[Reducer],
) -> ModelProfile:
    structure = traced.structure
    recorder = Recorder(batch.num_examples, reducers=(common, *reducers))
    tensors = dict(model.named_parameters())
    weight_norms = norms(list(tensors.values())) if tensors else torch.empty(0)
    training = model.training
    opened = open_stem(model, structure)
    args, kwargs, leaves = batch.fresh()
    follow = Follow(traced, recorder)
    with told(model, batch), follow:
        output = model(*args, **kwargs)
    start = start_of(output, batch.fresh_targets(), loss_fn, seed=seed)
    del output
    # As the pass left them: a forward pass may freeze.
    stem = {id(each) for each in opened}
    trainable = {name: each for name, each in tensors.items() if each.requires_grad and id(each) not in stem}
    with told(model, batch):
        gradients = gradients_of(start, trainable, [*leaves, *(each for each in opened if each.requires_grad)])
    readings = [
        *recorder.readings(structure, step=step),
        *parameter_readings(tensors, weight_norms, gradients, step=step),
        *_loss(start, step),
    ]
    conditions = Conditions(
        objective=start.objective,
        data=data,
        batch=batch.num_examples,
        training=training,
        dtype=dtype_of(model),
        device=next((each.device.type for each in tensors.values()), "cpu"),
        num_classes=start.num_classes,
        silent=follow.departed or "",
    )
    return ModelProfile(
        structure=structure,
        readings=tuple(readings),
        conditions={step: conditions},
        statuses=statuses(structure, gradients),
    )


def _loss(start: Start, step: int) -> list[Reading]:
    if start.loss is None:
        return []
    ((value,),) = to_host([start.loss.reshape(1)])
    return [Reading(step=step, place="model", name="", quantity="loss", value=value)]
