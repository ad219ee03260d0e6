"""Calling a module: forward, and the hooks before, after and in the backward of it.

A call without hooks goes straight to ``forward``. Backward hooks need two markers in the graph: one
node that all tensor inputs pass through and one for the outputs. When a marker's turn comes in
backward, the gradients at that border are known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minitorch.autograd import RemovableHandle, TensorBase, is_grad_enabled, record_many, wrap

# Hooks that run for every module, in the order of registration.
_global_pre_hooks: dict[int, Callable] = {}
_global_hooks: dict[int, Callable] = {}
_global_backward_pre_hooks: dict[int, Callable] = {}
_global_backward_hooks: dict[int, Callable] = {}


class _Handle(RemovableHandle):
    """A removable hook with marks: the same id is kept in further tables while it exists."""

    def __init__(self, hooks: dict, fn: Callable, marks: tuple[dict, ...], prepend: bool) -> None:
        super().__init__(hooks, fn)
        self._marks = marks
        for mark in marks:
            mark[self.id] = True
        if prepend:
            others = {key: value for key, value in hooks.items() if key != self.id}
            hooks.clear()
            hooks[self.id] = fn
            hooks.update(others)

    def remove(self) -> None:
        super().remove()
        for mark in self._marks:
            mark.pop(self.id, None)


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, args)`` before every module's forward."""
    return RemovableHandle(_global_pre_hooks, hook)


def register_module_forward_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, args, output)`` after every module's forward."""
    return RemovableHandle(_global_hooks, hook)


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, grad_output)`` before every module's backward."""
    return RemovableHandle(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Call ``hook(module, grad_input, grad_output)`` when a module's input gradients are known."""
    return RemovableHandle(_global_backward_hooks, hook)


class HookMixin:
    """The part of :class:`Module` that is called and that runs hooks."""

    _forward_pre_hooks: dict[int, Callable]
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _forward_hooks: dict[int, Callable]
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _backward_pre_hooks: dict[int, Callable]
    _backward_hooks: dict[int, Callable]
    forward: Callable[..., Any]

    def _init_hooks(self) -> None:
        for name in (
            "_forward_pre_hooks",
            "_forward_pre_hooks_with_kwargs",
            "_forward_hooks",
            "_forward_hooks_with_kwargs",
            "_forward_hooks_always_called",
            "_backward_pre_hooks",
            "_backward_hooks",
        ):
            object.__setattr__(self, name, {})

    # -- registration ------------------------------------------------------------------------------

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` (or ``(module, args, kwargs)``) before forward.

        What it returns, if not None, replaces the arguments.
        """
        marks = (self._forward_pre_hooks_with_kwargs,) if with_kwargs else ()
        return _Handle(self._forward_pre_hooks, hook, marks, prepend)

    def register_forward_hook(
        self,
        hook: Callable,
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` (or ``(module, args, kwargs, output)``) afterwards.

        What it returns, if not None, replaces the output. With `always_call` it runs also when
        forward raised (with output None).
        """
        marks: tuple[dict, ...] = (self._forward_hooks_with_kwargs,) if with_kwargs else ()
        marks += (self._forward_hooks_always_called,) if always_call else ()
        return _Handle(self._forward_hooks, hook, marks, prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable, prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` before the gradients of the inputs are computed."""
        return _Handle(self._backward_pre_hooks, hook, (), prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` when the input gradients are known.

        What it returns, if not None, replaces ``grad_input``.
        """
        return _Handle(self._backward_hooks, hook, (), prepend)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """Use `register_full_backward_hook`; this older name of PyTorch's does the same here."""
        return self.register_full_backward_hook(hook)

    # -- calling -----------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        fields = self.__dict__
        try:
            plain = not (
                fields["_forward_pre_hooks"]
                or fields["_forward_hooks"]
                or fields["_backward_hooks"]
                or fields["_backward_pre_hooks"]
                or _global_pre_hooks
                or _global_hooks
                or _global_backward_hooks
                or _global_backward_pre_hooks
            )
        except KeyError:
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute '_forward_pre_hooks': "
                "Module.__init__() was not called"
            ) from None
        if plain:
            return self.forward(*args, **kwargs)
        called: set[int] = set()
        try:
            return self._call_with_hooks(args, kwargs, called)
        except Exception:
            self._call_remaining(args, kwargs, called)
            raise

    def _call_with_hooks(self, args: tuple, kwargs: dict, called: set[int]) -> Any:
        for key, hook in (*_global_pre_hooks.items(), *self._forward_pre_hooks.items()):
            if key in self._forward_pre_hooks_with_kwargs:
                result = hook(self, args, kwargs)
                if result is not None:
                    if not (isinstance(result, tuple) and len(result) == 2):
                        raise RuntimeError(
                            "forward pre-hook must return None or a tuple of (new_args, "
                            f"new_kwargs), but got {result}."
                        )
                    args, kwargs = result
            else:
                result = hook(self, args)
                if result is not None:
                    args = result if isinstance(result, tuple) else (result,)
        border = _Border.of(self)
        if border is not None:
            args = border.enter(args)
        output = self.forward(*args, **kwargs)
        for key, hook in (*_global_hooks.items(), *self._forward_hooks.items()):
            called.add(key)
            if key in self._forward_hooks_with_kwargs:
                result = hook(self, args, kwargs, output)
            else:
                result = hook(self, args, output)
            if result is not None:
                output = result
        return output if border is None else border.leave(output)

    def _call_remaining(self, args: tuple, kwargs: dict, called: set[int]) -> None:
        """After a failure, run the hooks that asked to be called in any case, once each."""
        for key in list(self._forward_hooks_always_called):
            if key not in called and key in self._forward_hooks:
                hook = self._forward_hooks[key]
                if key in self._forward_hooks_with_kwargs:
                    hook(self, args, kwargs, None)
                else:
                    hook(self, args, None)


class _Border:
    """The backward hooks of one call of one module, and the gradients at its two borders."""

    def __init__(self, module: Any, pre_hooks: list[Callable], hooks: list[Callable]) -> None:
        self.module = module
        self.pre_hooks = pre_hooks
        self.hooks = hooks
        self.grad_output: tuple | None = None
        self.places: list[int] = []
        self.count = 0

    @classmethod
    def of(cls, module: Any) -> _Border | None:
        pre_hooks = [*_global_backward_pre_hooks.values(), *module._backward_pre_hooks.values()]
        hooks = [*_global_backward_hooks.values(), *module._backward_hooks.values()]
        if not (pre_hooks or hooks) or not is_grad_enabled():
            return None
        return cls(module, pre_hooks, hooks)

    def enter(self, args: tuple) -> tuple:
        self.count = len(args)
        new_args, self.places = self._mark(args, self._inputs_known)
        return new_args

    def leave(self, output: Any) -> Any:
        single = not isinstance(output, (tuple, list))
        outputs = (output,) if single else tuple(output)
        marked, places = self._mark(outputs, self._outputs_known, len(outputs))
        if not places:
            return output
        return marked[0] if single else type(output)(marked)

    def _mark(
        self, values: tuple, known: Callable, count: int | None = None
    ) -> tuple[tuple, list[int]]:
        places = [i for i, v in enumerate(values) if isinstance(v, TensorBase) and v.requires_grad]
        if not places:
            return values, places
        tensors = tuple(values[i] for i in places)
        # Copies, so that an in-place op on one side of the border cannot reach the other.
        arrays = [np.array(t._array, copy=True) for t in tensors]

        def backward_hook_function_backward(node: Any, grads: tuple) -> tuple:
            differentiable = any(isinstance(g, TensorBase) for g in grads)
            full = [None] * (len(values) if count is None else count)
            for place, grad in zip(places, grads, strict=True):
                full[place] = grad if differentiable or grad is None else wrap(grad)
            full = known(tuple(full))
            back = [full[place] for place in places]
            return tuple(
                back
                if differentiable
                else [g._array if isinstance(g, TensorBase) else g for g in back]
            )

        marked = list(values)
        name = "BackwardHookFunctionBackward"
        outs = record_many(arrays, backward_hook_function_backward, tensors, (), None, name)
        for place, out in zip(places, outs, strict=True):
            marked[place] = out
        return tuple(marked), places

    def _outputs_known(self, grads: tuple) -> tuple:
        for hook in self.pre_hooks:
            result = hook(self.module, grads)
            if result is not None:
                grads = result if isinstance(result, tuple) else (result,)
        self.grad_output = grads
        if not self.places:
            # No input requires grad: nothing will arrive at the other border.
            self._run(tuple([None] * self.count))
        return grads

    def _inputs_known(self, grads: tuple) -> tuple:
        return self._run(grads)

    def _run(self, grads: tuple) -> tuple:
        for hook in self.hooks:
            result = hook(self.module, grads, self.grad_output)
            if result is not None:
                result = result if isinstance(result, tuple) else (result,)
                if len(result) != len(grads):
                    raise RuntimeError(
                        f"Backward hook returned an invalid number of grad_input, got "
                        f"{len(result)}, but expected {len(grads)}"
                    )
                grads = result
        return grads
