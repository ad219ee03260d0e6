"""Inputs with a closed form, and the right answers computed by NumPy from all ranks' inputs.

Small integers, so that sums of eight ranks are exact even in bfloat16 and the expected bits do not
depend on the order of summation.
"""

from __future__ import annotations

import numpy as np

import minitorch as torch

SIZES = (0, 1, 7, 1031)
DTYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8")
OPS = ("SUM", "PRODUCT", "MIN", "MAX")


def numbers(rank: int, size: int, op: str = "SUM") -> np.ndarray:
    """What rank `rank` contributes, as float64."""
    index = np.arange(size)
    if op == "PRODUCT":
        return (index % 2 + 1.0) * (rank % 2 + 1.0)  # powers of two
    return (index * 3 + rank * 5) % 11 + 1.0


def combined(world_size: int, size: int, op: str) -> np.ndarray:
    """What all ranks together make of it, as float64."""
    rows = np.stack([numbers(rank, size, op) for rank in range(world_size)])
    return {"SUM": np.sum, "PRODUCT": np.prod, "MIN": np.min, "MAX": np.max, "AVG": np.mean}[op](
        rows, axis=0
    )


def tensor(values: np.ndarray, dtype: str) -> torch.Tensor:
    """A tensor of that dtype."""
    return torch.tensor(values.tolist(), dtype=torch.float64).to(getattr(torch, dtype))


def as_float64(t: torch.Tensor) -> np.ndarray:
    """The tensor's values, whatever its dtype."""
    return t.detach().to(torch.float64).numpy()
