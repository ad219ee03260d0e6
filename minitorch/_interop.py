"""How a Tensor behaves towards NumPy, DLPack, ``pickle`` and ``copy``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.autograd.graph import TensorBase, wrap
from minitorch.ops import (
    arithmetic,
    division,
    matmul,
    pointwise,
    powers,
    rounding,
    selection,
    trigonometry,
)

# NumPy functions that have a counterpart here: `np.exp(tensor)` and `array * tensor` are recorded.
_UFUNCS: dict[Any, Callable] = {
    np.add: arithmetic.add,
    np.subtract: arithmetic.sub,
    np.multiply: arithmetic.mul,
    np.divide: division.div,
    np.floor_divide: division.floor_divide,
    np.remainder: division.remainder,
    np.power: powers.pow,
    np.negative: arithmetic.neg,
    np.matmul: matmul.matmul,
    np.equal: selection.eq,
    np.not_equal: selection.ne,
    np.less: selection.lt,
    np.less_equal: selection.le,
    np.greater: selection.gt,
    np.greater_equal: selection.ge,
    np.maximum: selection.maximum,
    np.minimum: selection.minimum,
    np.exp: pointwise.exp,
    np.log: pointwise.log,
    np.sqrt: pointwise.sqrt,
    np.sin: trigonometry.sin,
    np.cos: trigonometry.cos,
    np.tanh: pointwise.tanh,
    np.absolute: rounding.abs,
}


class NumpyManners:
    """Mixed into Tensor: exchange with NumPy and others without copying."""

    __slots__ = ()
    __array_priority__ = 1000

    def numpy(self: Any, *, force: bool = False) -> ndarray:
        """Return the array itself, sharing memory; what is written there is not tracked.

        Raises
        ------
        RuntimeError
            If the tensor requires grad, unless `force`.
        """
        if self.requires_grad and not force:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                "instead."
            )
        if self._array.dtype.kind == "V" and not force:
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self._array

    def __array__(self: Any, dtype: Any = None, copy: bool | None = None) -> ndarray:
        array = self.numpy()
        if dtype is not None and array.dtype != np.dtype(dtype):
            if copy is False:
                raise ValueError("a change of type needs a copy, but copy=False was asked for")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __array_ufunc__(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        op = _UFUNCS.get(ufunc)
        if op is not None and method == "__call__" and not kwargs:
            return op(*[wrap(each) if isinstance(each, ndarray) else each for each in inputs])
        if any(isinstance(each, TensorBase) and each.requires_grad for each in inputs):
            raise TypeError(
                f"np.{ufunc.__name__} ({method}) is not recorded: use the minitorch function, or "
                "detach the tensor that requires grad"
            )
        arrays = [each._array if isinstance(each, TensorBase) else each for each in inputs]
        out = kwargs.get("out")
        if out is not None:
            kwargs["out"] = tuple(
                [each._array if isinstance(each, TensorBase) else each for each in out]
            )
        result = getattr(ufunc, method)(*arrays, **kwargs)
        if out is not None:
            for each in out:
                if isinstance(each, TensorBase):
                    each._bump_version()
            return out[0] if len(out) == 1 else out
        if isinstance(result, tuple):
            return tuple([wrap(each) for each in result])
        return None if result is None else wrap(result)

    def _bump_version(self: Any) -> None:
        from minitorch.autograd.graph import bump_version

        bump_version(self)

    def __dlpack__(self: Any, **kwargs: Any) -> Any:
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        kwargs = {key: value for key, value in kwargs.items() if value is not None}
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self: Any) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    # -- pickle and copy -------------------------------------------------------------------------

    def __reduce_ex__(self: Any, protocol: Any) -> tuple:
        array = np.ascontiguousarray(self._array).reshape(self._array.shape)
        return rebuild, (type(self), array, self.requires_grad, dict(self.__dict__))

    def __copy__(self: Any) -> Any:
        twin = type(self)._make(self._array, self._requires_grad)
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self: Any, memo: dict) -> Any:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment. Use detach().clone() for a copy of a result."
            )
        found = memo.get(id(self))
        if found is not None:
            return found
        import copy

        twin = type(self)._make(self._array.copy(order="K"), self._requires_grad)
        memo[id(self)] = twin
        if self._grad is not None:
            twin._grad = copy.deepcopy(self._grad, memo)
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin


def rebuild(cls: type, array: ndarray, requires_grad: bool, attributes: dict) -> Any:
    """Make a tensor again from its pickled parts."""
    if not array.flags.writeable:
        array = array.copy()
    tensor = cls._make(array, requires_grad)  # type: ignore[attr-defined]
    tensor.__dict__.update(attributes)
    return tensor
