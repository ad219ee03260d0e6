"""Where a recurrent layer's random masks come from: addressed draws (``random/addressed.py``).

A layer has a seed of its own and numbers its calls in training. The address of a mask is

* the layer's seed,
* the number of the call,
* the caller's rank, the number of the layer and direction in the stack, and what the mask is for,
* the element: step, sample and unit.

So masks are the same when a run is resumed from a state dictionary (which holds seed and number),
when a checkpointed part is run again, and whatever else draws numbers; they differ from rank to
rank; and the user's generator is never touched.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from minitorch.autograd import TensorBase
from minitorch.nn.modules.module import Module
from minitorch.random.addressed import addressed_bits
from minitorch.random.callers import CallCounter, rank

# What a mask is for.
CELL, HIDDEN, CANDIDATE, VARIATIONAL, OUTPUT = range(5)
_STATIC_CALL = 2**64 - 1


def checked_rate(name: str, rate: float) -> float:
    """Return a probability as float.

    Raises
    ------
    ValueError
        If it is none.
    """
    if isinstance(rate, bool) or not 0.0 <= rate <= 1.0:
        raise ValueError(f"{name} has to be a probability between 0 and 1, but got {rate}")
    return float(rate)


def checked_mask(mask: Any, shape: tuple[int, ...], name: str = "mask") -> np.ndarray:
    """Return a given mask as a bool array of `shape`, to which it must broadcast.

    Raises
    ------
    ValueError
        If it does not, or if it holds anything but 0 and 1.
    """
    array = mask._array if isinstance(mask, TensorBase) else np.asarray(mask)
    kept = array != 0
    if array.dtype != np.bool_ and np.any(array[kept] != 1):
        raise ValueError(f"{name} must hold 1 where the old value is kept and 0 elsewhere")
    try:
        return np.ascontiguousarray(np.broadcast_to(kept, shape))
    except ValueError:
        raise ValueError(
            f"{name} of shape {tuple(array.shape)} does not broadcast to {shape}"
        ) from None


def checked_pair(masks: Any, name: str = "masks") -> tuple[Any, Any]:
    """Masks of cell and hidden state; raise unless there are two.

    An array is refused: a batch of two would pass for a pair.
    """
    if not isinstance(masks, (tuple, list)) or len(masks) != 2:
        found = f"{len(masks)} of them" if isinstance(masks, (tuple, list)) else "one array"
        raise ValueError(f"{name} must be a pair (d_cell, d_hidden), but got {found}")
    return masks[0], masks[1]


def draw_mask(
    seed: int, call: int, stream: tuple[int, ...], shape: tuple[int, ...], rate: float
) -> np.ndarray:
    """A bool mask that holds with probability `rate`, to the precision of 32 bits."""
    if rate >= 1.0:
        return np.ones(shape, np.bool_)
    count = int(np.prod(shape))
    words = addressed_bits(seed, call, stream, (count + 1) // 2)
    halves = words.astype("<u8", copy=False).view("<u4")[:count]
    return (halves < np.uint32(rate * 2**32)).reshape(shape)


class MaskedModule(Module):
    """A module that draws masks; `mask_seed` and the number of calls are part of its state.

    Attributes
    ----------
    mask_seed : int
        The seed of this module's masks; two modules with the same seed draw alike.
    mask_calls : int
        How many calls in training have drawn masks.
    """

    mask_seed: int

    def _init_masks(self, mask_seed: int | None) -> None:
        """Call once the weights are drawn: without a seed, they decide."""
        if mask_seed is None:
            # Seeded scripts get the same masks without a further seed, and every layer its own.
            start = next(self.parameters())._array.ravel()[:256].tobytes()
            digest = hashlib.blake2b(start, digest_size=8).digest()
            mask_seed = int.from_bytes(digest, "little") >> 1
        self.mask_seed = mask_seed
        self._calls = CallCounter()

    @property
    def mask_calls(self) -> int:
        return self._calls.count

    @mask_calls.setter
    def mask_calls(self, count: int) -> None:
        self._calls.count = count

    def _draw(
        self, call: int, number: int, purpose: int, shape: tuple[int, ...], rate: float
    ) -> np.ndarray:
        """A mask of this call and rank, for the `number`-th layer and direction."""
        return draw_mask(self.mask_seed, call, (rank(), number, purpose), shape, rate)

    def _draw_static(
        self, number: int, purpose: int, shape: tuple[int, ...], rate: float
    ) -> np.ndarray:
        """A mask that is the same at every call and on every rank."""
        return draw_mask(self.mask_seed, _STATIC_CALL, (0, number, purpose), shape, rate)

    # -- state -------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, int]:
        """Seed and number of calls: what resuming with the same masks takes."""
        return {"mask_seed": self.mask_seed, "mask_calls": self.mask_calls}

    def set_extra_state(self, state: dict[str, int]) -> None:
        """Go on with the masks of the saved run."""
        self.mask_seed = int(state["mask_seed"])
        self.mask_calls = int(state["mask_calls"])

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )
        # The state of a network without masks (PyTorch's, say) loads as well.
        key = f"{prefix}_extra_state"
        if key in missing_keys:
            missing_keys.remove(key)
