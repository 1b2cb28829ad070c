"""What a reference output holds: one forward and backward of a causal language model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, Mxfp4Config, PreTrainedModel
from transformers.utils import logging

from real_float64 import real_float64

logging.disable_progress_bar()
# It says that it dequantises, which is what load() asks for.
logging.get_logger("transformers.quantizers.quantizer_mxfp4").setLevel("ERROR")


@dataclass(frozen=True)
class Recording:
    """One step of one model, in the model's own type.

    logits [batch, sequence, vocab]; loss and grad_norm 0-dim; grads by parameter name (a tied
    parameter once, under its first name).
    """

    logits: torch.Tensor
    loss: torch.Tensor
    grad_norm: torch.Tensor
    grads: dict[str, torch.Tensor]


def load(directory: Path, **options: Any) -> PreTrainedModel:
    """The checkpoint at `directory` in eval mode, MXFP4 dequantised to the type that is loaded;
    refuses one that does not fill the model."""
    quantization = getattr(AutoConfig.from_pretrained(directory), "quantization_config", None)
    if quantization and quantization["quant_method"] == "mxfp4":
        options["quantization_config"] = Mxfp4Config(dequantize=True)
    model, report = AutoModelForCausalLM.from_pretrained(
        directory, output_loading_info=True, **options
    )
    wrong = {kind: sorted(map(str, names)) for kind, names in report.items() if names}
    if wrong:
        raise RuntimeError(f"{directory} does not fill the model: {wrong}")
    return model.eval()


def record(model: PreTrainedModel, input_ids: torch.Tensor, labels: torch.Tensor) -> Recording:
    """One forward and backward of `model`, in its own type. Token ids and labels: int64 [B, S]."""
    model.zero_grad(set_to_none=True)
    output = model(input_ids=input_ids, labels=labels, use_cache=False)
    output.loss.backward()
    grads = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    missing = [name for name, p in model.named_parameters() if p.grad is None]
    if missing:
        raise RuntimeError(
            f"no gradient for {missing}: every parameter of a reference must be used"
        )
    grad_norm = torch.nn.utils.get_total_norm(grads.values())
    return Recording(output.logits.detach(), output.loss.detach(), grad_norm, grads)


def record_float64(directory: Path, input_ids: torch.Tensor, labels: torch.Tensor) -> Recording:
    """The step of the checkpoint at `directory` in a real float64 transformers (real_float64.py)."""
    eager = {"attn_implementation": "eager", "experts_implementation": "eager"}
    model = load(directory, dtype=torch.float32, **eager).double()
    with real_float64(model):
        return record(model, input_ids, labels)


def record_float32(directory: Path, input_ids: torch.Tensor, labels: torch.Tensor) -> Recording:
    """The same step as transformers does it when nothing is changed: float32, default attention.

    But for experts: one by one, because its grouped matmul refuses rows that are no multiple of 16
    bytes.
    """
    model = load(directory, dtype=torch.float32, experts_implementation="eager")
    return record(model, input_ids, labels)
