"""``linalg``: the few functions that training scripts use."""

from __future__ import annotations

from typing import Any

from minitorch.ops.magnitude import norm as _norm
from minitorch.ops.matmul import matmul

__all__ = ["matmul", "matrix_norm", "norm", "vector_norm"]


def vector_norm(
    x: Any, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """Return the `ord`-norm of the elements along `dim` (all by default)."""
    return _norm(x, ord, dim, keepdim, dtype)


def matrix_norm(
    A: Any, ord: Any = "fro", dim: tuple[int, int] = (-2, -1), keepdim: bool = False
) -> Any:
    """Return the Frobenius norm, or the largest column (1) or row (inf) sum of magnitudes."""
    if ord == "fro":
        return _norm(A, 2, dim, keepdim)
    if ord not in (1, float("inf")):
        raise ValueError(f"linalg.matrix_norm: order {ord} is not supported; use 'fro', 1 or inf")
    summed, kept = dim if ord == 1 else dim[::-1]
    out = A.abs().sum(summed, keepdim=True).amax(kept, keepdim=True)
    return out if keepdim else out.squeeze(tuple(dim))


def norm(
    A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """Return a vector norm, or a matrix norm where `ord` and two dimensions are given."""
    two = isinstance(dim, (tuple, list)) and len(dim) == 2
    if ord is not None and (two or (dim is None and A.dim() == 2)):
        return matrix_norm(A, ord, tuple(dim) if two else (-2, -1), keepdim)
    return _norm(A, 2 if ord is None else ord, dim, keepdim, dtype)
