"""Files of others: reading PyTorch's zip checkpoints safely, and naming what is no checkpoint.

PyTorch's ``.pt`` is a zip with a pickle of the structure and raw bytes per storage. The pickle is
read by an unpickler that knows a handful of names, each bound to a function of this file; whatever
else a file asks for is refused, so that a prepared file cannot execute anything.
"""

from __future__ import annotations

import pickle
import zipfile
from collections import Counter, OrderedDict
from typing import Any

import numpy as np

from ..autograd.graph import wrap
from ..device import cpu
from ..dtypes import NAMED
from ..tensor import Size

__all__ = ["guess", "is_pytorch", "read_pytorch"]

_STORAGE_TYPES = {
    "FloatStorage": "float32",
    "DoubleStorage": "float64",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}


def guess(magic: bytes) -> str:
    """What a file that is not a zip archive seems to be, and what to do about it."""
    if not magic:
        return "it is empty"
    if magic[:1] == b"\x80":
        return (
            "it looks like a pickle, perhaps a PyTorch file from before version 1.6. Pickles are "
            "not read, since they can execute code; load it with PyTorch and save it again"
        )
    if magic == b"\x93NUM":
        return "it is a NumPy .npy file; use numpy.load"
    return "it does not start like a zip archive"


def is_pytorch(members: list[str]) -> bool:
    """Whether a zip archive is laid out as ``torch.save`` does."""
    return any(name.endswith("/data.pkl") for name in members)


def read_pytorch(archive: zipfile.ZipFile, name: str) -> Any:
    """Read a PyTorch checkpoint of tensors, parameters and plain containers.

    Raises
    ------
    pickle.UnpicklingError
        If it holds anything else.
    """
    members = archive.namelist()
    prefix = next(n for n in members if n.endswith("/data.pkl"))[: -len("data.pkl")]
    order = f"{prefix}byteorder"
    if order in members and archive.read(order) != b"little":
        raise RuntimeError(f"{name} was written on a big-endian machine")
    with archive.open(f"{prefix}data.pkl") as stream:
        return _Unpickler(stream, archive, prefix, name).load()


class _StorageType:
    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype


class _Unpickler(pickle.Unpickler):
    """Knows the names that a state_dict needs, and no others."""

    def __init__(self, stream: Any, archive: zipfile.ZipFile, prefix: str, name: str) -> None:
        super().__init__(stream)
        self._archive = archive
        self._prefix = prefix
        self._name = name
        self._storages: dict[str, np.ndarray] = {}

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name in _STORAGE_TYPES:
            return _StorageType(NAMED[_STORAGE_TYPES[name]].numpy)
        if module == "torch" and name in NAMED:
            return NAMED[name]
        try:
            return _KNOWN[module, name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"{self._name} is a PyTorch checkpoint that holds {module}.{name}, which is not "
                "read since it may execute code. Load it with PyTorch and save its state_dict()"
            ) from None

    def persistent_load(self, saved: Any) -> np.ndarray:
        kind, storage_type, key, _location, count = saved
        if kind != "storage" or not isinstance(storage_type, _StorageType):
            raise pickle.UnpicklingError(f"{self._name}: unknown storage {kind!r}")
        if key not in self._storages:
            raw = bytearray(self._archive.read(f"{self._prefix}data/{key}"))
            self._storages[key] = np.frombuffer(raw, dtype=storage_type.dtype, count=count)
        return self._storages[key].view(storage_type.dtype)


def _rebuild_tensor(
    storage: np.ndarray,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    requires_grad: bool = False,
    *_hooks: Any,
) -> Any:
    size = storage.dtype.itemsize
    array = np.ndarray(
        tuple(shape),
        storage.dtype,
        buffer=storage,
        offset=offset * size,
        strides=tuple(stride * size for stride in strides),
    )
    tensor = wrap(array)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_parameter(data: Any, requires_grad: bool, *_hooks: Any) -> Any:
    from ..nn.parameter import Parameter

    return Parameter(data, requires_grad)


def _rebuild_device(kind: str, _index: int | None = None) -> Any:
    return cpu  # where everything is, wherever it was


def _encoded(text: str, encoding: str) -> bytes:
    # How old pickle protocols write bytes.
    return text.encode("latin1" if encoding == "latin1" else "utf-8")


_KNOWN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "Counter"): Counter,
    ("builtins", "set"): set,
    ("__builtin__", "set"): set,
    ("_codecs", "encode"): _encoded,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("torch", "Size"): Size,
    ("torch", "device"): _rebuild_device,
}
