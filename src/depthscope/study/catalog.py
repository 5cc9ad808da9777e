"""The one door for names: what each may be called in a study, what it means, and where it comes from.

Names are validated and suggested from this table alone, so that a typing error is told before torch
is loaded. User code enters by the same kind of string: `"package.module:function"`.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, Literal

from depthscope.core.errors import shown, unknown_name
from depthscope.study.faults import FieldFaults

Backend = Literal["numpy", "torch"]
Kind = Literal[
    "family", "shortcut", "norm", "activation", "init", "data", "augment", "optimizer", "schedule", "measure"
]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One name.

    Attributes:
        summary: what it is, in a line.
        targets: `"package.module:name"` of the code behind it, by backend.
        options: its options with their defaults; the default's type is the option's type.
        limits: intervals that options must lie in, such as `"[0, 1)"`; for a list, each of its numbers.
        accepts: for a family, the values that it takes in other fields of a run.
        sources: keys of the bibliography (`report/citations`).
    """

    summary: str
    targets: Mapping[Backend, str]
    options: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    accepts: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    sources: tuple[str, ...] = ()


def _both(target: str) -> dict[Backend, str]:
    return {"numpy": target, "torch": target}


_STACK = "depthscope.lab.stacks:Stack"
_CONVNET = "depthscope.models.convnet:cifar_resnet"

CATALOG: Mapping[Kind, Mapping[str, Entry]] = {
    "family": {
        "mlp": Entry(
            summary="fully connected: a stem, `depth` square layers of `width` units, a linear head",
            targets={"numpy": _STACK},
            accepts={
                "shortcut": ("none", "identity", "identity_2"),
                "norm": ("none", "batch"),
                "activation": ("tanh", "relu", "linear"),
                "init": ("gaussian", "orthogonal"),
                "zero_last_gamma": (False,),
                "augment": ("none",),
                "data": ("spiral",),
            },
        ),
        "cifar_resnet": Entry(
            summary="the CIFAR family of He et al. 2015, depth 6n+2, stages of width, 2 width, 4 width channels",
            targets={"torch": _CONVNET},
            accepts={
                "shortcut": ("none", "A", "B"),
                "norm": ("batch",),
                "activation": ("relu",),
                "init": ("he_fan_in", "he_fan_out"),
                "data": ("cifar10", "images"),
                "stem_gain": (None,),
            },
            sources=("he2016resnet",),
        ),
    },
    "shortcut": {
        "none": Entry(
            summary="plain: no shortcut",
            targets={"numpy": _STACK, "torch": _CONVNET},
        ),
        "identity": Entry(
            summary="h + act(hW + b): the plain layer and a plus sign, nothing else",
            targets={"numpy": _STACK},
            sources=("he2016resnet",),
        ),
        "identity_2": Entry(
            summary="h + act(hW1 + b1)W2 + b2: a branch of two layers",
            targets={"numpy": _STACK},
            sources=("he2016resnet",),
        ),
        "A": Entry(
            summary="option A: identity, subsampled and zero-padded where the shape changes; no parameters",
            targets={"torch": "depthscope.models.shortcuts:option_a"},
            sources=("he2016resnet",),
        ),
        "B": Entry(
            summary="option B: identity, and a 1x1 convolution with batch norm where the shape changes",
            targets={"torch": "depthscope.models.shortcuts:option_b"},
            sources=("he2016resnet",),
        ),
    },
    "norm": {
        "none": Entry(summary="no normaliser", targets={"numpy": _STACK}),
        "batch": Entry(
            summary="batch normalisation before the activation",
            targets={"numpy": "depthscope.lab.layers:batch_norm_forward", "torch": _CONVNET},
            sources=("ioffe2015batchnorm",),
        ),
    },
    "activation": {
        "tanh": Entry(summary="tanh", targets={"numpy": "depthscope.lab.layers:tanh_forward"}),
        "relu": Entry(summary="max(0, x)", targets={"numpy": "depthscope.lab.layers:relu_forward", "torch": _CONVNET}),
        "linear": Entry(summary="no nonlinearity", targets={"numpy": _STACK}),
    },
    "init": {
        "gaussian": Entry(
            summary="N(0, gain^2 / fan_in), biases 0", targets={"numpy": "depthscope.lab.stacks:init_params"}
        ),
        "orthogonal": Entry(
            summary="gain times an orthogonal matrix, biases 0",
            targets={"numpy": "depthscope.lab.stacks:init_params"},
            sources=("saxe2014exact",),
        ),
        "he_fan_in": Entry(
            summary="N(0, 2 gain^2 / fan_in), the rule of the paper",
            targets={"torch": "depthscope.models.init:fill"},
            sources=("he2015delving",),
        ),
        "he_fan_out": Entry(
            summary="N(0, 2 gain^2 / fan_out), the rule of the authors' code",
            targets={"torch": "depthscope.models.init:fill"},
            sources=("he2015delving",),
        ),
    },
    "data": {
        "spiral": Entry(
            summary="interleaved arms in the plane; the seed draws the points",
            targets=_both("depthscope.data.synthetic:spiral"),
            options={"arms": 3, "points_per_arm": 50, "turns": 0.64, "noise": 0.1, "start_radius": 0.1},
            limits={
                "arms": "[2, 1000]",
                "points_per_arm": "[2, 1000000]",
                "noise": "[0, inf)",
                "start_radius": "[0, 1)",
            },
        ),
        "images": Entry(
            summary="synthetic images of ten classes, for tests",
            targets=_both("depthscope.data.synthetic:images"),
            options={"num_train": 256, "num_test": 128, "image_size": 8},
            limits={"num_train": "[1, 1000000]", "num_test": "[1, 1000000]", "image_size": "[1, 1024]"},
        ),
        "cifar10": Entry(
            summary="CIFAR-10, the real images",
            targets=_both("depthscope.data.cifar10:cifar10"),
            options={"num_train": 50_000, "num_test": 10_000, "image_size": 32, "validation": 0},
            limits={
                "num_train": "[1, 50000]",
                "num_test": "[0, 10000]",
                "image_size": "[1, 32]",
                "validation": "[0, 49999]",
            },
            sources=("krizhevsky2009cifar",),
        ),
    },
    "augment": {
        "none": Entry(summary="examples as they are", targets=_both("depthscope.data.batches:order")),
        "crop_flip": Entry(
            summary="pad with zeros, crop at random, flip left-right with probability 1/2",
            targets={"torch": "depthscope.data.batches:augmentation"},
            sources=("he2016resnet",),
        ),
    },
    "optimizer": {
        "sgd": Entry(
            summary="stochastic gradient descent with momentum; weight decay on all parameters",
            targets={"numpy": "depthscope.lab.optimizers:Momentum", "torch": "torch.optim:SGD"},
            options={"momentum": 0.9, "weight_decay": 0.0},
            limits={"momentum": "[0, 1)", "weight_decay": "[0, inf)"},
        ),
        "adam": Entry(
            summary="Adam with bias correction",
            targets={"numpy": "depthscope.lab.optimizers:Adam", "torch": "torch.optim:Adam"},
            options={"beta1": 0.9, "beta2": 0.999, "eps": 1e-8},
            limits={"beta1": "[0, 1)", "beta2": "[0, 1)", "eps": "(0, inf)"},
            sources=("kingma2015adam",),
        ),
    },
    "schedule": {
        "constant": Entry(summary="one learning rate", targets=_both("depthscope.train.schedules:constant")),
        "step": Entry(
            summary="times `factor` at each milestone, given as a fraction of the run",
            targets=_both("depthscope.train.schedules:step"),
            options={"milestones": [0.5, 0.75], "factor": 0.1},
            limits={"milestones": "(0, 1)", "factor": "(0, inf)"},
        ),
    },
    "measure": {
        "layers": Entry(
            summary="|h|, |dL/dh|, |dW|, |dW|/|W|, |F|/|x| by layer at steps 0, 1, 2, 4, ... and each epoch's end",
            targets={
                "numpy": "depthscope.lab.measure:profile",
                "torch": "depthscope.probes.watch:Probe",
            },
        ),
        "gradcheck": Entry(
            summary="the hand-derived gradient against central, five-point and complex-step differences",
            targets={"numpy": "depthscope.lab.gradcheck:gradient_check"},
        ),
    },
}


def is_user_code(name: str) -> bool:
    """Whether `name` is of the form `package.module:function`."""
    module, colon, function = name.partition(":")
    return bool(colon) and function.isidentifier() and all(part.isidentifier() for part in module.split("."))


def check_name(kind: Kind, name: str) -> str:
    """`name` as it came, if it is in the catalogue or names user code.

    Raises:
        ValueError: neither; the message names the nearest known name and all of them.
    """
    if name not in CATALOG[kind] and not (kind in ("family", "data") and is_user_code(name)):
        raise ValueError(unknown_name(kind, name, CATALOG[kind]))
    return name


def fill_options(kind: Kind, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a name with defaults written out and numbers brought to the default's type.

    User code has no table of options: they are passed as they came.

    Raises:
        FieldFaults: options that the name does not have, or values of another type or out of their limits.
    """
    entry = CATALOG[kind].get(name)
    faults: list[tuple[str, str]] = []
    filled: dict[str, Any] = deepcopy(dict(entry.options)) if entry else {}
    for key, value in given.items():
        if entry and key not in entry.options:
            faults.append((key, unknown_name(f"option of {name}", key, entry.options)))
            continue
        try:
            filled[key] = _brought_to(entry.options[key], value) if entry else _plain(value)
            if entry and key in entry.limits:
                _check_limits(filled[key], entry.limits[key])
        except ValueError as error:
            faults.append((key, str(error)))
    if faults:
        raise FieldFaults(faults)
    return filled


def _brought_to(default: Any, value: Any) -> Any:
    """`value` as a value of the default's type; an integer will do for a float."""
    if isinstance(default, float) and _is_number(value):
        return float(value)
    if isinstance(default, list) and isinstance(value, list | tuple) and all(_is_number(each) for each in value):
        return [float(each) for each in value]
    if type(value) is type(default) and not isinstance(default, float | list):
        return value
    wanted = {float: "a number", int: "an integer", bool: "true or false", str: "text"}.get(type(default))
    raise ValueError(f"wanted {wanted or 'a list of numbers'}, got {shown(value)}.")


def _plain(value: Any) -> Any:
    if isinstance(value, bool | str) or _is_number(value):
        return value
    if isinstance(value, list | tuple) and all(_is_number(each) for each in value):
        return [float(each) for each in value]
    raise ValueError(f"wanted text, a number, true or false, or a list of numbers, got {shown(value)}.")


def _is_number(value: Any) -> bool:
    # A file can hold integers that no float can: bounded first.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300 and isfinite(value)


def _check_limits(value: Any, interval: str) -> None:
    low, high = (float(end) for end in interval[1:-1].split(","))
    for each in value if isinstance(value, list) else [value]:
        above = each > low or (interval[0] == "[" and each == low)
        below = each < high or (interval[-1] == "]" and each == high)
        if not (above and below):
            raise ValueError(
                f"wanted {'numbers' if isinstance(value, list) else 'a value'} in {interval}, got {each!r}."
            )
