"""``Generator``, the per-thread default generator, and the ``minitorch.random`` functions.

In PyTorch the default generator is global to the process. Here ranks may be threads of one process
(``dist.run_local``), and DataLoader workers are threads, so *each thread has its own* default
stream: ``manual_seed`` seeds the calling thread's, and no other thread can disturb its draws. A
thread starts, as a fresh process would, from an unpredictable seed; :func:`default_state` and
:func:`inherit_default_state` hand a stream on to a thread that shall continue it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ..autograd.graph import wrap
from ..device import cpu
from .mt19937 import MersenneStream, checked_seed

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = [
    "Generator",
    "default_generator",
    "default_state",
    "fork_rng",
    "get_rng_state",
    "inherit_default_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "stream_of",
]


class Generator:
    """A source of random numbers with PyTorch's CPU streams.

    Parameters
    ----------
    device : str or device, optional
        Only ``"cpu"``.

    Examples
    --------
    >>> import minitorch
    >>> g = minitorch.Generator().manual_seed(0)
    >>> minitorch.randperm(4, generator=g)
    tensor([0, 1, 3, 2])
    """

    def __init__(self, device: Any = "cpu") -> None:
        kind = str(getattr(device, "type", device)).partition(":")[0]
        if kind != "cpu":
            raise RuntimeError(
                f"Device type {kind.upper()} is not supported for minitorch.Generator() api; "
                "the only device is cpu"
            )
        self._stream = MersenneStream()

    @property
    def device(self) -> Any:
        """The device of the generator: cpu."""
        return cpu

    def manual_seed(self, seed: int) -> Generator:
        """Set the seed (any integer in [-2**63, 2**64)) and return the generator."""
        self._stream.manual_seed(seed)
        return self

    def seed(self) -> int:
        """Seed from the operating system's entropy and return that seed."""
        return self._stream.seed_from_system()

    def initial_seed(self) -> int:
        """The seed last set."""
        return self._stream.seed_value

    def get_state(self) -> Tensor:
        """The state as a uint8 tensor, in PyTorch's layout (a PyTorch generator accepts it)."""
        return wrap(np.frombuffer(self._stream.to_bytes(), dtype=np.uint8).copy())

    def set_state(self, new_state: Tensor) -> None:
        """Continue from a state of :meth:`get_state` (or of a PyTorch CPU generator)."""
        array = getattr(new_state, "_array", new_state)
        if not isinstance(array, np.ndarray) or array.dtype != np.uint8:
            raise TypeError("expected a minitorch.ByteTensor (dtype uint8) as the RNG state")
        self._stream.from_bytes(np.ascontiguousarray(array).tobytes())

    def clone_state(self) -> Generator:
        """A new generator that continues independently from the same state."""
        twin = Generator.__new__(Generator)
        twin._stream = self._stream.clone()
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_generator, (self._stream.to_bytes(),)

    def __deepcopy__(self, memo: dict[int, Any]) -> Generator:
        return self.clone_state()

    def __repr__(self) -> str:
        return f"<minitorch.Generator device='cpu' seed={self.initial_seed()}>"


def _restore_generator(state: bytes) -> Generator:
    generator = Generator()
    generator._stream.from_bytes(state)
    return generator


class _ThreadStream(threading.local):
    """One stream per thread, unpredictable until the thread seeds it."""

    def __init__(self) -> None:
        self.stream = MersenneStream(0)
        self.stream.seed_from_system()


class _DefaultGenerator(Generator):
    """The generator that is used when none is given: one object, a stream for each thread."""

    def __init__(self) -> None:
        self._local = _ThreadStream()

    @property
    def _stream(self) -> MersenneStream:
        return self._local.stream

    @_stream.setter
    def _stream(self, stream: MersenneStream) -> None:
        self._local.stream = stream


#: The calling thread's default generator.
default_generator: Generator = _DefaultGenerator()


def stream_of(generator: Generator | None) -> MersenneStream:
    """The stream to draw from: the given generator's, or this thread's default."""
    if generator is None:
        return default_generator._stream
    try:
        return generator._stream
    except AttributeError:
        raise TypeError(
            f"expected a minitorch.Generator or None, but got {type(generator).__name__}"
        ) from None


def manual_seed(seed: int) -> Generator:
    """Seed this thread's default generator and return it.

    Parameters
    ----------
    seed : int
        Any integer in [-2**63, 2**64); negative ones are taken modulo 2**64.
    """
    default_generator.manual_seed(checked_seed(int(seed)))
    return default_generator


def seed() -> int:
    """Give the default generator an unpredictable seed and return it."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state, a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the default generator's state."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str = "cpu",
) -> Iterator[None]:
    """Run the body on a copy of the default stream; afterwards it is as it was before.

    ``devices`` and ``device_type`` are accepted for compatibility: the only stream is the CPU's.
    """
    if not enabled:
        yield
        return
    saved = default_generator._stream.clone()
    try:
        yield
    finally:
        default_generator._stream = saved


def default_state() -> bytes:
    """A snapshot of this thread's default stream, to hand to another thread."""
    return default_generator._stream.to_bytes()


def inherit_default_state(state: bytes) -> None:
    """Continue another thread's default stream (see :func:`default_state`) in this thread."""
    default_generator._stream.from_bytes(state)
