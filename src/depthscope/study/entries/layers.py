"""Normalisers (with what stands in for one) and activations."""

from __future__ import annotations

from collections.abc import Mapping

from depthscope.study.entries.entry import CONVOLUTIONAL, EVERY_FAMILY, RESIDUAL, Entry

_STACK = "depthscope.lab.stacks:Stack"
_BY_HAND = "depthscope.lab.transformer.layers"
_NORMS = "depthscope.models.layers.norms"
_WEIGHTED = "depthscope.models.layers.weighted"
_ACTIVATIONS = "depthscope.models.layers.activations"

NORM: Mapping[str, Entry] = {
    "none": Entry(
        summary="no normaliser",
        targets={"numpy": _STACK, "torch": f"{_NORMS}:none"},
        families=(*RESIDUAL, "gpt", "recurrent", "relational"),
    ),
    "batch": Entry(
        summary="batch normalisation before the activation",
        targets={"numpy": "depthscope.lab.layers:batch_norm_forward", "torch": f"{_NORMS}:batch"},
        sources=("ioffe2015batchnorm",),
        families=(*RESIDUAL, "densenet"),
    ),
    "layer": Entry(
        summary="layer normalisation: of one example, over all its channels and places",
        targets={"numpy": f"{_BY_HAND}:layer_norm_forward", "torch": f"{_NORMS}:layer"},
        by_hand=("gpt",),
        sources=("ba2016layernorm",),
        families=(*RESIDUAL, "densenet", "gpt", "relational"),
    ),
    "group": Entry(
        summary="group normalisation: of one example, over a group of channels and their places",
        targets={"torch": f"{_NORMS}:group"},
        options={"groups": 4},
        limits={"groups": "[1, 65536]"},
        sources=("wu2018groupnorm",),
        families=(*CONVOLUTIONAL, "densenet"),
    ),
    "instance": Entry(
        summary="instance normalisation: of one example, over the places of one channel",
        targets={"torch": f"{_NORMS}:instance"},
        sources=("ulyanov2016instance",),
        families=(*CONVOLUTIONAL, "densenet"),
    ),
    "rms": Entry(
        summary="x / root mean square of one example, of one position; no shift, and without `scale` no parameter",
        targets={"numpy": f"{_BY_HAND}:rms_norm_forward", "torch": f"{_NORMS}:rms"},
        by_hand=("gpt",),
        options={"scale": True},
        sources=("zhang2019rms",),
        families=("mlp", "gpt"),
    ),
    "ws": Entry(
        summary="weight standardisation alone: each output unit's weights to mean 0 and variance 1/fan_in",
        targets={"torch": f"{_WEIGHTED}:StandardisedConv2d"},
        sources=("qiao2019weight",),
        families=RESIDUAL,
    ),
    "ws_group": Entry(
        summary="weight standardisation with group normalisation, as in its paper",
        targets={"torch": f"{_WEIGHTED}:StandardisedConv2d"},
        options={"groups": 4},
        limits={"groups": "[1, 65536]"},
        sources=("qiao2019weight", "wu2018groupnorm"),
        families=CONVOLUTIONAL,
    ),
    "scaled_ws": Entry(
        summary="NFNet's scaled weight standardisation: g (W - mu)/sqrt(max(N var, 1e-4)) times the activation's scale",
        targets={"torch": f"{_WEIGHTED}:ScaledConv2d"},
        sources=("brock2021characterizing", "brock2021nfnet"),
        families=("nfnet",),
    ),
    "fixup": Entry(
        summary="Fixup's scalars instead: a bias before each weight and activation, one multiplier a branch",
        targets={"torch": f"{_NORMS}:fixup"},
        goes_with={"init": ("fixup",), "shortcut": ("A", "A_pool", "identity_2")},
        sources=("zhang2019fixup",),
        families=RESIDUAL,
    ),
}

ACTIVATION: Mapping[str, Entry] = {
    "tanh": Entry(
        summary="tanh",
        targets={"numpy": "depthscope.lab.layers:tanh_forward", "torch": f"{_ACTIVATIONS}:tanh"},
        families=(*EVERY_FAMILY, "gpt", "recurrent", "relational"),
    ),
    "relu": Entry(
        summary="max(0, x)",
        targets={"numpy": "depthscope.lab.layers:relu_forward", "torch": f"{_ACTIVATIONS}:relu"},
        families=(*EVERY_FAMILY, "gpt", "relational"),
    ),
    "linear": Entry(
        summary="no nonlinearity",
        targets={"numpy": _STACK, "torch": f"{_ACTIVATIONS}:linear"},
        families=(*RESIDUAL, "densenet", "relational"),
    ),
    "gelu": Entry(
        summary="x Phi(x)",
        targets={"torch": f"{_ACTIVATIONS}:gelu"},
        sources=("hendrycks2016gelu",),
        families=(*EVERY_FAMILY, "gpt", "relational"),
    ),
    "silu": Entry(
        summary="x sigmoid(x)",
        targets={"torch": f"{_ACTIVATIONS}:silu"},
        sources=("hendrycks2016gelu",),
        families=(*EVERY_FAMILY, "gpt", "relational"),
    ),
    "tat": Entry(
        summary="tailored leaky ReLU: sqrt(2/(1+a^2)) times a leaky ReLU whose slope a the depth decides",
        targets={"torch": f"{_ACTIVATIONS}:tat"},
        goes_with={"init": ("tat",), "norm": ("none",)},
        sources=("zhang2022tat",),
        families=(*RESIDUAL, "densenet"),
    ),
}
