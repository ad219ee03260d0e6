"""Running a piece of code under PyTorch and under minitorch, and comparing what came out.

An answer is what JSON holds: numbers, strings, tensors as shape, type and values; an exception is
one too. Recorders in ``tests/golden`` write PyTorch's answers, tests compare ours with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any


def answer(function: Callable, t: Any) -> Any:
    """Run a scenario; an exception is an answer too."""
    try:
        return plain(function(t))
    except Exception as error:
        return {"error": type(error).__name__, "message": stem(error)}


def stem(error: Exception) -> str:
    """Return the part of a message that both libraries share."""
    text = str(error).split("\n")[0]
    for end in (
        " Use detach().clone()",
        "  If you were attempting",
        " You can set the tensor's grad_dtype",
        " Hint: ",
        ", which is output",
    ):
        text = text.partition(end)[0]
    return text[:200].partition(" is at version")[0]


def plain(value: Any) -> Any:
    """Turn tensors and tuples into what JSON holds."""
    if hasattr(value, "requires_grad"):
        numbers = value.detach().double().reshape(-1).tolist()
        return {"shape": list(value.shape), "dtype": str(value.dtype), "values": numbers}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return round(value, 6)
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def message(function: Callable, *args: Any) -> str:
    try:
        function(*args)
    except Exception as error:
        return f"{type(error).__name__}: {stem(error)}"
    return "no error"


def same(mine, theirs, path=""):
    """Compare answers; numbers to float32 precision."""
    if isinstance(theirs, float) and isinstance(mine, (int, float)):
        close = math.isclose(mine, theirs, rel_tol=2e-5, abs_tol=1e-6)
        assert close or (math.isnan(mine) and math.isnan(theirs)) or mine == theirs, (
            f"{path}: {mine} is not {theirs}"
        )
    elif isinstance(theirs, list):
        assert isinstance(mine, list), f"{path}: {mine} is not {theirs}"
        assert len(mine) == len(theirs), f"{path}: {mine} is not {theirs}"
        for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            same(a, b, f"{path}[{i}]")
    elif isinstance(theirs, dict):
        assert isinstance(mine, dict), f"{path}: {mine} is not {theirs}"
        assert mine.keys() == theirs.keys(), f"{path}: {mine} is not {theirs}"
        for key in theirs:
            same(mine[key], theirs[key], f"{path}.{key}")
    else:
        assert mine == theirs, f"{path}: {mine!r} is not {theirs!r}"
