"""Parameters in lists and dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from minitorch.autograd import TensorBase
from minitorch.nn.modules.container import pairs_of, position
from minitorch.nn.modules.module import Module
from minitorch.nn.parameter import Parameter


def _as_parameter(value: Any) -> Any:
    """Tensors become parameters; anything else is kept as it is."""
    if isinstance(value, TensorBase) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _describe(key: str, value: Any, by_type: bool = False) -> str:
    if not isinstance(value, TensorBase):
        return f"({key}): Object of type: {type(value).__name__}"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    size = "x".join(str(n) for n in value.shape)
    name = value.type() if by_type else value.dtype
    return f"({key}): {kind} containing: [{name} of size {size}]"


class ParameterList(Module):
    """Parameters in a list; tensors that are put in become parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(*index.indices(len(self)))])
        return getattr(self, str(position(index, len(self))))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(position(index, len(self))), _as_parameter(value))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Add one at the end."""
        setattr(self, str(self._size), _as_parameter(value))
        self._size += 1
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add several at the end."""
        if isinstance(values, TensorBase) or not hasattr(values, "__iter__"):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                + type(values).__name__
            )
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join("  " + _describe(str(i), value) for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Parameters by name; tensors that are put in become parameters."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._names: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._names:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, key, _as_parameter(value))
        self._names[key] = None

    def __delitem__(self, key: str) -> None:
        del self._names[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __contains__(self, key: str) -> bool:
        return key in self._names

    def get(self, key: str, default: Any = None) -> Any:
        """The parameter, or `default` if there is none of that name."""
        return self[key] if key in self._names else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The parameter, after adding `default` if there was none of that name."""
        if key not in self._names:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Remove and return a parameter."""
        value = self[key]
        del self[key]
        return value

    def clear(self) -> None:
        """Remove all."""
        for key in list(self._names):
            del self[key]

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._names.keys()

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return (self[key] for key in self._names)

    def items(self) -> Iterable[tuple[str, Any]]:
        """Pairs (name, parameter)."""
        return ((key, self[key]) for key in self._names)

    def update(self, parameters: Any) -> None:
        """Add or replace parameters from a mapping or an iterable of pairs."""
        for key, value in pairs_of(parameters, "ParameterDict"):
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join("  " + _describe(key, value, by_type=True) for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")
