"""Audio models of `transformers`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tests.zoo.member import Member, hf, normal, tokens, waves
from torch import Tensor

LAYERS, ENCODER, DECODER = 3, 2, 3
_SPEECH: dict[str, Any] = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_hidden_layers": LAYERS,
    "intermediate_size": 64,
    "conv_dim": (16, 16),
    "conv_stride": (4, 2),
    "conv_kernel": (5, 3),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "mask_time_prob": 0.0,
    "layerdrop": 0.0,
    "vocab_size": 50,
}
_PAIR: dict[str, Any] = {
    "vocab_size": 50,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "encoder_layers": ENCODER,
    "decoder_layers": DECODER,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
}
_ALL = 2 * ENCODER + 3 * DECODER
_BOTH = "2 a layer of the encoder, 3 of the decoder: attention, cross-attention, feed-forward"
_POSITION = "2 a layer, and x + convolution(x), its positions"


def _speech(model: str, additions: int = 2 * LAYERS + 1, why: str = _POSITION, **config: Any) -> Member:
    return hf("audio", model, waves, additions, why, **{**_SPEECH, **config})


def _model(
    model: str, batch: Callable[[], dict[str, Tensor]], additions: int | None, why: str, **config: Any
) -> Member:
    return hf("audio", model, batch, additions, why, **config)


def _heard(name: str, *shape: int) -> Callable[[], dict[str, Tensor]]:
    return lambda: {name: normal(2, *shape), "decoder_input_ids": tokens(6)}


MEMBERS: dict[str, Member] = {
    "Wav2Vec2": _speech("Wav2Vec2Model"),
    "Wav2Vec2, masked": _speech("Wav2Vec2Model", mask_time_prob=0.5, mask_time_length=4, do_stable_layer_norm=True),
    "HuBERT": _speech("HubertModel"),
    "WavLM": _speech("WavLMModel"),
    "UniSpeech": _speech("UniSpeechModel"),
    "UniSpeech-SAT": _speech("UniSpeechSatModel"),
    "Data2Vec": _speech("Data2VecAudioModel"),
    "SEW": _speech(
        "SEWModel", why="2 a layer, and pool(x) + convolution(x), its positions", squeeze_factor=2, conv_dim=(16, 16)
    ),
    "SEW-D": _speech(
        "SEWDModel",
        why="2 a layer, and pool(x) + convolution(x), its positions",
        squeeze_factor=2,
        max_position_embeddings=64,
        position_buckets=8,
        relative_attention=True,
        share_att_key=True,
        pos_att_type=("p2c", "c2p"),
    ),
    "Wav2Vec2-Conformer": _speech(
        "Wav2Vec2ConformerModel",
        4 * LAYERS,
        "4 a layer: half a feed-forward, attention, convolution, half a feed-forward",
        conv_depthwise_kernel_size=3,
    ),
    "AST": _model(
        "ASTForAudioClassification",
        lambda: {"input_values": normal(2, 32, 16)},
        2 * LAYERS,
        "2 a layer: attention, feed-forward",
        hidden_size=32,
        num_attention_heads=4,
        num_hidden_layers=LAYERS,
        intermediate_size=64,
        patch_size=8,
        frequency_stride=8,
        time_stride=8,
        max_length=32,
        num_mel_bins=16,
        num_labels=5,
    ),
    "Whisper": _model(
        "WhisperForConditionalGeneration",
        _heard("input_features", 8, 40),
        _ALL,
        _BOTH,
        **_PAIR,
        d_model=32,
        num_mel_bins=8,
        max_source_positions=20,
        max_target_positions=16,
    ),
    "Speech2Text": _model(
        "Speech2TextForConditionalGeneration",
        _heard("input_features", 40, 8),
        _ALL,
        _BOTH,
        **_PAIR,
        d_model=32,
        input_feat_per_channel=8,
        conv_channels=16,
        conv_kernel_sizes=(3, 3),
        num_conv_layers=2,
        max_source_positions=40,
        max_target_positions=16,
    ),
    "Moonshine": _model(
        "MoonshineForConditionalGeneration",
        _heard("input_values", 2000),
        _ALL,
        _BOTH,
        vocab_size=50,
        hidden_size=32,
        intermediate_size=64,
        encoder_num_hidden_layers=ENCODER,
        decoder_num_hidden_layers=DECODER,
        encoder_num_attention_heads=4,
        decoder_num_attention_heads=4,
        pad_token_id=0,
        decoder_start_token_id=1,
    ),
    "SpeechT5": _model(
        "SpeechT5ForSpeechToText",
        _heard("input_values", 400),
        _ALL + 1,
        f"{_BOTH}; and x + convolution(x), its positions",
        **{
            **_PAIR,
            **{key: value for key, value in _SPEECH.items() if key.startswith(("conv_", "num_conv", "num_feat"))},
            "hidden_size": 32,
            "mask_time_prob": 0.0,
            "positional_dropout": 0.0,
        },
    ),
    "EnCodec": _model(
        "EncodecModel",
        lambda: {"input_values": normal(2, 1, 320)},
        2 * (2 + 1),
        "encoder and decoder each: 2 residual units (shortcut by a convolution) and x + LSTM(x)",
        num_filters=4,
        hidden_size=16,
        codebook_dim=16,
        codebook_size=16,
        upsampling_ratios=[4, 2],
        num_lstm_layers=1,
        target_bandwidths=[24.0],
        normalize=False,
    ),
    "VITS": _model(
        "VitsModel",
        lambda: {"input_ids": tokens(), "attention_mask": torch.ones(2, 8, dtype=torch.long)},
        None,
        "its flows add a function of one half of a tensor to the other half, and its durations are drawn",
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        ffn_dim=32,
        flow_size=16,
        spectrogram_bins=9,
        prior_encoder_num_flows=2,
        prior_encoder_num_wavenet_layers=2,
        posterior_encoder_num_wavenet_layers=2,
        upsample_initial_channel=16,
        upsample_rates=[4, 2],
        upsample_kernel_sizes=[8, 4],
        resblock_kernel_sizes=[3],
        resblock_dilation_sizes=[[1, 3]],
        duration_predictor_num_flows=2,
        duration_predictor_filter_channels=16,
        depth_separable_num_layers=2,
        layerdrop=0.0,
    ),
}
