"""What a communication hook sees of a bucket, and how its answer gets back.

The seam for every other way of sending gradients (compression, quantization, skipping): the reducer
decides when a bucket leaves, a hook decides what happens to it. Hooks run on the rank's own thread:
when the bucket is full, and, for the continuations of their futures, inside the waits at the end of
backward, in bucket order on every rank.
"""

from __future__ import annotations

import inspect
import weakref
from typing import TYPE_CHECKING, Any

from minitorch.autograd.graph import bump_version
from minitorch.tensor import Tensor

from .._native import CollectiveTimeout
from ..compression.half import widen
from ..futures import Future, FutureTimeout, patience

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..process_group import ProcessGroup
    from .reducer import GradientReducer


class GradBucket:
    """One bucket of local gradients, as a communication hook gets it (``dist.GradBucket``)."""

    __slots__ = ("_buffer", "_index", "_reducer")

    def __init__(self, reducer: GradientReducer, index: int) -> None:
        self._reducer = reducer
        self._index = index
        self._buffer: Any = reducer.bucket_tensors[index]

    def index(self) -> int:
        """Which bucket this is; buckets reach a hook in this order, 0 first."""
        return self._index

    def buffer(self) -> Tensor:
        """Return the flat tensor of all gradients of the bucket, sharing its memory.

        A sparse gradient is alone in its bucket, and is returned as it is.
        """
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Let :meth:`buffer` return another tensor from now on."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """Return each parameter's gradient as a view into :meth:`buffer`, in the bucket's order."""
        if self._buffer.is_sparse:
            return [self._buffer]
        views, start = [], 0
        for parameter in self.parameters():
            stop = start + parameter._array.size
            views.append(self._buffer[start:stop].view(parameter._array.shape))
            start = stop
        return views

    def parameters(self) -> list[Tensor]:
        """Return the parameters of the bucket, in the bucket's order."""
        return [self._reducer.parameters[i] for i in self._reducer.bucket_indices[self._index]]

    def is_last(self) -> bool:
        """Whether this is the last bucket of the backward pass."""
        return self._index == len(self._reducer.bucket_indices) - 1

    def __repr__(self) -> str:
        names = [self._reducer.names[i] for i in self._reducer.bucket_indices[self._index]]
        return f"GradBucket(index={self._index}, parameters={names})"


class BucketHook:
    """Connects a user's hook to the core, which calls ``launch`` and later ``wait``."""

    def __init__(
        self, reducer: GradientReducer, state: object, hook: Callable, name: str = ""
    ) -> None:
        self._reducer = weakref.ref(reducer)  # the core holds this object, and the reducer the core
        self._state = state
        self._hook = hook
        self.name = name or getattr(hook, "__qualname__", type(hook).__qualname__)

    def over(self, reducer: GradientReducer, old_group: ProcessGroup) -> BucketHook:
        """Return the same for another reducer; where the state was the old group, its group."""
        state = reducer.process_group if self._state is old_group else self._state
        return BucketHook(reducer, state, self._hook, self.name)

    def launch(self, index: int) -> tuple[GradBucket, Future]:
        """Call the hook on bucket ``index``."""
        reducer = self._reducer()
        if reducer is None:
            raise RuntimeError("the reducer of this communication hook is gone")
        bump_version(reducer.bucket_tensors[index])
        bucket = GradBucket(reducer, index)
        future = self._hook(self._state, bucket)
        if not isinstance(future, Future):
            raise TypeError(
                f"Communication hook {self.name}: expected a Future of a Tensor for bucket "
                f"{index}, got {type(future).__name__}. Without communication return a Future that "
                "is complete: future = Future(); future.set_result(bucket.buffer())."
            )
        return bucket, future

    def wait(self, promise: tuple[GradBucket, Future]) -> None:
        """Wait for the hook's result and put it where the gradients are handed back from."""
        bucket, future = promise
        reducer = self._reducer()
        assert reducer is not None
        value = self._wait_in_time(reducer.process_group, bucket, future)
        if isinstance(value, (list, tuple)) and len(value) == 1:
            value = value[0]
        if not isinstance(value, Tensor):
            raise TypeError(
                f"Communication hook {self.name}: the future of bucket {bucket.index()} must hold "
                f"a Tensor, got {type(value).__name__}"
            )
        held = reducer.bucket_tensors[bucket.index()]
        if held.is_sparse:
            if not value.is_sparse:
                raise RuntimeError(
                    f"Communication hook {self.name}: bucket {bucket.index()} holds a sparse "
                    "gradient, and the result must be sparse too (sparse_coo_tensor)"
                )
            reducer.bucket_tensors[bucket.index()] = value
            return
        target, result = held._array, value._array
        if result is target:
            return
        if result.size != target.size:
            raise RuntimeError(
                f"Communication hook {self.name}: the result of bucket {bucket.index()} has "
                f"{result.size} elements, the bucket has {target.size}"
            )
        widen(target, result)

    def _wait_in_time(self, group: ProcessGroup, bucket: GradBucket, future: Future) -> Any:
        """Wait no longer than the group's timeout; when that is over, no rank goes on."""
        seconds = group.timeout.total_seconds()
        try:
            with patience(seconds):
                return future.wait()
        except FutureTimeout:
            message = (
                f"Communication hook {self.name} on rank {group.rank()}: its Future of {bucket!r} "
                f"was not completed within the group's timeout of {seconds:g} s. A hook must "
                "complete the Future it returns: return that of a collective, or call "
                "future.set_result(tensor)."
            )
            group._engine.fail(message)
            raise CollectiveTimeout(message) from None


def check_hook(hook: Any) -> None:
    """Check a hook's signature as PyTorch does.

    Raises
    ------
    TypeError
        If it is not callable.
    ValueError
        If it has no argument named ``bucket``, or annotations other than PyTorch's.
    """
    if not callable(hook):
        raise TypeError("Communication hook must be callable.")
    signature = inspect.signature(hook)
    if "bucket" not in signature.parameters:
        raise ValueError(
            "Communication hook: the second argument must be named 'bucket', "
            f"the signature is {signature}."
        )
    annotation = signature.parameters["bucket"].annotation
    if annotation not in (inspect.Parameter.empty, GradBucket) and not _names(
        annotation, "GradBucket"
    ):
        raise ValueError("Communication hook: bucket annotation should be dist.GradBucket.")
    returns = signature.return_annotation
    if returns is not inspect.Signature.empty and not (
        _names(returns, "Future") or getattr(returns, "__origin__", returns) is Future
    ):
        raise ValueError(
            "Communication hook: return annotation should be torch.futures.Future[torch.Tensor]."
        )


def _names(annotation: Any, word: str) -> bool:
    # `from __future__ import annotations` turns annotations into strings.
    return isinstance(annotation, str) and word in annotation
