"""Checks that the program reads fixtures in the form that such models are published in: one tensor
an expert, in two files with an index.

    .venv/bin/python reference/check_shipped_forms.py build/shardproof [--fixtures fixtures]

Each of FAMILIES is written again in that form into a temporary folder, its experts in turns over
the two files, and runs beside the fixture itself, both compared with transformers: everything must
hold, and every row must have the same numbers as the fixture's. Exit status 0, or 1 with a line for
each difference.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file

from shipped import one_tensor_each

FAMILIES = ("mixtral_6_2", "qwen3_moe_6_3", "deepseek_v3_4")
_SUFFIX = "_one_each"

_SCENARIO = """claim = "one tensor an expert is read as the stacked ones are"
models = [{models}]
ranks_as = "threads"
reference = true
steps = 1
layouts = ["tp=2", "fsdp=4", "fsdp=2,tp=2", "fsdp=3,ep=3"]

[data]
samples = 4
length = 6
seed = 17

[optimizer]
lr = 1e-2
"""


def write_one_each(fixture: Path, folder: Path) -> None:
    """Writes `fixture` into the new `folder`: config and references as they are, weights in two
    files with an index."""
    folder.mkdir()
    for name in ("config.json", "reference.safetensors"):
        shutil.copy(fixture / name, folder)
    model_type = json.loads((fixture / "config.json").read_text())["model_type"]
    tensors = one_tensor_each(model_type, load_file(fixture / "model.safetensors"))
    names = sorted(tensors)
    index = {}
    for part in range(2):
        file = f"model-{part + 1:05}-of-00002.safetensors"
        mine = {name: tensors[name] for name in names[part::2]}
        save_file(mine, folder / file, metadata={"format": "pt"})
        index |= dict.fromkeys(mine, file)
    size = sum(tensor.nbytes for tensor in tensors.values())
    text = json.dumps({"metadata": {"total_size": size}, "weight_map": index}, indent=2)
    (folder / "model.safetensors.index.json").write_text(text)


def _run(program: Path, models: list[Path], folder: Path) -> dict[str, Any]:
    """results.json of the program on `models`."""
    scenario = folder / "shipped_forms.toml"
    paths = ", ".join(json.dumps(str(model)) for model in models)
    scenario.write_text(_SCENARIO.format(models=paths))
    command = [program, "run", scenario, "--out", folder / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    results = folder / "out" / "results.json"
    if not results.exists():
        raise RuntimeError(f"exit status {done.returncode}, no results:\n{done.stderr}")
    return json.loads(results.read_text())


def compare(results: dict[str, Any]) -> list[str]:
    """What does not hold, and where the rows of a model and of its other form differ."""
    groups = {
        (group["model"], group["layout"], group["against"]): group for group in results["groups"]
    }
    problems = []
    for (model, layout, against), group in groups.items():
        what = f"{model}/{layout} against {against}"
        if group["status"] != "passed":
            problems.append(f"{what}: {group['status']} {group['message']}")
        if model.endswith(_SUFFIX):
            stacked = groups[(model.removesuffix(_SUFFIX), layout, against)]["rows"]
            pairs = zip(stacked, group["rows"], strict=True)
            problems += [f"{what}: {new} is not {old}" for old, new in pairs if old != new]
    return problems


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Check one tensor an expert against stacked ones.")
    parser.add_argument("program", type=Path, help="build/shardproof")
    parser.add_argument(
        "--fixtures", type=Path, default=Path(__file__).resolve().parent.parent / "fixtures"
    )
    arguments = parser.parse_args()
    models = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for family in FAMILIES:
            models += [arguments.fixtures.resolve() / family, folder / (family + _SUFFIX)]
            write_one_each(models[-2], models[-1])
        results = _run(arguments.program.resolve(), models, folder)
    problems = compare(results)
    rows = sum(len(group["rows"]) for group in results["groups"])
    if len(results["groups"]) % len(models) or not rows:
        problems.append(f"{len(results['groups'])} comparisons, {rows} rows: some are missing")
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    print(f"one tensor an expert: {rows} rows of {len(models)} models, both forms alike")
    return 0


if __name__ == "__main__":
    sys.exit(main())
