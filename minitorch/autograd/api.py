"""``backward`` and ``grad``: what a user calls to start the walk in ``engine.py``."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from minitorch.autograd.engine import run_backward
from minitorch.autograd.graph import (
    Extra,
    TensorBase,
    accumulator_of,
    gradient_edge,
    wrap,
)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Accumulate the gradients of `tensors` into the leaves' ``grad``.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
    grad_tensors : Tensor or sequence, optional
        One gradient per tensor, of its shape; needed for tensors with more than one element.
    retain_graph : bool, optional
        Keep what the ops saved, for another backward; by default `create_graph`.
    create_graph : bool
        Record the gradient computation itself, for higher derivatives.
    inputs : Tensor or sequence, optional
        Accumulate into these only.

    Raises
    ------
    RuntimeError
        If a tensor does not require grad, a gradient is missing or misshaped, or the graph was
        freed by an earlier backward.
    """
    tensors = (tensors,) if isinstance(tensors, TensorBase) else tuple(tensors)
    targets = None
    if inputs is not None:
        inputs = (inputs,) if isinstance(inputs, TensorBase) else tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        targets = [_target(t) for t in inputs]
        for t in inputs:
            retain_grad(t)
    roots = _roots(tensors, grad_tensors, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    run_backward(roots, keep, create_graph, targets)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    is_grads_batched: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple:
    """Return the gradients of `outputs` with respect to `inputs`; no ``.grad`` is touched.

    Raises
    ------
    RuntimeError
        If an input is not part of the graph, unless `allow_unused` (then None stands for it, or
        zeros with `materialize_grads`).
    """
    if is_grads_batched:
        raise RuntimeError("is_grads_batched is not supported: there is no vmap")
    outputs = (outputs,) if isinstance(outputs, TensorBase) else tuple(outputs)
    inputs = (inputs,) if isinstance(inputs, TensorBase) else tuple(inputs)
    if allow_unused is None:
        allow_unused = materialize_grads
    elif not allow_unused and materialize_grads:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    targets = [_target(t) for t in inputs]
    roots = _roots(outputs, grad_outputs, create_graph)
    keep = create_graph if retain_graph is None else retain_graph
    captured = run_backward(roots, keep, create_graph, targets, capture=True)
    results: list[Any] = []
    for index, (t, target) in enumerate(zip(inputs, targets, strict=True)):
        found = captured.get(target)
        if found is None:
            if not allow_unused:
                raise RuntimeError(
                    f"The differentiated Tensor at index {index} appears to not have been used in "
                    "the graph. Set allow_unused=True if this is the desired behavior."
                )
            results.append(wrap(np.zeros_like(t._array)) if materialize_grads else None)
        elif create_graph:
            results.append(found)
        else:
            # The same array may belong to several inputs, or to the caller.
            results.append(wrap(found.copy()))
    return tuple(results)


def retain_grad(t: TensorBase) -> None:
    """Keep the gradient of the non-leaf `t` in ``t.grad``."""
    node, number = gradient_edge(t)
    if node is None:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if t._node is None:
        return
    if t._extra is None:
        t._extra = Extra()
    t._extra.retains_grad = True
    node.rare.retained[number] = weakref.ref(t)


def grad_accumulator(t: TensorBase) -> Any:
    """Return the ``AccumulateGrad`` node of a leaf that requires grad.

    The leaf refers to it weakly: keep the result for as long as its hooks shall live.
    """
    if t._node is not None or not t._requires_grad:
        raise RuntimeError("grad_accumulator: expected a leaf tensor that requires grad")
    return accumulator_of(t)


def _target(t: TensorBase) -> tuple:
    edge = gradient_edge(t)
    if edge[0] is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return edge


def _roots(tensors: Sequence, grads: Any, create_graph: bool) -> list:
    if grads is None:
        grads = (None,) * len(tensors)
    elif isinstance(grads, TensorBase):
        grads = (grads,)
    if len(grads) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    roots = []
    for index, (t, g) in enumerate(zip(tensors, grads, strict=True)):
        node, number = gradient_edge(t)
        if node is None:
            raise RuntimeError(
                f"element {index} of tensors does not require grad and does not have a grad_fn"
            )
        array = t._array
        if g is None:
            if array.size != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            g = wrap(np.ones_like(array))
        elif g._array.shape != array.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{index}] has a shape of "
                f"torch.Size({list(g._array.shape)}) and output[{index}] has a shape of "
                f"torch.Size({list(array.shape)})."
            )
        elif g._array.dtype != array.dtype:
            g = wrap(g._array.astype(array.dtype)) if not create_graph else g.to(t.dtype)
        roots.append((node, number, g if create_graph else g._array))
    return roots
