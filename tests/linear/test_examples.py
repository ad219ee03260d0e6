"""The examples in the docstrings of linear models and of SAGA's family say what happens."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import minitorch.linear
import minitorch.optim.prox

MODULES = [
    *(f"minitorch.linear.{m.name}" for m in pkgutil.iter_modules(minitorch.linear.__path__)),
    *(
        f"minitorch.optim.prox.{m.name}"
        for m in pkgutil.iter_modules(minitorch.optim.prox.__path__)
    ),
    *(f"minitorch.optim.{name}" for name in ("saga", "saga_constants", "saga_theory", "svrg")),
    "minitorch.distributed.saga",
]
WITH_EXAMPLES = {
    "minitorch.linear.regression",
    "minitorch.linear.solver",
    "minitorch.optim.saga",
    "minitorch.optim.prox.norms",
    "minitorch.distributed.saga",
}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    with np.printoptions(legacy=False):
        result = doctest.testmod(importlib.import_module(name), raise_on_error=True)
    assert result.failed == 0
    assert result.attempted > 0 or name not in WITH_EXAMPLES
