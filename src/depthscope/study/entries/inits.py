"""Initialisers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from depthscope.study.entries.entry import CONVOLUTIONAL, EVERY_FAMILY, RESIDUAL, Entry

_FILL = "depthscope.models.init:fill"
_UNSCALED: Mapping[str, tuple[Any, ...]] = {"gain": (1.0,), "stem_gain": (None,)}
"""Of initialisers whose paper sets the scale."""

INIT: Mapping[str, Entry] = {
    "gaussian": Entry(
        summary="N(0, gain^2 / fan_in), biases 0",
        targets={"numpy": "depthscope.lab.stacks:init_params", "torch": _FILL},
        families=(*EVERY_FAMILY, "gpt", "recurrent", "relational"),
    ),
    "orthogonal": Entry(
        summary="gain times an orthogonal matrix (a kernel as the matrix [out, in k k]), biases 0",
        targets={"numpy": "depthscope.lab.stacks:init_params", "torch": _FILL},
        sources=("saxe2014exact",),
        families=(*EVERY_FAMILY, "gpt", "recurrent", "relational"),
    ),
    "identity": Entry(
        summary="gain times the identity, cut off or followed by zeros where widths differ; biases 0; no draw",
        targets={"torch": _FILL},
        sources=("le2015simple",),
        families=("mlp",),
    ),
    "xavier": Entry(
        summary="N(0, 2 gain^2 / (fan_in + fan_out))",
        targets={"torch": _FILL},
        sources=("glorot2010understanding",),
        families=(*RESIDUAL, "densenet", "gpt", "recurrent", "relational"),
    ),
    "he_fan_in": Entry(
        summary="N(0, 2 gain^2 / fan_in), the rule of the paper",
        targets={"torch": _FILL},
        sources=("he2015delving",),
        families=(*EVERY_FAMILY, "gpt", "relational"),
    ),
    "he_fan_out": Entry(
        summary="N(0, 2 gain^2 / fan_out), the rule of the authors' code",
        targets={"torch": _FILL},
        sources=("he2015delving",),
        families=(*EVERY_FAMILY, "relational"),
    ),
    "delta_orthogonal": Entry(
        summary="kernels that are zero but for the centre tap, gain times a matrix with orthonormal columns",
        targets={"torch": _FILL},
        goes_with={"activation": ("tanh",), "norm": ("none",)},
        sources=("xiao2018dynamical",),
        families=(*CONVOLUTIONAL, "densenet"),
    ),
    "tat": Entry(
        summary="delta-orthogonal kernels times max(sqrt(out/in), 1), as tailored activations want them",
        targets={"torch": _FILL},
        accepts=_UNSCALED,
        goes_with={"activation": ("tat",), "norm": ("none",)},
        sources=("zhang2022tat",),
        families=(*RESIDUAL, "densenet"),
    ),
    "lsuv": Entry(
        summary="orthonormal, then layer by layer divided by the deviation of the output on a batch until it is 1",
        targets={"torch": _FILL},
        options={"tolerance": 0.02, "max_tries": 20, "examples": 500},
        limits={"tolerance": "(0, 1)", "max_tries": "[1, 1000]", "examples": "[2, 100000]"},
        accepts=_UNSCALED,
        goes_with={"norm": ("none",)},
        sources=("mishkin2016lsuv",),
        families=(*RESIDUAL, "densenet"),
    ),
    "fixup": Entry(
        summary="He's times L^(-1/(2m-2)) in L branches of m layers; each branch's last layer and the classifier 0",
        targets={"torch": _FILL},
        accepts=_UNSCALED,
        goes_with={"norm": ("fixup",)},
        sources=("zhang2019fixup",),
        families=RESIDUAL,
    ),
    "zero_branch": Entry(
        summary="gaussian, but 0 in the last layer of each residual branch: every block starts as its skip",
        targets={"torch": _FILL},
        sources=("goyal2017accurate", "zhang2019fixup"),
        families=("mlp",),
    ),
    "looks_linear": Entry(
        summary="mirrored orthogonal blocks [[W, -W], [-W, W]]: with ReLU the untrained network is linear",
        targets={"torch": _FILL},
        accepts=_UNSCALED,
        goes_with={"activation": ("relu",), "norm": ("none",)},
        sources=("balduzzi2017shattered",),
        families=(*RESIDUAL, "densenet"),
    ),
    "gpt2": Entry(
        summary="N(0, (.02 gain)^2), whatever the fans; biases 0",
        targets={"numpy": "depthscope.lab.transformer.model:init_gpt", "torch": _FILL},
        sources=("radford2019gpt2", "karpathy2022nanogpt"),
        families=("gpt",),
    ),
    "depth_scaled": Entry(
        summary="gpt2, and the layer that ends each of L branches times 1/sqrt(L)",
        targets={"numpy": "depthscope.lab.transformer.model:init_gpt", "torch": _FILL},
        sources=("radford2019gpt2", "karpathy2022nanogpt"),
        families=("gpt",),
    ),
    "zero_projection": Entry(
        summary="gpt2, and the layer that ends each branch 0: without a plus sign such a network gives 0",
        targets={"numpy": "depthscope.lab.transformer.model:init_gpt", "torch": _FILL},
        goes_with={"shortcut": ("identity", "scaled", "constant_scaling", "deepnorm")},
        sources=("karpathy2022nanogpt",),
        families=("gpt",),
    ),
    "deepnorm": Entry(
        summary="N(0, 2 b^2 / (fan_in + fan_out)), b = (8 M)^(-1/4) in value, output and feed-forward, 1 in query, key",
        targets={"torch": _FILL},
        accepts=_UNSCALED,
        goes_with={"shortcut": ("deepnorm",)},
        sources=("wang2022deepnet",),
        families=("gpt",),
    ),
    "constructed": Entry(
        summary="a shallower network, trained by the run's recipe, with identities put in to make up the depth",
        targets={"torch": "depthscope.train.constructed:run"},
        options={"from_depth": 20, "init": "he_fan_in", "at_last_lr": False},
        limits={"from_depth": "[1, 100000]"},
        # With these alone a layer can be the identity (models/embed.py).
        accepts={
            "shortcut": ("none",),
            "norm": ("batch", "none", "fixup"),
            "activation": ("relu", "linear"),
        },
        closed=("shortcut", "norm", "activation"),
        sources=("he2016resnet",),
        families=("mlp", "cifar_resnet"),
    ),
    "torch": Entry(
        summary="each module's own reset_parameters, as PyTorch has it by default",
        targets={"torch": _FILL},
        accepts=_UNSCALED,
        sources=("paszke2019pytorch",),
        families=(*EVERY_FAMILY, "gpt", "relational"),
    ),
}
