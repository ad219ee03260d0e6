"""Element types and PyTorch's promotion rules.

PyTorch promotes by *category* (bool < integer < floating): a Python number or a 0-d tensor changes
the result's type only if its category is higher. So ``int32 tensor * 0.5`` is the default float
type and ``float32 tensor * float64 0-d tensor`` stays float32, where NumPy says float64.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np


class dtype:
    """An element type: ``minitorch.float32`` and its relatives.

    Attributes
    ----------
    numpy : numpy.dtype
        The NumPy type that holds it (``ml_dtypes.bfloat16`` for bfloat16).
    itemsize : int
        Bytes per element.
    is_floating_point, is_signed, is_complex : bool
    """

    __slots__ = ("_names", "is_floating_point", "is_signed", "itemsize", "name", "numpy", "rank")

    is_complex = False

    numpy: np.dtype

    def __init__(self, name: str, numpy_type: Any, rank: int, *aliases: str) -> None:
        self.name = name
        self.itemsize = 2
        if numpy_type is not None:
            self.numpy = np.dtype(numpy_type)
            self.itemsize = self.numpy.itemsize
        self.rank = rank
        self.is_floating_point = rank == 2
        self.is_signed = rank == 2 or name.startswith("int")
        self._names = (name, *aliases)

    def __getattr__(self, name: str) -> Any:
        """Load ml_dtypes when bfloat16 is first used: importing it takes longer than all else."""
        if name != "numpy":  # only an empty slot comes here
            raise AttributeError(f"'dtype' object has no attribute '{name}'")
        import ml_dtypes

        self.numpy = np.dtype(ml_dtypes.bfloat16)
        _FROM_NUMPY[self.numpy] = self
        return self.numpy

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> tuple:
        return _by_name, (self.name,)

    def to_real(self) -> dtype:
        """Return the real type of the same precision: itself."""
        return self


# `rank` is the category: 0 bool, 1 integer, 2 floating.
bool_ = dtype("bool", np.bool_, 0)
uint8 = dtype("uint8", np.uint8, 1)
int8 = dtype("int8", np.int8, 1)
int16 = dtype("int16", np.int16, 1, "short")
int32 = dtype("int32", np.int32, 1, "int")
int64 = dtype("int64", np.int64, 1, "long")
float16 = dtype("float16", np.float16, 2, "half")
bfloat16 = dtype("bfloat16", None, 2)
float32 = dtype("float32", np.float32, 2, "float")
float64 = dtype("float64", np.float64, 2, "double")

ALL = (bool_, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64)
NAMED = {name: each for each in ALL for name in each._names}
_FROM_NUMPY = {each.numpy: each for each in ALL if each is not bfloat16}


_WORDS = {
    "bool": "Bool",
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "float32": "Float",
    "float64": "Double",
}


def type_word(kind: np.dtype | dtype) -> str:
    """Return PyTorch's word for a type in error messages, such as ``Float``."""
    return _WORDS.get(kind.name, kind.name)


# Where its C++ speaks of itself, PyTorch says these instead.
_C_WORDS = {
    "int32": "int",
    "int64": "long int",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
}


def c_type_word(kind: np.dtype | dtype) -> str:
    """Return C++'s word for a type in PyTorch, such as ``float``."""
    return _C_WORDS.get(kind.name, kind.name)


def _by_name(name: str) -> dtype:
    return NAMED[name]


def from_numpy_dtype(numpy_type: Any) -> dtype:
    """Return our type for a NumPy type.

    Raises
    ------
    TypeError
        If tensors cannot hold it (complex, strings, objects, unsigned beyond 8 bits).
    """
    found = _FROM_NUMPY.get(numpy_type)
    if found is None:
        known = np.dtype(numpy_type)
        if known.name == "bfloat16":
            known = bfloat16.numpy
        found = _FROM_NUMPY.get(known.newbyteorder("="))
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type {np.dtype(numpy_type)}. The only supported types "
            "are: " + ", ".join(each.name for each in ALL) + "."
        )
    return found


def as_dtype(value: Any) -> dtype:
    """Return `value` as one of our types; Python's ``float``, ``int``, ``bool`` are accepted."""
    if isinstance(value, dtype):
        return value
    if value is float:
        return float64
    if value is int:
        return int64
    if value is bool:
        return bool_
    raise TypeError(f"dtype must be a torch.dtype, not {type(value).__name__}")


# -- the default type ----------------------------------------------------------------------------


class _Default(threading.local):
    dtype = float32


_default = _Default()


def get_default_dtype() -> dtype:
    """Return the type of floats that nothing else determines; float32 unless it was set."""
    return _default.dtype


def set_default_dtype(d: dtype) -> None:
    """Set the default floating type of this thread."""
    if not as_dtype(d).is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _default.dtype = as_dtype(d)


# -- promotion -----------------------------------------------------------------------------------


def promote_types(a: dtype, b: dtype) -> dtype:
    """Return the smallest type that holds both, by PyTorch's table.

    Examples
    --------
    >>> promote_types(int64, float16)
    torch.float16
    >>> promote_types(uint8, int8)
    torch.int16
    """
    if a is b:
        return a
    if a.rank != b.rank:
        return a if a.rank > b.rank else b
    if a.rank == 2:
        if a.itemsize == b.itemsize:
            return float32  # float16 and bfloat16: neither holds the other
        return a if a.itemsize > b.itemsize else b
    if a.is_signed != b.is_signed:
        signed = a if a.is_signed else b
        return int16 if signed is int8 else signed
    return a if a.itemsize > b.itemsize else b


def scalar_dtype(value: Any) -> dtype:
    """Return the type a Python number has when nothing else speaks."""
    if isinstance(value, (bool, np.bool_)):
        return bool_
    if isinstance(value, (int, np.integer)):
        return int64
    if isinstance(value, (float, np.floating)):
        return get_default_dtype()
    raise TypeError(f"expected a number, got {type(value).__name__}")


def result_type(*operands: Any) -> dtype:
    """Return the type of an operation on tensors and Python numbers.

    Tensors with dimensions decide; 0-d tensors, then numbers, only if their category is higher.
    """
    tiers: list[dtype | None] = [None, None, None]
    for operand in operands:
        array = getattr(operand, "_array", None)
        if array is None:
            tier, found = 2, scalar_dtype(operand)
        else:
            tier, found = (0 if array.ndim else 1), from_numpy_dtype(array.dtype)
        held = tiers[tier]
        tiers[tier] = found if held is None else promote_types(held, found)
    result: dtype | None = None
    for strongest in tiers:
        if strongest is not None:
            if result is None:
                result = strongest
            elif strongest.rank > result.rank:
                result = promote_types(result, strongest)
    if result is None:
        raise TypeError("result_type: expected at least one operand")
    return result


def promote(a: Any, b: Any) -> dtype:
    """Return the result type of an operation on two operands (see :func:`result_type`)."""
    return result_type(a, b)


def can_cast(from_: dtype, to: dtype) -> bool:
    """Return whether a result of type `from_` may be stored in `to`: no lower category."""
    return from_.rank <= to.rank


def _bfloat16_limits() -> Any:
    import ml_dtypes

    return ml_dtypes.finfo(ml_dtypes.bfloat16)


class finfo:
    """The limits of a floating type, as Python floats.

    Attributes
    ----------
    eps, max, min : float
        The distance from 1 to the next larger number; the largest and the most negative number.
    tiny, smallest_normal, resolution : float
        The smallest positive number of full precision (twice), and about ``eps`` in decimals.
    bits : int
    dtype : str
    """

    def __init__(self, type: dtype | None = None) -> None:
        kind = type or get_default_dtype()
        if not kind.is_floating_point:
            raise TypeError(
                f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                f"'{kind!r}'"
            )
        limits = np.finfo(kind.numpy) if kind is not bfloat16 else _bfloat16_limits()
        self.bits = limits.bits
        self.dtype = kind.name
        self.eps, self.max, self.min = (float(getattr(limits, n)) for n in ("eps", "max", "min"))
        self.tiny = self.smallest_normal = float(limits.tiny)
        self.resolution = float(limits.resolution)

    def __repr__(self) -> str:
        names = ("resolution", "min", "max", "eps", "smallest_normal", "tiny")
        values = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"finfo({values}, dtype={self.dtype})"


def check_fits(value: Any, kind: dtype) -> None:
    """Refuse a finite number beyond a type's range.

    A negative number wraps around in an unsigned type, and a 16-bit float becomes infinite, as in
    PyTorch.
    """
    if kind.rank == 1:
        limits = np.iinfo(kind.numpy)
        fits = value != value or (limits.min or -limits.max) <= value <= limits.max
    elif kind.rank == 2 and kind.itemsize > 2:
        fits = not math.isfinite(value) or abs(value) <= finfo(kind).max
    else:
        return
    if not fits:
        word = {"float32": "float", "float64": "double"}.get(kind.name, f"{kind.name}_t")
        raise RuntimeError(f"value cannot be converted to type {word} without overflow")


def iinfo(type: dtype) -> Any:
    """Return the limits (max, min, bits) of an integer type."""
    return np.iinfo(type.numpy)
