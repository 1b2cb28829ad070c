"""Writes what `shardproof plan --dump` reads: names, shapes and plans of any transformers model.

    plan_dump.py llama --out llama.json                 the default config of a model type
    plan_dump.py --config DIR/config.json --out x.json  the config of a checkpoint

The model is built on the meta device: no weights are made or read, its size does not matter.

JSON: shardproof_dump (1), model (class), model_type, transformers (version), dtype, config (sizes
of the text model), modules [{path, class, kind: "Linear" | "Embedding" | ""}], parameters [{name,
shape, dtype}] under all their names, tied [[names of one parameter]], plans {tp, fsdp, ep:
{pattern: style}} as transformers resolves them for the model.
"""

import argparse
import json
import sys

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

SIZES = ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size")


def build(config):
    """The model on the meta device."""
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def kind(module):
    """What a style may take the module for: an embedding, or what has a weight of two dims."""
    if isinstance(module, torch.nn.Embedding):
        return "Embedding"
    weight = module._parameters.get("weight")
    return "Linear" if weight is not None and weight.dim() == 2 else ""


def size(config, key):
    """An int of the config; None where there is none, or one a layer."""
    try:
        value = getattr(config, key, None)
    except Exception:  # configs with sizes of their own for each layer refuse to name one
        return None
    return value if isinstance(value, int) else None


def dump(model):
    names = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append((name, parameter))
    # Ties are made when weights are loaded; before, a model only states them.
    tied = {tuple(name for name, _ in group) for group in names.values() if len(group) > 1}
    known = {name for group in names.values() for name, _ in group}
    for name, source in (model.all_tied_weights_keys or {}).items():
        there = name in known and source in known
        if there and not any({name, source} <= set(group) for group in tied):
            tied.add((source, name))
    text = model.config.get_text_config()
    return {
        "shardproof_dump": 1,
        "model": type(model).__name__,
        "model_type": model.config.model_type,
        "transformers": transformers.__version__,
        "dtype": str(model.dtype).removeprefix("torch."),
        "config": {key: value for key in SIZES if (value := size(text, key)) is not None},
        "modules": [
            {"path": path, "class": type(module).__name__, "kind": kind(module)}
            for path, module in model.named_modules()
        ],
        "parameters": [
            {
                "name": name,
                "shape": list(parameter.shape),
                "dtype": str(parameter.dtype).removeprefix("torch."),
            }
            for group in names.values()
            for name, parameter in group
        ],
        "tied": sorted(sorted(group) for group in tied),
        "plans": {"tp": model.tp_plan, "fsdp": model.fsdp_plan, "ep": model.ep_plan},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model_type", nargs="?", help="of transformers, such as llama")
    parser.add_argument("--config", help="config.json, or the directory that it lies in")
    parser.add_argument("--out", help="default: standard output")
    arguments = parser.parse_args()
    if (arguments.model_type is None) == (arguments.config is None):
        parser.error("give either a model type or --config")
    if arguments.config:
        config = AutoConfig.from_pretrained(arguments.config)
    else:
        config = AutoConfig.for_model(arguments.model_type)
    text = json.dumps(dump(build(config)))
    if arguments.out:
        with open(arguments.out, "w") as file:
            file.write(text)
    else:
        sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
