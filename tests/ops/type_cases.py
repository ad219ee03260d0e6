"""Which type a result has: every pair of types, as tensors, 0-d tensors and numbers."""

from __future__ import annotations

from typing import Any

TYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]
BINARY = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "eq": lambda a, b: a == b,
}
UNARY = [
    "exp",
    "sqrt",
    "sin",
    "sigmoid",
    "tanh",
    "abs",
    "floor",
    "round",
    "sign",
    "neg",
    "sum",
    "mean",
    "prod",
    "cumsum",
    "var",
    "max",
    "argmax",
    "relu",
    "log1p",
    "logsumexp",
    "reciprocal",
    "square",
    "isnan",
    "amax",
    "any",
    "norm",
    "sort",
    "rsqrt",
]
NUMBERS = {"True": True, "2": 2, "0.5": 0.5}


def _name(run: Any, *args: Any) -> str:
    try:
        result = run(*args)
        result = result[0] if isinstance(result, tuple) else result
        return str(result.dtype).removeprefix("torch.")
    except (RuntimeError, NotImplementedError, TypeError) as error:
        return f"error {type(error).__name__}"


def _make(t: Any, name: str, zero_dim: bool) -> Any:
    return t.tensor(1 if zero_dim else [1, 1], dtype=getattr(t, name))


def type_answers(t: Any) -> dict[str, list[str]]:
    """Return, for each kind of operation, the result types in a fixed order."""
    answers = {}
    one = {(a, zero_dim): _make(t, a, zero_dim) for a in TYPES for zero_dim in (False, True)}
    for name, run in BINARY.items():
        for left, right in ((False, False), (False, True), (True, False), (True, True)):
            kinds = f"{name} {'0-d' if left else '1-d'} {'0-d' if right else '1-d'}"
            for a in TYPES:
                answers[f"{kinds} {a}"] = [_name(run, one[a, left], one[b, right]) for b in TYPES]
        for text, number in NUMBERS.items():
            answers[f"{name} number {text}"] = [_name(run, one[a, False], number) for a in TYPES]
            answers[f"number {text} {name}"] = [_name(run, number, one[a, True]) for a in TYPES]
    for name in UNARY:
        extra = (0,) if name in ("cumsum", "logsumexp") else ()
        answers[name] = [_name(getattr(t, name), one[a, False], *extra) for a in TYPES]
    pairs = [(a, b) for a in TYPES for b in TYPES]
    mask = t.tensor([True, False])
    answers["where"] = [_name(t.where, mask, one[a, False], one[b, True]) for a, b in pairs]
    answers["clamp 0.5"] = [_name(t.clamp, one[a, False], 0.5) for a in TYPES]
    answers["cat"] = [
        _name(lambda *both: t.cat(both), one[a, False], one[b, False]) for a, b in pairs
    ]
    answers["in place add"] = [
        _name(lambda a, b: a.add_(b), _make(t, a, False), one[b, False]) for a, b in pairs
    ]
    answers["factories"] = [
        str(x.dtype).removeprefix("torch.")
        for x in (
            t.tensor(1),
            t.tensor(1.0),
            t.tensor(True),
            t.tensor([1, 2.0]),
            t.tensor([]),
            t.arange(3),
            t.arange(3.0),
            t.arange(0, 1, 0.5),
            t.zeros(2),
            t.full((2,), 1),
            t.full((2,), 1.0),
            t.full((2,), True),
            t.linspace(0, 1, 3),
            t.eye(2),
            t.ones_like(t.tensor([1])),
            t.nonzero(t.tensor([1])),
        )
    ]
    return answers
