"""ZOO: every member by its name."""

from __future__ import annotations

from functools import partial

from tests.zoo import (
    cells,
    convolutional,
    hf_audio,
    hf_decoders,
    hf_encoders,
    hf_joint,
    hf_pairs,
    hf_recurrent,
    hf_vision,
    mobile,
    more,
    resnet,
)
from tests.zoo.member import Member, normal, own, tokens
from torch import nn

_IMAGE, _PLAIN, _GATED, _TWO = "own: images", "own: without skips", "own: gates", "2 a layer: attention, feed-forward"


def _pixels(size: int = 32) -> partial:  # type: ignore[type-arg]
    return partial(normal, 2, 3, size, size)


_OWN: dict[str, Member] = {
    **{
        f"ResNet-{depth}": own(_IMAGE, partial(resnet.resnet, depth, 2), _pixels(16), count, "1 a unit")
        for depth, count in resnet.ADDITIONS.items()
    },
    "CIFAR ResNet-20, option A": own(
        _IMAGE, partial(resnet.cifar_resnet, 20, "A"), _pixels(16), 9, "1 a unit; zeros for new channels"
    ),
    "CIFAR ResNet-20, option B": own(
        _IMAGE, partial(resnet.cifar_resnet, 20, "B"), _pixels(16), 9, "1 a unit; a 1x1 convolution for new channels"
    ),
    "CIFAR plain-20": own(_PLAIN, partial(resnet.cifar_resnet, 20, "plain"), _pixels(16), 0, "none"),
    "Pre-activation ResNet": own(_IMAGE, partial(resnet.preactivation_resnet, 2), _pixels(16), 6, "1 a unit"),
    "MobileNetV2": own(_IMAGE, mobile.mobilenet_v2, _pixels(), 10, "units of stride 1 whose width stays"),
    "EfficientNet-B0": own(_IMAGE, mobile.efficientnet_b0, _pixels(), 9, "units of stride 1 whose width stays"),
    "ConvNeXt blocks": own(_IMAGE, more.convnext, _pixels(), 4, "1 a block"),
    "MLP-Mixer": own(_IMAGE, more.Mixer, _pixels(), 6, "2 a layer: patches, channels"),
    "Fixup": own(_IMAGE, more.fixup, _pixels(16), 4, "1 a unit"),
    "NFNet units": own(_IMAGE, more.norm_free, _pixels(16), 3, "1 a unit"),
    "ReZero": own("own: other skips", more.ReZero, partial(normal, 8, 4), 4, "1 a block"),
    "RevNet": own("own: other skips", more.RevNet, partial(normal, 8, 4), 6, "2 a block: one a half", counted=5),
    "Graph network": own("own: other skips", more.GraphNet, partial(normal, 4, 6, 3), 3, "1 a layer"),
    "Transformer by hand, Pre-LN": own(
        "own: other skips",
        partial(cells.HandTransformer, 3),
        lambda: {"tokens": tokens(6, 11), "mask": normal(2, 6) * 0 + 1},
        6,
        _TWO,
    ),
    "Transformer by hand, Post-LN": own(
        "own: other skips",
        partial(cells.HandTransformer, 3, post=True),
        lambda: {"tokens": tokens(6, 11), "mask": normal(2, 6) * 0 + 1},
        6,
        _TWO,
    ),
    "torch's Transformer": own(
        "own: other skips",
        more.Sequence,
        lambda: {"source": normal(2, 6, 8), "target": normal(2, 4, 8)},
        2 * 2 + 3 * 3,
        "2 a layer of the encoder (2), 3 of the decoder (3)",
    ),
    "VGG-16": own(_PLAIN, convolutional.vgg, _pixels(), 0, "none"),
    "DenseNet-121": own(_PLAIN, convolutional.densenet, _pixels(), 0, "none: 58 concatenations"),
    "Inception-v3": own(_PLAIN, convolutional.InceptionV3, _pixels(80), 0, "none: 15 concatenations"),
    "U-Net": own(_PLAIN, more.UNet, _pixels(16), 0, "none: 3 concatenations"),
    "DCGAN generator": own(_PLAIN, more.generator, partial(normal, 4, 8), 0, "none"),
    "Autoencoder": own(_PLAIN, more.autoencoder, partial(normal, 8, 16), 0, "none"),
    "Plain ReLU network": own(_PLAIN, more.plain, partial(normal, 8, 4), 0, "none"),
    "Highway": own(_GATED, cells.Highway, partial(normal, 8, 4), 0, "none: the skip is gated"),
    "LSTM by hand": own(_GATED, cells.HandLSTM, partial(normal, 4, 4, 3), 0, "none: the cell is gated"),
    "LSTM": own(_GATED, partial(more.Recurrent, nn.LSTM), partial(normal, 4, 4, 3), 0, "none: the cell is gated"),
    "GRU": own(_GATED, partial(more.Recurrent, nn.GRU), partial(normal, 4, 4, 3), 0, "none: the state is gated"),
}

ZOO: dict[str, Member] = {
    **_OWN,
    **{
        name if name not in _OWN else f"{name} (transformers)": member
        for module in (hf_encoders, hf_decoders, hf_recurrent, hf_pairs, hf_vision, hf_audio, hf_joint)
        for name, member in module.MEMBERS.items()
    },
}
"""Name -> member. Its order is that of the table in docs/zoo.md."""
