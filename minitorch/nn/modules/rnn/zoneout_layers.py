"""``ZoneoutRNN``, ``ZoneoutLSTM`` and ``ZoneoutGRU``: zoneout over whole sequences.

The machinery, and the other regularisers, are in ``regularized.py``; one step at a time, zoneout
is in ``zoneout_cells.py``. :func:`regularizer_options` is for programs with a ``--regularizer``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minitorch.nn.modules.rnn.layers import refuse_projection, rnn_mode
from minitorch.nn.modules.rnn.masks import checked_rate
from minitorch.nn.modules.rnn.regularized import OPTIONS, RegularizedRNN
from minitorch.nn.modules.rnn.zoneout_cells import checked_rates
from minitorch.nn.utils.rnn import PackedSequence
from minitorch.ops._typing import Tensor

__all__ = ["REGULARIZERS", "ZoneoutGRU", "ZoneoutLSTM", "ZoneoutRNN", "regularizer_options"]

REGULARIZERS = ("none", "dropout", "recurrent-dropout", "zoneout")


def regularizer_options(
    name: str, rate: float = 0.0, hidden_rate: float | None = None
) -> dict[str, Any]:
    """Options of :class:`ZoneoutLSTM` for one of :data:`REGULARIZERS`.

    Parameters
    ----------
    name : {"none", "dropout", "recurrent-dropout", "zoneout"}
    rate : float
        Of the dropout, or of the cell's zoneout.
    hidden_rate : float, optional
        Of the hidden state's zoneout; by default `rate`.

    Examples
    --------
    >>> from minitorch import nn
    >>> nn.ZoneoutLSTM(8, 16, **nn.regularizer_options("zoneout", 0.5, 0.05))
    ZoneoutLSTM(8, 16, zoneout_cell=0.5, zoneout_hidden=0.05)
    """
    if name == "none":
        return {}
    if name == "dropout":
        return {"output_dropout": rate}
    if name == "recurrent-dropout":
        return {"recurrent_dropout": rate}
    if name == "zoneout":
        return {
            "zoneout_cell": rate,
            "zoneout_hidden": rate if hidden_rate is None else hidden_rate,
        }
    raise ValueError(f"unknown regularizer {name!r}; there are: {', '.join(REGULARIZERS)}")


def _taken(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Take the options of the regularised networks out of `kwargs`."""
    return {name: kwargs.pop(name) for name in OPTIONS if name in kwargs}


class ZoneoutRNN(RegularizedRNN):
    """:class:`RNN` with zoneout: its arguments, then, by name, those of :class:`ZoneoutGRU`."""

    def __init__(self, *args: Any, zoneout: float = 0.0, **kwargs: Any) -> None:
        rate = checked_rate("zoneout", zoneout)
        nonlinearity, mode, args = rnn_mode(args, kwargs)
        options = _taken(kwargs)
        super().__init__(mode, *args, **kwargs)
        self.nonlinearity = nonlinearity
        self._init_options({"zoneout": rate}, **options)

    def forward(
        self,
        input: Tensor | PackedSequence,
        hx: Tensor | None = None,
        masks: Sequence[Any] | None = None,
    ) -> tuple[Tensor | PackedSequence, Tensor]:
        """Run over a sequence; `masks` as in :meth:`ZoneoutLSTM.forward`, without pairs."""
        return self._masked_run(input, hx, masks)


class ZoneoutGRU(RegularizedRNN):
    """:class:`GRU` with zoneout.

    Parameters
    ----------
    *args
        As in :class:`GRU`.
    zoneout : float
        The probability that a unit keeps its old value at a step.
    static_mask, stochastic_depth, layer_norm : bool
    recurrent_dropout, variational_dropout, output_dropout : float
        See the table at the head of ``regularized.py``; by name.
    mask_seed : int, optional
        The seed of all masks; by default the initial weights decide.

    Raises
    ------
    ValueError
        If a rate is not a probability.
    """

    def __init__(self, *args: Any, zoneout: float = 0.0, **kwargs: Any) -> None:
        rate = checked_rate("zoneout", zoneout)
        refuse_projection(kwargs)
        options = _taken(kwargs)
        super().__init__("GRU", *args, **kwargs)
        self._init_options({"zoneout": rate}, **options)

    def forward(
        self,
        input: Tensor | PackedSequence,
        hx: Tensor | None = None,
        masks: Sequence[Any] | None = None,
    ) -> tuple[Tensor | PackedSequence, Tensor]:
        """Run over a sequence; `masks` as in :meth:`ZoneoutLSTM.forward`, without pairs."""
        return self._masked_run(input, hx, masks)


class ZoneoutLSTM(RegularizedRNN):
    """:class:`LSTM` with zoneout, and with what the paper compares it with.

    Parameters
    ----------
    *args
        As in :class:`LSTM`.
    zoneout_cell, zoneout_hidden : float
        The probabilities that a unit of the cell and of the hidden state keeps its old value at a
        step. The paper's rates for characters: 0.5 and 0.05.
    shared_mask : bool
        One mask for both; the rates must be equal then.
    static_mask, stochastic_depth, layer_norm : bool
    recurrent_dropout, variational_dropout, output_dropout : float
        See the table at the head of ``regularized.py``; by name.
    mask_seed : int, optional
        The seed of all masks; by default the initial weights decide.

    Raises
    ------
    ValueError
        If a rate is not a probability, or rates differ under a shared mask.

    Notes
    -----
    In evaluation masks are replaced by their mean. Parameters are named as in :class:`LSTM`, whose
    state loads.

    Examples
    --------
    >>> import minitorch
    >>> lstm = minitorch.nn.ZoneoutLSTM(3, 4, zoneout_cell=0.5, zoneout_hidden=0.05)
    >>> output, state = lstm(minitorch.zeros(5, 2, 3))
    >>> output, state = lstm(minitorch.zeros(5, 2, 3), tuple(s.detach() for s in state))
    """

    def __init__(
        self,
        *args: Any,
        zoneout_cell: float = 0.0,
        zoneout_hidden: float = 0.0,
        shared_mask: bool = False,
        **kwargs: Any,
    ) -> None:
        cell, hidden = checked_rates(zoneout_cell, zoneout_hidden, shared_mask)
        options = _taken(kwargs)
        super().__init__("LSTM", *args, **kwargs)
        self.shared_mask = shared_mask
        self._init_options({"zoneout_cell": cell, "zoneout_hidden": hidden}, **options)

    def forward(
        self,
        input: Tensor | PackedSequence,
        hx: tuple[Tensor, Tensor] | None = None,
        masks: Sequence[Any] | None = None,
    ) -> tuple[Tensor | PackedSequence, tuple[Tensor, Tensor]]:
        """Run over a sequence.

        Parameters
        ----------
        input, hx
            As in :meth:`LSTM.forward`.
        masks : list, optional
            One entry per layer and direction, in the order of the parameters: ``(d_cell,
            d_hidden)`` of (T, B, H) each, one array for both, or None to leave it to the rates.
            1 where the old value is kept.
        """
        return self._masked_run(input, hx, masks)
