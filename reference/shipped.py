"""Checkpoints in the forms in which such models are published, from the tensors that transformers
has in memory (its experts stacked: one tensor for all)."""

from __future__ import annotations

import re

import torch

# By model_type: folder of the experts, and what each calls its gate, up and down projections.
_ONE_EACH = {
    "mixtral": ("block_sparse_moe", "w1", "w3", "w2"),
    "qwen3_moe": ("mlp", "gate_proj", "up_proj", "down_proj"),
    "deepseek_v3": ("mlp", "gate_proj", "up_proj", "down_proj"),
}

_STACKED = re.compile(r"(model\.layers\.\d+)\.mlp\.experts\.(gate_up_proj|down_proj)")
MXFP4_BLOCK = 32  # values that share a scale, two of them a byte


def one_tensor_each(model_type: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """`tensors` with every expert on its own: `<folder>.experts.<n>.<projection>.weight`.

    Stacked ones are gate_up_proj [experts, 2 * width, hidden], the gate before the up projection,
    and down_proj [experts, hidden, width].
    """
    folder, gate, up, down = _ONE_EACH[model_type]
    result = {}
    for name, tensor in tensors.items():
        stacked = _STACKED.fullmatch(name)
        if not stacked:
            result[name.replace(".mlp.", f".{folder}.")] = tensor
            continue
        parts = {down: tensor}
        if stacked[2] == "gate_up_proj":
            parts = dict(zip((gate, up), tensor.chunk(2, dim=1), strict=True))
        for projection, part in parts.items():
            for expert, weight in enumerate(part):
                single = f"{stacked[1]}.{folder}.experts.{expert}.{projection}.weight"
                result[single] = weight.clone()
    return result


def mxfp4_shapes(name: str, shape: torch.Size) -> dict[str, tuple[int, ...]] | None:
    """The uint8 tensors that stand for parameter `name` of GPT-OSS, or None for one that MXFP4
    leaves alone.

    The parameter is [experts, in, out]; its file has rows of `in` values: blocks [experts, out,
    in / 32, 16] and scales [experts, out, in / 32].
    """
    if not _STACKED.fullmatch(name):
        return None
    experts, values, rows = shape
    scales = (experts, rows, values // MXFP4_BLOCK)
    return {f"{name}_blocks": (*scales, MXFP4_BLOCK // 2), f"{name}_scales": scales}
