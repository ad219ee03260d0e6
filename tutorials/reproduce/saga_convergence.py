"""Draw how SAGA converges, against passes over the data and against time.

    python tutorials/reproduce/saga_convergence.py [--output docs/images/saga_convergence.png]

Logistic regression on scikit-learn's breast_cancer set, standardised, C = 1, l2. The optimum is
found first, to a gap of 1e-15. Four runs: the paper's algorithm with its two step sizes, the default of
`minitorch.linear` (importance sampling by curvature, a table refilled at every check), and
scikit-learn's `saga`, fitted anew with ever more epochs. Of five equal runs the fastest is drawn.
Needs scikit-learn and matplotlib.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import sklearn.linear_model
from sklearn.datasets import load_breast_cancer

from minitorch.linear import Check, Problem, convergence_plot, minimize
from minitorch.linear.certificate import certify
from minitorch.linear.losses import Logistic

REPEATS = 5
PAPER = {"sampling": "uniform", "restart": False}


def problem_of(C: float) -> tuple[Problem, np.ndarray]:
    """The objective, and scikit-learn's labels."""
    X, y = load_breast_cancer(return_X_y=True)
    X = np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0))
    return Problem(X, np.where(y == 1, 1.0, -1.0), Logistic(), l2=1 / (C * len(y))), y


def _seconds_to_fit(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def history_of_sklearn(problem: Problem, y: np.ndarray, C: float, most: int) -> list[Check]:
    """Fits of 1, 2, 3, 4, 5, 7, ... epochs, each timed as a whole."""
    history: list[Check] = []
    epochs = 1
    while epochs <= most:
        model = sklearn.linear_model.LogisticRegression(
            C=C, solver="saga", fit_intercept=False, tol=0.0, max_iter=epochs, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says that it did not converge: so it was told
            seconds = min(_seconds_to_fit(model, problem.X, y) for _ in range(REPEATS))
        at = problem.evaluate(model.coef_, np.zeros(1))
        found = certify(problem, model.coef_, at, 0.1)
        history.append(Check.of(found, epochs, epochs, seconds, 0.0))
        epochs = max(epochs + 1, int(epochs * 1.4))
    return history


def runs(C: float, most: int) -> tuple[float, dict[str, list[Check]]]:
    """The optimum and the histories by name."""
    problem, y = problem_of(C)
    optimum = minimize(problem, tol=1e-15).certificate.objective
    settings: dict[str, dict[str, Any]] = {
        "SAGA, step 1/(3L)": PAPER | {"step_size": "1/(3L)"},
        "SAGA, step 1/(2(μn+L))": PAPER | {"step_size": "1/(2(mu n+L))"},
        "minitorch.linear": {},
    }
    found = {}
    for name, options in settings.items():
        same = [
            minimize(problem, tol=1e-12, max_epochs=most, **options).history for _ in range(REPEATS)
        ]
        found[name] = min(same, key=lambda history: history[-1].seconds)
    found["scikit-learn saga"] = history_of_sklearn(problem, y, C, most)
    return optimum, found


def main() -> None:
    """Run, draw, save."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--output", type=Path, default=Path("docs/images/saga_convergence.png"))
    arguments.add_argument("--epochs", type=int, default=2000, help="at most")
    options = arguments.parse_args()
    optimum, histories = runs(1.0, options.epochs)
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for panel, against in zip(axes, ("passes", "seconds"), strict=True):
        convergence_plot(histories, against, optimum=optimum, axes=panel)
        panel.set(xscale="log", ylim=(1e-12, 1))
    axes[1].set(ylabel="")
    axes[1].get_legend().remove()
    figure.suptitle("breast_cancer, standardised, logistic regression, C = 1", fontsize=10)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.output, dpi=110)
    for name, history in histories.items():
        below = [check for check in history if check.gap <= 1e-6]
        told = (
            f"{below[0].passes} passes, {below[0].seconds * 1e3:.1f} ms" if below else "not reached"
        )
        print(f"{name:24s} certified gap 1e-6: {told}")


if __name__ == "__main__":
    main()
