"""The catalogue's table: every name of a study, by kind, with the code behind it and its sources.

It is read through `study.catalog`, which checks names and options against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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
        later: options that came when runs had been recorded without them; at their defaults they are no part of a
            run's identity.
        untested: of a data set, the options with which its test set is not opened.
        limits: intervals that options must lie in, such as `"[0, 1)"`; for a list, each of its numbers.
        accepts: for a family, the values that it takes in other fields of a run.
        sources: keys of the bibliography (`report/citations`).
    """

    summary: str
    targets: Mapping[Backend, str]
    options: Mapping[str, Any] = field(default_factory=dict)
    later: tuple[str, ...] = ()
    untested: Mapping[str, Any] = field(default_factory=dict)
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
                "init": ("he_fan_in", "he_fan_out", "torch"),
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
        "torch": Entry(
            summary="each module's own reset_parameters, as PyTorch has it by default",
            targets={"torch": "depthscope.models.init:fill"},
            sources=("paszke2019pytorch",),
        ),
    },
    "data": {
        "spiral": Entry(
            summary="interleaved arms in the plane; the seed draws the points",
            targets=_both("depthscope.data.synthetic:spiral"),
            options={
                "arms": 3,
                "points_per_arm": 50,
                "turns": 0.64,
                "noise": 0.1,
                "start_radius": 0.1,
                "validation": 0,
                "without_test": False,
            },
            later=("validation", "without_test"),
            untested={"without_test": True},
            limits={
                "arms": "[2, 1000]",
                "points_per_arm": "[2, 1000000]",
                "noise": "[0, inf)",
                "start_radius": "[0, 1)",
                "validation": "[0, 1000000000]",
            },
        ),
        "images": Entry(
            summary="synthetic images of ten classes, for tests",
            targets=_both("depthscope.data.synthetic:images"),
            options={"num_train": 256, "num_test": 128, "image_size": 8, "validation": 0},
            later=("validation",),
            untested={"num_test": 0},
            limits={
                "num_train": "[1, 1000000]",
                "num_test": "[0, 1000000]",
                "image_size": "[1, 1024]",
                "validation": "[0, 999999]",
            },
        ),
        "cifar10": Entry(
            summary="CIFAR-10, the real images",
            targets=_both("depthscope.data.cifar10:cifar10"),
            options={"num_train": 50_000, "num_test": 10_000, "image_size": 32, "validation": 0},
            untested={"num_test": 0},
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
