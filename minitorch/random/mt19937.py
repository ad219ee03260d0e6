"""The raw material of ``manual_seed``: one Mersenne Twister stream, bit for bit PyTorch's.

PyTorch's CPU generator is the classic 32-bit MT19937 (Matsumoto & Nishimura, 1998) seeded by the
classic linear recurrence. NumPy ships the same engine, so this file adds no arithmetic of its own:
it decides how words are taken from the engine (32 or 64 bits), remembers the second value of the
scalar Box-Muller pair, and translates the state to and from PyTorch's byte layout. What the
words are turned into is decided in ``streams.py``.
"""

from __future__ import annotations

import operator
import secrets
import struct
import sys

import numpy as np

__all__ = ["DEFAULT_SEED", "STATE_BYTES", "MersenneStream", "checked_seed"]

#: The seed of a ``Generator()`` that nobody has seeded; PyTorch's constant, so that it agrees too.
DEFAULT_SEED = 67280421310721

_WORDS = 624
# PyTorch's historical generator record: seed, words left, seeded flag, index of the next word,
# the 624 words in 64-bit cells, three doubles of which the second is the cached normal value, its
# valid flag, then (added later) a cached float32 normal and its flag. Pads are C's alignment.
_LAYOUT = struct.Struct(f"<QiiQ{_WORDS}Qdddi4xf?3x")
STATE_BYTES = _LAYOUT.size


def checked_seed(seed: int) -> int:
    """Map a seed to PyTorch's unsigned 64-bit seed, or raise as PyTorch does.

    Negative seeds count from the top (``-1`` is ``2**64 - 1``).
    """
    try:
        value = operator.index(seed)
    except TypeError:
        raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}") from None
    if not -(2**63) <= value < 2**64:
        raise ValueError(
            f"Overflow when unpacking long long: seed {value} is outside [-2**63, 2**64)"
        )
    return value % 2**64


class MersenneStream:
    """An MT19937 engine with PyTorch's seeding, word order and cached normal value.

    Attributes
    ----------
    seed_value : int
        The 64-bit seed last set. Only its low 32 bits reach the engine, as in PyTorch.
    next_normal : float or None
        Second value of the last scalar Box-Muller pair, handed out by the next scalar draw.
    """

    __slots__ = ("_bits", "_draws", "next_normal", "seed_value")

    def __init__(self, seed: int = DEFAULT_SEED) -> None:
        # Any construction would do: the state is overwritten at once. An int spares the
        # entropy gathering of the default construction.
        self._bits = np.random.MT19937(0)
        self._draws = np.random.Generator(self._bits)
        self.seed_value = 0
        self.next_normal: float | None = None
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> None:
        value = checked_seed(seed)
        # The 1998 seeding, which PyTorch uses, is RandomState's; newer constructors hash the seed.
        np.random.RandomState(self._bits).seed(value & 0xFFFFFFFF)
        self.seed_value = value
        self.next_normal = None

    def seed_from_system(self) -> int:
        """Seed from the operating system's entropy; 53 bits, so that a double holds the seed."""
        seed = secrets.randbits(53)
        self.manual_seed(seed)
        return seed

    def words(self, count: int) -> np.ndarray:
        """The next ``count`` 32-bit words, in a uint32 array."""
        # Over the whole range of the type NumPy hands the engine's words on as they come.
        return self._draws.integers(0, 2**32, count, dtype=np.uint32)

    def words64(self, count: int) -> np.ndarray:
        """The next ``count`` 64-bit words: two engine words each, the first one on top."""
        pairs = self.words(2 * count).view(np.uint64)
        if sys.byteorder == "big":
            return pairs
        low = pairs >> np.uint64(32)
        pairs <<= np.uint64(32)
        pairs |= low
        return pairs

    # -- state -----------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """The whole state in the byte layout of ``torch.Generator.get_state``."""
        state = self._bits.state["state"]
        position = int(state["pos"])
        # NumPy counts the words used of the current block (624: make a new block first); PyTorch
        # keeps that index, and what is left plus one.
        left, index = (_WORDS + 1 - position, position)
        cached = self.next_normal
        return _LAYOUT.pack(
            self.seed_value,
            left,
            1,
            index,
            *state["key"].tolist(),
            0.0,
            0.0 if cached is None else cached,
            0.0,
            0 if cached is None else 1,
            0.0,
            False,
        )

    def from_bytes(self, data: bytes) -> None:
        """Set the state from :meth:`to_bytes`, or from a PyTorch CPU generator's state."""
        if len(data) != STATE_BYTES:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {STATE_BYTES} but found the input RNG "
                f"state size to be {len(data)}"
            )
        seed, left, _seeded, index, *rest = _LAYOUT.unpack(data)
        words, (_x, cached, _rho, valid, _float, _float_valid) = rest[:_WORDS], rest[_WORDS:]
        if not (1 <= left <= _WORDS and 0 <= index <= _WORDS and max(words) < 2**32):
            raise RuntimeError("RNG state is not a valid mt19937 state")
        self._bits.state = {
            "bit_generator": "MT19937",
            "state": {"key": np.array(words, dtype=np.uint32), "pos": _WORDS + 1 - left},
        }
        self.seed_value = seed
        self.next_normal = cached if valid else None

    def clone(self) -> MersenneStream:
        """An independent stream that continues from the same state."""
        twin = MersenneStream(0)
        twin._bits.state = self._bits.state
        twin.seed_value = self.seed_value
        twin.next_normal = self.next_normal
        return twin
