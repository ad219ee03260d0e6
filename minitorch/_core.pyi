"""The C++ core (csrc/bindings/). Arrays are C-contiguous and are never copied."""

from collections.abc import Callable, Sequence
from typing import Any, SupportsFloat, TypedDict

import numpy as np
from numpy.typing import NDArray

_Array = NDArray[Any]

class CollectiveError(RuntimeError): ...
class CollectiveMismatch(CollectiveError): ...
class CollectiveTimeout(CollectiveError): ...

# --- transport -----------------------------------------------------------------------------------

class Transport:
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def max_tag(self) -> int: ...
    @property
    def any_thread(self) -> bool: ...

def threads_world(size: int, max_tag: int = ...) -> list[Transport]: ...
def shaped_link(
    inner: Transport, bytes_per_second: SupportsFloat, latency_seconds: SupportsFloat
) -> Transport: ...
def delayed(inner: Transport, seed: int, max_delay_seconds: SupportsFloat) -> Transport: ...

# --- engine --------------------------------------------------------------------------------------

class _Usage(TypedDict):
    calls: int
    messages_sent: int
    bytes_sent: int
    bytes_received: int
    header_bytes: int

class Engine:
    trace: Trace
    def __init__(
        self,
        transport: Transport,
        threaded: bool = True,
        *,
        segment_bytes: int = ...,
        min_segment_bytes: int = ...,
        pieces: int = ...,
        ahead: int = ...,
        small_bytes: int = ...,
        window: int = ...,
    ) -> None: ...
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def threaded(self) -> bool: ...
    def new_group(
        self, ranks: Sequence[int], timeout_seconds: SupportsFloat, id: int | None = None
    ) -> Group: ...
    def fail(self, message: str) -> None: ...
    def goodbye(self) -> None: ...
    def shutdown(self) -> None: ...
    def error(self) -> str | None: ...
    def meter(self) -> dict[str, _Usage]: ...
    def reset_meter(self) -> None: ...

class Work:
    def wait(self, timeout_seconds: SupportsFloat | None = None) -> None: ...
    def is_completed(self) -> bool: ...
    def exception(self) -> str | None: ...
    @property
    def queued_ns(self) -> int: ...
    @property
    def started_ns(self) -> int: ...
    @property
    def finished_ns(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def missing(self) -> list[int]: ...
    @property
    def label(self) -> str: ...
    @property
    def source(self) -> int: ...

def fingerprint_seconds(repetitions: int) -> float: ...

class Group:
    timeout_seconds: float
    @property
    def rank(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def ranks(self) -> list[int]: ...
    @property
    def id(self) -> int: ...
    def meter(self) -> dict[str, _Usage]: ...
    def reset_meter(self) -> None: ...
    def all_reduce(
        self,
        array: _Array,
        op: str = "sum",
        algorithm: str = "auto",
        scale: SupportsFloat = 1.0,
        dtype: str = "",
        label: str = "",
        parent: Work | None = None,
    ) -> Work: ...
    def all_reduce_now(
        self,
        array: _Array,
        op: str = "sum",
        algorithm: str = "auto",
        scale: SupportsFloat = 1.0,
        dtype: str = "",
        label: str = "",
        parent: Work | None = None,
    ) -> Work: ...
    def reduce_scatter(
        self,
        out: _Array,
        inp: _Array,
        op: str = "sum",
        scale: SupportsFloat = 1.0,
        dtype: str = "",
        label: str = "",
        parent: Work | None = None,
    ) -> Work: ...
    def reduce_scatter_now(
        self,
        out: _Array,
        inp: _Array,
        op: str = "sum",
        scale: SupportsFloat = 1.0,
        dtype: str = "",
        label: str = "",
        parent: Work | None = None,
    ) -> Work: ...
    def all_gather(
        self,
        out: _Array,
        inp: _Array,
        dtype: str = "",
        label: str = "",
        parent: Work | None = None,
    ) -> Work: ...
    def all_gather_now(
        self,
        out: _Array,
        inp: _Array,
        dtype: str = "",
        label: str = "",
        parent: Work | None = None,
    ) -> Work: ...
    def broadcast(
        self,
        array: _Array,
        src: int,
        dtype: str = "",
        label: str = "",
        parent: Work | None = None,
    ) -> Work: ...
    def broadcast_now(
        self,
        array: _Array,
        src: int,
        dtype: str = "",
        label: str = "",
        parent: Work | None = None,
    ) -> Work: ...
    def reduce(
        self,
        array: _Array,
        dst: int,
        op: str = "sum",
        scale: SupportsFloat = 1.0,
        dtype: str = "",
        label: str = "",
        parent: Work | None = None,
    ) -> Work: ...
    def reduce_now(
        self,
        array: _Array,
        dst: int,
        op: str = "sum",
        scale: SupportsFloat = 1.0,
        dtype: str = "",
        label: str = "",
        parent: Work | None = None,
    ) -> Work: ...
    def gather(
        self,
        out: _Array | None,
        inp: _Array,
        dst: int,
        dtype: str = "",
        label: str = "",
        parent: Work | None = None,
    ) -> Work: ...
    def gather_now(
        self,
        out: _Array | None,
        inp: _Array,
        dst: int,
        dtype: str = "",
        label: str = "",
        parent: Work | None = None,
    ) -> Work: ...
    def scatter(
        self,
        out: _Array,
        inp: _Array | None,
        src: int,
        dtype: str = "",
        label: str = "",
        parent: Work | None = None,
    ) -> Work: ...
    def scatter_now(
        self,
        out: _Array,
        inp: _Array | None,
        src: int,
        dtype: str = "",
        label: str = "",
        parent: Work | None = None,
    ) -> Work: ...
    def all_to_all(
        self,
        out: _Array,
        inp: _Array,
        out_counts: Sequence[int] | None = None,
        in_counts: Sequence[int] | None = None,
        dtype: str = "",
        label: str = "",
        parent: Work | None = None,
    ) -> Work: ...
    def all_to_all_now(
        self,
        out: _Array,
        inp: _Array,
        out_counts: Sequence[int] | None = None,
        in_counts: Sequence[int] | None = None,
        dtype: str = "",
        label: str = "",
        parent: Work | None = None,
    ) -> Work: ...
    def barrier(self, label: str = "", parent: Work | None = None) -> Work: ...
    def barrier_now(self, label: str = "", parent: Work | None = None) -> Work: ...
    def send(
        self,
        array: _Array,
        dst: int,
        tag: int = 0,
        dtype: str = "",
        label: str = "",
    ) -> Work: ...
    def send_now(
        self,
        array: _Array,
        dst: int,
        tag: int = 0,
        dtype: str = "",
        label: str = "",
    ) -> Work: ...
    def recv(
        self,
        array: _Array,
        src: int,
        tag: int = 0,
        dtype: str = "",
        label: str = "",
    ) -> Work: ...
    def recv_now(
        self,
        array: _Array,
        src: int,
        tag: int = 0,
        dtype: str = "",
        label: str = "",
    ) -> Work: ...

# --- trace ---------------------------------------------------------------------------------------

class Trace:
    def __init__(self, capacity: int = ...) -> None: ...
    def enable(self) -> None: ...
    def disable(self) -> None: ...
    @property
    def enabled(self) -> bool: ...
    @property
    def dropped(self) -> int: ...
    def clear(self) -> None: ...
    def record(
        self,
        name: str,
        category: str,
        track: str,
        begin_ns: int,
        end_ns: int,
        args_json: str = "",
    ) -> None: ...
    def events(self) -> list[tuple[str, str, str, int, int, str]]: ...
    @staticmethod
    def now_ns() -> int: ...

def now_ns() -> int: ...

# --- kernels -------------------------------------------------------------------------------------

def instruction_set() -> str: ...
def reduce_into(
    out: _Array,
    a: _Array,
    b: _Array,
    op: str = "sum",
    scale: SupportsFloat = 1.0,
    dtype: str = "",
) -> None: ...
def convert(out: _Array, inp: _Array, out_dtype: str = "", in_dtype: str = "") -> None: ...
def copy_scaled(out: _Array, inp: _Array, scale: SupportsFloat = 1.0, dtype: str = "") -> None: ...
def saga(
    rows: tuple[_Array, ...],
    targets: _Array,
    indices: _Array,
    coef: _Array,
    table: _Array,
    mean: _Array,
    *,
    loss: str,
    samples: int,
    features: int,
    outputs: int,
    step: SupportsFloat,
    l1: SupportsFloat = 0.0,
    before: SupportsFloat = 1.0,
    after: SupportsFloat = 1.0,
    smoothing: SupportsFloat = 1.0,
    intercept_rate: SupportsFloat = 1.0,
    weights: _Array | None = None,
    scales: _Array | None = None,
    intercept: _Array | None = None,
    mean_intercept: _Array | None = None,
    checked: bool = False,
) -> None: ...

# --- reducer -------------------------------------------------------------------------------------

def compute_bucket_assignment_by_size(
    sizes: Sequence[int],
    dtypes: Sequence[Any],
    limits: Sequence[int],
    expect_sparse: Sequence[bool] = ...,
    order: Sequence[int] = ...,
) -> tuple[list[list[int]], list[int]]: ...

class Reducer:
    def __init__(
        self,
        group: Group,
        names: Sequence[str],
        dtypes: Sequence[np.dtype[Any]],
        elements: Sequence[int],
        sparse: Sequence[bool],
        indices: Sequence[Sequence[int]],
        limits: Sequence[int],
        *,
        rebuild_limits: Sequence[int],
        find_unused_parameters: bool = False,
        skip_unused_buckets: bool = False,
    ) -> None: ...
    def ensure_finished(self) -> None: ...
    def unfinished(self) -> Any: ...
    def rebuild_buckets(self) -> bool: ...
    def divide_by(self, ranks: int) -> None: ...
    def mark_forward_start(self) -> None: ...
    def prepare_for_backward(self) -> None: ...
    def prepare_for_flush(self) -> None: ...
    def prepare_for_shadow(self) -> None: ...
    def set_static_graph(self) -> None: ...
    @property
    def armed(self) -> bool: ...
    @property
    def started(self) -> bool: ...
    def mark_backward_start(self) -> None: ...
    def mark_used(self, index: int) -> None: ...
    def mark_fired(self, index: int) -> bool: ...
    @property
    def learning(self) -> bool: ...
    @property
    def never_fired(self) -> list[int]: ...
    def mark_ready(self, index: int, gradient: _Array | None, unused: bool = False) -> Any: ...
    def mark_pass_ended(self) -> None: ...
    @property
    def all_launched(self) -> bool: ...
    def begin_draining(self) -> None: ...
    def wait_bucket(self, bucket: int) -> None: ...
    def note_handed_back(self, bucket: int, bytes_copied: int) -> None: ...
    @property
    def unused_here(self) -> list[int]: ...
    def used_anywhere(self, index: int) -> bool: ...
    def finish(self) -> None: ...
    def register_hook(self, hook: Callable[..., Any]) -> None: ...
    def set_sparse_hook(self, hook: Any) -> None: ...
    @property
    def division_factor(self) -> float: ...
    def bucket_memory(self, bucket: int) -> _Array: ...
    def is_sparse(self, bucket: int) -> bool: ...
    @property
    def bucket_indices(self) -> list[list[int]]: ...
    @property
    def bucket_sizes(self) -> list[int]: ...
    @property
    def has_rebuilt(self) -> bool: ...
    @property
    def iterations(self) -> int: ...
    @property
    def launched(self) -> int: ...
    @property
    def missing(self) -> Any: ...
    @property
    def ready_order(self) -> list[int]: ...
    def used_map(self) -> list[int]: ...
    def last_step(self) -> dict[str, Any]: ...
    def overlap(self) -> dict[str, Any]: ...
    def mean_overlap(self) -> dict[str, Any]: ...
