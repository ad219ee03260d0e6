"""Gradients on the wire as float16 or bfloat16: half the bytes, for a rounding or two.

As in PyTorch: cast, divide, then reduce, and copy back. Division comes before the sum, so that a
sum over many ranks does not overflow float16 (whose largest value is 65504) when the gradients
themselves do not. The sums are formed in float32 hop by hop and rounded once per hop.

Cost per bucket of n float32: one all-reduce of 2 n bytes, that is 2 n (W-1)/W * 2 bytes sent per
rank, and three passes over memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch.autograd.graph import bump_version, wrap
from minitorch.distributed._native import core
from minitorch.distributed.collectives import all_reduce
from minitorch.distributed.process_group import _get_default_group
from minitorch.dtypes import bfloat16, float16

if TYPE_CHECKING:
    from collections.abc import Callable

    from minitorch.distributed._ddp.hooks import GradBucket
    from minitorch.distributed.futures import Future
    from minitorch.distributed.process_group import ProcessGroup
    from minitorch.tensor import Tensor

    Hook = Callable[[Any, GradBucket], Future]

__all__ = [
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future:
    """Average a bucket's gradients as float16.

    Parameters
    ----------
    process_group : ProcessGroup, optional
        The hook's state; None: the default group.
    bucket : GradBucket
        Gradients of any floating point dtype; averages come back in the same.

    Examples
    --------
    >>> ddp.register_comm_hook(process_group, fp16_compress_hook)  # doctest: +SKIP
    """
    return _reduce_as(float16, process_group, bucket)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future:
    """Average a bucket's gradients as bfloat16: float32's range with 8 bits of precision.

    See :func:`fp16_compress_hook`.
    """
    return _reduce_as(bfloat16, process_group, bucket)


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Let another hook work on float16 gradients.

    Parameters
    ----------
    hook
        Sees a bucket whose buffer is float16, and divides by itself if it averages.

    Examples
    --------
    >>> ddp.register_comm_hook(state, fp16_compress_wrapper(powerSGD_hook))  # doctest: +SKIP
    """

    def fp16_compress_wrapper_hook(hook_state: Any, bucket: GradBucket) -> Future:
        return _run_as(float16, hook, hook_state, bucket)

    return fp16_compress_wrapper_hook


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Let another hook work on bfloat16 gradients; see :func:`fp16_compress_wrapper`."""

    def bf16_compress_wrapper_hook(hook_state: Any, bucket: GradBucket) -> Future:
        return _run_as(bfloat16, hook, hook_state, bucket)

    return bf16_compress_wrapper_hook


def _reduce_as(dtype: Any, process_group: ProcessGroup | None, bucket: GradBucket) -> Future:
    group = process_group if process_group is not None else _get_default_group()
    buffer = bucket.buffer()
    compressed = narrow(buffer._array, dtype)
    _scale(compressed, 1.0 / group.size())
    work = all_reduce(wrap(compressed), group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda future: _widen_into(buffer, future.value()[0]))


def _run_as(dtype: Any, hook: Hook, hook_state: Any, bucket: GradBucket) -> Future:
    buffer = bucket.buffer()
    bucket.set_buffer(wrap(narrow(buffer._array, dtype)))

    def decompress(future: Future) -> Tensor:
        value = future.value()
        # What comes after this hook, such as an optimizer, is to see the bucket itself.
        bucket.set_buffer(buffer)
        return _widen_into(buffer, value[0] if isinstance(value, (list, tuple)) else value)

    return hook(hook_state, bucket).then(decompress)


# -- conversion: by the core's loops, several times faster than NumPy's ----------------------------


def narrow(values: np.ndarray, dtype: Any) -> np.ndarray:
    """Copy ``values`` into a fresh array of ``dtype``, rounded to nearest even."""
    if values.dtype != np.float32 or not values.flags.c_contiguous:
        return values.astype(dtype.numpy)
    narrowed = np.empty(values.shape, dtype.numpy)
    words, name = _words(narrowed)
    core().convert(words, values, out_dtype=name)
    return narrowed


def widen(target: np.ndarray, values: np.ndarray) -> None:
    """Copy 16-bit ``values`` into ``target``, of any floating point dtype."""
    both_plain = target.flags.c_contiguous and values.flags.c_contiguous
    if target.dtype == np.float32 and values.itemsize == 2 and both_plain:
        words, name = _words(values)
        core().convert(target, words.reshape(target.shape), in_dtype=name)
    else:
        np.copyto(target, values.reshape(target.shape), casting="unsafe")


def _words(array: np.ndarray) -> tuple[np.ndarray, str]:
    # NumPy's buffers cannot name bfloat16: it crosses as words, with its name beside it.
    return (array, "") if array.dtype == np.float16 else (array.view(np.uint16), "bfloat16")


def _scale(array: np.ndarray, factor: float) -> None:
    words, name = _words(array)
    core().copy_scaled(words, words, factor, name)


def _widen_into(buffer: Tensor, value: Tensor) -> Tensor:
    widen(buffer._array, value._array)
    bump_version(buffer)
    return buffer
