"""From tensors to what the core takes: C-contiguous NumPy arrays of a dtype it knows.

* bfloat16 crosses as 16-bit words with ``dtype="bfloat16"``, since NumPy's buffers cannot name
  it (``""``: the array's own dtype);
* what is only moved (broadcast, gather, ...) and has no dtype of the core crosses as bytes;
* a tensor that is not contiguous is staged through a copy, and the result is copied back.
  (PyTorch's gloo walks over the raw storage instead, which is right only if no element is skipped
  and all ranks have equal strides.)

Communication writes into tensors behind autograd's back: the history stays as it was, but the
version moves, so that a gradient is never computed from values that a collective has replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from minitorch.autograd.graph import bump_version
from minitorch.dtypes import type_word
from minitorch.tensor import Tensor

from .process_group import ReduceOp

Finish = Callable[[], None] | None

# dtypes that the core adds, multiplies and compares as they are, with the names it knows them by.
PLAIN = frozenset(
    np.dtype(name) for name in ("float32", "float64", "float16", "int32", "int64", "uint8")
)


def check_tensor(value: Any, name: str) -> np.ndarray:
    """The array of a tensor argument.

    Raises
    ------
    TypeError
        If it is no tensor.
    """
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )
    return value._array


def check_tensor_list(values: Any, name: str) -> list[np.ndarray]:
    """The arrays of an argument that must be a list of tensors."""
    if not isinstance(values, (list, tuple)):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(values)} instead."
        )
    for index, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"Invalid function argument. Expected parameter `{name}` of type "
                "List[torch.Tensor]\n"
                f"             but got {type(values)} with elements of type "
                f"{[type(v).__name__ for v in values[: index + 1]]}."
            )
    return [value._array for value in values]


def check_same_dtype(operation: str, *arrays: np.ndarray) -> None:
    """Raise PyTorch's error if the arrays of one call differ in dtype."""
    first = arrays[0].dtype
    for array in arrays:
        if array.dtype != first:
            raise ValueError(
                f"Invalid usage of tensors with different dtypes in {operation}: Found "
                f"torch.{first} and torch.{array.dtype}"
            )


def check_lengths(
    operation: str, what: str, arrays: Sequence[np.ndarray], size: int, elements: int
) -> None:
    """Raise if a list has not one tensor per rank, or its tensors do not all have ``elements``
    elements.
    """
    if len(arrays) != size:
        raise RuntimeError(
            f"{operation}: Incorrect {what} size {len(arrays)}. It should be {size}, same as "
            "size of the process group."
        )
    for index, array in enumerate(arrays):
        if array.size != elements:
            raise RuntimeError(
                f"{operation}: invalid tensor size at index {index} of {what} "
                f"(expected {elements} elements, got {array.size} of shape {tuple(array.shape)})"
            )


def check_writable(array: np.ndarray, name: str) -> None:
    """Raise if a collective cannot write into an array without surprise."""
    # (An empty array has no element to share; NumPy gives it strides of 0.)
    overlapping = array.size > 1 and any(
        step == 0 and length > 1 for step, length in zip(array.strides, array.shape, strict=True)
    )
    if overlapping or not array.flags.writeable:
        raise RuntimeError(
            f"unsupported operation: `{name}` is an expanded tensor in which more than one "
            "element refers to a single "
            "memory location, or its memory is read-only. Please clone() the tensor before "
            "performing the operation."
        )


def _is_bfloat16(dtype: np.dtype) -> bool:
    return dtype.kind == "V" and dtype.name == "bfloat16"


def moved(array: np.ndarray) -> tuple[np.ndarray, str]:
    """A contiguous array, as the core takes it for an operation that only moves data."""
    if array.dtype in PLAIN:
        return array, ""
    if _is_bfloat16(array.dtype):
        return array.view(np.uint16), "bfloat16"
    return array.reshape(-1).view(np.uint8), ""


def sent(array: np.ndarray) -> tuple[np.ndarray, str]:
    """An input of what only moves data: itself if contiguous, else a contiguous copy."""
    return moved(array if array.flags.c_contiguous else np.ascontiguousarray(array))


def received(tensor: Tensor, name: str) -> tuple[np.ndarray, str, Finish]:
    """A tensor that data is moved into, as the core takes it, and what to do afterwards."""
    array = tensor._array
    check_writable(array, name)
    bump_version(tensor)
    if array.flags.c_contiguous:
        return *moved(array), None
    staged = np.ascontiguousarray(array)
    return *moved(staged), copy_back(tensor, staged)


def copy_back(tensor: Tensor, staged: np.ndarray) -> Callable[[], None]:
    """What writes a staged result into the tensor that it is for."""

    def finish() -> None:
        array = tensor._array
        array[...] = staged.reshape(array.shape)
        bump_version(tensor)

    return finish


def scatter_into(tensors: Sequence[Tensor], rows: Iterable[np.ndarray]) -> Callable[[], None]:
    """What deals rows out to tensors, one each."""

    def finish() -> None:
        for tensor, row in zip(tensors, rows, strict=True):
            array = tensor._array
            array[...] = row.reshape(array.shape)
            bump_version(tensor)

    return finish


def stacked(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """One contiguous buffer with a row for each array."""
    rows = np.empty((len(arrays), arrays[0].size), arrays[0].dtype)
    for row, array in zip(rows, arrays, strict=True):
        row[...] = array.reshape(-1)
    return rows


class Reduction:
    """How the core is to combine values, and how they must be dressed for it.

    ``op`` and ``scale`` are what the core is given. Bytes of truth combine as minimum and maximum;
    the small integers, which the core does not add, travel as int32.
    """

    __slots__ = ("op", "scale")

    def __init__(self, op: Any, array: np.ndarray, size: int, operation: str) -> None:
        if type(op) is not ReduceOp:
            raise TypeError(
                f"{operation}: incompatible function arguments: op must be one of "
                "dist.ReduceOp.SUM, AVG, PRODUCT, MIN, MAX, "
                f"got {op!r}"
            )
        self.op, self.scale = op._value_, 1.0
        if array.dtype == np.bool_:
            self.op = {"sum": "max", "product": "min"}.get(self.op, self.op)
        if op is ReduceOp.AVG:
            if array.dtype.kind not in "fV":
                raise RuntimeError(
                    "result type Float can't be cast to the desired output type "
                    f"{type_word(array.dtype)}"
                )
            self.op, self.scale = "sum", 1.0 / size

    @staticmethod
    def dress(array: np.ndarray) -> tuple[np.ndarray, str]:
        """A contiguous array as the core adds it; the same memory where that is possible."""
        if array.dtype in PLAIN:
            return array, ""
        if _is_bfloat16(array.dtype):
            return array.view(np.uint16), "bfloat16"
        if array.dtype == np.bool_:
            return array.view(np.uint8), ""
        if array.dtype.kind in "iu" and array.dtype.itemsize < 4:
            return array.astype(np.int32), ""
        raise RuntimeError(f"Invalid scalar type: torch.{array.dtype} tensors cannot be reduced")

    def in_place(self, tensor: Tensor, name: str) -> tuple[np.ndarray, str, Finish]:
        """A tensor that is reduced in place, as an array for the core and what is to be done
        afterwards.
        """
        array = tensor._array
        check_writable(array, name)
        bump_version(tensor)
        contiguous = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        dressed, dtype = self.dress(contiguous)
        if not np.may_share_memory(dressed, contiguous):
            return dressed, dtype, copy_back(tensor, dressed)
        return dressed, dtype, None if contiguous is array else copy_back(tensor, contiguous)
