"""Optimizers: ``p <- p - something(gradient)``, in place.

``optimizer.py`` is the base (groups, state, hooks); ``sgd.py``, ``adam.py``, ``adagrad.py`` are
update rules; ``_blocks.py`` is the loop that applies them to memory; ``lr_scheduler`` changes
learning rates over time.
"""

from . import lr_scheduler
from .adagrad import Adagrad, RMSprop
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler"]
