"""Manifests: what a folder of generated files holds, and what made them. Standard library only."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path

_MADE_WITH = ("torch", "transformers", "safetensors", "numpy")


def sha256(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def list_files(folder: Path) -> dict[str, dict[str, int | str]]:
    """{path relative to `folder`: {sha256, bytes}} of every file below it but manifest.json."""
    return {
        path.relative_to(folder).as_posix(): {"sha256": sha256(path), "bytes": path.stat().st_size}
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }


def versions(*more: str) -> dict[str, str]:
    """The packages that determine the numbers, and `more` of them, as installed here."""
    return {name: version(name) for name in (*_MADE_WITH, *more)}
