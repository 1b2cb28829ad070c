"""Makes the fixtures: small models with their reference outputs.

    .venv/bin/python reference/make_fixtures.py [--out fixtures] [NAME...]

Each fixtures/<name>/ holds
  config.json             as transformers reads it
  model.safetensors       float32 weights; those of SHIPPED bfloat16, in the form that is published
  reference.safetensors   what transformers computes from the two on one batch:
    input_ids, labels     int64 [4, 12]; label -100 counts nowhere; the model shifts labels by one
    logits                float64 [4, 12, vocab]
    loss                  float64 0-dim: mean over the labels that count, after the shift
    grad_norm             float64 0-dim: 2-norm over all gradients
    grad.<parameter>      float64, the gradient of every parameter (a tied one once, as
                          model.embed_tokens.weight)
    f32.<the same names>  float32, from transformers as it is (default attention)
The float64 values come from a real float64 transformers (real_float64.py). manifest.json beside the
folders has the sha256 of each file and what made it.
"""

from __future__ import annotations

import argparse
import json
import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

from fixture_specs import BATCH, FIXTURES, NORM_CENTRE, SEED, SEQUENCE, SHIPPED
from manifest import list_files, versions
from record import Recording, record_float32, record_float64
from shipped import mxfp4_shapes, one_tensor_each

DEFAULT_OUT = Path(__file__).resolve().parent.parent / "fixtures"


def _bits(name: str, count: int) -> np.ndarray:
    """`count` random uint64 that depend on SEED and `name` alone.

    The raw bits of PCG64, which numpy promises to keep: the same on every machine and with every
    version.
    """
    seed = np.random.SeedSequence([SEED, zlib.crc32(name.encode())])
    return np.random.PCG64(seed).random_raw(count)


def _lattice(name: str, count: int) -> np.ndarray:
    """`count` values in [-1, 1), multiples of 2^-15 (exact in float32), made from _bits."""
    return (_bits(name, count) >> np.uint64(48)).astype(np.float64) / 2.0**15 - 1.0


def _weight(fixture: str, name: str, shape: torch.Size, norm_centre: float) -> torch.Tensor:
    """The float32 value of a parameter: norms around `norm_centre`, biases not zero, logits not
    flat, attention sinks large and far apart."""
    values = _lattice(f"{fixture}/{name}", shape.numel())
    if name.endswith("norm.weight"):
        values = norm_centre + 0.375 * values
    elif name.endswith("bias"):
        values = 0.25 * values
    elif name.endswith("sinks"):
        values = np.linspace(-5.0, 5.0, values.size) + 0.5 * values
    else:
        values = 0.5 * values  # standard deviation 0.29
    return torch.from_numpy(values.astype(np.float32)).reshape(shape)


def _mxfp4_bytes(fixture: str, name: str, shape: tuple[int, ...]) -> torch.Tensor:
    """The uint8 blocks or scales of an MXFP4 tensor: codes of all sixteen kinds, scales from 2^-6
    to 2^-3."""
    values = (_bits(f"{fixture}/{name}", math.prod(shape)) >> np.uint64(48)).astype(np.uint32)
    values = 121 + values % 4 if name.endswith("_scales") else values % 256
    return torch.from_numpy(values.astype(np.uint8)).reshape(shape)


def _weights(fixture: str, spec: dict[str, Any]) -> dict[str, torch.Tensor]:
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**spec))
    centre = NORM_CENTRE.get(spec["model_type"], 1.0)
    saved = model.state_dict().keys()  # of buffers, the persistent ones
    tensors = dict(model.named_parameters())
    tensors |= {name: b for name, b in model.named_buffers() if name in saved}
    form = SHIPPED.get(fixture)
    weights = {}
    for name, tensor in tensors.items():
        packed = mxfp4_shapes(name, tensor.shape) if form == "mxfp4" else None
        if packed:
            weights |= {part: _mxfp4_bytes(fixture, part, size) for part, size in packed.items()}
            continue
        weight = _weight(fixture, name, tensor.shape, centre)
        weights[name] = weight.bfloat16() if form else weight
    return one_tensor_each(spec["model_type"], weights) if form == "one_each" else weights


def _batch(fixture: str, vocab: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and labels [BATCH, SEQUENCE]; the sequences have 0, 3, 5 and 8 labels of -100."""
    uniform = (_lattice(f"{fixture}/input_ids", BATCH * SEQUENCE) + 1.0) / 2.0
    input_ids = torch.from_numpy((uniform * vocab).astype(np.int64)).reshape(BATCH, SEQUENCE)
    labels = input_ids.clone()
    labels[1, :3] = -100
    labels[2, 2::2] = -100
    labels[3, 4:] = -100
    return input_ids, labels


def _named(recording: Recording, prefix: str) -> dict[str, torch.Tensor]:
    tensors = {
        "logits": recording.logits,
        "loss": recording.loss,
        "grad_norm": recording.grad_norm,
    } | {f"grad.{name}": grad for name, grad in recording.grads.items()}
    return {prefix + name: tensor.contiguous() for name, tensor in tensors.items()}


def make_fixture(name: str, out: Path) -> None:
    """Writes out/<name>/; the references are computed from the written files."""
    spec = FIXTURES[name]
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(spec, indent=2) + "\n")
    save_file(_weights(name, spec), folder / "model.safetensors", metadata={"format": "pt"})

    input_ids, labels = _batch(name, spec["vocab_size"])
    float64 = record_float64(folder, input_ids, labels)
    float32 = record_float32(folder, input_ids, labels)
    reference = {"input_ids": input_ids, "labels": labels}
    reference |= _named(float64, "") | _named(float32, "f32.")
    save_file(reference, folder / "reference.safetensors")
    print(
        f"{name}: loss {float64.loss:.12f}, gradient norm {float64.grad_norm:.12f}, "
        f"logits std {float64.logits.std():.3f}; float32 loss off by "
        f"{abs(float32.loss.double() - float64.loss):.1e}"
    )


def write_manifest(out: Path) -> None:
    """Writes out/manifest.json for the fixtures that lie in `out`."""
    manifest = {
        "made_by": "reference/make_fixtures.py",
        "how": "weights and token ids: raw bits of PCG64, seeded by (seed, crc32 of fixture/name); "
        "reference outputs: transformers made float64 throughout, and under f32. as it is",
        "seed": SEED,
        "versions": versions(),
        "files": list_files(out),
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Make the small fixtures.")
    parser.add_argument("names", nargs="*", default=list(FIXTURES), help=", ".join(FIXTURES))
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="default: fixtures/")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(FIXTURES)
    if unknown:
        parser.error(f"no fixture named {sorted(unknown)}; known: {', '.join(FIXTURES)}")
    torch.set_num_threads(1)  # the same order of sums each time
    for name in arguments.names:
        make_fixture(name, arguments.out)
    write_manifest(arguments.out)


if __name__ == "__main__":
    main()
