"""Linear models fitted by SAGA, used as scikit-learn's are, and certified.

The rooms: `losses.py` and `problem.py` say what is minimised, `plain.py` is the algorithm in NumPy
and ``csrc/kernels/saga*`` the same in C++, `sampling.py` which sample and how long a step,
`certificate.py` how far from the optimum, `solver.py` the run, `base.py`, `regression.py` and
`classification.py` the estimators, `plotting.py` the picture.
"""

from ._sklearn import ConvergenceWarning, DataConversionWarning, NotFittedError
from .classification import LinearSVM, LogisticRegression
from .plotting import convergence_plot
from .problem import Problem
from .regression import ElasticNet, Lasso, LinearRegression, Ridge
from .solver import Check, Result, minimize

__all__ = [
    "Check",
    "ConvergenceWarning",
    "DataConversionWarning",
    "ElasticNet",
    "Lasso",
    "LinearRegression",
    "LinearSVM",
    "LogisticRegression",
    "NotFittedError",
    "Problem",
    "Result",
    "Ridge",
    "convergence_plot",
    "minimize",
]
