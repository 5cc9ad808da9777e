"""Text encoders of `transformers`."""

from __future__ import annotations

from typing import Any

import torch
from tests.zoo.member import Member, hf, normal, text, tokens
from torch import Tensor

LAYERS = 3
_TEXT: dict[str, Any] = {"vocab_size": 50, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_SIZE: dict[str, Any] = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64}
_BERT: dict[str, Any] = {**_TEXT, **_SIZE, "num_hidden_layers": LAYERS, "max_position_embeddings": 64}
_TWO = "2 a layer: attention, feed-forward"


def _bert(model: str, why: str = _TWO, per_layer: int = 2, length: int = 8, **config: Any) -> Member:
    return hf("text encoder", model, lambda: text(length), per_layer * LAYERS, why, **{**_BERT, **config})


def _boxes() -> dict[str, Tensor]:
    return {**text(), "bbox": torch.zeros(2, 8, 4, dtype=torch.long)}


def _regions() -> dict[str, Tensor]:
    return {**text(), "visual_feats": normal(2, 5, 12), "visual_pos": normal(2, 5, 4).abs()}


MEMBERS: dict[str, Member] = {
    "BERT": _bert("BertModel"),
    "RoBERTa": _bert("RobertaModel"),
    "RoBERTa, Pre-LN": _bert("RobertaPreLayerNormModel"),
    "Megatron-BERT": _bert("MegatronBertModel", "2 a layer (Pre-LN): attention, feed-forward"),
    "DistilBERT": hf(
        "text encoder",
        "DistilBertModel",
        text,
        2 * LAYERS,
        _TWO,
        dim=32,
        n_heads=4,
        hidden_dim=64,
        n_layers=LAYERS,
        **_TEXT,
    ),
    "ELECTRA": _bert("ElectraModel", embedding_size=16),
    "ALBERT": _bert("AlbertModel", "2 a call of the one layer that all depths share", embedding_size=16),
    "DeBERTa": _bert("DebertaModel", relative_attention=True, pos_att_type=["c2p", "p2c"]),
    "DeBERTa-v2": _bert("DebertaV2Model", relative_attention=True, pos_att_type=["c2p", "p2c"]),
    "MPNet": _bert("MPNetModel"),
    "RemBERT": _bert("RemBertModel", input_embedding_size=16, output_embedding_size=16),
    "RoFormer": _bert("RoFormerModel", embedding_size=16),
    "ESM": _bert("EsmModel", mask_token_id=4, position_embedding_type="rotary"),
    "ModernBERT": _bert(
        "ModernBertModel", cls_token_id=1, sep_token_id=2, local_attention=4, attn_implementation="eager"
    ),
    "XLM": hf("text encoder", "XLMModel", text, 2 * LAYERS, _TWO, n_words=50, emb_dim=32, n_layers=LAYERS, n_heads=4),
    "XLNet": hf(
        "text encoder",
        "XLNetModel",
        text,
        2 * LAYERS,
        _TWO,
        vocab_size=50,
        d_model=32,
        n_layer=LAYERS,
        n_head=4,
        d_inner=64,
    ),
    "FNet": _bert("FNetModel", "2 a layer: Fourier transform, feed-forward"),
    "SqueezeBERT": _bert("SqueezeBertModel", embedding_size=32),
    "ConvBERT": _bert("ConvBertModel", embedding_size=16, head_ratio=2, conv_kernel_size=3),
    "Nystromformer": _bert(
        "NystromformerModel",
        "2 a layer; its convolution of the values is added to attention, not to the values",
        num_landmarks=4,
        segment_means_seq_len=8,
        conv_kernel_size=3,
    ),
    "YOSO": _bert("YosoModel"),
    "BigBird, block-sparse": _bert("BigBirdModel", length=32, block_size=2, num_random_blocks=1),
    "Longformer": hf(
        "text encoder",
        "LongformerModel",
        lambda: text(16),
        2 * LAYERS,
        _TWO,
        **{**_BERT, "attention_window": [4] * LAYERS},
    ),
    "MobileBERT": _bert(
        "MobileBertModel",
        "6 a layer: attention, 4 feed-forward networks, and the bottleneck around them",
        6,
        embedding_size=16,
        intra_bottleneck_size=16,
        true_hidden_size=16,
        num_feedforward_networks=4,
    ),
    "Funnel": hf(
        "text encoder",
        "FunnelModel",
        lambda: text(9),
        2 * 4 + 2 * 2 + 1,
        "2 a layer (4 of the encoder, 2 of the decoder); the first block's result added to the upsampled",
        vocab_size=50,
        d_model=32,
        n_head=4,
        d_head=8,
        d_inner=64,
        block_sizes=[2, 2],
        num_decoder_layers=2,
    ),
    "CANINE": hf(
        "text encoder",
        "CanineModel",
        lambda: text(32),
        2 * (LAYERS + 2),
        "2 a layer, and a shallow layer on characters before and after",
        **{
            **_BERT,
            "num_hash_buckets": 64,
            "num_hash_functions": 4,
            "local_transformer_stride": 16,
            "downsampling_rate": 4,
        },
    ),
    "LayoutLM": hf("text encoder", "LayoutLMModel", _boxes, 2 * LAYERS, _TWO, **_BERT, max_2d_position_embeddings=16),
    "LXMERT": hf(
        "text encoder",
        "LxmertModel",
        _regions,
        2 * 2 + 2 * 1 + 6 * 2,
        "2 each of 2 language and 1 vision layers; 6 each of 2 cross layers: cross-attention, attention, feed-forward "
        "on either side",
        **{**_TEXT, **_SIZE, "l_layers": 2, "r_layers": 1, "x_layers": 2, "visual_feat_dim": 12},
    ),
    "Reformer": hf(
        "text encoder",
        "ReformerModel",
        lambda: {"input_ids": tokens(8)},
        2 * 3,
        "2 a reversible layer: y1 = x1 + attention(x2), y2 = x2 + feed-forward(y1); both start as the embedding",
        vocab_size=50,
        hidden_size=32,
        num_attention_heads=2,
        attention_head_size=8,
        attn_layers=["local", "lsh", "local"],
        num_hashes=1,
        num_buckets=2,
        axial_pos_embds=False,
        feed_forward_size=32,
        is_decoder=False,
        local_attn_chunk_length=4,
        lsh_attn_chunk_length=4,
        max_position_embeddings=16,
    ),
    "Perceiver": hf(
        "text encoder",
        "PerceiverModel",
        lambda: {"inputs": normal(2, 6, 12)},
        1 + 2 * 2 * LAYERS,
        "2 a self-attention layer (2 blocks of 3, the same weights) and 1 of the cross layer, whose other is added to "
        "learned latents, a constant",
        d_model=12,
        d_latents=16,
        num_latents=5,
        num_blocks=2,
        num_self_attends_per_block=LAYERS,
        num_self_attention_heads=2,
        num_cross_attention_heads=2,
    ),
}
