"""Recurrent networks at PyTorch's path.

======================  =========================================================================
``cells.py``            ``RNNCell``, ``LSTMCell``, ``GRUCell``: one step
``base.py``             what the layers share: parameters, checks, layers and directions
``layers.py``           ``RNN``, ``LSTM``, ``GRU``: whole sequences, padded or packed
``masks.py``            where random masks come from
``zoneout_cells.py``    ``ZoneoutRNNCell``, ``ZoneoutLSTMCell``, ``ZoneoutGRUCell``
``regularized.py``      layers with zoneout and with what its paper compares it with
``zoneout_layers.py``   ``ZoneoutRNN``, ``ZoneoutLSTM``, ``ZoneoutGRU``
======================  =========================================================================

The arithmetic is in ``minitorch/ops/recurrent*.py``; packed sequences in ``nn/utils/rnn.py``.
"""

from minitorch.nn.modules.rnn.base import RNNBase
from minitorch.nn.modules.rnn.cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from minitorch.nn.modules.rnn.layers import GRU, LSTM, RNN
from minitorch.nn.modules.rnn.zoneout_cells import (
    ZoneoutGRUCell,
    ZoneoutLSTMCell,
    ZoneoutRNNCell,
)
from minitorch.nn.modules.rnn.zoneout_layers import (
    REGULARIZERS,
    ZoneoutGRU,
    ZoneoutLSTM,
    ZoneoutRNN,
    regularizer_options,
)

__all__ = [
    "GRU",
    "LSTM",
    "REGULARIZERS",
    "RNN",
    "GRUCell",
    "LSTMCell",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
    "ZoneoutGRU",
    "ZoneoutGRUCell",
    "ZoneoutLSTM",
    "ZoneoutLSTMCell",
    "ZoneoutRNN",
    "ZoneoutRNNCell",
    "regularizer_options",
]
