"""Tensors that a module recognises as its own: parameters and buffers."""

from __future__ import annotations

from typing import Any

from minitorch.tensor import Tensor


class Parameter(Tensor):
    """A tensor that becomes a module's parameter when it is assigned to an attribute.

    Parameters
    ----------
    data : Tensor, optional
        The initial values; memory is shared with it.
    requires_grad : bool
        Whether it receives gradients; True by default.
    """

    __slots__ = ()

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        array = Tensor()._array if data is None else data.detach()._array
        if requires_grad and array.dtype.kind not in "fV":
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        return cls._make(array, requires_grad)

    def __deepcopy__(self, memo: dict) -> Parameter:
        found = memo.get(id(self))
        if found is None:
            # The gradient belongs to the original, as in PyTorch.
            found = memo[id(self)] = type(self)._make(
                self._array.copy(order="K"), self.requires_grad
            )
            found.__dict__.update(self.__dict__)
        return found

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that becomes a module's buffer when it is assigned to an attribute.

    Parameters
    ----------
    data : Tensor, optional
        The initial values; memory is shared with it.
    persistent : bool
        Whether it is part of ``state_dict``.
    """

    __slots__ = ()

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        self = cls._make(Tensor()._array if data is None else data.detach()._array, False)
        self.persistent = persistent
        return self


def is_lazy(param: Tensor) -> bool:
    """Whether a parameter's shape is still unknown: never, there are no lazy modules here."""
    return False


__all__ = ["Buffer", "Parameter", "is_lazy"]
