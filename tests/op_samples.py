"""What a sample of an op is: how to call it, on which shapes, with which values.

The tables of samples are in ``generators.py`` and ``generators_more.py``.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

S = (3, 4)
PAIRS = [
    (S, S),
    (S, (4,)),
    ((3, 1), (1, 4)),
    ((), S),
    ((), ()),
    ((0, 4), (4,)),
    ((2, 3, 4), (3, 1)),
]
SHAPES = [(S,), ((),), ((0, 3),), ((2, 3, 2),)]
FLAT = [(S,), ((2, 3, 2),)]


@dataclass(frozen=True)
class OpSample:
    """One op: how to call it, on which shapes, with values from which interval."""

    name: str
    run: Callable[..., Any]
    shapes: list
    low: float = -2.0
    high: float = 2.0
    second_order: bool = True
    tags: frozenset = field(default_factory=frozenset)

    def arrays(self, case: int, dtype: Any = np.float64) -> list[np.ndarray]:
        """Return the values of one case: distinct, none within 0.01 of another or of zero."""
        rng = np.random.default_rng(zlib.crc32(f"{self.name}/{case}".encode()))
        shapes = self.shapes[case]
        total = sum(int(np.prod(shape)) for shape in shapes)
        grid = np.linspace(self.low, self.high, max(total, 2) + 1)[:total]
        grid = grid + (self.high - self.low) / (2 * max(total, 2) + 2)
        grid = np.where(np.abs(grid) < 0.01, 0.02, grid)
        values = rng.permutation(grid)
        arrays, start = [], 0
        for shape in shapes:
            size = int(np.prod(shape))
            arrays.append(values[start : start + size].reshape(shape).astype(dtype))
            start += size
        return arrays


def unary(name: str, low: float = -2.0, high: float = 2.0, **options: Any) -> OpSample:
    return OpSample(name, lambda t, x: getattr(t, name)(x), SHAPES, low, high, **options)


def index(t: Any, values: Any) -> Any:
    return t.tensor(values)
