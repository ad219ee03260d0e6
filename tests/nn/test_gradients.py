"""Gradients of first and second order against finite differences, and unusual inputs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from nn import cases

import minitorch
import minitorch.nn

# Piecewise linear, or with kinks where finite differences mean nothing: checked elsewhere.
# Scaling by frequency is not a gradient at all.
_KINKED = ("x.round()", "F.one_hot", "scale_grad_by_freq")
_DIFFERENTIABLE = [
    case
    for case in cases.FUNCTIONS
    if any(spec[0] in "fp" for spec in case.inputs.values())
    and not any(word in case.call for word in _KINKED)
]
_CELLS = [
    case
    for case in cases.MODULES
    if case.module.startswith(("nn.LSTM", "nn.GRU", "nn.RNNCell", "nn.RNN(", "nn.Multihead"))
]


def _function(case: cases.Case) -> tuple[Any, list[Any]]:
    """Return ``f(*leaves)`` that gives the case's floating results, and its leaves."""
    rng = cases.generator(case.name)
    names: dict[str, Any] = {
        "torch": minitorch,
        "nn": minitorch.nn,
        "F": minitorch.nn.functional,
    }
    leaves = {}
    if case.module is not None:
        names["m"] = eval(case.module, names).double()
    for name, spec in case.inputs.items():
        array, wanted = cases.make_input(spec, rng)
        names[name] = minitorch.from_numpy(array)
        if wanted:
            leaves[name] = names[name].requires_grad_()

    def call(*tensors: Any) -> Any:
        out = eval(case.call.split(";")[0], {**names, **dict(zip(leaves, tensors, strict=True))})
        floats = [t for t in cases._flatten(out) if t.is_floating_point()]
        return floats[0] if len(floats) == 1 else tuple(floats)

    return call, list(leaves.values())


def _check_along_directions(call: Any, leaves: list[Any], eps: float = 1e-6) -> None:
    """Compare first and second derivatives with central differences along random directions.

    With ``s(x, w) = sum(f(x) * w)``: ``ds(x; d)`` against ``sum(grad(s) * d)``; then, for fixed v,
    the same for ``r(x, w) = sum(grad(s) * v)``, which differentiates the gradient itself.
    """
    rng = np.random.default_rng(0)

    def random_like(tensors: list[Any]) -> list[np.ndarray]:
        return [rng.standard_normal(tuple(t.shape)) for t in tensors]

    outputs = cases._flatten(call(*leaves))
    weights = [minitorch.from_numpy(w).requires_grad_() for w in random_like(outputs)]
    variables = [*leaves, *weights]
    start = [t.detach().numpy().copy() for t in variables]
    projection = [minitorch.from_numpy(v) for v in random_like(variables)]

    def first() -> Any:
        out = cases._flatten(call(*leaves))
        return sum((y * w).sum() for y, w in zip(out, weights, strict=True))

    def second() -> Any:
        grads = minitorch.autograd.grad(first(), variables, create_graph=True, allow_unused=True)
        return sum((g * v).sum() for g, v in zip(grads, projection, strict=True) if g is not None)

    def at(step: float, direction: list[np.ndarray], function: Any) -> float:
        for t, origin, d in zip(variables, start, direction, strict=True):
            t.detach().numpy()[...] = origin + step * d
        return float(function())

    for function in (first, second):
        grads = minitorch.autograd.grad(function(), variables, allow_unused=True)
        for _ in range(2):
            direction = random_like(variables)
            numerical = (at(eps, direction, function) - at(-eps, direction, function)) / (2 * eps)
            at(0.0, direction, function)
            analytical = sum(
                float((g.detach().numpy() * d).sum())
                for g, d in zip(grads, direction, strict=True)
                if g is not None
            )
            np.testing.assert_allclose(
                analytical, numerical, rtol=1e-5, atol=1e-5, err_msg=function.__name__
            )


@pytest.mark.parametrize("case", _DIFFERENTIABLE, ids=lambda case: case.name)
def test_first_and_second_order(case: cases.Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _check_along_directions(*_function(case))


@pytest.mark.parametrize("case", _CELLS, ids=lambda case: case.name)
def test_cells_and_attention(case: cases.Case) -> None:
    minitorch.manual_seed(0)
    call, leaves = _function(case)
    _check_along_directions(call, leaves)


def test_parameters_of_cells() -> None:
    """Second derivatives with respect to the weights, which the inputs' checks leave out."""
    for cell in (
        minitorch.nn.LSTMCell(3, 2),
        minitorch.nn.GRUCell(3, 2),
        minitorch.nn.RNNCell(3, 2),
    ):
        cell.double()
        weights = [p.detach().requires_grad_() for p in cell.parameters()]
        x = minitorch.from_numpy(np.linspace(-1, 1, 12).reshape(4, 3))

        def call(*parameters: Any, cell: Any = cell, x: Any = x) -> Any:
            for name, value in zip(list(cell._parameters), parameters, strict=True):
                cell._parameters[name] = value
            return cell(x)

        _check_along_directions(call, weights)


def _strided(array: np.ndarray) -> np.ndarray:
    """The same values, with every axis reversed in memory and a gap in each."""
    wide = np.zeros(tuple(2 * n for n in array.shape[::-1]), array.dtype)
    view = wide[tuple(slice(None, None, 2) for _ in array.shape)].transpose()
    view[...] = array
    return view


@pytest.mark.parametrize("case", _DIFFERENTIABLE, ids=lambda case: case.name)
def test_memory_layout_does_not_matter(case: cases.Case) -> None:
    call, leaves = _function(case)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = cases._flatten(call(*leaves))
        strided = [minitorch.from_numpy(_strided(t.detach().numpy())) for t in leaves]
        for t in strided:
            t.requires_grad_()
        again = cases._flatten(call(*strided))
    for a, b in zip(plain, again, strict=True):
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-12, atol=1e-14)
    sum((a * a).sum() for a in plain).backward()
    sum((b * b).sum() for b in again).backward()
    for a, b in zip(leaves, strided, strict=True):
        np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(minitorch.float32, 2e-4), (minitorch.float16, 0.08), (minitorch.bfloat16, 0.4)],
    ids=["float32", "float16", "bfloat16"],
)
@pytest.mark.parametrize("case", _DIFFERENTIABLE, ids=lambda case: case.name)
def test_lower_precision(case: cases.Case, dtype: Any, tolerance: float) -> None:
    if "float64" in case.call:
        pytest.skip("names its own type")
    call, leaves = _function(case)
    rng = cases.generator(case.name)
    names = {}
    for name, spec in case.inputs.items():
        array, wanted = cases.make_input(spec, rng)
        tensor = minitorch.from_numpy(array)
        tensor = tensor.to(dtype) if tensor.is_floating_point() else tensor
        names[name] = tensor.requires_grad_() if wanted else tensor
    scope = {"torch": minitorch, "nn": minitorch.nn, "F": minitorch.nn.functional, **names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = cases._flatten(call(*leaves))
        found = cases._flatten(eval(case.call, scope))
    found = [t for t in found if t.is_floating_point()]
    for a, b in zip(exact, found, strict=True):
        assert b.dtype == dtype
        scale = 1 + float(a.detach().abs().max())
        np.testing.assert_allclose(
            b.detach().double().numpy(), a.detach().numpy(), atol=tolerance * scale
        )
    sum(b.float().sum() for b in found).backward()
    sum(a.sum() for a in exact).backward()
    wanted = [t for t in names.values() if t.requires_grad]
    for a, b in zip(leaves, wanted, strict=True):
        assert b.grad.dtype == dtype
        scale = 1 + float(a.grad.abs().max())
        np.testing.assert_allclose(
            b.grad.double().numpy(), a.grad.numpy(), atol=2 * tolerance * scale
        )
