"""Calls written down as text, evaluated by PyTorch (recorded) and by minitorch.

One line is one case: its text is its name. What PyTorch answers, and the gradient of ``x`` where
the result has one, is kept in ``tests/golden/expressions.json``, which
``tests/golden/record_expressions.py`` makes.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from answers import plain

from . import keywords, odd, order, writes

TABLES = {"keywords": keywords, "order": order, "writes": writes, "odd": odd}
NAMES = [
    (table, expression)
    for table, module in TABLES.items()
    for expression in dict.fromkeys(module.EXPRESSIONS)
]


def evaluate(table: str, expression: str, t: Any) -> Any:
    """Return the answer of the library `t`: a plain value, or the error."""
    importlib.import_module(f"{t.__name__}.nn.functional")
    x = t.arange(12.0).reshape(3, 4).requires_grad_()
    a, w = t.arange(6.0), t.ones(6, requires_grad=True)
    names = {"t": t, "F": t.nn.functional, "x": x, "a": a, "w": w}
    names |= {"nan": float("nan"), "inf": float("inf"), "grad_of": _grad_of(t)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(expression, names)
            if table == "writes":
                return plain(a)
            results = list(result) if isinstance(result, (list, tuple)) else [result]
            answer = [_readable(each) for each in results]
            wanted = [each for each in results if getattr(each, "requires_grad", False)]
            if wanted and table == "keywords" and any(each is not x for each in wanted):
                _backward(t, wanted)
            return answer if x.grad is None else [*answer, plain(x.grad)]
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error).split("\n")[0][:160]}


def _readable(value: Any) -> Any:
    return plain(list(value) if isinstance(value, (list, tuple)) else value)


def _backward(t: Any, outs: list) -> None:
    """Send a different gradient to each element of each result."""
    total = sum(
        (out * t.arange(1.0, out.numel() + 1).reshape(out.shape).to(out.dtype)).double().sum()
        for out in outs
    )
    total.backward()


def _grad_of(t: Any) -> Any:
    def grad_of(function: Any, values: list) -> Any:
        x = t.tensor(values, requires_grad=True)
        out = function(x)
        out.backward()
        return out.detach(), x.grad

    return grad_of
