"""``save`` and ``load``: checkpoints that are written atomically and execute nothing when read.

A checkpoint is a zip archive: ``minitorch.json`` describes the structure (``encode.py`` writes it,
``decode.py`` reads it), ``data/N.npy`` hold the arrays, so that any NumPy reads them. Only an
object that the description cannot express is pickled, as a whole, and only ``weights_only=False``
reads that. ``atomic.py`` replaces a file in one step; ``foreign.py`` reads PyTorch's own archives,
safely.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from typing import IO, Any

from . import decode, foreign
from .atomic import replacing
from .encode import Encoder, NotEncodable, write_array

__all__ = ["load", "save"]

HEADER = "minitorch.json"
PICKLE = "object.pkl"
VERSION = 1


def save(
    obj: Any,
    f: str | os.PathLike[str] | IO[bytes],
    pickle_module: Any = pickle,
    pickle_protocol: int = 5,
) -> None:
    """Save an object to a file: completely, or not at all.

    A path is written through a temporary file in the same folder, flushed to the disk and moved
    into place, so that a crash leaves the old checkpoint.

    Parameters
    ----------
    obj : object
        Tensors, parameters, NumPy arrays, Python scalars and strings, in nested dicts, lists,
        tuples, sets: everything ``state_dict`` returns. Other objects are pickled and then need
        ``load(..., weights_only=False)``.
    f : path or binary file
        Where to.
    pickle_module, pickle_protocol
        For what has to be pickled.

    Raises
    ------
    RuntimeError
        If the parent directory does not exist.
    """
    if hasattr(f, "write"):
        _write(obj, f, pickle_module, pickle_protocol)  # type: ignore[arg-type]
        return
    with replacing(os.fspath(f)) as stream:
        _write(obj, stream, pickle_module, pickle_protocol)


def _write(obj: Any, stream: IO[bytes], pickle_module: Any, pickle_protocol: int) -> None:
    header: dict[str, Any] = {"format": "minitorch", "version": VERSION}
    encoder = Encoder()
    pickled = None
    try:
        header["root"] = encoder.encode(obj)
        header["storages"] = encoder.layout_storages()
    except NotEncodable as reason:
        header["pickled"] = str(reason)
        pickled = pickle_module.dumps(obj, protocol=pickle_protocol)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(HEADER, json.dumps(header))
        if pickled is not None:
            archive.writestr(PICKLE, pickled)
            return
        for number, array in enumerate(encoder.storage_arrays()):
            with archive.open(f"data/{number}.npy", "w", force_zip64=True) as member:
                write_array(member, array)


def load(
    f: str | os.PathLike[str] | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = True,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load what :func:`save` wrote, or a PyTorch ``.pt`` file of tensors and plain containers.

    Parameters
    ----------
    f : path or binary file
        Where from; a file must be seekable.
    map_location : optional
        Accepted where it means the CPU.
    weights_only : bool, default True
        Read data only: nothing in the file can run. With False, a file that holds pickled
        objects is unpickled, **which can execute any code that its author put there**: only for
        files you trust.
    mmap : bool, optional
        Accepted as a hint; the file is read into memory.
    pickle_module, **pickle_load_args
        For ``weights_only=False``.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    pickle.UnpicklingError
        If the file holds pickled objects and ``weights_only`` is True.
    RuntimeError
        If the file is empty, truncated, corrupt, or no checkpoint at all.
    """
    _check_map_location(map_location)
    if not hasattr(f, "read"):
        with open(os.fspath(f), "rb") as stream:
            return _read(stream, os.fspath(f), pickle_module, weights_only, pickle_load_args)
    name = str(getattr(f, "name", "the file object"))
    if not hasattr(f, "seek"):
        f = io.BytesIO(f.read())
    return _read(f, name, pickle_module, weights_only, pickle_load_args)  # type: ignore[arg-type]


def _check_map_location(map_location: Any) -> None:
    targets = map_location.values() if isinstance(map_location, dict) else [map_location]
    for target in targets:
        if target is None or callable(target):
            continue
        if str(getattr(target, "type", target)).partition(":")[0] != "cpu":
            raise RuntimeError(f"map_location={target!r}: the only device of minitorch is cpu")


def _read(
    stream: IO[bytes],
    name: str,
    pickle_module: Any,
    weights_only: bool | None,
    pickle_load_args: dict[str, Any],
) -> Any:
    start = stream.tell()
    magic = stream.read(4)
    stream.seek(start)
    if magic[:2] != b"PK":
        raise RuntimeError(f"{name} is not a checkpoint: {foreign.guess(magic)}")
    try:
        with zipfile.ZipFile(stream) as archive:
            members = archive.namelist()
            if HEADER in members:
                header = json.loads(archive.read(HEADER))
                return _decode(archive, header, name, pickle_module, weights_only, pickle_load_args)
            if foreign.is_pytorch(members):
                return foreign.read_pytorch(archive, name)
    except (zipfile.BadZipFile, EOFError, json.JSONDecodeError, KeyError, ValueError) as error:
        raise RuntimeError(
            f"failed reading zip archive {name}: {error}. The file is truncated or corrupt"
        ) from error
    raise RuntimeError(
        f"{name} is a zip archive but no checkpoint: it has neither {HEADER} nor PyTorch's data.pkl"
    )


def _decode(
    archive: zipfile.ZipFile,
    header: dict[str, Any],
    name: str,
    pickle_module: Any,
    weights_only: bool | None,
    pickle_load_args: dict[str, Any],
) -> Any:
    if header.get("version", 0) > VERSION:
        raise RuntimeError(
            f"{name} was written by a newer minitorch (format {header['version']}, this one reads "
            f"up to {VERSION}): update minitorch"
        )
    if "pickled" not in header:
        return decode.Decoder(archive, header["storages"]).decode(header["root"])
    if weights_only or weights_only is None:
        raise pickle.UnpicklingError(
            f"Weights only load failed: {name} holds pickled objects ({header['pickled']}). "
            "Unpickling can execute any code that the file's author put there. If you trust the "
            "file, load it with weights_only=False; better, save state_dict() instead"
        )
    return (pickle_module or pickle).loads(archive.read(PICKLE), **pickle_load_args)
