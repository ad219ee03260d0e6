"""The old constructors ``Tensor(2, 3)``, ``FloatTensor([1, 2])``, ``LongTensor(3)``, as types.

They make uninitialised memory of the given sizes, or a copy of the data in their element type; and
``isinstance(x, LongTensor)`` tells the element type. New code says ``tensor`` and ``empty``.
"""

from __future__ import annotations

from typing import Any

from minitorch.dtypes import ALL, dtype, type_word
from minitorch.tensor import Tensor


class _ElementType(type):
    """The type of the types: their instances are tensors of one element type."""

    dtype: dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype

    def __call__(cls, *args: Any) -> Tensor:
        return Tensor._make(Tensor._legacy_array(args, cls.dtype.numpy))


def _element_type(kind: dtype) -> _ElementType:
    name = f"{type_word(kind)}Tensor"
    doc = f"The old constructor of {kind.name} tensors: of sizes, or of data."
    return _ElementType(name, (), {"dtype": kind, "__doc__": doc, "__module__": "minitorch"})


TYPES: dict[str, Any] = {f"{type_word(kind)}Tensor": _element_type(kind) for kind in ALL}
