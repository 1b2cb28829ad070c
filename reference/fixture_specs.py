"""The small Llamas of fixtures/: data only.

The sizes are odd, or do not divide, wherever transformers allows it (it wants hidden_size to be a
multiple of the number of query heads), head_dim is not hidden_size / heads, and the two spellings
of the rotary settings (`rope_scaling` with `rope_theta`, and `rope_parameters`) both occur.
"""

from __future__ import annotations

from typing import Any

SEED = 20240613
BATCH = 4
SEQUENCE = 12

_COMMON: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "dtype": "float32",
    "hidden_act": "silu",
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": None,
    "use_cache": True,
}

FIXTURES: dict[str, dict[str, Any]] = {
    "llama_untied_9_3": _COMMON
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
    "llama_tied_4_1": _COMMON
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
    "llama_linear_6_2": _COMMON
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
}
