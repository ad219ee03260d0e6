"""``device``: there is one, the CPU; asking for another says so."""

from __future__ import annotations

from typing import Any


class device:
    """Where a tensor lives.

    Raises
    ------
    RuntimeError
        For anything but ``"cpu"``.
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: Any, index: int | None = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index
        name, _, number = str(type).partition(":")
        if name != "cpu":
            raise RuntimeError(
                f"device '{type}' is not available: this build runs on the CPU only, use 'cpu'"
            )
        self.type = name
        self.index = int(number) if number else index

    def __repr__(self) -> str:
        return f"device(type='{self.type}'" + (
            ")" if self.index is None else f", index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple:
        return device, (self.type, self.index)


cpu = device("cpu")


def as_device(value: Any) -> device:
    """Return `value` (None, a name, a device) as a device."""
    return cpu if value is None else device(value)
