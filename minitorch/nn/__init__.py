"""Building blocks of models: layers, losses, containers; PyTorch's ``torch.nn``.

=====================  ===========================================================================
``modules/``           what is written in capitals: ``Linear``, ``Conv2d``, ``Sequential``, ...
``functional.py``      the functions behind them, ``F.relu``, ``F.cross_entropy``, ...
``parameter.py``       ``Parameter`` and ``Buffer``
``init.py``            initial values
``utils/``             clipping gradients, parameters as vectors
``parallel/``          ``DistributedDataParallel``
=====================  ===========================================================================
"""

from minitorch.nn import functional, init, modules, parallel, parameter, utils
from minitorch.nn.modules import *  # noqa: F403 - every layer; the list is there
from minitorch.nn.parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "functional", "init", "modules", "parallel", "parameter", "utils"]
__all__ += modules.__all__
