"""Exercises of lesson 1: a gradient rule, unbroadcasting, the order of backward."""

from __future__ import annotations

import heapq

import numpy as np

from . import answered, exercise


@exercise("The rule of tanh", hint="the gradient of the result, times the derivative 1 − t²")
def tanh_rule(answer):
    x = np.linspace(-2, 2, 7)
    grad = np.linspace(1, 2, 7)
    step = 1e-6
    expected = grad * (np.tanh(x + step) - np.tanh(x - step)) / (2 * step)  # finite differences
    got = answered(answer(grad, np.tanh(x)))
    assert np.shape(got) == x.shape, f"the gradient has shape {np.shape(got)}, the input {x.shape}"
    assert np.allclose(got, expected, atol=1e-8), f"got {got}, finite differences say {expected}"


@tanh_rule.solve
def _(grad, result):
    return grad * (1 - result**2)


@tanh_rule.mistake
def _(grad, result):
    return 1 - result**2  # forgets the chain


@tanh_rule.mistake
def _(grad, result):
    return grad * (1 - np.tanh(result) ** 2)  # takes the result for the input


@exercise(
    "Unbroadcast", hint="sum over added leading axes, then over axes that had length 1 (keepdims)"
)
def unbroadcast(answer):
    cases = [
        ((4, 3), (3,)),
        ((4, 3), (4, 1)),
        ((2, 4, 3), (4, 1)),
        ((4, 3), ()),
        ((4, 3), (4, 3)),
        ((5, 0), (1, 0)),
    ]
    for big, small in cases:
        grad = np.arange(1.0, 1.0 + np.prod(big)).reshape(big)
        got = answered(answer(grad, small))
        assert np.shape(got) == small, f"from {big} to {small}: got shape {np.shape(got)}"
        # <grad, broadcast(v)> = <unbroadcast(grad), v> for every v: what "transpose" means
        v = np.cos(np.arange(np.prod(small, dtype=int))).reshape(small)
        left, right = np.sum(grad * np.broadcast_to(v, big)), np.sum(np.asarray(got) * v)
        assert np.isclose(left, right), f"from {big} to {small}: the sums {left} and {right} differ"


@unbroadcast.solve
def _(grad, shape):
    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))
    stretched = tuple(i for i, n in enumerate(shape) if n == 1)
    return grad.sum(axis=stretched, keepdims=True) if stretched else grad


@unbroadcast.mistake
def _(grad, shape):
    return np.resize(grad, shape)  # drops instead of summing


@unbroadcast.mistake
def _(grad, shape):
    return grad.sum(axis=tuple(range(grad.ndim - len(shape))))  # forgets axes of length 1


@exercise("Newest first", hint="push -sequence_number, pop the newest, push its inputs once")
def newest_first(answer):
    diamond = {"loss": (4, ["c", "b"]), "c": (3, ["b", "a"]), "b": (2, ["a"]), "a": (1, [])}
    chain = {"z": (9, ["y"]), "y": (5, ["x"]), "x": (0, []), "other": (7, ["x"])}
    for nodes, start, expected in [
        (diamond, "loss", ["loss", "c", "b", "a"]),
        (diamond, "b", ["b", "a"]),
        (chain, "z", ["z", "y", "x"]),
    ]:
        got = answered(answer(nodes, start))
        assert list(got) == expected, f"from {start!r}: got {list(got)}, expected {expected}"


@newest_first.solve
def _(nodes, start):
    heap, seen, order = [(-nodes[start][0], start)], {start}, []
    while heap:
        _, name = heapq.heappop(heap)
        order.append(name)
        for parent in nodes[name][1]:
            if parent not in seen:
                seen.add(parent)
                heapq.heappush(heap, (-nodes[parent][0], parent))
    return order


@newest_first.mistake
def _(nodes, start):
    return sorted(nodes, key=lambda name: -nodes[name][0])  # also what cannot be reached


@newest_first.mistake
def _(nodes, start):
    order = []  # depth first: b may come before c
    stack = [start]
    while stack:
        name = stack.pop()
        if name not in order:
            order.append(name)
            stack.extend(nodes[name][1])
    return order
