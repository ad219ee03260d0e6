"""Zoneout, one step at a time: cells whose units sometimes keep their old value.

``h' = d * h + (1 - d) * candidate`` with ``d`` drawn per sample, unit and call, 1 with probability
`zoneout`. Kept units are selected, not multiplied: they keep their bits, and their gradient goes
through unchanged. In evaluation ``d`` is replaced by its mean. A step is the plain cell's node and
one selection per state.

Source: Krueger et al., "Zoneout: regularizing RNNs by randomly preserving hidden activations",
2016; section 3.2, whose ``d`` is 1 where the old value is kept. (Section 3.1, and the flags of the
authors' scripts, mean the opposite.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minitorch.nn.modules.rnn.cells import GRUCell, LSTMCell, RNNCell
from minitorch.nn.modules.rnn.masks import (
    CELL,
    HIDDEN,
    MaskedModule,
    checked_mask,
    checked_pair,
    checked_rate,
)
from minitorch.ops._typing import Tensor
from minitorch.ops.recurrent_common import Expect, Keep
from minitorch.ops.recurrent_plain import zoneout as mix

__all__ = ["ZoneoutGRUCell", "ZoneoutLSTMCell", "ZoneoutRNNCell"]


def _keeper(mask: np.ndarray, like: Tensor) -> Keep:
    wide = np.float64 if like._array.dtype == np.float64 else np.float32
    return Keep(mask, np.dtype(wide))


class _ZoneoutCell(MaskedModule):
    """What the three cells share."""

    def _keep(
        self, state: Tensor, rate: float, given: Any, call: int | None, purpose: int
    ) -> Keep | Expect | None:
        """How to mix `state` with its new value: by the given mask, a drawn one, or its mean."""
        shape = tuple(state.shape)
        if given is not None:
            return _keeper(checked_mask(given, shape), state)
        if rate == 0.0:
            return None
        if call is None:
            return Expect(rate)
        return _keeper(self._draw(call, 0, purpose, shape, rate), state)

    def _call(self, *rates: float) -> int | None:
        """The number of this call if it draws masks, else None."""
        return self._calls.take() if self.training and any(rates) else None


class _OneRate(_ZoneoutCell):
    """Cells with one state."""

    zoneout: float

    def _mixed(self, old: Tensor, new: Tensor, mask: Any) -> Tensor:
        call = None if mask is not None else self._call(self.zoneout)
        return mix(old, new, self._keep(old, self.zoneout, mask, call, HIDDEN))


class ZoneoutRNNCell(_OneRate, RNNCell):
    """:class:`RNNCell` with zoneout.

    Parameters
    ----------
    input_size, hidden_size, bias, nonlinearity
        As in :class:`RNNCell`.
    zoneout : float
        The probability that a unit keeps its old value.
    mask_seed : int, optional
        The seed of the masks; by default the initial weights decide.

    Raises
    ------
    ValueError
        If `zoneout` is not a probability.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        zoneout: float = 0.0,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
        *,
        mask_seed: int | None = None,
    ) -> None:
        rate = checked_rate("zoneout", zoneout)
        super().__init__(input_size, hidden_size, bias, nonlinearity, device, dtype)
        self.zoneout = rate
        self._init_masks(mask_seed)

    def forward(self, input: Tensor, hx: Tensor | None = None, mask: Any = None) -> Tensor:
        """One step; a given `mask` (B, H), 1 where the old value is kept, is used as it is."""
        mode = self._mode()
        state = self._initial(input, hx, lstm=False)
        return self._mixed(state[0], self._advance(mode, input, state)[0], mask)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, zoneout={self.zoneout}"


class ZoneoutGRUCell(_OneRate, GRUCell):
    """:class:`GRUCell` with zoneout; parameters as in :class:`ZoneoutRNNCell`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        zoneout: float = 0.0,
        device: Any = None,
        dtype: Any = None,
        *,
        mask_seed: int | None = None,
    ) -> None:
        rate = checked_rate("zoneout", zoneout)
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.zoneout = rate
        self._init_masks(mask_seed)

    def forward(self, input: Tensor, hx: Tensor | None = None, mask: Any = None) -> Tensor:
        """One step; a given `mask` (B, H), 1 where the old value is kept, is used as it is."""
        state = self._initial(input, hx, lstm=False)
        return self._mixed(state[0], self._advance("GRU", input, state)[0], mask)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, zoneout={self.zoneout}"


class ZoneoutLSTMCell(_ZoneoutCell, LSTMCell):
    """:class:`LSTMCell` with zoneout of the cell and of the hidden state.

    The hidden state's new value is ``o * tanh`` of the cell *before* zoneout, as in the authors'
    code.

    Parameters
    ----------
    input_size, hidden_size, bias
        As in :class:`LSTMCell`.
    zoneout_cell, zoneout_hidden : float
        The probabilities that a unit of the cell and of the hidden state keeps its old value.
    shared_mask : bool
        One mask for both (the authors' image experiments); the rates must be equal then.
    mask_seed : int, optional
        The seed of the masks; by default the initial weights decide.

    Raises
    ------
    ValueError
        If a rate is not a probability, or rates differ under a shared mask.

    Examples
    --------
    >>> import minitorch
    >>> cell = minitorch.nn.ZoneoutLSTMCell(3, 4, zoneout_cell=0.5, zoneout_hidden=0.05)
    >>> h, c = cell(minitorch.zeros(2, 3))
    >>> h, c = cell(minitorch.zeros(2, 3), (h, c))
    >>> h.shape, c.shape
    (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        zoneout_cell: float = 0.0,
        zoneout_hidden: float = 0.0,
        device: Any = None,
        dtype: Any = None,
        *,
        shared_mask: bool = False,
        mask_seed: int | None = None,
    ) -> None:
        rates = checked_rates(zoneout_cell, zoneout_hidden, shared_mask)
        super().__init__(input_size, hidden_size, bias, device, dtype)
        self.zoneout_cell, self.zoneout_hidden = rates
        self.shared_mask = shared_mask
        self._init_masks(mask_seed)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None, masks: Any = None
    ) -> tuple[Tensor, Tensor]:
        """One step; given `masks` ``(d_cell, d_hidden)`` of (B, H) are used as they are.

        A mask is 1 where the old value is kept; None in place of one leaves it to the rate.
        """
        given_cell, given_hidden = (None, None) if masks is None else checked_pair(masks)
        old_h, old_c = state = self._initial(input, hx, lstm=True)
        new_h, new_c = self._advance("LSTM", input, state)
        drawn_rates = (
            self.zoneout_cell if given_cell is None else 0.0,
            self.zoneout_hidden if given_hidden is None else 0.0,
        )
        call = self._call(*drawn_rates)
        purpose = HIDDEN if self.shared_mask else CELL
        keep_c = self._keep(old_c, self.zoneout_cell, given_cell, call, purpose)
        keep_h = self._keep(old_h, self.zoneout_hidden, given_hidden, call, HIDDEN)
        return mix(old_h, new_h, keep_h), mix(old_c, new_c, keep_c)

    def extra_repr(self) -> str:
        text = (
            f"{super().extra_repr()}, zoneout_cell={self.zoneout_cell}, "
            f"zoneout_hidden={self.zoneout_hidden}"
        )
        return text + ", shared_mask=True" if self.shared_mask else text


def checked_rates(cell: float, hidden: float, shared: bool) -> tuple[float, float]:
    """Both rates of an LSTM; raise unless they are probabilities, and equal under a shared mask."""
    cell = checked_rate("zoneout_cell", cell)
    hidden = checked_rate("zoneout_hidden", hidden)
    if shared and cell != hidden:
        raise ValueError(
            "one mask for cell and hidden state needs one rate, but got "
            f"zoneout_cell={cell} and zoneout_hidden={hidden}"
        )
    return cell, hidden
