"""A value in two parts, relevant and irrelevant, and how a bias is shared between them.

``rel`` and ``irr`` have one more leading axis than the value in the model: all masks that are asked
about travel together. Their sum is the value itself, for every mask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from minitorch.autograd import wrap
from minitorch.ops._typing import Tensor

__all__ = ["Parts", "Run", "as_parts", "lift", "share_bias", "two_way"]


class Parts(NamedTuple):
    """The two parts of a value.

    Attributes
    ----------
    rel, irr : Tensor
        ``(masks, *shape)``.
    ids : bool
        The value is integers (token ids) that cannot be added up: `rel` and `irr` are 1 and 0
        where a position is relevant or not, and a look-up turns them into parts.
    """

    rel: Tensor
    irr: Tensor
    ids: bool = False

    def map(self, linear: Callable[[Any], Any]) -> Parts:
        """Apply a linear function to both parts."""
        return Parts(linear(self.rel), linear(self.irr), self.ids)

    def reshape(self, shape: tuple[int, ...]) -> Parts:
        """Give the value another shape; the axis of masks stays in front."""
        return self.map(lambda part: part.reshape(part.shape[0], *shape))

    @property
    def total(self) -> Tensor:
        """The value itself, once per mask."""
        return self.rel + self.irr


@dataclass
class Run:
    """The settings of one propagation, and what rules tell each other on the way.

    Attributes
    ----------
    bias : {"exact", "golden"}
        Whether conventions of the published code replace exactness.
    lstm_bias : {"words", "irrelevant", "all_but_last"}
        Where the product of two biases inside recurrent cells goes.
    after_lstm : bool
        An LSTM has been passed: with ``bias="golden"``, later layers leave their bias out.
    """

    bias: str = "exact"
    lstm_bias: str = "words"
    after_lstm: bool = False

    @property
    def golden(self) -> bool:
        """Whether the conventions of the published code hold."""
        return self.bias == "golden"


def lift(part: Tensor, ndim: int) -> Tensor:
    """Give a part ``(masks, *shape)`` as many axes as a value of `ndim` axes has, for broadcasting.

    The new axes go behind the axis of masks.
    """
    missing = ndim + 1 - part.dim()
    if missing <= 0:
        return part
    return part.reshape(part.shape[0], *(1,) * missing, *part.shape[1:])


def as_parts(value: Any, masks: int) -> Parts:
    """Return parts; a constant (a Tensor) is wholly irrelevant."""
    if isinstance(value, Parts):
        return value
    shape = (masks, *value.shape)
    array = np.broadcast_to(value._array, shape)
    return Parts(wrap(np.broadcast_to(array.dtype.type(0), shape)), wrap(array))


def share_bias(rel: Tensor, irr: Tensor, bias: Tensor, run: Run, half: bool = False) -> Parts:
    """Add a bias to two parts in proportion to their sizes.

    Each element's bias is shared by ``|rel| : |irr|`` (the ACD paper's rule). Where both are zero
    it goes to the irrelevant part; with `half` and the golden conventions, half to each.
    """
    size = rel.abs()
    total = size + irr.abs()
    if half and run.golden:
        share = (size + 1e-20) / (total + 2e-20)
    else:
        # The smallest positive number turns 0/0 into 0 and changes nothing else.
        share = size / (total + float(np.finfo(total._array.dtype).tiny))
    part = share * bias
    return Parts(rel + part, irr + (bias - part))


def two_way(f: Callable[[Tensor], Tensor], x: Parts, run: Run) -> Parts:
    """Split ``f(rel + irr)`` by the Shapley value of a game with two players.

    What remains, ``f(0)``, is a bias and shared as such.
    """
    whole, alone, others = f(x.total), f(x.rel), f(x.irr)
    at_zero = f(wrap(np.zeros(1, x.rel._array.dtype)))
    rel = ((alone - at_zero) + (whole - others)) * 0.5
    irr = ((others - at_zero) + (whole - alone)) * 0.5
    if not at_zero.item():
        return Parts(rel, irr)
    return share_bias(rel, irr, at_zero, run)
