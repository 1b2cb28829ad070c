"""Checks the committed fixtures: their sha256, and all or some made again and compared.

Also that the watch over float64 catches a transformers that was not made float64 inside.

    .venv/bin/python reference/check_fixtures.py [--fixtures fixtures] [NAME...]

Weights, token ids and labels must be equal. float64 references may differ by 1e-12 of the norm of
the committed tensor, float32 ones by 2e-5 (another machine sums in another order). Exit status 0,
or 1 with a line for each mismatch.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file

from fixture_specs import FIXTURES
from make_fixtures import DEFAULT_OUT, make_fixture
from manifest import list_files
from real_float64 import NarrowResult, no_narrow_result
from record import load, record

_ALLOWED = {torch.float64: 1e-12, torch.float32: 2e-5}


def check_manifest(fixtures: Path) -> list[str]:
    """The files that are missing, changed or not listed in fixtures/manifest.json."""
    listed = json.loads((fixtures / "manifest.json").read_text())["files"]
    found = list_files(fixtures)
    problems = [
        f"{fixtures / name}: listed in manifest.json, but missing"
        for name in listed.keys() - found.keys()
    ]
    problems += [
        f"{fixtures / name}: not listed in manifest.json" for name in found.keys() - listed.keys()
    ]
    problems += [
        f"{fixtures / name}: sha256 {found[name]['sha256']}, "
        f"manifest.json says {listed[name]['sha256']}"
        for name in listed.keys() & found.keys()
        if listed[name] != found[name]
    ]
    return sorted(problems)


def _compare(name: str, committed: torch.Tensor, made: torch.Tensor, exact: bool) -> str | None:
    """What is wrong with `made`, or None."""
    if (committed.dtype, committed.shape) != (made.dtype, made.shape):
        return (
            f"{name}: {made.dtype} {tuple(made.shape)}, "
            f"committed is {committed.dtype} {tuple(committed.shape)}"
        )
    if exact or not committed.dtype.is_floating_point:
        return None if torch.equal(committed, made) else f"{name}: not equal to the committed one"
    error = torch.linalg.vector_norm(made.double() - committed.double()).item()
    allowed = _ALLOWED[committed.dtype] * torch.linalg.vector_norm(committed.double()).item()
    # Written so that a NaN is a mismatch.
    return None if error <= allowed else f"{name}: off by {error:.3e}, allowed {allowed:.3e}"


def _compare_files(committed: Path, made: Path, exact: bool) -> list[str]:
    old, new = load_file(committed), load_file(made)
    if old.keys() != new.keys():
        return [
            f"{committed}: tensors differ from those made again: {sorted(old.keys() ^ new.keys())}"
        ]
    found = (_compare(f"{committed}: {name}", old[name], new[name], exact) for name in old)
    return [problem for problem in found if problem]


def check_fixture(name: str, fixtures: Path) -> list[str]:
    """Makes fixture `name` again in a temporary folder; returns how the committed one differs."""
    with tempfile.TemporaryDirectory() as folder:
        make_fixture(name, Path(folder))
        again, committed = Path(folder) / name, fixtures / name
        problems = []
        if (committed / "config.json").read_text() != (again / "config.json").read_text():
            problems.append(f"{committed / 'config.json'}: differs from the one made again")
        problems += _compare_files(
            committed / "model.safetensors", again / "model.safetensors", exact=True
        )
        problems += _compare_files(
            committed / "reference.safetensors", again / "reference.safetensors", exact=False
        )
    return problems


def check_watch(fixture: Path) -> list[str]:
    """The float64 watch must see the casts of a model that was only widened by `.double()`."""
    tensors = load_file(fixture / "reference.safetensors")
    model = load(fixture, dtype=torch.float32, attn_implementation="eager").double()
    try:
        with no_narrow_result():
            record(model, tensors["input_ids"], tensors["labels"])
    except NarrowResult:
        return []
    return ["no_narrow_result let the float32 casts of an unchanged transformers pass"]


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Check the committed fixtures.")
    parser.add_argument(
        "names", nargs="*", default=list(FIXTURES), help="those made again; default: all"
    )
    parser.add_argument("--fixtures", type=Path, default=DEFAULT_OUT, help="default: fixtures/")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(FIXTURES)
    if unknown:
        parser.error(f"no fixture named {sorted(unknown)}; known: {', '.join(FIXTURES)}")
    torch.set_num_threads(1)
    problems = check_manifest(arguments.fixtures)
    for name in arguments.names if not problems else []:
        problems += check_fixture(name, arguments.fixtures) or check_watch(
            arguments.fixtures / name
        )
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        print(
            "If the change is meant, run reference/make_fixtures.py and commit what it writes.",
            file=sys.stderr,
        )
        return 1
    print(f"fixtures: every sha256 as listed, {len(arguments.names)} made again and equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
