"""What scripts ask about the machine: threads, other devices, determinism. The answers of a CPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def set_num_threads(num: int) -> None:
    """Set how many threads a matrix product uses, for the whole process.

    Raises
    ------
    RuntimeError
        If `num` is not positive.
    """
    if num < 1:
        raise RuntimeError("set_num_threads expects a positive integer")
    from threadpoolctl import threadpool_limits

    threadpool_limits(num, user_api="blas")


def get_num_threads() -> int:
    """Return how many threads a matrix product uses."""
    from threadpoolctl import threadpool_info

    return max([pool["num_threads"] for pool in threadpool_info()], default=1)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Accept the request: every algorithm here is deterministic."""


def are_deterministic_algorithms_enabled() -> bool:
    """Return True: every algorithm here is deterministic."""
    return True


def _no_device(*args: Any) -> bool:
    return False


# So that `device = "cuda" if torch.cuda.is_available() else "cpu"` runs unchanged.
cuda = SimpleNamespace(
    is_available=_no_device,
    device_count=lambda: 0,
    manual_seed=lambda seed: None,
    manual_seed_all=lambda seed: None,
    is_initialized=_no_device,
)
backends = SimpleNamespace(
    cuda=SimpleNamespace(is_built=_no_device),
    cudnn=SimpleNamespace(deterministic=True, benchmark=False, is_available=_no_device),
    mps=SimpleNamespace(is_available=_no_device, is_built=_no_device),
)
