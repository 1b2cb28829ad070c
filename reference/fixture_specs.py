"""The small models of fixtures/: data only.

The sizes are odd, or do not divide, wherever transformers allows it (it wants hidden_size to be a
multiple of the number of query heads), head_dim is not hidden_size / heads, and the two spellings
of the rotary settings (`rope_scaling` with `rope_theta`, and `rope_parameters`) both occur. Windows
are shorter than the sequences.

Most checkpoints are float32 with the tensors that transformers has in memory; those of SHIPPED are
in bfloat16 and in the form that such models are published in.
"""

from __future__ import annotations

from typing import Any

SEED = 20240613
BATCH = 4
SEQUENCE = 12

# What the weights of norms lie around, where it is not 1: the model adds the 1 itself.
NORM_CENTRE = {"gemma3_text": 0.0}

# Fixtures in the form that such models are published in: "mxfp4", experts of four bits, or
# "one_each", one tensor an expert.
SHIPPED = {"gpt_oss_mxfp4": "mxfp4", "mixtral_shipped": "one_each"}


def _common(architecture: str, model_type: str) -> dict[str, Any]:
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "dtype": "float32",
        "hidden_act": "silu",
        "attention_dropout": 0.0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": None,
        "use_cache": True,
    }


FIXTURES: dict[str, dict[str, Any]] = {
    "llama_untied_9_3": _common("LlamaForCausalLM", "llama")
    | {
        "vocab_size": 101,
        "hidden_size": 27,
        "intermediate_size": 37,
        "num_hidden_layers": 2,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "head_dim": 6,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
        "attention_bias": True,
        "mlp_bias": True,
        "tie_word_embeddings": False,
        "rope_theta": 5000.0,
        "rope_scaling": None,
    },
    "llama_tied_4_1": _common("LlamaForCausalLM", "llama")
    | {
        "vocab_size": 97,
        "hidden_size": 28,
        "intermediate_size": 31,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 10,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "rope_theta": 10000.0,
        # With an original length of 16 the five wavelengths (6 to 10,000 positions) fall into all
        # three cases of llama3 scaling: kept, interpolated, divided.
        "rope_scaling": {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 0.25,
            "high_freq_factor": 1.0,
            "original_max_position_embeddings": 16,
        },
    },
    "llama_linear_6_2": _common("LlamaForCausalLM", "llama")
    | {
        "vocab_size": 89,
        "hidden_size": 18,
        "intermediate_size": 23,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 4,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6,
        "attention_bias": True,
        "mlp_bias": False,
        "tie_word_embeddings": False,
        "rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.5},
    },
    "mistral_6_2": _common("MistralForCausalLM", "mistral")
    | {
        "vocab_size": 83,
        "hidden_size": 18,
        "intermediate_size": 23,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 4,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "sliding_window": 5,
        "rope_theta": 1000.0,
    },
    # The first of the three layers sees all tokens before it, the others a window. Tied.
    "qwen2_9_3": _common("Qwen2ForCausalLM", "qwen2")
    | {
        "vocab_size": 79,
        "hidden_size": 36,
        "intermediate_size": 29,
        "num_hidden_layers": 3,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": True,
        "use_sliding_window": True,
        "sliding_window": 4,
        "max_window_layers": 1,
        "rope_parameters": {"rope_type": "default", "rope_theta": 2000.0},
    },
    "qwen3_6_3": _common("Qwen3ForCausalLM", "qwen3")
    | {
        "vocab_size": 87,
        "hidden_size": 30,
        "intermediate_size": 31,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "num_key_value_heads": 3,
        "head_dim": 8,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6,
        "attention_bias": True,
        "tie_word_embeddings": False,
        "use_sliding_window": False,
        "rope_theta": 3000.0,
    },
    # Heads of 8, of which 6 positions are turned.
    "phi3_6_2": _common("Phi3ForCausalLM", "phi3")
    | {
        "vocab_size": 91,
        "hidden_size": 30,
        "intermediate_size": 25,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "resid_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "max_position_embeddings": 64,
        "original_max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "sliding_window": 7,
        "rope_theta": 4000.0,
        "rope_scaling": None,
        "partial_rotary_factor": 0.75,
    },
    # Window, whole, window: every second layer sees all tokens before it. hidden_act is not read.
    "gemma3_4_2": _common("Gemma3ForCausalLM", "gemma3_text")
    | {
        "vocab_size": 93,
        "hidden_size": 20,
        "intermediate_size": 27,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 6,
        "hidden_activation": "gelu_pytorch_tanh",
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6,
        "attention_bias": False,
        "query_pre_attn_scalar": 10,
        "sliding_window": 4,
        "sliding_window_pattern": 2,
        "pad_token_id": 0,
        "rope_theta": 100000.0,
        "rope_local_base_freq": 1000.0,
        "rope_scaling": {"rope_type": "linear", "factor": 4.0},
    },
    # Five experts, two a token; windows of 5.
    "mixtral_6_2": _common("MixtralForCausalLM", "mixtral")
    | {
        "vocab_size": 85,
        "hidden_size": 18,
        "intermediate_size": 11,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 4,
        "num_local_experts": 5,
        "num_experts_per_tok": 2,
        "output_router_logits": False,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "sliding_window": 5,
        "rope_theta": 1000.0,
    },
    # Window, whole, window. The blend of YaRN goes from 1.52 to 3.26 of 6 frequencies; the limit
    # of the gate is reached.
    "gpt_oss_6_2": _common("GptOssForCausalLM", "gpt_oss")
    | {
        "vocab_size": 81,
        "hidden_size": 18,
        "intermediate_size": 7,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 12,
        "attention_bias": True,
        "num_local_experts": 5,
        "num_experts_per_tok": 2,
        "output_router_logits": False,
        "swiglu_limit": 1.25,
        "sliding_window": 4,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "max_position_embeddings": 131072,
        "initial_context_length": 4096,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "rope_theta": 150000.0,
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 32.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": False,
            "original_max_position_embeddings": 4096,
        },
    },
    # The other spelling, and a blend between whole positions: from 1 to 4.
    "gpt_oss_4_1": _common("GptOssForCausalLM", "gpt_oss")
    | {
        "vocab_size": 77,
        "hidden_size": 20,
        "intermediate_size": 9,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 12,
        "num_local_experts": 4,
        "num_experts_per_tok": 3,
        "sliding_window": 5,
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 150000.0,
            "factor": 32.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": True,
            "original_max_position_embeddings": 4096,
        },
    },
    # The second of three layers is dense.
    "qwen3_moe_6_3": _common("Qwen3MoeForCausalLM", "qwen3_moe")
    | {
        "vocab_size": 86,
        "hidden_size": 30,
        "intermediate_size": 23,
        "moe_intermediate_size": 9,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 3,
        "head_dim": 8,
        "num_experts": 5,
        "num_experts_per_tok": 3,
        "norm_topk_prob": True,
        "mlp_only_layers": [1],
        "decoder_sparse_step": 1,
        "output_router_logits": False,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6,
        "attention_bias": False,
        "tie_word_embeddings": False,
        "use_sliding_window": False,
        "rope_theta": 3000.0,
    },
    # The first of three layers is dense; six experts in three groups, two of which take part.
    "deepseek_v3_4": _common("DeepseekV3ForCausalLM", "deepseek_v3")
    | {
        "vocab_size": 84,
        "hidden_size": 20,
        "intermediate_size": 23,
        "moe_intermediate_size": 7,
        "num_hidden_layers": 3,
        "first_k_dense_replace": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "q_lora_rank": 10,
        "kv_lora_rank": 9,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 6,
        "v_head_dim": 5,
        "attention_bias": True,
        "n_routed_experts": 6,
        "n_shared_experts": 2,
        "n_group": 3,
        "topk_group": 2,
        "num_experts_per_tok": 3,
        "norm_topk_prob": True,
        "routed_scaling_factor": 2.5,
        "num_nextn_predict_layers": 0,
        "max_position_embeddings": 163840,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
        "rope_interleave": True,
        "rope_theta": 10000.0,
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 40.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale": 1.0,
            "mscale_all_dim": 0.5,
            "original_max_position_embeddings": 4096,
        },
    },
    # As shipped: three experts in MXFP4, two blocks a row in down_proj, one in gate_up_proj.
    "gpt_oss_mxfp4": _common("GptOssForCausalLM", "gpt_oss")
    | {
        "dtype": "bfloat16",
        "vocab_size": 47,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "attention_bias": True,
        "num_local_experts": 3,
        "num_experts_per_tok": 2,
        "output_router_logits": False,
        "swiglu_limit": 7.0,
        "sliding_window": 4,
        "layer_types": ["sliding_attention"],
        "max_position_embeddings": 131072,
        "initial_context_length": 4096,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "rope_theta": 150000.0,
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 32.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": False,
            "original_max_position_embeddings": 4096,
        },
        "quantization_config": {
            "quant_method": "mxfp4",
            "modules_to_not_convert": [
                "model.layers.*.self_attn",
                "model.layers.*.mlp.router",
                "model.embed_tokens",
                "lm_head",
            ],
        },
    },
    # As shipped: five experts of three tensors each, in bfloat16.
    "mixtral_shipped": _common("MixtralForCausalLM", "mixtral")
    | {
        "dtype": "bfloat16",
        "vocab_size": 53,
        "hidden_size": 18,
        "intermediate_size": 7,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 4,
        "num_local_experts": 5,
        "num_experts_per_tok": 2,
        "output_router_logits": False,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "sliding_window": None,
        "rope_theta": 1000000.0,
    },
}
