"""The table of scenarios, which the modules of this folder fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SCENARIOS: dict[str, Callable] = {}


def scenario(function: Callable) -> Callable:
    """Enter a function of the module (``torch`` or ``minitorch``) into the table."""
    assert function.__name__ not in SCENARIOS, function.__name__
    SCENARIOS[function.__name__] = function
    return function


def leaf(t: Any, *values: float) -> Any:
    """Return a vector of floats that requires grad."""
    return t.tensor(list(values), requires_grad=True)
