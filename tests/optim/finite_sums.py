"""Small finite sums whose constants, gradients and minimisers are known, for tests of SAGA.

Gradients come from a closed form (``Linear.backward``) where a test takes many steps, and from
autograd (``Linear.autograd``) where it is about stepping after ``loss.backward()``.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import minitorch as torch

GOLDEN = Path(__file__).parents[1] / "golden"


class Linear:
    """(1/n) sum loss(x_i w, y_i): logistic with labels -1 and 1, or squared."""

    def __init__(self, x, y, loss, w0=None):
        self.x, self.y, self.kind = np.asarray(x), np.asarray(y), loss
        self.n, self.dim = self.x.shape
        self.w = torch.tensor(np.zeros(self.dim) if w0 is None else w0, dtype=torch.float64)
        self.w.requires_grad_(True)
        self.L = (0.25 if loss == "log" else 1.0) * (self.x**2).sum(1).max()

    def slopes(self, w, rows=slice(None)):
        """Derivatives of the losses by the scores."""
        z = self.x[rows] @ w
        return (
            -self.y[rows] / (1 + np.exp(self.y[rows] * z))
            if self.kind == "log"
            else z - self.y[rows]
        )

    def gradients(self, w):
        return self.slopes(w)[:, None] * self.x

    def value(self, w):
        z = self.x @ w
        if self.kind == "log":
            return float(np.logaddexp(0, -self.y * z).mean())
        return float(0.5 * ((z - self.y) ** 2).mean())

    def backward(self, i):
        """What ``loss.backward()`` of sample i leaves, by the closed form."""
        self.w.grad = torch.from_numpy(self.slopes(self.w.detach().numpy(), i) * self.x[i])

    def loss(self, i):
        z = torch.from_numpy(self.x[i]) @ self.w
        if self.kind == "log":
            return torch.nn.functional.softplus(-float(self.y[i]) * z)
        return 0.5 * (z - float(self.y[i])) ** 2

    def autograd(self, i):
        self.w.grad = None
        loss = self.loss(i)
        loss.backward()
        return loss


def traces():
    """60 recorded updates with given sample numbers; logistic and squared loss."""
    return np.load(GOLDEN / "saga_traces.npz")


def recorded(kind, w0=True):
    z = traces()
    return Linear(z["X"], z[f"y_{kind}"], kind, z["w0"] if w0 else None)


def random_problem(n=20, dim=4, kind="log", seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, dim))
    y = np.sign(x @ rng.standard_normal(dim) + 0.5 * rng.standard_normal(n))
    return Linear(x, y if kind == "log" else x @ np.ones(dim) + rng.standard_normal(n), kind)


def optimum(problem, l2=0.0, prox=None, steps=20_000):
    """The minimiser by proximal gradient steps on everything, to the last digits."""
    lr = 1.0 / (problem.L + l2)
    w = np.zeros(problem.dim)
    for _ in range(steps):
        before = w
        w = w - lr * (problem.gradients(w).mean(0) + l2 * w)
        w = w if prox is None else prox.prox(w, lr)
        if np.array_equal(before, w):
            break
    return w


def optima():
    return json.loads((GOLDEN / "saga_optima.json").read_text())["meta"]


def epochs():
    return json.loads((GOLDEN / "saga_epochs.json").read_text())


def bundled(name):
    """scikit-learn's sets as the recorded optima take them: standardised."""
    from sklearn import datasets

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    x = (x - x.mean(0)) / x.std(0)
    if name == "diabetes":
        return Linear(x, (y - y.mean()) / y.std(), "sq")
    return Linear(x, 2.0 * y - 1, "log")
