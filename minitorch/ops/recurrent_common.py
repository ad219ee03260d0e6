"""What fused recurrences share: products, the logistic function, and how two values of a state mix.

Zoneout (Krueger et al., "Zoneout: regularizing RNNs by randomly preserving hidden activations",
2016) leaves some units of a state as they were. In training a mask chooses (:class:`Keep`); in
evaluation the mask is replaced by its mean (:class:`Expect`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minitorch.amp.autocast_mode import active, cast_inputs
from minitorch.ops._arguments import scalar_name, widen
from minitorch.ops._typing import Tensor
from minitorch.ops.recurrent_memory import reused

_INTEGERS: dict[int, Any] = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}


def operands(inputs: tuple, weight: Tensor) -> tuple:
    """The tensors of a recurrence, cast under autocast; all must have the type of a weight.

    Raises
    ------
    RuntimeError
        If one has another.
    """
    if active.dtype is not None:
        inputs = cast_inputs("lower", *inputs)
    else:
        dtype = weight._array.dtype
        for t in inputs:
            if t is not None and t._array.dtype != dtype:
                raise RuntimeError(
                    "mat1 and mat2 must have the same dtype, but got "
                    f"{scalar_name(t)} and {scalar_name(weight)}"
                )
    return inputs


def affine(x: np.ndarray, w: np.ndarray, b: np.ndarray | None) -> np.ndarray:
    """``x @ w.T + b``."""
    out = np.matmul(x, w.T)
    if b is not None:
        out += b
    return out


def logistic_of_minus(x: np.ndarray) -> None:
    """Replace `x` by ``1 / (1 + exp(x))``, the logistic function of ``-x``, in place.

    NumPy's ``exp`` takes half the time of its ``tanh``. Where it overflows the result is 0, as it
    should be.
    """
    np.exp(x, out=x)
    x += x.dtype.type(1)
    np.reciprocal(x, out=x)


def arrays_of(*tensors: Tensor | None) -> list:
    """The arrays of tensors, 16-bit floats as float32; None stays None."""
    return [None if t is None else widen(t._array) for t in tensors]


def linear_gradients(
    grad: np.ndarray, x: np.ndarray, w: np.ndarray, needs: tuple[bool, bool, bool]
) -> tuple:
    """Gradients of ``x @ w.T + b`` for ``x``, ``w`` and ``b``."""
    return (
        grad @ w if needs[0] else None,
        grad.T @ x if needs[1] else None,
        np.add.reduce(grad, axis=0) if needs[2] else None,
    )


def narrow(grads: tuple, like: np.ndarray) -> tuple:
    """Cast gradients that were formed in float32 back to the 16-bit type of `like`."""
    if like.dtype.itemsize > 2:
        return grads
    return tuple(None if g is None else g.astype(like.dtype) for g in grads)


class Keep:
    """Units where `mask` holds keep their old value, bit for bit; the others take the new one.

    Selecting is done on the bits: three integer operations, where ``np.where`` over a random mask
    takes four times as long, and no product could turn a kept infinity into a nan.

    Parameters
    ----------
    mask : numpy.ndarray
        bool, (rows, units).
    dtype : numpy.dtype
        float32 or float64: the type of the states.
    """

    __slots__ = ("_bits", "mask")

    def __init__(self, mask: np.ndarray, dtype: np.dtype) -> None:
        self.mask = mask
        # All ones where the old value is kept: minus one.
        self._bits = reused(mask.shape, _INTEGERS[dtype.itemsize])
        np.negative(mask.view(np.int8), out=self._bits)

    def mix(self, old: np.ndarray, new: np.ndarray, rows: slice) -> None:
        """Overwrite `new` by `old` where the mask says so."""
        bits = self._bits[rows]
        target = new.view(bits.dtype)
        difference = target ^ old.view(bits.dtype)
        difference &= bits
        target ^= difference

    def split(self, grad: np.ndarray, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients of the old and of the new value: each unit's goes to one of them."""
        bits = self._bits[rows]
        whole = grad.view(bits.dtype)
        kept = whole & bits
        return kept.view(grad.dtype), (whole ^ kept).view(grad.dtype)


class Expect:
    """The mean over masks: ``rate * old + (1 - rate) * new``."""

    __slots__ = ("rate",)

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def mix(self, old: np.ndarray, new: np.ndarray, rows: slice) -> None:
        """Overwrite `new` by the mean."""
        new *= new.dtype.type(1 - self.rate)
        new += old * old.dtype.type(self.rate)

    def split(self, grad: np.ndarray, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients of the old and of the new value."""
        return grad * grad.dtype.type(self.rate), grad * grad.dtype.type(1 - self.rate)


class Extras(NamedTuple):
    """What a regularised recurrence does beside the plain one; constants of the graph.

    Attributes
    ----------
    keep_hidden, keep_cell : Keep or Expect or None
        Zoneout of the hidden state and of the LSTM's cell.
    drop_candidate : numpy.ndarray or None
        (rows, H) factors of the update: of ``g`` in the LSTM, of ``n`` in the GRU (Semeniuta et
        al., "Recurrent dropout without memory loss", 2016).
    drop_hidden : numpy.ndarray or None
        (batch, H) factors of the hidden state on its way into the gates, the same at every step
        (Gal and Ghahramani, "A theoretically grounded application of dropout in recurrent neural
        networks", 2016).
    """

    keep_hidden: Any = None
    keep_cell: Any = None
    drop_candidate: np.ndarray | None = None
    drop_hidden: np.ndarray | None = None


NO_EXTRAS = Extras()
