"""Reading `dim` arguments: negative numbers, tuples, names of the errors."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any


def axis(dim: int, ndim: int) -> int:
    """Return `dim` as a non-negative axis; a 0-d tensor has the axes 0 and -1, as in PyTorch.

    Raises
    ------
    IndexError
        If it is out of range.
    """
    size = ndim or 1
    if not -size <= dim < size:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got "
            f"{dim})"
        )
    return dim + size if dim < 0 else dim


def axes(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes a reduction runs over; None and () mean all."""
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, int):
        where = axis(dim, ndim)
        return (where,) if ndim else ()
    found = tuple([axis(int(each), ndim) for each in dim])
    if not found or not ndim:
        return tuple(range(ndim))
    for each in found:
        if found.count(each) > 1:
            raise RuntimeError(f"dim {each} appears multiple times in the list of dims")
    return found


def sizes(args: tuple) -> tuple[int, ...]:
    """Return the shape given as ``f(2, 3)`` or ``f((2, 3))``."""
    if len(args) == 1 and not hasattr(args[0], "__index__"):
        args = tuple(args[0])
    return tuple([operator.index(each) for each in args])


def sizes_or(args: tuple, keyword: Any, name: str) -> tuple[int, ...]:
    """Return the shape given as ``f(2, 3)``, ``f((2, 3))`` or by keyword."""
    if keyword is None:
        return sizes(args)
    if args:
        raise TypeError(f"got both positional sizes and the keyword argument '{name}'")
    return sizes((keyword,))


def kept_shape(shape: Sequence[int], reduced: tuple[int, ...]) -> tuple[int, ...]:
    """Return `shape` with length 1 at the reduced axes."""
    return tuple([1 if i in reduced else n for i, n in enumerate(shape)])
