"""Models of `transformers` on several sorts of input."""

from __future__ import annotations

from typing import Any

import torch
from tests.zoo.member import Member, hf, images, normal, text, tokens
from torch import Tensor

LAYERS, VISION = 3, 2
_TEXT: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "num_hidden_layers": LAYERS,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_VISION: dict[str, Any] = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "num_hidden_layers": VISION,
    "image_size": 32,
    "patch_size": 8,
}
_TOWERS: dict[str, Any] = {"text_config": _TEXT, "vision_config": _VISION, "projection_dim": 16}
_JOINT = {**_TEXT, **_VISION, "num_hidden_layers": LAYERS}
_TWO = "2 a layer of each tower (3 of text, 2 of vision)"


def _both() -> dict[str, Tensor]:
    return {**text(), **images()}


def _seen() -> dict[str, Tensor]:
    ids = tokens(24)
    ids[:, 2:18] = 49  # a token for each patch
    return {"input_ids": ids, "attention_mask": torch.ones(2, 24, dtype=torch.long), **images()}


def _model(model: str, additions: int | None, why: str, batch: Any = _both, **config: Any) -> Member:
    return hf("several inputs", model, batch, additions, why, **config)


MEMBERS: dict[str, Member] = {
    "CLIP": _model("CLIPModel", 2 * (LAYERS + VISION), _TWO, **_TOWERS),
    "Chinese-CLIP": _model("ChineseCLIPModel", 2 * (LAYERS + VISION), _TWO, **_TOWERS),
    "SigLIP": _model(
        "SiglipModel",
        2 * (LAYERS + VISION) + 1,
        f"{_TWO}, and the feed-forward of the pooling head",
        text_config={**_TEXT, "projection_size": 32},
        vision_config=_VISION,
    ),
    "BLIP": _model("BlipModel", 2 * (LAYERS + VISION), _TWO, **_TOWERS),
    "OWL-ViT": _model("OwlViTModel", 2 * (LAYERS + VISION), _TWO, **_TOWERS),
    "ViLT": _model(
        "ViltModel",
        2 * LAYERS,
        "2 a layer, on both sorts in one stream",
        **{**_TEXT, **_VISION, "num_hidden_layers": LAYERS},
    ),
    "VisualBERT": _model(
        "VisualBertModel",
        2 * LAYERS,
        "2 a layer, on both sorts in one stream",
        lambda: {**text(), "visual_embeds": normal(2, 5, 12), "visual_attention_mask": torch.ones(2, 5)},
        visual_embedding_dim=12,
        **_TEXT,
    ),
    "FLAVA": _model(
        "FlavaModel",
        2 * (LAYERS + VISION + 2),
        "2 a layer of text (3), of images (2) and of both (2)",
        text_config=_TEXT,
        image_config=_VISION,
        multimodal_config={**_VISION, "num_hidden_layers": 2},
        hidden_size=32,
        projection_dim=16,
    ),
    "LLaVA": _model(
        "LlavaForConditionalGeneration",
        2 * VISION + 2 * LAYERS,
        "2 a layer of Llama (3) and of the vision tower (2), whose last layer reaches only `image_outputs`",
        _seen,
        text_config={"model_type": "llama", **_TEXT},
        vision_config={"model_type": "clip_vision_model", **_VISION},
        image_token_id=49,
    ),
    "Vision Encoder-Decoder": _model(
        "VisionEncoderDecoderModel",
        2 * VISION + 3 * LAYERS,
        "2 a layer of ViT (2), 3 of GPT-2 with cross-attention (3)",
        lambda: {**images(), "decoder_input_ids": tokens(6)},
        encoder={"model_type": "vit", **_VISION},
        decoder={
            "model_type": "gpt2",
            "vocab_size": 50,
            "n_embd": 32,
            "n_head": 4,
            "n_layer": LAYERS,
            "n_positions": 16,
            "add_cross_attention": True,
            "is_decoder": True,
        },
    ),
    "BERT2BERT": hf(
        "encoder-decoder",
        "EncoderDecoderModel",
        lambda: {**text(), "decoder_input_ids": tokens(6)},
        2 * LAYERS + 3 * LAYERS,
        "2 a layer of the encoder, 3 of the decoder with cross-attention",
        encoder={"model_type": "bert", **_TEXT},
        decoder={"model_type": "bert", **_TEXT, "add_cross_attention": True, "is_decoder": True},
    ),
}
