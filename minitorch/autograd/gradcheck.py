"""``gradcheck``: gradients against finite differences; ``gradgradcheck``: the second order."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from minitorch.autograd.api import grad as compute_grad
from minitorch.autograd.graph import TensorBase, wrap


class GradcheckError(RuntimeError):
    """An analytical gradient differs from the numerical one."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
) -> bool:
    """Check the gradients of `func` at `inputs` against central differences.

    Parameters
    ----------
    func
        Takes the inputs, returns a tensor or several.
    inputs : Tensor or sequence
        Those that require grad are checked; they should be float64.
    eps
        Step of the differences.
    atol, rtol
        ``|analytical - numerical| <= atol + rtol * |numerical|`` must hold everywhere.
    nondet_tol
        How far two backward runs may differ.

    Returns
    -------
    bool
        True; on a mismatch False, or GradcheckError if `raise_exception`.
    """
    try:
        _check(func, _as_tuple(inputs), eps, atol, rtol, nondet_tol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _as_tuple(value: Any) -> tuple:
    return (value,) if isinstance(value, TensorBase) else tuple(value)


def _checked_inputs(inputs: tuple) -> list:
    chosen = [x for x in inputs if isinstance(x, TensorBase) and x.requires_grad]
    if not chosen:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them "
            "have requires_grad=True."
        )
    for number, x in enumerate(chosen):
        if x._array.dtype != np.float64:
            warnings.warn(
                f"Input #{number} requires gradient and is not a double precision floating point "
                "or complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                stacklevel=4,
            )
        if x._array.size > 1 and 0 in x._array.strides and x._array.size:
            raise RuntimeError(
                f"The {number}th input has a dimension with stride 0. gradcheck only supports "
                "inputs that are non-overlapping to be able to compute the numerical gradients "
                "correctly. You should call .contiguous on the input before passing it to "
                "gradcheck."
            )
    return chosen


def _outputs(func: Callable, inputs: tuple) -> list:
    return [y for y in _as_tuple(func(*inputs)) if isinstance(y, TensorBase)]


def _check(
    func: Callable, inputs: tuple, eps: float, atol: float, rtol: float, nondet_tol: float
) -> None:
    chosen = _checked_inputs(inputs)
    outputs = [y for y in _outputs(func, inputs) if y._array.dtype.kind in "fV"]
    for number, y in enumerate(outputs):
        analytical = _analytical(y, chosen)
        again = _analytical(y, chosen)
        numerical = _numerical(func, inputs, chosen, number, eps)
        for index, (a, b, n) in enumerate(zip(analytical, again, numerical, strict=True)):
            if a.size and np.abs(a - b).max() > nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and "
                    "grad_output multiple times gives different values, although analytical "
                    f"gradient matches numerical gradient.The tolerance for nondeterminism was "
                    f"{nondet_tol}."
                )
            if not np.allclose(a, n, rtol, atol, equal_nan=False):
                raise GradcheckError(
                    f"Jacobian mismatch for output {number} with respect to input {index},\n"
                    f"numerical:{n}\nanalytical:{a}\n"
                )


def _analytical(y: Any, chosen: Sequence[Any]) -> list[ndarray]:
    """Return d y / d x for each x as an (x elements, y elements) matrix, row by row of y."""
    jacobians = [np.zeros((x._array.size, y._array.size)) for x in chosen]
    if not y.requires_grad:
        return jacobians
    for column in range(y._array.size):
        seed = np.zeros(y._array.shape, y._array.dtype)
        seed.reshape(-1)[column] = 1
        grads = compute_grad(y, chosen, wrap(seed), retain_graph=True, allow_unused=True)
        for jacobian, g, x in zip(jacobians, grads, chosen, strict=True):
            if g is None:
                continue
            if g._array.shape != x._array.shape or g._array.dtype != x._array.dtype:
                raise GradcheckError("Gradient has dtype or shape mismatch with its input")
            jacobian[:, column] = g._array.reshape(-1)
    return jacobians


def _numerical(
    func: Callable, inputs: tuple, chosen: Sequence[Any], number: int, eps: float
) -> list[ndarray]:
    def value() -> ndarray:
        floats = [y for y in _outputs(func, inputs) if y._array.dtype.kind in "fV"]
        return floats[number]._array.astype(np.float64).reshape(-1).copy()

    jacobians = []
    for x in chosen:
        rows = []
        # Elements are moved one at a time, in memory, past the version counter.
        for index in np.ndindex(x._array.shape):
            original = x._array[index].copy()
            x._array[index] = original + eps
            above = value()
            x._array[index] = original - eps
            below = value()
            x._array[index] = original
            rows.append((above - below) / (2 * eps))
        size = value().size if not rows else rows[0].size
        jacobians.append(np.array(rows).reshape(x._array.size, size))
    return jacobians


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
) -> bool:
    """Check the gradients of the gradients of `func`, also with respect to `grad_outputs`.

    Random gradients (fixed seed) are used where `grad_outputs` is not given.
    """
    inputs = _as_tuple(inputs)
    outputs = [y for y in _outputs(func, inputs) if y._array.dtype.kind in "fV"]
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        grad_outputs = []
        for y in outputs:
            values = rng.standard_normal(y._array.shape)
            if gen_non_contig_grad_outputs and values.ndim:
                values = np.repeat(values[..., None], 2, -1)[..., 0]
            grad_outputs.append(wrap(values.astype(y._array.dtype)).requires_grad_())
    grad_outputs = _as_tuple(grad_outputs)
    count = len(grad_outputs)

    def gradients(*args: Any) -> tuple:
        xs, seeds = args[:-count], args[-count:]
        wanted = [x for x in xs if isinstance(x, TensorBase) and x.requires_grad]
        ys = [y for y in _outputs(func, xs) if y._array.dtype.kind in "fV"]
        pairs = [(y, seed) for y, seed in zip(ys, seeds, strict=True) if y.requires_grad]
        grads = compute_grad(
            [y for y, _ in pairs],
            wanted,
            [seed for _, seed in pairs],
            create_graph=True,
            allow_unused=True,
        )
        return tuple([g for g in grads if g is not None])

    return gradcheck(
        gradients,
        (*inputs, *grad_outputs),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
    )
