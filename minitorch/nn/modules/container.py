"""Modules in sequences and dictionaries; those of parameters are in `parameter_containers.py`."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from minitorch.nn.modules.module import Module


def position(index: Any, length: int) -> int:
    """Return a checked index counted from the front."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


class _ModuleSequence(Module):
    """What `Sequential` and `ModuleList` share: children named "0", "1", ..."""

    _modules: dict[str, Module]

    def _replace_all(self, modules: Iterable[Module]) -> None:
        values = list(modules)
        self._modules.clear()
        for index, module in enumerate(values):
            self.add_module(str(index), module)

    def _key(self, index: Any) -> str:
        return list(self._modules)[position(index, len(self))]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self._sliced(index)
        return self._modules[self._key(index)]

    def _sliced(self, index: slice) -> Any:
        raise NotImplementedError

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: int | slice) -> None:
        if isinstance(index, slice):
            for key in list(self._modules)[index]:
                delattr(self, key)
        else:
            delattr(self, self._key(index))
        self._replace_all(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, module: Module) -> Any:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Add a module before position `index`."""
        if not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        values = list(self._modules.values())
        values.insert(index, module)
        self._replace_all(values)
        return self

    def extend(self, modules: Iterable[Module]) -> Any:
        """Add several modules at the end."""
        for module in list(modules):
            self.append(module)
        return self

    def pop(self, index: int = -1) -> Module:
        """Remove and return a module."""
        module = self[index]
        del self[index]
        return module


class Sequential(_ModuleSequence):
    """Modules applied one after the other.

    Takes the modules as arguments, or one ordered dictionary that names them.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for index, module in enumerate(args):
                self.add_module(str(index), module)

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def _sliced(self, index: slice) -> Sequential:
        part = type(self).__new__(type(self))
        Module.__init__(part)
        for name, module in list(self._modules.items())[index]:
            part.add_module(name, module)
        return part

    def __delitem__(self, index: int | slice) -> None:
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for key in keys:
            delattr(self, key)
        # Numbers move up; names that the user gave stay.
        if all(key.isdigit() for key in self._modules):
            self._replace_all(self._modules.values())

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, but "
                f"{type(other)} is given."
            )
        return Sequential(*self, *other)


class ModuleList(_ModuleSequence):
    """Modules in a list; calling them is up to the owner."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _sliced(self, index: slice) -> ModuleList:
        return type(self)(list(self._modules.values())[index])

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add several modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                + type(modules).__name__
            )
        return super().extend(modules)

    def __repr__(self) -> str:
        """Show equal neighbours once, with their number."""
        texts = [repr(module) for module in self]
        if not texts:
            return f"{self._get_name()}()"
        lines = []
        start = 0
        for index in range(1, len(texts) + 1):
            if index == len(texts) or texts[index] != texts[start]:
                label, count = f"({start})", index - start
                if count > 1:
                    label = f"({start}-{index - 1})"
                shown = texts[start] if count == 1 else f"{count} x {texts[start]}"
                lines.append(f"{label}: " + shown.replace("\n", "\n  "))
                start = index
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """Modules by name."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Remove and return a module."""
        return self._modules.pop(key)

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Pairs (name, module)."""
        return self._modules.items()

    def values(self) -> Iterable[Module]:
        """The modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add or replace modules from a mapping or an iterable of pairs."""
        for key, module in pairs_of(modules, "ModuleDict"):
            self[key] = module


def pairs_of(entries: Any, name: str) -> list[tuple[str, Any]]:
    """Return a mapping's items, or the pairs of an iterable after checking them."""
    if not isinstance(entries, Iterable) and not hasattr(entries, "items"):
        raise TypeError(
            f"{name}.update should be called with an iterable of key/value pairs, but got "
            + type(entries).__name__
        )
    if hasattr(entries, "items"):
        return list(entries.items())
    pairs = []
    for index, entry in enumerate(entries):
        if not isinstance(entry, Iterable):
            raise TypeError(
                f"{name} update sequence element #{index} should be Iterable; is "
                + type(entry).__name__
            )
        entry = tuple(entry)
        if len(entry) != 2:
            raise ValueError(
                f"{name} update sequence element #{index} has length {len(entry)}; 2 is required"
            )
        pairs.append(entry)
    return pairs
