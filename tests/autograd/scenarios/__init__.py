"""Small programs about views, in-place writes, hooks, modes and errors, run under both libraries.

Each takes the module (``torch`` or ``minitorch``) and returns numbers, strings or tensors. What
PyTorch answered, errors included, is recorded in ``tests/golden/autograd.json`` by
``tests/golden/record_autograd.py``. One file per topic.
"""

from . import (
    data_types,
    functions,
    gradients,
    graph,
    hooks,
    in_place,
    leaves,
    modes,
    overwritten,
    recompute,
    views,
)
from .registry import SCENARIOS

__all__ = ["SCENARIOS"]
