"""From a description back to objects. Only the tags below exist; none runs code of the file."""

from __future__ import annotations

import base64
import threading
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd.graph import wrap
from ..device import device
from ..dtypes import NAMED
from ..random.generator import Generator
from ..tensor import Size

__all__ = ["Decoder"]

# NumPy parses an array's header with the `ast` module, whose depth counter all threads share in
# Python 3.11 (python/cpython#106905): two ranks that load at the same time may get a SystemError.
_READING = threading.Lock()


class Decoder:
    """Decodes one description; reads each storage once."""

    def __init__(self, archive: zipfile.ZipFile, storages: list[dict[str, Any]]) -> None:
        self._archive = archive
        self._storage_dtypes = [_numpy_dtype(storage["dtype"]) for storage in storages]
        self._storages: dict[int, np.ndarray] = {}
        self._tensors: list[Any] = []
        self._tags: dict[str, Callable[[Any], Any]] = {
            "tensor": self._tensor,
            "parameter": self._parameter,
            "same": lambda number: self._tensors[number],
            "ndarray": self._array,
            "tuple": lambda items: tuple(map(self.decode, items)),
            "set": lambda items: set(map(self.decode, items)),
            "frozenset": lambda items: frozenset(map(self.decode, items)),
            "dict": lambda pairs: dict(self._pairs(pairs)),
            "OrderedDict": lambda pairs: OrderedDict(self._pairs(pairs)),
            "Counter": lambda pairs: Counter(dict(self._pairs(pairs))),
            "with_metadata": self._with_metadata,
            "scalar": _scalar,
            "complex": lambda parts: complex(*parts),
            "bytes": base64.b64decode,
            "bytearray": lambda text: bytearray(base64.b64decode(text)),
            "dtype": NAMED.__getitem__,
            "generator": _generator,
            "range": lambda parts: range(*parts),
            "slice": lambda parts: slice(*parts),
            "ellipsis": lambda _: ...,
            "device": device,
            "size": Size,
        }

    def decode(self, node: Any) -> Any:
        """The object that ``node`` describes."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if not isinstance(node, dict):
            return node
        ((tag, body),) = node.items()
        try:
            build = self._tags[tag]
        except KeyError:
            raise ValueError(f"unknown entry {tag!r} in the checkpoint") from None
        return build(body)

    def _pairs(self, pairs: list[Any]) -> list[tuple[Any, Any]]:
        return [(self.decode(key), self.decode(value)) for key, value in pairs]

    def _with_metadata(self, body: list[Any]) -> Any:
        mapping = self.decode(body[0])
        mapping._metadata = self.decode(body[1])
        return mapping

    def _storage(self, number: int) -> np.ndarray:
        found = self._storages.get(number)
        if found is None:
            with _READING, self._archive.open(f"data/{number}.npy") as member:
                found = np.lib.format.read_array(member, allow_pickle=False)
                if member.read(1):  # also makes the archive compare its checksum
                    raise ValueError(f"data/{number}.npy is longer than its header says")
            wanted = self._storage_dtypes[number]
            if found.dtype != wanted:
                found = found.view(wanted)
            self._storages[number] = found
        return found

    def _array(self, record: dict[str, Any]) -> np.ndarray:
        storage = self._storage(record["storage"])
        shape, dtype = tuple(record["shape"]), _numpy_dtype(record["dtype"])
        if "strides" not in record:
            if storage.shape != shape or storage.dtype != dtype:
                raise ValueError(f"an array of shape {shape} does not fit its storage")
            return storage
        # This constructor refuses to reach outside of the buffer, whatever the file says.
        return np.ndarray(
            shape, dtype, buffer=storage, offset=record["offset"], strides=tuple(record["strides"])
        )

    def _tensor(self, record: dict[str, Any]) -> Any:
        # A view each: tensors may share memory but not one array object.
        tensor = wrap(self._array(record).view())
        if record["requires_grad"]:
            tensor.requires_grad_()
        self._tensors.append(tensor)
        return tensor

    def _parameter(self, record: dict[str, Any]) -> Any:
        from ..nn.parameter import Parameter

        parameter = Parameter(wrap(self._array(record).view()), record["requires_grad"])
        self._tensors.append(parameter)
        return parameter


def _numpy_dtype(name: str) -> np.dtype:
    known = NAMED.get(name)
    return known.numpy if known is not None else np.dtype(name)


def _scalar(body: list[str]) -> Any:
    dtype, raw = body
    return np.frombuffer(base64.b64decode(raw), dtype=np.dtype(dtype))[0]


def _generator(text: str) -> Generator:
    generator = Generator()
    generator._stream.from_bytes(base64.b64decode(text))
    return generator
