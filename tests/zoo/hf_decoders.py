"""Decoder-only language models of `transformers`."""

from __future__ import annotations

from typing import Any

from tests.zoo.member import Member, hf, normal, text, tokens
from torch import Tensor

LAYERS = 3
_TEXT: dict[str, Any] = {"vocab_size": 50, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_SIZE: dict[str, Any] = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64}
_LLAMA: dict[str, Any] = {
    **_TEXT,
    **_SIZE,
    "num_key_value_heads": 2,
    "num_hidden_layers": LAYERS,
    "max_position_embeddings": 64,
}
_GPT: dict[str, Any] = {**_TEXT, "n_embd": 32, "n_head": 4, "n_layer": LAYERS, "n_positions": 64}
_TWO = "2 a layer: attention, feed-forward"
_SUM = "1 a layer: attention and feed-forward are summed first, then added to x"
_MOE = "2 a layer: attention, experts (which are summed, not added to x one by one)"
_EXPERTS: dict[str, Any] = {"moe_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2}


def _like(base: dict[str, Any], model: str, why: str = _TWO, per_layer: int = 2, **config: Any) -> Member:
    return hf("text decoder", model, text, per_layer * LAYERS, why, **{**base, **config})


def _gpt(model: str, why: str = _TWO, per_layer: int = 2, **config: Any) -> Member:
    return _like(_GPT, model, why, per_layer, **config)


def _llama(model: str, why: str = _TWO, per_layer: int = 2, **config: Any) -> Member:
    return _like(_LLAMA, model, why, per_layer, **config)


def _trajectory() -> dict[str, Tensor]:
    return {
        "states": normal(2, 4, 5),
        "actions": normal(2, 4, 2),
        "rewards": normal(2, 4, 1),
        "returns_to_go": normal(2, 4, 1),
        "timesteps": tokens(4, 9),
        "attention_mask": tokens(4, 4) // 3,
    }


MEMBERS: dict[str, Member] = {
    "GPT": _gpt("OpenAIGPTLMHeadModel", "2 a layer (Post-LN): attention, feed-forward"),
    "GPT-2": _gpt("GPT2LMHeadModel", activation_function="gelu_new"),
    "GPT-BigCode": _gpt("GPTBigCodeForCausalLM"),
    "CTRL": _gpt("CTRLLMHeadModel", dff=64),
    "GPT-Neo": _like(
        _TEXT,
        "GPTNeoForCausalLM",
        hidden_size=32,
        num_heads=4,
        num_layers=LAYERS,
        attention_types=[[["global"], 1], [["local"], 2]],
        window_size=4,
        max_position_embeddings=64,
    ),
    "GPT-J": _gpt("GPTJForCausalLM", _SUM, 1, rotary_dim=4),
    "CodeGen": _gpt("CodeGenForCausalLM", _SUM, 1, rotary_dim=4),
    "GPT-NeoX": _llama("GPTNeoXForCausalLM", _SUM, 1, use_parallel_residual=True),
    "GPT-NeoX, sequential": _llama("GPTNeoXForCausalLM", use_parallel_residual=False),
    "BLOOM": _like(_TEXT, "BloomForCausalLM", hidden_size=32, n_head=4, n_layer=LAYERS),
    "Falcon": _llama("FalconForCausalLM", _SUM, 1, parallel_attn=True),
    "Falcon, sequential": _llama("FalconForCausalLM", parallel_attn=False, alibi=True, multi_query=False),
    "MPT": _like(_TEXT, "MptForCausalLM", d_model=32, n_heads=4, n_layers=LAYERS, max_seq_len=64),
    "OPT": _llama("OPTForCausalLM", ffn_dim=64, word_embed_proj_dim=32),
    "XGLM": _like(_TEXT, "XGLMForCausalLM", d_model=32, ffn_dim=64, num_layers=LAYERS, attention_heads=4),
    "BioGPT": _llama("BioGptForCausalLM"),
    "Llama": _llama("LlamaForCausalLM"),
    "Mistral": _llama("MistralForCausalLM", sliding_window=4),
    "Qwen2": _llama("Qwen2ForCausalLM"),
    "Qwen3": _llama("Qwen3ForCausalLM", head_dim=8),
    "Gemma": _llama("GemmaForCausalLM", head_dim=8),
    "Gemma 2": _llama("Gemma2ForCausalLM", "2 a layer, each between two norms", head_dim=8),
    "Gemma 3": _llama("Gemma3ForCausalLM", "2 a layer, each between two norms", head_dim=8),
    "Phi": _llama("PhiForCausalLM", _SUM, 1),
    "Phi-3": _llama("Phi3ForCausalLM"),
    "StableLM": _llama("StableLmForCausalLM"),
    "StarCoder2": _llama("Starcoder2ForCausalLM"),
    "Persimmon": _llama("PersimmonForCausalLM"),
    "Nemotron": _llama("NemotronForCausalLM", head_dim=8),
    "OLMo 2": _llama("Olmo2ForCausalLM", "2 a layer, the norm after each branch"),
    "Granite": _llama("GraniteForCausalLM", residual_multiplier=0.5),
    "Cohere": _llama("CohereForCausalLM", "2 a layer: (x + attention) + feed-forward, both of one norm of x"),
    "SmolLM3": _llama("SmolLM3ForCausalLM"),
    "Mixtral": _llama("MixtralForCausalLM", _MOE, num_local_experts=4),
    "OLMoE": _llama("OlmoeForCausalLM", _MOE, num_experts=4, num_experts_per_tok=2),
    "Qwen2-MoE": _llama("Qwen2MoeForCausalLM", _MOE, shared_expert_intermediate_size=16, **_EXPERTS),
    "GPT-OSS": _llama("GptOssForCausalLM", _MOE, head_dim=8, num_local_experts=4, num_experts_per_tok=2),
    "DeepSeek-V3": _llama(
        "DeepseekV3ForCausalLM",
        _MOE,
        moe_intermediate_size=16,
        n_routed_experts=4,
        num_experts_per_tok=2,
        n_group=1,
        topk_group=1,
        first_k_dense_replace=1,
        kv_lora_rank=8,
        q_lora_rank=8,
        qk_rope_head_dim=8,
        qk_nope_head_dim=8,
        v_head_dim=8,
        num_key_value_heads=4,
    ),
    "ImageGPT": hf(
        "text decoder", "ImageGPTModel", lambda: {"input_ids": tokens()}, 2 * LAYERS, _TWO, **{**_GPT, "vocab_size": 50}
    ),
    "Decision Transformer": hf(
        "text decoder",
        "DecisionTransformerModel",
        _trajectory,
        2 * LAYERS,
        "2 a layer of its GPT-2; states, actions and returns are interleaved, and times added to them",
        state_dim=5,
        act_dim=2,
        hidden_size=32,
        n_layer=LAYERS,
        n_head=4,
        n_positions=64,
        max_ep_len=16,
    ),
}
