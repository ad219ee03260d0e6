"""``Function``: operations with a gradient that the user writes.

The context that ``forward`` and ``backward`` share *is* the graph node, as in PyTorch, so
``out.grad_fn.saved_tensors`` works and attributes set on it stay with the graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch.autograd.grad_mode import enable_grad, mode, no_grad
from minitorch.autograd.graph import (
    Node,
    TensorBase,
    bump_version,
    gradient_edge,
    record,
    wrap,
)
from minitorch.autograd.inplace import _move_history, check_inplace, detached, requires_grad
from minitorch.autograd.writes import clock


class FunctionCtx(Node):
    """What ``forward`` leaves for ``backward``; free attributes are kept too."""

    __slots__ = ("__dict__",)

    if TYPE_CHECKING:
        # What a user's `forward` leaves there.
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def __init__(self, function: Any, needs_input_grad: tuple) -> None:
        self._rule = _function_rule
        self._name = f"{function.__name__}Backward"
        self._next, self._next_nr, self._saved = [], None, ()
        self._own = self._rare = self.arity = self.ctx = None
        self._function = function
        self._needs = needs_input_grad
        self._to_save: tuple = ()
        self._dirty: tuple = ()
        self._non_differentiable: tuple = ()
        self._materialize = True
        self._inputs: list = []
        self._outputs: list = []

    @property
    def needs_input_grad(self) -> tuple:
        """One bool per argument of ``forward``: whether its gradient is wanted."""
        return self._needs

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (or None) for ``backward``, which reads them as ``saved_tensors``."""
        for each in tensors:
            if each is not None and not isinstance(each, TensorBase):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument is of type "
                    f"{type(each).__name__}"
                )
        self._to_save = tensors

    @property
    def saved_tensors(self) -> tuple:
        """The saved tensors; raises if one was overwritten, or if they were freed."""
        if self._saved is None:
            _ = self.saved  # raises, saying that the graph was freed
        return self._saved_tensors() if self._saved else ()

    def mark_dirty(self, *tensors: Any) -> None:
        """Say that ``forward`` wrote these inputs in place; it must return them."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say that these outputs have no gradient."""
        self._non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """With False, ``backward`` sees None in place of zeros for outputs without gradient."""
        self._materialize = value


class Function:
    """Base of user-defined operations.

    Write ``forward(ctx, *args)``, or ``forward(*args)`` and ``setup_context(ctx, inputs, output)``;
    and ``backward(ctx, *grads)`` that returns one gradient, or None, per argument. Call ``apply``.

    Examples
    --------
    >>> import minitorch
    >>> class Double(minitorch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> x = minitorch.ones(2, requires_grad=True)
    >>> Double.apply(x).sum().backward()
    >>> x.grad
    tensor([2., 2.])
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result; operations inside are not recorded."""
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        """Save what ``backward`` needs, when ``forward`` takes no `ctx`."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradients of the arguments."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run ``forward`` and record it as one node."""
        needs = tuple([isinstance(a, TensorBase) and requires_grad(a) for a in args])
        ctx = FunctionCtx(cls, needs)
        recorded = mode.grad_enabled and any(needs)
        edges = [gradient_edge(a) if isinstance(a, TensorBase) else (None, 0) for a in args]
        ctx._inputs = [
            (a._array.shape, a._array.dtype) if isinstance(a, TensorBase) else None for a in args
        ]
        with no_grad():
            if cls.setup_context is Function.setup_context:
                output = cls.forward(ctx, *args)
            else:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
        single = not isinstance(output, tuple)
        outputs = (output,) if single else output
        for dirty in ctx._dirty:
            with enable_grad() if recorded else no_grad():
                check_inplace(dirty, recorded)
            bump_version(dirty)
        if recorded:
            ctx._next = [edge for edge, _ in edges]
            numbers = [number for _, number in edges]
            ctx._next_nr = numbers if any(numbers) else None
            outputs = _attach(ctx, args, outputs)
        return outputs[0] if single else outputs


def _attach(ctx: FunctionCtx, args: tuple, outputs: tuple) -> tuple:
    """Make the node the outputs' history, and take over what is to be saved."""
    ctx.arity = len(outputs)
    inputs = {id(a) for a in args if isinstance(a, TensorBase)}
    dirty = {id(each) for each in ctx._dirty}
    constant = {id(each) for each in ctx._non_differentiable}
    results = []
    for number, out in enumerate(outputs):
        if isinstance(out, TensorBase):
            if id(out) in inputs and id(out) not in dirty:
                out = detached(out)  # an input handed through: a new tensor, the same memory
            if id(outputs[number]) not in constant and out._array.dtype.kind in "fV":
                if id(out) in dirty:
                    maker = wrap(out._array)
                    maker._node, maker._output_nr, maker._requires_grad = ctx, number, True
                    _move_history(out, maker)
                else:
                    out._node, out._output_nr, out._requires_grad = ctx, number, True
                if out._alias is not None and out._alias.base is not None:
                    out._alias = None if id(out) not in dirty else out._alias
        results.append(out)
    ctx._outputs = [
        (out._array.shape, out._array.dtype) if isinstance(out, TensorBase) else None
        for out in results
    ]
    places = {id(out): number for number, out in enumerate(outputs)}
    own: dict[int, int] = {}
    saved = []
    for index, each in enumerate(ctx._to_save):
        place = None if each is None else places.get(id(each))
        if place is not None and id(each) not in constant and id(each) not in inputs:
            # Without its history, or node and output would keep each other alive.
            own[index], each = place, each._array
        saved.append(each)
    ctx._own, ctx._saved, ctx._to_save = own or None, tuple(saved), ()
    ctx._dirty = ctx._non_differentiable = ()
    ctx._seq = next(clock)
    return tuple(results)


def _function_rule(ctx: FunctionCtx, grads: tuple) -> tuple:
    tensors = []
    for grad, meta in zip(grads, ctx._outputs, strict=True):
        if grad is None:
            if ctx._materialize and meta is not None:
                grad = wrap(np.zeros(*meta))
        elif not isinstance(grad, TensorBase):
            grad = wrap(grad)
        tensors.append(grad)
    result = ctx._function.backward(ctx, *tensors)
    result = result if isinstance(result, tuple) else (result,)
    return _checked(ctx, result)


def _checked(ctx: FunctionCtx, result: tuple) -> tuple:
    count = len(ctx._inputs)
    if len(result) > count and all(each is None for each in result[count:]):
        result = result[:count]
    if len(result) != count:
        raise RuntimeError(
            f"function {ctx._name} returned an incorrect number of gradients (expected {count}, "
            f"got {len(result)})"
        )
    grads: list[Any] = []
    for index, (grad, meta) in enumerate(zip(result, ctx._inputs, strict=True)):
        if grad is None:
            grads.append(None)
            continue
        if meta is None:
            raise RuntimeError(
                f"function {ctx._name} returned a gradient different than None at position "
                f"{index + 1}, but the corresponding forward input was not a Variable"
            )
        if not isinstance(grad, TensorBase):
            raise TypeError(f"{ctx._name}: expected Variable or None (got {type(grad).__name__})")
        grads.append(_fitted(ctx, index, grad, *meta) if ctx._next[index] is not None else None)
    return tuple(grads)


def _fitted(ctx: FunctionCtx, index: int, grad: Any, shape: tuple, dtype: np.dtype) -> Any:
    if grad._array.shape != shape:
        try:
            fits = np.broadcast_shapes(shape, grad._array.shape) == grad._array.shape
        except ValueError:
            fits = False
        if not fits:
            raise RuntimeError(
                f"Function {ctx._name} returned an invalid gradient at index {index} - got "
                f"{list(grad._array.shape)} but expected shape compatible with {list(shape)}"
            )
        extra = grad._array.ndim - len(shape)
        axes = [*range(extra)]
        axes += [extra + i for i, n in enumerate(shape) if n == 1 != grad._array.shape[extra + i]]
        grad = grad.sum(tuple(axes)).reshape(shape) if axes else grad.reshape(shape)
    if grad._array.dtype != dtype:
        from minitorch.dtypes import from_numpy_dtype

        grad = grad.to(from_numpy_dtype(dtype))
    return grad if mode.differentiable else grad._array


def once_differentiable(fn: Callable) -> Callable:
    """Decorate a ``backward`` that cannot itself be differentiated: trying to raises."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            result = fn(ctx, *grads)
        if not mode.grad_enabled:
            return result
        if not any(isinstance(g, TensorBase) and requires_grad(g) for g in grads):
            return result
        results = result if isinstance(result, tuple) else (result,)
        inputs = tuple([g for g in grads if isinstance(g, TensorBase)])
        barred = tuple(
            [
                record(each._array, _twice, inputs, (), None, "DelayedError")
                if isinstance(each, TensorBase)
                else each
                for each in results
            ]
        )
        return barred if isinstance(result, tuple) else barred[0]

    return wrapper


def _twice(node: Node, grad: Any) -> tuple:
    raise RuntimeError(
        "trying to differentiate twice a function that was marked with @once_differentiable"
    )
