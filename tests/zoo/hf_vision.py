"""Image and video models of `transformers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.zoo.member import Member, hf, images, normal
from torch import Tensor

LAYERS = 3
_VIT: dict[str, Any] = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "num_hidden_layers": LAYERS,
    "image_size": 32,
    "patch_size": 8,
}
_TWO = "2 a layer: attention, feed-forward"
_UNIT = "1 a unit"
_STAGES: dict[str, Any] = {"depths": [1, 2, 1, 1]}
_WIDTHS: dict[str, Any] = {"embedding_size": 8, "hidden_sizes": [8, 16, 16, 32], **_STAGES}
_UNITS = 5


def _model(
    model: str,
    additions: int | None,
    why: str,
    size: int = 32,
    batch: Callable[[], dict[str, Tensor]] | None = None,
    **config: Any,
) -> Member:
    return hf("vision", model, batch or (lambda: images(size)), additions, why, **config)


def _vit(model: str, additions: int = 2 * LAYERS, why: str = _TWO, **config: Any) -> Member:
    return _model(model, additions, why, **{**_VIT, **config})


def _video(frames: int) -> Callable[[], dict[str, Tensor]]:
    return lambda: {"pixel_values": normal(2, frames, 3, 32, 32)}


MEMBERS: dict[str, Member] = {
    "ViT": _vit("ViTForImageClassification"),
    "DeiT": _vit("DeiTForImageClassification"),
    "BEiT": _vit("BeitForImageClassification", use_relative_position_bias=True),
    "DINOv2": _vit("Dinov2ForImageClassification", why="2 a layer, each scaled by a vector", mlp_ratio=2),
    "YOLOS": _vit("YolosModel", image_size=[32, 32], num_detection_tokens=4),
    "ViT-MAE": _vit(
        "ViTMAEForPreTraining",
        2 * (LAYERS + 2),
        "2 a layer of the encoder and of the decoder (2 layers)",
        decoder_hidden_size=16,
        decoder_num_hidden_layers=2,
        decoder_num_attention_heads=2,
        decoder_intermediate_size=32,
    ),
    "ViViT": _vit("VivitForVideoClassification", batch=_video(2), tubelet_size=[2, 8, 8], num_frames=2, num_labels=5),
    "VideoMAE": _vit("VideoMAEModel", batch=_video(2), num_frames=2, tubelet_size=2),
    "TimeSformer": _vit(
        "TimesformerModel",
        3 * LAYERS,
        "3 a layer: attention over time, attention over space, feed-forward",
        batch=_video(3),
        num_frames=3,
    ),
    "Swin": _model(
        "SwinModel",
        2 * 4,
        "2 a block of 4, half of them on shifted windows",
        image_size=32,
        patch_size=2,
        embed_dim=16,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=4,
    ),
    "Swin v2": _model(
        "Swinv2Model",
        2 * 4,
        "2 a block of 4, the norm after each branch",
        image_size=32,
        patch_size=2,
        embed_dim=16,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=4,
    ),
    "Hiera": _model(
        "HieraModel",
        2 * 4,
        "2 a block of 4; where the width doubles the skip is a projection and a pooling",
        image_size=[32, 32],
        patch_size=[7, 7],
        patch_stride=[4, 4],
        patch_padding=[3, 3],
        embed_dim=16,
        depths=[1, 1, 1, 1],
        num_heads=[1, 2, 2, 4],
        masked_unit_size=[8, 8],
        query_stride=[2, 2],
        mlp_ratio=2.0,
    ),
    "ConvNeXt": _model("ConvNextForImageClassification", _UNITS, _UNIT, 64, num_labels=5, **_WIDTHS),
    "ConvNeXt v2": _model(
        "ConvNextV2ForImageClassification",
        2 * _UNITS,
        "2 a unit: its own, and that of its response normalisation, x + gamma x N(x) + beta (Woo et al. 2023)",
        64,
        counted=_UNITS,
        num_labels=5,
        **_WIDTHS,
    ),
    "PoolFormer": _model(
        "PoolFormerForImageClassification",
        2 * _UNITS,
        "2 a block: pooling minus x, feed-forward",
        64,
        num_labels=5,
        hidden_sizes=[8, 16, 16, 32],
        **_STAGES,
    ),
    "ResNet": _model("ResNetForImageClassification", _UNITS, _UNIT, 64, num_labels=5, **_WIDTHS),
    "RegNet": _model("RegNetForImageClassification", _UNITS, _UNIT, 64, num_labels=5, groups_width=4, **_WIDTHS),
    "BiT": _model("BitForImageClassification", _UNITS, _UNIT, 64, num_labels=5, num_groups=4, **_WIDTHS),
    "EfficientNet": _model(
        "EfficientNetForImageClassification",
        9,
        "B0's: each repeated unit of a stage, 0 + 1 + 1 + 2 + 2 + 3 + 0",
        width_coefficient=0.2,
        depth_coefficient=1.0,
        image_size=32,
        hidden_dim=256,
        num_labels=5,
    ),
    "MobileNet v1": _model(
        "MobileNetV1ForImageClassification", 0, "none: depthwise convolutions one after another", depth_multiplier=0.25
    ),
    "MobileNet v2": _model(
        "MobileNetV2ForImageClassification", 10, "units of stride 1 whose width stays", depth_multiplier=0.25
    ),
    "MobileViT": _model(
        "MobileViTForImageClassification",
        2 + 2 * (2 + 4 + 3),
        "2 inverted residual units, 2 a transformer layer of 9",
        64,
        hidden_sizes=[16, 24, 32],
        neck_hidden_sizes=[8, 12, 16, 16, 24, 32, 64],
        num_labels=5,
    ),
    "LeViT": _model(
        "LevitForImageClassification",
        2 * 4 + 2,
        "2 a block of 4 (attention, feed-forward); 1 feed-forward after each of 2 attentions that shrink the image",
        64,
        image_size=64,
        hidden_sizes=[16, 24, 32],
        num_attention_heads=[2, 3, 4],
        depths=[2, 1, 1],
        key_dim=[8, 8, 8],
        num_labels=5,
        down_ops=[["Subsample", 8, 2, 4, 2, 2], ["Subsample", 8, 3, 4, 2, 2]],
    ),
    "SegFormer": _model(
        "SegformerForImageClassification",
        2 * _UNITS,
        _TWO,
        64,
        hidden_sizes=[8, 16, 16, 32],
        num_attention_heads=[1, 2, 2, 4],
        num_labels=5,
        **_STAGES,
    ),
    "GLPN": _model(
        "GLPNModel",
        2 * _UNITS,
        _TWO,
        64,
        hidden_sizes=[8, 16, 16, 32],
        num_attention_heads=[1, 2, 2, 4],
        **_STAGES,
    ),
    "PVT": _model(
        "PvtForImageClassification",
        2 * _UNITS,
        _TWO,
        64,
        image_size=64,
        hidden_sizes=[8, 16, 16, 32],
        num_attention_heads=[1, 2, 2, 4],
        num_labels=5,
        **_STAGES,
    ),
    "CvT": _model(
        "CvtForImageClassification",
        2 * 6,
        "2 a layer of 6: attention between convolutions, feed-forward",
        64,
        embed_dim=[8, 16, 32],
        num_heads=[1, 2, 4],
        depth=[1, 2, 3],
        num_labels=5,
    ),
    "FocalNet": _model(
        "FocalNetForImageClassification",
        2 * _UNITS,
        "2 a block: modulation by a gated context, feed-forward",
        64,
        image_size=64,
        embed_dim=8,
        hidden_sizes=[8, 16, 32, 64],
        num_labels=5,
        **_STAGES,
    ),
    "SwiftFormer": _model(
        "SwiftFormerForImageClassification",
        4 * 4 + 1,
        "4 a stage (local, attention, its query, feed-forward) and 1 a further convolutional block",
        64,
        embed_dims=[8, 16, 16, 32],
        num_labels=5,
        **_STAGES,
    ),
    "DETR": _model(
        "DetrForObjectDetection",
        4 + 2 * 2 + 3 * 3 - 2,
        "4 units of its ResNet, 2 a layer of the encoder (2), 3 of the decoder (3), less the 2 of its first layer that "
        "are added to a constant: the queries start at 0",
        64,
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config={
            "model_type": "resnet",
            "embedding_size": 8,
            "hidden_sizes": [8, 8, 16, 16],
            "depths": [1, 1, 1, 1],
            "layer_type": "basic",
            "out_features": ["stage4"],
        },
        d_model=32,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        num_queries=5,
        auxiliary_loss=False,
    ),
}
