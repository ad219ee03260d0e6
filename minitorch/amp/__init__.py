"""Automatic mixed precision: matrix products in 16 bits, what is delicate in 32.

``autocast_mode.py`` is the switch and the casts that ops ask for; ``grad_scaler.py`` scales the
loss so that float16 gradients do not vanish.
"""

from .autocast_mode import (
    autocast,
    cast_inputs,
    get_autocast_dtype,
    is_autocast_available,
    is_autocast_enabled,
)
from .grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "autocast",
    "cast_inputs",
    "get_autocast_dtype",
    "is_autocast_available",
    "is_autocast_enabled",
]
