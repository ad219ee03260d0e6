"""From objects to a description in JSON, and arrays to store beside it.

JSON's own lists, strings, numbers, booleans and null stand for themselves; everything else is an
object with a single key, its tag: ``{"tuple": [...]}``, ``{"dict": [[key, value], ...]}``,
``{"tensor": {...}}``. There is no tag that names a class or a function, hence nothing to execute.

Tensors that overlap in memory (a view and its base, tied weights) share a *storage* and still
overlap after loading. Memory that no saved tensor covers is not saved.
"""

from __future__ import annotations

import base64
import ctypes
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from ..device import device
from ..dtypes import dtype as Dtype
from ..random.generator import Generator
from ..tensor import Size, Tensor

__all__ = ["Encoder", "NotEncodable", "write_array"]

#: A lone view keeps its strides and the gaps between its elements up to this multiple of its size.
_MAX_SPREAD = 2


class NotEncodable(TypeError):
    """The object holds something that only pickle can express; the message says what and where."""


class Encoder:
    """Encodes one object and collects the memory of its arrays."""

    def __init__(self) -> None:
        self._arrays: list[np.ndarray] = []
        self._tensor_numbers: dict[int, int] = {}
        self._keep: list[Any] = []  # ids stay valid while the objects live
        self._open: set[int] = set()
        self._storages: list[np.ndarray] = []
        self._records: list[dict[str, Any]] = []

    # -- structure -----------------------------------------------------------------------------

    def encode(self, obj: Any, path: str = "obj") -> Any:
        """The description of ``obj``.

        Raises
        ------
        NotEncodable
            For an object of an unknown class.
        """
        kind = type(obj)
        if obj is None or kind in (bool, int, float, str):
            return obj
        if isinstance(obj, Tensor):
            return self._encode_tensor(obj, path)
        if isinstance(obj, np.ndarray):
            return {"ndarray": self._place(obj, path)}
        if kind in (list, tuple, dict, OrderedDict, Counter, set, frozenset):
            return self._encode_container(obj, path)
        return _encode_leaf(obj, path)

    def _encode_container(self, obj: Any, path: str) -> Any:
        if id(obj) in self._open:
            raise NotEncodable(f"{path} contains itself")
        self._open.add(id(obj))
        try:
            if isinstance(obj, dict):
                pairs = [
                    [self.encode(key, f"{path} key"), self.encode(value, f"{path}[{key!r}]")]
                    for key, value in obj.items()
                ]
                body: dict[str, Any] = {type(obj).__name__: pairs}
                # Module.state_dict hangs the modules' versions on its OrderedDict.
                metadata = getattr(obj, "_metadata", None)
                if metadata is not None:
                    body = {"with_metadata": [body, self.encode(metadata, path)]}
                return body
            items = [self.encode(item, f"{path}[{index}]") for index, item in enumerate(obj)]
            return items if type(obj) is list else {type(obj).__name__: items}
        finally:
            self._open.remove(id(obj))

    def _encode_tensor(self, tensor: Tensor, path: str) -> Any:
        known = self._tensor_numbers.get(id(tensor))
        if known is not None:
            return {"same": known}  # the same tensor again, not an equal one
        kind = _tensor_kind(tensor)
        if kind is None:
            raise NotEncodable(f"{path} is a {type(tensor).__qualname__}")
        self._tensor_numbers[id(tensor)] = len(self._tensor_numbers)
        self._keep.append(tensor)
        record = self._place(tensor._array, path)
        record["requires_grad"] = bool(tensor.requires_grad)
        return {kind: record}

    # -- memory --------------------------------------------------------------------------------

    def _place(self, array: np.ndarray, path: str) -> dict[str, Any]:
        """A record of how the array lies in its storage; filled in by :meth:`layout_storages`."""
        if array.dtype.hasobject or array.dtype.fields is not None:
            raise NotEncodable(f"{path} is an array of {array.dtype}")
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        record = {"dtype": array.dtype.name, "shape": list(array.shape)}
        if array.dtype.kind in "SU":
            record["dtype"] = array.dtype.str
        self._arrays.append(array)
        self._records.append(record)
        return record

    def layout_storages(self) -> list[dict[str, Any]]:
        """Merge overlapping memory into storages; returns one description per storage."""
        spans = [np.lib.array_utils.byte_bounds(array) for array in self._arrays]
        filled = [i for i, array in enumerate(self._arrays) if array.size]
        storages = [
            self._close([i], spans) for i, array in enumerate(self._arrays) if not array.size
        ]
        group: list[int] = []
        end = 0
        for index in sorted(filled, key=spans.__getitem__):
            low, high = spans[index]
            if group and low >= end:
                storages.append(self._close(group, spans))
                group = []
            end = max(end, high) if group else high
            group.append(index)
        if group:
            storages.append(self._close(group, spans))
        return storages

    def _close(self, group: list[int], spans: list[tuple[int, int]]) -> dict[str, Any]:
        """Make one storage of the arrays in ``group``."""
        number = len(self._storages)
        first = self._arrays[group[0]]
        looks = {
            (spans[i], self._arrays[i].shape, self._arrays[i].strides, self._arrays[i].dtype)
            for i in group
        }
        low, high = min(spans[i][0] for i in group), max(spans[i][1] for i in group)
        alone = len(looks) == 1
        if first.size == 0 or (alone and first.flags.c_contiguous):
            compact = first
        elif alone and high - low > _MAX_SPREAD * first.nbytes:
            compact = first.copy()
        else:
            compact = None
        if compact is not None:
            self._storages.append(compact)
            for i in group:
                self._records[i]["storage"] = number
            return {"dtype": self._records[group[0]]["dtype"]}
        # Overlapping arrays lie in one allocation, and so does the union of their spans.
        memory = (ctypes.c_ubyte * (high - low)).from_address(low)
        self._storages.append(np.frombuffer(memoryview(memory), dtype=np.uint8))
        for i in group:
            record, array = self._records[i], self._arrays[i]
            record["storage"] = number
            record["offset"] = array.__array_interface__["data"][0] - low
            record["strides"] = list(array.strides)
        return {"dtype": "uint8"}

    def storage_arrays(self) -> Iterator[np.ndarray]:
        """The arrays to store, in order."""
        return iter(self._storages)


def _tensor_kind(tensor: Tensor) -> str | None:
    """Its tag, or None for a subclass that is not ours."""
    if type(tensor) is Tensor:
        return "tensor"
    from ..nn.parameter import Parameter

    return "parameter" if type(tensor) is Parameter else None


def _encode_leaf(obj: Any, path: str) -> Any:
    """Describe what is neither container nor array."""
    if isinstance(obj, np.generic) and obj.dtype.kind in "biufcSU":
        array = np.asarray(obj)
        raw = base64.b64encode(array.tobytes()).decode()
        return {"scalar": [array.dtype.str, raw]}
    if isinstance(obj, complex):
        return {"complex": [obj.real, obj.imag]}
    if type(obj) in (bytes, bytearray):
        return {type(obj).__name__: base64.b64encode(obj).decode()}
    if isinstance(obj, Dtype):
        return {"dtype": obj.name}
    if isinstance(obj, Generator):
        return {"generator": base64.b64encode(obj._stream.to_bytes()).decode()}
    if isinstance(obj, (range, slice)):
        return {type(obj).__name__: [obj.start, obj.stop, obj.step]}
    if obj is Ellipsis:
        return {"ellipsis": None}
    if isinstance(obj, device):
        return {"device": str(obj)}
    if isinstance(obj, Size):
        return {"size": list(map(int, obj))}
    raise NotEncodable(f"{path} is a {type(obj).__module__}.{type(obj).__qualname__}")


def write_array(member: IO[bytes], array: np.ndarray) -> None:
    """Write one ``.npy`` member; types that NumPy does not know are stored as integers."""
    if array.dtype.kind == "V":  # bfloat16 (ml_dtypes)
        array = array.view(np.dtype(f"u{array.dtype.itemsize}"))
    np.lib.format.write_array(member, array, allow_pickle=False)
