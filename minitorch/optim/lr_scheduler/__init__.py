"""Learning rate schedules, with PyTorch's names, state and order of calls.

``base.py`` is the clock; ``factors.py`` holds what multiplies the rate, ``cycles.py`` warm restarts
and the one-cycle policy, ``plateau.py`` the reduction on a metric, ``composed.py`` sequences and
chains.
"""

from .base import LRScheduler
from .composed import ChainedScheduler, SequentialLR
from .cycles import CosineAnnealingWarmRestarts, OneCycleLR
from .factors import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .plateau import ReduceLROnPlateau

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
