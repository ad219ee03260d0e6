"""Optimizers: ``p <- p - something(gradient)``, in place.

``optimizer.py`` is the base (groups, state, hooks); ``sgd.py``, ``adam.py``, ``adagrad.py`` are
update rules; ``_blocks.py`` is the loop that applies them to memory; ``lr_scheduler`` changes
learning rates over time.

For finite sums: ``saga.py``, ``sag.py``, ``svrg.py``, ``prox_sgd.py`` over ``_finite_sum.py``, with
``prox`` (penalties and constraints), ``saga_theory.py`` (step sizes, bounds) and
``saga_constants.py`` (estimates of L and mu).
"""

from . import lr_scheduler, prox
from .adagrad import Adagrad, RMSprop
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .prox_sgd import ProxSGD
from .sag import SAG
from .saga import SAGA
from .saga_constants import estimate_smoothness, estimate_strong_convexity
from .saga_theory import saga_bound, saga_rate, saga_step_size
from .sgd import SGD
from .svrg import SVRG

__all__ = [
    "SAG",
    "SAGA",
    "SGD",
    "SVRG",
    "Adagrad",
    "Adam",
    "AdamW",
    "Optimizer",
    "ProxSGD",
    "RMSprop",
    "estimate_smoothness",
    "estimate_strong_convexity",
    "lr_scheduler",
    "prox",
    "saga_bound",
    "saga_rate",
    "saga_step_size",
]
