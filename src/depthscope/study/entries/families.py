"""Families of networks, each with what it takes in the other fields of a run."""

from __future__ import annotations

from collections.abc import Mapping

from depthscope.study.entries.entry import Entry

IMAGES = ("cifar10", "images")

CONV_INITS = (
    *("gaussian", "xavier", "he_fan_in", "he_fan_out", "orthogonal", "delta_orthogonal"),
    *("tat", "lsuv", "fixup", "looks_linear", "torch"),
)
CONV_NORMS = ("none", "batch", "layer", "group", "instance", "ws", "ws_group", "fixup")
ACTIVATIONS = ("tanh", "relu", "linear", "gelu", "silu", "tat")
BLOCK_SHORTCUTS = (
    *("none", "A", "A_pool", "B", "C", "constant_scaling", "exclusive_gate", "shortcut_gate", "conv1x1"),
    *("dropout", "highway", "scaled", "rezero", "skipinit", "stochastic_depth"),
)
"""What a block of two or three convolutions can have around it."""

FAMILY: Mapping[str, Entry] = {
    "mlp": Entry(
        summary="fully connected: a stem, `depth` square layers of `width` units, a linear head",
        targets={"numpy": "depthscope.lab.stacks:Stack", "torch": "depthscope.models.mlp:mlp"},
        options={"norm_ends_branch": False},
        later=("norm_ends_branch",),
        accepts={
            "shortcut": (
                *("none", "identity", "identity_2", "constant_scaling", "highway", "dense", "scaled"),
                *("rezero", "skipinit", "stochastic_depth"),
            ),
            "norm": ("none", "batch", "layer", "ws", "fixup"),
            "activation": ACTIVATIONS,
            "init": (
                *("gaussian", "orthogonal", "xavier", "he_fan_in", "he_fan_out", "tat", "lsuv", "fixup"),
                *("looks_linear", "constructed", "torch"),
            ),
            "augment": ("none",),
            "data": ("spiral",),
        },
    ),
    "cifar_resnet": Entry(
        summary="the CIFAR family of He et al. 2015, depth 6n+2, stages of width, 2 width, 4 width channels",
        targets={"torch": "depthscope.models.convnet:cifar_resnet"},
        options={"checkpointing": False},
        later=("checkpointing",),
        accepts={
            "shortcut": BLOCK_SHORTCUTS,
            "norm": CONV_NORMS,
            "activation": ACTIVATIONS,
            "init": (*CONV_INITS, "constructed"),
            "data": IMAGES,
            "stem_gain": (None,),
        },
        sources=("he2016resnet",),
    ),
    "preact_resnet": Entry(
        summary="pre-activation: norm, activation, convolution, nothing after the addition; 6n+2, bottleneck 9n+2",
        targets={"torch": "depthscope.models.preact:preact_resnet"},
        options={"bottleneck": False, "checkpointing": False},
        accepts={
            "shortcut": BLOCK_SHORTCUTS,
            "norm": CONV_NORMS,
            "activation": ACTIVATIONS,
            "init": CONV_INITS,
            "data": IMAGES,
            "stem_gain": (None,),
            "zero_last_gamma": (False,),
        },
        sources=("he2016identity",),
    ),
    "densenet": Entry(
        summary="three dense blocks of bottleneck layers; `width` is the growth; not matched in parameters",
        targets={"torch": "depthscope.models.densenet:cifar_densenet"},
        options={"compression": 0.5, "checkpointing": False},
        limits={"compression": "(0, 1]"},
        accepts={
            "shortcut": ("dense",),
            "norm": ("batch", "layer", "group", "instance"),
            "activation": ACTIVATIONS,
            "init": tuple(name for name in CONV_INITS if name != "fixup"),  # it has no branches
            "data": IMAGES,
            "stem_gain": (None,),
            "zero_last_gamma": (False,),
        },
        sources=("huang2017densenet",),
    ),
    "nfnet": Entry(
        summary="normaliser-free pre-activation network of NFNet's rules in the CIFAR layout, depth 6n+2",
        targets={"torch": "depthscope.models.nfnet:cifar_nfnet"},
        options={"checkpointing": False},
        accepts={
            "shortcut": ("nfnet",),
            "norm": ("scaled_ws",),
            "activation": ("relu", "gelu", "silu", "tanh"),
            "init": ("gaussian", "he_fan_in", "he_fan_out", "orthogonal", "torch"),
            "data": IMAGES,
            "stem_gain": (None,),
            "zero_last_gamma": (False,),
        },
        sources=("brock2021characterizing", "brock2021nfnet"),
    ),
}
