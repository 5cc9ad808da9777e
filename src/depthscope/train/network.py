"""The torch network of a run, from the catalogue or of the user's own, and where it is measured.

Shape letters: B batch, T positions, K classes or targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from depthscope.core.depth import deepnorm, fixup_scale, gpt2_scale
from depthscope.core.errors import UserError
from depthscope.core.profile import Addition, Point
from depthscope.core.streams import stream
from depthscope.data.dataset import Dataset, Task
from depthscope.models.init import build
from depthscope.probes.guard import set_generator
from depthscope.probes.points import find_points
from depthscope.study.catalog import CATALOG, Kind, is_user_code
from depthscope.study.run import RunSpec
from depthscope.train.build import target_of
from depthscope.train.feed import taken
from depthscope.train.own import repair_of
from depthscope.train.shallow import drawn_spec
from depthscope.train.usercode import call, network_targets, resolve, takes

FAMILY_FIELDS = ("depth", "width", "shortcut", "shortcut_options", "norm", "norm_options", "activation")
"""Fields of a run that a family may take; one of the user's takes those that its signature names."""

_REPAIRS: tuple[Kind, ...] = ("shortcut", "norm", "activation")
"""Of those fields, the ones that may name a function of the user's; the family is handed the function itself."""

SHAPES = ("num_inputs", "num_classes", "input_shape")
"""What else it may take, of the data set's shape."""


def make_network(
    spec: RunSpec, data: Dataset, *, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
) -> tuple[Any, dict[str, str]]:
    """The initialised model of a run, in train mode, and the digests of its tensors; of a constructed one as drawn.

    Raises:
        UserError: the family gives no module; a tensor that no rule fills; see `models.init.fill`.
    """
    examples: Tensor | None = None
    if num := drawn_spec(spec).init_options.get("examples"):
        # Without augmentation, as in an evaluation: what is drawn for a step is drawn for that step alone.
        examples, _ = taken(spec, data, data.train, int(str(num)))
    shape = tuple(data.train.x.shape[1:])
    sizes = {"num_outputs": data.num_outputs, "num_tokens": data.num_tokens}
    return network_of_shape(spec, shape, **sizes, examples=examples, device=device, dtype=dtype)


def network_of_shape(
    spec: RunSpec,
    input_shape: tuple[int, ...],
    *,
    num_outputs: int,
    num_tokens: int = 0,
    examples: Tensor | None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> tuple[Any, dict[str, str]]:
    """See `make_network`.

    Args:
        spec: the run.
        input_shape: of one example.
        num_outputs: classes, or targets.
        num_tokens: size of the vocabulary; 0 where the inputs are no tokens.
        examples: for an initialiser that measures.
        device: where the model lives.
        dtype: of its tensors.
    """
    spec = drawn_spec(spec)
    return build(
        partial(make_module, spec, input_shape, num_outputs, num_tokens),
        seed=spec.seed,
        device=device,
        dtype=dtype,
        init=_own_init(spec) if is_user_code(spec.init) else spec.init,
        gain=spec.gain,
        zero_last_gamma=spec.zero_last_gamma,
        constants=bool(network_targets(spec)),
        gains={} if spec.stem_gain is None else {"stem.weight": spec.stem_gain},
        options=spec.init_options,
        examples=examples.to(dtype) if examples is not None and examples.is_floating_point() else examples,
    )


def make_module(spec: RunSpec, input_shape: tuple[int, ...], num_outputs: int, num_tokens: int = 0) -> nn.Module:
    """The module of a run on torch's default device, as its constructor leaves it.

    A family is told `num_inputs`, the features of one element (channels, sizes of a vector, tokens of the vocabulary),
    `num_classes` (or how many targets), and where inputs are sequences and it asks for it, their `length`.

    Args:
        spec: the run.
        input_shape: of one example.
        num_outputs: classes, or targets.
        num_tokens: size of the vocabulary; 0 where the inputs are no tokens.

    Raises:
        UserError: the user's family gives no module.
    """
    is_sequence = bool(num_tokens) or len(input_shape) == 2
    num_inputs = num_tokens or input_shape[1 if is_sequence else 0]
    shapes = {"num_inputs": num_inputs, "num_classes": num_outputs}
    offered = {field: getattr(spec, field) for field in FAMILY_FIELDS}
    offered |= {kind: repair_of(spec, kind) for kind in _REPAIRS}
    if not is_user_code(spec.family):
        make = resolve(target_of("family", spec.family, "torch"))
        if CATALOG["family"][spec.family].reads:
            shapes["length"] = input_shape[0]
        known: nn.Module = make(**offered, **shapes, **spec.model_options)
        return known
    # One that passes all that it is given on (**kwargs) is not handed a length that it may not know.
    if is_sequence and takes_length(spec):
        shapes["length"] = input_shape[0]
    for field in ("shortcut_options", "norm_options"):
        # A family that passes all that it is given on (**kwargs) is not handed options of names that have none.
        if not offered[field] and not takes(spec.family, field, by_name=True):
            del offered[field]
    found = call(spec.family, {**offered, **shapes, "input_shape": input_shape}, spec.model_options)
    if not isinstance(found, nn.Module):
        raise UserError(f"{spec.family}: returned {type(found).__name__}; wanted a torch.nn.Module.")
    return found


def takes_length(spec: RunSpec) -> bool:
    """Whether the user's family names a `length` and its options do not give it."""
    return takes(spec.family, "length", by_name=True) and "length" not in spec.model_options


INIT_ARGUMENTS = ("name", "shape", "module", "rng", "gain")
"""What an initialiser of the user's is offered."""


def _own_init(spec: RunSpec) -> Any:
    def draw(name: str, module: nn.Module, own_name: str, rng: np.random.Generator) -> NDArray[Any] | None:
        shape = tuple(getattr(module, own_name).shape)
        offered = {"name": name, "shape": shape, "module": module, "rng": rng, "gain": spec.gain}
        found = call(spec.init, offered)
        if found is None:
            return None
        values = np.asarray(found)
        if values.shape != shape or values.dtype.kind not in "fiu":
            raise UserError(
                f"{spec.init}: gave {values.dtype} of shape {list(values.shape)} for {name}; wanted numbers of shape "
                f"{list(shape)}, or None."
            )
        if not np.isfinite(values).all():
            raise UserError(f"{spec.init}: gave values for {name} that are not finite.")
        return values

    return draw


def draws_of_step(spec: RunSpec, device: torch.device | str, *name: str | int) -> None:
    """Put torch's global generator where it stands at this point of a run, for models that draw (dropout).

    The position in the run names the draws, so that measuring, resuming or another arm cannot shift them. Of the
    catalogue, networks with a shortcut that draws are concerned, the others are left alone; code of the user's may
    draw anywhere.

    Layers are measured in training mode, so a network that draws is measured as it was drawn: at step 0 with the draws
    of this position, later with those that follow the draws of the update before. Dropped branches show as such.
    """
    if network_targets(spec) or is_user_code(spec.clip) or CATALOG["shortcut"][spec.shortcut].draws:
        set_generator(device, int(stream(spec.seed, "model", *name).integers(2**63)))


def derived_of(spec: RunSpec, model: nn.Module) -> dict[str, float]:
    """What the depth decided in a network of ours, by name: the slope of a tailored activation, a branch's survival."""
    if is_user_code(spec.family):
        return {}
    known: Any = model
    found = {name: float(each) for name, each in known.derived().items()} if hasattr(model, "derived") else {}
    if spec.init == "fixup":
        branches = known.branches()
        found |= {"fixup_scale": fixup_scale(len(branches), len(branches[0]))}
    if spec.init == "depth_scaled":
        found |= {"projection_scale": gpt2_scale(len(known.sublayers()))}
    if spec.init == "deepnorm":
        found |= {"deepnorm_beta": deepnorm(spec.depth)[1]}
    return found


def points_of(model: nn.Module, x: Tensor) -> tuple[Point, ...]:
    """Where the model is measured: what its `points()` says, else its layers in the order of a forward pass."""
    points = getattr(model, "points", None)
    return _listed(model, "points", Point) if callable(points) else find_points(model, x[:2])


def additions_of(model: nn.Module) -> tuple[Addition, ...]:
    """The residual additions that the model's `additions()` names; none where it has no such method."""
    return _listed(model, "additions", Addition) if callable(getattr(model, "additions", None)) else ()


def _listed(model: nn.Module, method: str, kind: type[Any]) -> tuple[Any, ...]:
    found = getattr(model, method)()
    if not isinstance(found, tuple | list) or not all(isinstance(each, kind) for each in found):
        raise UserError(
            f"{type(model).__name__}.{method}(): wanted a tuple of depthscope.core.profile.{kind.__name__}, "
            f"got {type(found).__name__}."
        )
    return tuple(found)


def check_output(target: str, output: object, shape: tuple[int, ...], task: Task = "classification") -> None:
    """See that a model gives logits [B, K], logits for each position [B, T, K], or as many numbers as targets [B, K].

    Raises:
        UserError: it gives something else.
    """
    what = "logits" if task == "classification" else "predictions"
    wanted = f"wanted {what}, a tensor {list(shape)} of floating point"
    if not isinstance(output, Tensor):
        raise UserError(f"{target}: the model gave {type(output).__name__}; {wanted}.")
    if tuple(output.shape) != shape or not output.is_floating_point():
        raise UserError(f"{target}: the model gave {output.dtype} of shape {list(output.shape)}; {wanted}.")


def check_trainable(target: str, output: Tensor, parameters: Mapping[str, Tensor]) -> None:
    """See that training could change something.

    Raises:
        UserError: no parameter asks for a gradient, or none reaches the output.
    """
    if not any(each.requires_grad for each in parameters.values()):
        raise UserError(f"{target}: no parameter of the model is trainable (requires_grad); there is nothing to train.")
    if not output.requires_grad:
        raise UserError(f"{target}: the model's output does not depend on its parameters; there is nothing to train.")
