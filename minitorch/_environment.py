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


def get_num_interop_threads() -> int:
    """Return 1: ops run one after the other."""
    return 1


def set_float32_matmul_precision(precision: str) -> None:
    """Accept the request: products of float32 are computed in float32, which satisfies each.

    Raises
    ------
    RuntimeError
        If `precision` is not "highest", "high" or "medium".
    """
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"float32_matmul_precision must be highest, high or medium: {precision}")


def get_float32_matmul_precision() -> str:
    """Return "highest": products of float32 are computed in float32."""
    return "highest"


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
