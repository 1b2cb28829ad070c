"""A transformers model that computes in float64 from the first operation to the last.

`model.double()` alone is not enough: the modeling code casts to float32 inside (norms, softmax,
rotary tables, the loss). Inside `real_float64(model)` those casts answer float64, and any operation
that still yields a float type narrower than float64 raises `NarrowResult`.

Constants that the model makes in float32 when it is built (rotary `inv_freq`) keep their float32
values: `.double()` only widens them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import PreTrainedModel

_NARROW = (torch.float32, torch.float16, torch.bfloat16)


class NarrowResult(RuntimeError):
    """An operation inside `real_float64` gave a result narrower than float64."""


class _Float64Torch:
    """Stands in for the name `torch` in a modeling module: `float32` and `float` are float64."""

    def __getattr__(self, name: str) -> Any:
        return torch.float64 if name in ("float32", "float") else getattr(torch, name)


class _NoNarrowResult(TorchDispatchMode):
    """Looks at every result, forward and backward, and counts the float64 ones."""

    def __init__(self) -> None:
        super().__init__()
        self.float64_results = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if not isinstance(leaf, torch.Tensor):
                continue
            if leaf.dtype in _NARROW:
                raise NarrowResult(
                    f"{func} gave {leaf.dtype} of shape {tuple(leaf.shape)} where float64 was due: "
                    "find the cast in transformers and let real_float64 replace it"
                )
            self.float64_results += leaf.dtype == torch.float64
        return result


@contextmanager
def no_narrow_result() -> Iterator[None]:
    """Raises NarrowResult where an operation within it, forward or backward, gives a float type
    narrower than float64; RuntimeError at the end when no operation gave float64."""
    watch = _NoNarrowResult()
    with watch:
        yield
    if watch.float64_results == 0:
        raise RuntimeError("no float64 operation ran under no_narrow_result: nothing was proved")


@contextmanager
def real_float64(model: PreTrainedModel) -> Iterator[None]:
    """Within it, forward and backward of `model` are float64 throughout, or NarrowResult is raised.

    `model` is one that was widened by `.double()` and uses eager attention.
    """
    modeling = sys.modules[type(model).__module__]
    to_float = torch.Tensor.float
    modeling.torch = _Float64Torch()  # type: ignore[attr-defined]
    torch.Tensor.float = torch.Tensor.double  # type: ignore[method-assign]
    try:
        with no_narrow_result():
            yield
    finally:
        modeling.torch = torch  # type: ignore[attr-defined]
        torch.Tensor.float = to_float  # type: ignore[method-assign]
