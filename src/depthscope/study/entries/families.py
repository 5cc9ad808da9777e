"""Families of networks, each with what it takes in the other fields of a run."""

from __future__ import annotations

from collections.abc import Mapping

from depthscope.study.entries.entry import Entry
from depthscope.study.entries.inits import INIT
from depthscope.study.entries.layers import ACTIVATION, NORM
from depthscope.study.entries.shortcuts import SHORTCUT

IMAGES = ("cifar10", "images")

_BUILT_OF: Mapping[str, Mapping[str, Entry]] = {
    "shortcut": SHORTCUT,
    "norm": NORM,
    "activation": ACTIVATION,
    "init": INIT,
}


def _built_of(family: str) -> dict[str, tuple[str, ...]]:
    """What a network of the family can be built of, by field: what each entry says of itself."""
    return {
        field: tuple(name for name, entry in entries.items() if family in entry.families)
        for field, entries in _BUILT_OF.items()
    }


FAMILY: Mapping[str, Entry] = {
    "mlp": Entry(
        summary="fully connected: a stem, `depth` square layers of `width` units, a linear head",
        targets={"numpy": "depthscope.lab.stacks:Stack", "torch": "depthscope.models.mlp:mlp"},
        options={"norm_ends_branch": False, "bare": False, "linear_end": False},
        later=("norm_ends_branch", "bare", "linear_end"),
        accepts={
            **_built_of("mlp"),
            "augment": ("none",),
            "data": ("spiral", "identity_task"),
        },
    ),
    "cifar_resnet": Entry(
        summary="the CIFAR family of He et al. 2015, depth 6n+2, stages of width, 2 width, 4 width channels",
        targets={"torch": "depthscope.models.convnet:cifar_resnet"},
        options={"checkpointing": False},
        later=("checkpointing",),
        accepts={
            **_built_of("cifar_resnet"),
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
            **_built_of("preact_resnet"),
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
            **_built_of("densenet"),
            "data": IMAGES,
            "stem_gain": (None,),
            "zero_last_gamma": (False,),
        },
        closed=("shortcut",),
        sources=("huang2017densenet",),
    ),
    "nfnet": Entry(
        summary="normaliser-free pre-activation network of NFNet's rules in the CIFAR layout, depth 6n+2",
        targets={"torch": "depthscope.models.nfnet:cifar_nfnet"},
        options={"checkpointing": False},
        accepts={
            **_built_of("nfnet"),
            "data": IMAGES,
            "stem_gain": (None,),
            "zero_last_gamma": (False,),
        },
        closed=("shortcut", "norm", "activation"),
        goes_with={"clip": ("agc",)},
        sources=("brock2021characterizing", "brock2021nfnet"),
    ),
    "gpt": Entry(
        summary="decoder-only transformer of GPT-2's design: `depth` blocks of attention and feed-forward",
        targets={"numpy": "depthscope.lab.transformer.model:Gpt", "torch": "depthscope.models.gpt:gpt"},
        options={
            "heads": 4,
            "placement": "pre",
            "tied": True,
            "bias": True,
            "norm_embedding": False,
            "norm_end": True,
        },
        limits={"heads": "[1, 4096]"},
        choices={"placement": ("pre", "post")},
        reads=("tokens",),
        in_blocks=True,
        accepts={
            **_built_of("gpt"),
            "augment": ("none",),
            "data": ("shakespeare", "names"),
            "stem_gain": (None,),
            "zero_last_gamma": (False,),
        },
        sources=("radford2019gpt2", "karpathy2022nanogpt"),
    ),
    "recurrent": Entry(
        summary="recurrent: one cell of `width` units, unrolled over `depth` steps in time, and a linear head",
        targets={"torch": "depthscope.models.recurrent:recurrent"},
        options={"cell": "lstm", "readout": "last", "forget_bias": 1.0},
        limits={"forget_bias": "[-100, 100]"},
        choices={"cell": ("rnn", "residual_rnn", "gru", "lstm", "lstm_no_forget"), "readout": ("last", "each")},
        reads=("tokens", "vectors"),
        accepts={
            **_built_of("recurrent"),
            "augment": ("none",),
            "data": ("adding", "copy"),
            "zero_last_gamma": (False,),
        },
        closed=("shortcut", "norm", "activation"),
        sources=("hochreiter1997lstm", "gers2000forget", "cho2014gru", "jozefowicz2015empirical"),
    ),
    "relational": Entry(
        summary="relational memory: slots that attend to one another, `depth` blocks at each step of a sequence",
        targets={"torch": "depthscope.models.relational:relational"},
        options={"slots": 8, "heads": 4, "gated": True},
        limits={"slots": "[1, 4096]", "heads": "[1, 4096]"},
        reads=("vectors",),
        in_blocks=True,
        accepts={
            **_built_of("relational"),
            "augment": ("none",),
            "data": ("nth_farthest",),
            "stem_gain": (None,),
            "zero_last_gamma": (False,),
        },
        closed=("shortcut", "norm"),
        sources=("santoro2018relational",),
    ),
}
