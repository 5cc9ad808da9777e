"""Encoder-decoder models and time-series models of `transformers`."""

from __future__ import annotations

from typing import Any

import torch
from tests.zoo.member import Member, hf, normal, pairs
from torch import Tensor

ENCODER, DECODER = 2, 3
_ALL = 2 * ENCODER + 3 * DECODER
_WHY = "2 a layer of the encoder, 3 of the decoder: attention, cross-attention, feed-forward"
_TEXT: dict[str, Any] = {
    "vocab_size": 50,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
_BART: dict[str, Any] = {
    **_TEXT,
    "d_model": 32,
    "encoder_layers": ENCODER,
    "decoder_layers": DECODER,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "encoder_layerdrop": 0.0,
    "decoder_layerdrop": 0.0,
    "max_position_embeddings": 64,
}
_T5: dict[str, Any] = {
    **_TEXT,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_heads": 4,
    "num_layers": ENCODER,
    "num_decoder_layers": DECODER,
}


def _pair(base: dict[str, Any], model: str, why: str = _WHY, additions: int = _ALL, **config: Any) -> Member:
    length = config.pop("length", 8)
    return hf("encoder-decoder", model, lambda: pairs(length), additions, why, **{**base, **config})


_PAST, _FUTURE, _LAGS = 12, 4, 3


def _series() -> dict[str, Tensor]:
    past = _PAST + _LAGS
    return {
        "past_values": normal(2, past),
        "past_time_features": normal(2, past, 2),
        "past_observed_mask": torch.ones(2, past),
        "future_values": normal(2, _FUTURE),
        "future_time_features": normal(2, _FUTURE, 2),
    }


_SERIES: dict[str, Any] = {
    **{key: value for key, value in _BART.items() if key not in _TEXT and key != "max_position_embeddings"},
    "prediction_length": _FUTURE,
    "context_length": _PAST,
    "lags_sequence": [1, 2, 3],
    "num_time_features": 2,
}


def _forecast(model: str, additions: int | None, why: str, **config: Any) -> Member:
    return hf("time series", model, _series, additions, why, **_SERIES, **config)


def _patches() -> dict[str, Tensor]:
    return {"past_values": normal(2, 16, 3)}


MEMBERS: dict[str, Member] = {
    "T5": _pair(_T5, "T5ForConditionalGeneration"),
    "mT5": _pair(_T5, "MT5ForConditionalGeneration"),
    "UMT5": _pair(_T5, "UMT5ForConditionalGeneration"),
    "LongT5": _pair(_T5, "LongT5ForConditionalGeneration", local_radius=3, encoder_attention_type="local"),
    "Switch Transformers": _pair(
        _T5,
        "SwitchTransformersForConditionalGeneration",
        num_experts=4,
        num_sparse_encoder_layers=1,
        num_sparse_decoder_layers=1,
        router_jitter_noise=0.0,
    ),
    "BART": _pair(_BART, "BartForConditionalGeneration"),
    "mBART": _pair(_BART, "MBartForConditionalGeneration"),
    "Pegasus": _pair(_BART, "PegasusForConditionalGeneration"),
    "Marian": _pair(_BART, "MarianMTModel"),
    "M2M-100": _pair(_BART, "M2M100ForConditionalGeneration"),
    "Blenderbot": _pair(_BART, "BlenderbotForConditionalGeneration"),
    "LED": _pair(_BART, "LEDForConditionalGeneration", attention_window=[4, 4], length=16),
    "ProphetNet": _pair(
        {
            **_TEXT,
            "hidden_size": 32,
            "num_encoder_layers": ENCODER,
            "num_decoder_layers": DECODER,
            "num_encoder_attention_heads": 4,
            "num_decoder_attention_heads": 4,
            "encoder_ffn_dim": 64,
            "decoder_ffn_dim": 64,
            "max_position_embeddings": 64,
        },
        "ProphetNetForConditionalGeneration",
        ngram=2,
        use_cache=False,
    ),
    "Time Series Transformer": _forecast("TimeSeriesTransformerModel", _ALL, _WHY),
    "Informer": _forecast("InformerModel", _ALL, _WHY),
    "Autoformer": _forecast(
        "AutoformerModel",
        None,
        "each decoder layer adds its trends to a running trend that no branch starts from: whether that is a skip is "
        "a matter of words",
        moving_average=3,
        label_length=2,
    ),
    "PatchTST": hf(
        "time series",
        "PatchTSTModel",
        _patches,
        2 * DECODER,
        "2 a layer: attention, feed-forward",
        num_input_channels=3,
        context_length=16,
        patch_length=4,
        patch_stride=4,
        d_model=32,
        num_attention_heads=4,
        num_hidden_layers=DECODER,
        ffn_dim=64,
    ),
    "PatchTSMixer": hf(
        "time series",
        "PatchTSMixerModel",
        _patches,
        2 * DECODER,
        "2 a layer: mixing of patches, of features",
        num_input_channels=3,
        context_length=16,
        patch_length=4,
        patch_stride=4,
        d_model=16,
        num_layers=DECODER,
        mode="common_channel",
    ),
}
