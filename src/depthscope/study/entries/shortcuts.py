"""Shortcuts: what goes around a block's branch F, and how the two are joined."""

from __future__ import annotations

from collections.abc import Mapping

from depthscope.study.entries.entry import CONVOLUTIONAL, RESIDUAL, Entry

_STACK = "depthscope.lab.stacks:Stack"
_SHORTCUTS = "depthscope.models.shortcuts.named"

SHORTCUT: Mapping[str, Entry] = {
    "none": Entry(
        summary="plain: no shortcut",
        targets={"numpy": _STACK, "torch": f"{_SHORTCUTS}:none"},
        families=(*RESIDUAL, "gpt", "recurrent", "relational"),
    ),
    "identity": Entry(
        summary="x + F(x): the plain network and a plus sign, nothing else",
        targets={"numpy": _STACK, "torch": f"{_SHORTCUTS}:identity"},
        sources=("he2016resnet",),
        families=("mlp", "gpt", "relational"),
    ),
    "identity_2": Entry(
        summary="h + act(hW1 + b1)W2 + b2: a branch of two layers",
        targets={"numpy": _STACK, "torch": f"{_SHORTCUTS}:identity"},
        sources=("he2016resnet",),
        families=("mlp",),
    ),
    "A": Entry(
        summary="option A: identity, subsampled and zero-padded where the shape changes; no parameters",
        targets={"torch": f"{_SHORTCUTS}:option_a"},
        sources=("he2016resnet",),
        families=CONVOLUTIONAL,
    ),
    "A_pool": Entry(
        summary="option A with an average pool in place of the subsampling, as Fixup has it",
        targets={"torch": f"{_SHORTCUTS}:option_a_pool"},
        sources=("zhang2019fixup",),
        families=CONVOLUTIONAL,
    ),
    "B": Entry(
        summary="option B: identity, and a 1x1 convolution with batch norm where the shape changes",
        targets={"torch": f"{_SHORTCUTS}:option_b"},
        sources=("he2016resnet",),
        families=CONVOLUTIONAL,
    ),
    "C": Entry(
        summary="option C: a 1x1 convolution with batch norm in every block",
        targets={"torch": f"{_SHORTCUTS}:option_c"},
        sources=("he2016resnet",),
        families=CONVOLUTIONAL,
    ),
    "constant_scaling": Entry(
        summary="skip x + branch F with two constants",
        targets={"torch": f"{_SHORTCUTS}:constant_scaling"},
        options={"skip": 0.5, "branch": 0.5},
        limits={"skip": "(0, 10]", "branch": "(0, 10]"},
        sources=("he2016identity",),
        families=(*RESIDUAL, "gpt"),
    ),
    "exclusive_gate": Entry(
        summary="(1 - g(x)) x + g(x) F, g a sigmoid of a 1x1 convolution: a highway",
        targets={"torch": f"{_SHORTCUTS}:exclusive_gate"},
        options={"bias": -6.0},
        limits={"bias": "[-100, 100]"},
        sources=("he2016identity", "srivastava2015highway"),
        families=CONVOLUTIONAL,
    ),
    "shortcut_gate": Entry(
        summary="(1 - g(x)) x + F: the gate on the shortcut alone",
        targets={"torch": f"{_SHORTCUTS}:shortcut_gate"},
        options={"bias": -6.0},
        limits={"bias": "[-100, 100]"},
        sources=("he2016identity",),
        families=CONVOLUTIONAL,
    ),
    "conv1x1": Entry(
        summary="a 1x1 convolution in place of the identity, in every block, without a normaliser",
        targets={"torch": f"{_SHORTCUTS}:conv1x1"},
        sources=("he2016identity",),
        families=CONVOLUTIONAL,
    ),
    "dropout": Entry(
        summary="dropout on the shortcut",
        targets={"torch": f"{_SHORTCUTS}:dropout"},
        options={"rate": 0.5},
        limits={"rate": "[0, 1)"},
        draws=True,
        sources=("he2016identity",),
        families=CONVOLUTIONAL,
    ),
    "highway": Entry(
        summary="x (1 - T) + H T, T a sigmoid of as large a layer as H's, its bias below 0",
        targets={"torch": f"{_SHORTCUTS}:highway"},
        options={"bias": -2.0},
        limits={"bias": "[-100, 100]"},
        sources=("srivastava2015highway",),
        families=RESIDUAL,
    ),
    "dense": Entry(
        summary="each layer sees all earlier outputs side by side and adds `growth` units; not matched in parameters",
        targets={"torch": f"{_SHORTCUTS}:none"},
        options={"growth": 4},
        limits={"growth": "[1, 4096]"},
        sources=("huang2017densenet",),
        families=("mlp", "densenet"),
    ),
    "scaled": Entry(
        summary="x + F / sqrt(L) in a network of L blocks",
        targets={"torch": f"{_SHORTCUTS}:scaled"},
        sources=("hayou2021stable",),
        families=(*RESIDUAL, "gpt"),
    ),
    "deepnorm": Entry(
        summary="alpha x + F, normalised after; alpha = (2 M)^(1/4) in M layers of two branches",
        targets={"torch": f"{_SHORTCUTS}:deepnorm"},
        goes_with={"init": ("deepnorm",), "norm": ("layer",)},
        sources=("wang2022deepnet",),
        families=("gpt",),
    ),
    "rezero": Entry(
        summary="x + a F with one learned a a block that starts at 0",
        targets={"torch": f"{_SHORTCUTS}:rezero"},
        sources=("bachlechner2021rezero",),
        families=(*RESIDUAL, "gpt"),
    ),
    "skipinit": Entry(
        summary="x + a F with a learned a that starts at 0 at the branch's end, in place of batch norm",
        targets={"torch": f"{_SHORTCUTS}:skipinit"},
        sources=("de2020skipinit",),
        families=(*RESIDUAL, "gpt"),
    ),
    "stochastic_depth": Entry(
        summary="x + b F, b = 0 with a probability that rises linearly to 1 - survival at the last block",
        targets={"torch": f"{_SHORTCUTS}:stochastic_depth"},
        options={"survival": 0.5},
        limits={"survival": "(0, 1]"},
        draws=True,
        sources=("huang2016stochastic",),
        families=RESIDUAL,
    ),
    "nfnet": Entry(
        summary="x + alpha s F(act(x) / expected deviation) with a learned s that starts at 0",
        targets={"torch": "depthscope.models.nfnet:cifar_nfnet"},
        options={"alpha": 0.2},
        limits={"alpha": "(0, 10]"},
        sources=("brock2021characterizing", "brock2021nfnet"),
        families=("nfnet",),
    ),
}
