"""The part of Tensor that deals with gradients: ``requires_grad``, ``grad``, hooks, ``detach``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minitorch import autograd
from minitorch.autograd import RemovableHandle, TensorBase, wrap
from minitorch.autograd.graph import Extra
from minitorch.autograd.inplace import forget_history
from minitorch.autograd.inplace import requires_grad as synced_requires_grad
from minitorch.dtypes import type_word


class Gradients:
    """Mixed into Tensor."""

    __slots__ = ()

    @property
    def requires_grad(self: Any) -> bool:
        """Whether operations on this tensor are recorded."""
        return synced_requires_grad(self)

    @requires_grad.setter
    def requires_grad(self: Any, value: bool) -> None:
        if not value and synced_requires_grad(self) and self._node is not None:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
        if value and not self.is_floating_point():
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        self._requires_grad = bool(value)

    def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
        """Set ``requires_grad`` in place."""
        self.requires_grad = requires_grad
        return self

    @property
    def grad_fn(self: Any) -> Any:
        """The node that made this tensor; None for a leaf."""
        if self._alias is not None:
            self._alias.sync(self)
        return self._node

    @property
    def is_leaf(self: Any) -> bool:
        """Whether no recorded operation made this tensor."""
        return self.grad_fn is None

    @property
    def output_nr(self: Any) -> int:
        """Which output of its node this tensor is."""
        return self._output_nr

    @property
    def grad(self: Any) -> Any:
        """The accumulated gradient, or None."""
        return self._grad

    @grad.setter
    def grad(self: Any, value: Any) -> None:
        if value is not None:
            self._check_grad(value)
        self._grad = value

    @grad.deleter
    def grad(self: Any) -> None:
        self._grad = None

    def _check_grad(self: Any, value: Any) -> None:
        if not isinstance(value, TensorBase):
            raise TypeError(
                "assigned grad expected to be a Tensor or None but got grad of type "
                f"{type(value).__name__}"
            )
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        held = value._coo if value.is_sparse else value._array
        if held.dtype != self._array.dtype:
            got, expected = type_word(held.dtype), type_word(self._array.dtype)
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{got.lower()}' to a tensor with "
                f"grad_dtype '{expected}'. The gradient must match the tensor's grad_dtype "
                "(defaults to the tensor's dtype)."
            )
        if held.shape != self._array.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(held.shape)}' to a tensor "
                f"of size '{list(self._array.shape)}'. Please ensure that the gradient and the "
                "tensor are the same size"
            )

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Accumulate this tensor's gradients into the leaves (see ``autograd.backward``)."""
        autograd.backward(
            (self,), None if gradient is None else (gradient,), retain_graph, create_graph, inputs
        )

    def retain_grad(self: Any) -> None:
        """Keep this non-leaf's gradient in ``grad`` too."""
        autograd.retain_grad(self)

    @property
    def retains_grad(self: Any) -> bool:
        """Whether :meth:`retain_grad` was called on this non-leaf."""
        return self._node is not None and self._extra is not None and self._extra.retains_grad

    def register_hook(self: Any, hook: Callable[[Any], Any]) -> RemovableHandle:
        """Call ``hook(grad)`` when the gradient is computed; it may return another one."""
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._node is not None:
            return self._node.rare.add_tensor_hook(self._output_nr, hook)
        extra = self._extra = self._extra or Extra()
        if extra.hooks is None:
            extra.hooks = {}
        return RemovableHandle(extra.hooks, hook)

    def register_post_accumulate_grad_hook(
        self: Any, hook: Callable[[Any], None]
    ) -> RemovableHandle:
        """Call ``hook(tensor)`` each time after this leaf's ``grad`` was accumulated."""
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._node is not None:
            raise RuntimeError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors"
            )
        extra = self._extra = self._extra or Extra()
        if extra.post_accumulate_hooks is None:
            extra.post_accumulate_hooks = {}
        return RemovableHandle(extra.post_accumulate_hooks, hook)

    def detach(self: Any) -> Any:
        """Return a tensor that shares this one's memory and writes, but not its history."""
        return autograd.detached(self)

    def detach_(self: Any) -> Any:
        """Forget the history in place."""
        if self._base is not None and self._alias.origin != "no_grad":
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using "
                "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
                "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
                "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
                "function in torch/optim/optimizer.py as a solution."
            )
        forget_history(self)
        return self

    @property
    def data(self: Any) -> Any:
        """The values alone: shares memory, neither history nor writes (a write is untracked)."""
        return wrap(self._array)

    @data.setter
    def data(self: Any, value: Any) -> None:
        if not isinstance(value, TensorBase):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        self._array = value._array

    @property
    def _version(self: Any) -> int:
        return autograd.version_of(self)

    @property
    def _base(self: Any) -> Any:
        return None if self._alias is None else self._alias.base

    def _is_view(self: Any) -> bool:
        return self._base is not None

    is_inference = lambda self: False
