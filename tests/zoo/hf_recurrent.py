"""State-space models, linear attention and recurrences of `transformers`."""

from __future__ import annotations

from typing import Any

from tests.zoo.member import Member, hf, text, tokens

LAYERS = 3
_TEXT: dict[str, Any] = {"vocab_size": 50, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_LLAMA: dict[str, Any] = {
    **_TEXT,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "num_hidden_layers": LAYERS,
}
_MAMBA: dict[str, Any] = {**_TEXT, "hidden_size": 32, "num_hidden_layers": LAYERS, "state_size": 4}
_D = "2 a layer: x + mixer(x), and in the mixer the state space's own skip, y = C h + D x"


def _model(model: str, additions: int, why: str, **config: Any) -> Member:
    return hf("state space, recurrence", model, lambda: {"input_ids": tokens()}, additions, why, **config)


MEMBERS: dict[str, Member] = {
    "Mamba": _model("MambaForCausalLM", 2 * LAYERS, _D, **_MAMBA),
    "Falcon-Mamba": _model("FalconMambaForCausalLM", 2 * LAYERS, _D, **_MAMBA),
    "Mamba-2": _model("Mamba2ForCausalLM", 2 * LAYERS, _D, **_MAMBA, num_heads=8, head_dim=8, n_groups=1, chunk_size=4),
    "RWKV": _model(
        "RwkvForCausalLM",
        2 * LAYERS,
        "2 a layer: time mixing, channel mixing; the mixing of neighbours mu x_t + (1 - mu) x_(t-1) is none",
        vocab_size=50,
        hidden_size=32,
        num_hidden_layers=LAYERS,
        attention_hidden_size=32,
        context_length=16,
        use_cache=False,
    ),
    "RecurrentGemma": _model(
        "RecurrentGemmaForCausalLM",
        2 * LAYERS,
        "2 a layer: recurrence or attention, feed-forward; h_t = a h_(t-1) + x_t is gated",
        **_LLAMA,
        lru_width=32,
        attention_window_size=4,
    ),
    "xLSTM": _model(
        "xLSTMForCausalLM",
        2 * LAYERS,
        "2 a layer: mLSTM, feed-forward",
        vocab_size=50,
        hidden_size=128,
        embedding_dim=128,
        num_heads=2,
        num_blocks=LAYERS,
        num_hidden_layers=LAYERS,
        chunk_size=4,
        use_cache=False,  # its cache is written where its own backward pass would need the old values
    ),
    "LFM2": hf(
        "state space, recurrence",
        "Lfm2ForCausalLM",
        text,
        2 * LAYERS,
        "2 a layer: gated convolution or attention, feed-forward",
        **_LLAMA,
        layer_types=["conv", "full_attention", "conv"],
    ),
    "Jamba": hf(
        "state space, recurrence",
        "JambaForCausalLM",
        text,
        2 * LAYERS + 2,
        "2 a layer, and D x in the two Mamba layers",
        **_LLAMA,
        attn_layer_period=3,
        attn_layer_offset=1,
        num_experts=2,
        num_experts_per_tok=1,
        expert_layer_period=2,
        mamba_d_state=4,
        mamba_dt_rank=4,
        use_mamba_kernels=False,
    ),
    "Bamba": hf(
        "state space, recurrence",
        "BambaForCausalLM",
        text,
        2 * LAYERS + 2,
        "2 a layer, and D x in the two Mamba layers",
        **_LLAMA,
        attn_layer_indices=[1],
        mamba_n_heads=8,
        mamba_d_head=8,
        mamba_d_state=4,
        mamba_n_groups=1,
        mamba_chunk_size=4,
    ),
    "Qwen3-Next": hf(
        "state space, recurrence",
        "Qwen3NextForCausalLM",
        text,
        2 * LAYERS,
        "2 a layer: gated delta rule or attention, experts",
        **_LLAMA,
        head_dim=8,
        layer_types=["linear_attention", "full_attention", "linear_attention"],
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=8,
        linear_value_head_dim=8,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        shared_expert_intermediate_size=16,
    ),
}
