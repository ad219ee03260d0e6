"""The problems of ``tests/golden/saga_optima.json``, and small random ones.

The golden minimisers were computed to a KKT residual of about 1e-16 by an independent program:
scikit-learn's bundled sets, standardised (digits: divided by 16), penalties as recorded.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from minitorch.linear import Problem
from minitorch.linear.losses import Logistic, Loss, SmoothedHinge, Softmax, Squared

GOLDEN = Path(__file__).parents[1] / "golden"
OPTIMA: dict[str, dict[str, Any]] = json.loads((GOLDEN / "saga_optima.json").read_text())["meta"]

#: loss, number of outputs
LOSSES: list[tuple[Loss, int]] = [
    (Squared(), 1),
    (Squared(), 3),
    (Logistic(), 1),
    (SmoothedHinge(0.5), 1),
    (Softmax(), 3),
]


def standardised(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray((values - values.mean(axis=0)) / values.std(axis=0))


@cache
def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A bundled set as the golden files use it."""
    import sklearn.datasets

    X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    if name == "digits":
        return X / 16, y
    return standardised(X), standardised(y[:, None]) if name == "diabetes" else y


def golden_problem(key: str) -> Problem:
    """The problem of one golden minimiser."""
    meta = OPTIMA[key]
    prefixes = {"bc": "breast_cancer", "digits": "digits", "diab": "diabetes"}
    kind = key.split("_")[0]
    X, y = load(prefixes.get(kind, kind))
    penalties = {"l1": meta["l1"], "l2": meta["l2"], "intercept": key.endswith("_int")}
    if kind == "diab":
        return Problem(X, y, Squared(), **penalties)
    if kind == "bc":
        return Problem(X, 2.0 * y - 1, Logistic(), **penalties)
    if key.startswith("digits_bin"):
        return Problem(X, np.where(y >= 5, 1.0, -1.0), Logistic(), **penalties)
    return Problem(X, y.astype(float), Softmax(), len(np.unique(y)), **penalties)


def random_problem(
    loss: Loss,
    outputs: int,
    *,
    n: int = 23,
    d: int = 7,
    seed: int = 0,
    dtype: Any = float,
    **more: Any,
) -> Problem:
    """A random problem with zeros among its features, so that CSR differs from dense."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)
    if loss.name == "squared":
        y = rng.standard_normal((n, outputs))
    elif loss.name == "softmax":
        y = (rng.permutation(n) % outputs).astype(float)
    else:
        y = np.where(rng.permutation(n) % 2 == 0, 1.0, -1.0)
    return Problem(X.astype(dtype), y.astype(dtype), loss, outputs, **more)
