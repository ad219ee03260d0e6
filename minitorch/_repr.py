"""Printing tensors the way PyTorch prints them.

All elements share one width and one style: integers, fixed point, or scientific if the values span
too much (a ratio above 1000, above 1e8, or below 1e-4). Large tensors show their edges.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.dtypes import from_numpy_dtype, get_default_dtype


class _Options:
    """What ``set_printoptions`` sets."""

    precision = 4
    threshold: float = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode: bool | None = None


options = _Options()


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print; `profile` is "default", "short" or "full"."""
    if profile is not None:
        values = {"default": (4, 1000, 3), "short": (2, 1000, 2), "full": (4, math.inf, 3)}[profile]
        options.precision, options.threshold, options.edgeitems = values
        options.linewidth = 80
    for name in ("precision", "threshold", "edgeitems", "linewidth"):
        value = locals()[name]
        if value is not None:
            setattr(options, name, value)
    options.sci_mode = sci_mode


class _Formatter:
    """One style and width for all elements of a tensor."""

    def __init__(self, shown: ndarray) -> None:
        self.kind = shown.dtype.kind
        self.integral = True
        self.scientific = False
        self.width = 1
        values = shown.reshape(-1)
        if self.kind != "f":
            texts = [str(value) for value in values.tolist()]
        else:
            values = values.astype(np.float64)
            # Zeros, NaN and infinities have no say in style and width.
            regular = values[np.isfinite(values) & (values != 0)]
            if regular.size:
                self._choose_style(np.abs(regular), regular)
            texts = [self._number(value) for value in regular.tolist()]
        self.width = max([1, *[len(text) for text in texts]])

    def _choose_style(self, sizes: ndarray, regular: ndarray) -> None:
        top, bottom = sizes.max(), sizes.min()
        self.integral = bool((regular == np.ceil(regular)).all())
        if self.integral:
            self.scientific = bool(top / bottom > 1000.0 or top > 1e8)
        else:
            self.scientific = bool(top / bottom > 1000.0 or top > 1e8 or bottom < 1e-4)
        if options.sci_mode is not None:
            self.scientific = options.sci_mode

    def _number(self, value: float) -> str:
        if not math.isfinite(value):
            return str(value)
        if self.scientific:
            return f"{value:.{options.precision}e}"
        if self.integral:
            return f"{value:.0f}."
        return f"{value:.{options.precision}f}"

    def __call__(self, value: Any) -> str:
        text = self._number(value) if self.kind == "f" else str(value)
        return text.rjust(self.width)


def _edges(array: ndarray) -> ndarray:
    """Keep what a summary shows."""
    for axis in range(array.ndim):
        n, edge = array.shape[axis], options.edgeitems
        if n > 2 * edge:
            array = np.take(array, [*range(edge), *range(n - edge, n)], axis=axis)
    return array


def _vector(array: ndarray, indent: int, summary: bool, form: _Formatter) -> str:
    per_line = max(1, int((options.linewidth - indent) / (form.width + 2)))
    edge = options.edgeitems
    if summary and len(array) > 2 * edge:
        cells = [form(x) for x in array[:edge].tolist()]
        cells += [" ..."] + [form(x) for x in array[-edge:].tolist()]
    else:
        cells = [form(x) for x in array.tolist()]
    lines = [", ".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(array: ndarray, indent: int, summary: bool, form: _Formatter) -> str:
    if array.ndim == 0:
        return form(array.item()).strip() if form.kind != "f" else form(array.item())
    if array.ndim == 1:
        return _vector(array, indent, summary, form)
    edge = options.edgeitems
    if summary and len(array) > 2 * edge:
        parts = [_nested(each, indent + 1, summary, form) for each in array[:edge]]
        parts.append("...")
        parts += [_nested(each, indent + 1, summary, form) for each in array[-edge:]]
    else:
        parts = [_nested(each, indent + 1, summary, form) for each in array]
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def tensor_repr(t: Any) -> str:
    """Return ``tensor([...], dtype=..., requires_grad=True)`` as PyTorch words it."""
    array = t._array
    prefix = "tensor("
    suffixes = []
    dtype = from_numpy_dtype(array.dtype)
    if array.dtype.kind == "V":
        array = array.astype(np.float32)
    usual = dtype is get_default_dtype() or dtype.name in ("int64", "bool")
    if array.size == 0:
        if array.ndim != 1:
            suffixes.append(f"size={tuple(array.shape)}")
        if dtype is not get_default_dtype():
            suffixes.append(f"dtype={dtype!r}")
        body = "[]"
    else:
        if not usual:
            suffixes.append(f"dtype={dtype!r}")
        summary = array.size > options.threshold
        form = _Formatter(_edges(array) if summary else array)
        body = _nested(array, len(prefix), summary, form)
    grad_fn = t.grad_fn
    if grad_fn is not None:
        suffixes.append(f"grad_fn=<{grad_fn.name().rpartition('::')[2]}>")
    elif t.requires_grad:
        suffixes.append("requires_grad=True")
    text = prefix + body
    last_line = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if last_line + len(suffix) + 2 > options.linewidth:
            text += ",\n" + " " * len(prefix) + suffix
            last_line = len(prefix) + len(suffix)
        else:
            text += ", " + suffix
            last_line += len(suffix) + 2
    return text + ")"
