"""Optimizer steps inside backward: a bucket's parameters move while later buckets are on the wire.

    bucket 0 averaged -> step its parameters   |  bucket 1, 2, ... still in flight
    bucket 1 averaged -> step its parameters   |  bucket 2, ... still in flight

The result is the step after backward, parameter by parameter the same; what is hidden is its time.
Two ways, both PyTorch's:

* ``_hook_then_optimizer(hook, state)`` makes a communication hook that steps after any other hook;
* ``_apply_optimizer_in_backward(SGD, params, {"lr": 0.1})`` gives each parameter an optimizer of
  its own. Without DistributedDataParallel it steps when the gradient has been accumulated; with it,
  when the gradient has been averaged. The gradients are then dropped, which saves their memory.

No optimizer that looks at all gradients at once (clipping by the global norm) can work this way.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from minitorch.autograd.engine import queue_callback
from minitorch.distributed._ddp.builtin_hooks import allreduce_hook
from minitorch.distributed._ddp.step_check import stepping_on_averages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from minitorch.autograd.graph import RemovableHandle
    from minitorch.distributed._ddp.hooks import GradBucket
    from minitorch.distributed.ddp import DistributedDataParallel
    from minitorch.distributed.futures import Future
    from minitorch.nn import Module
    from minitorch.optim import Optimizer
    from minitorch.tensor import Tensor

    Hook = Callable[[Any, GradBucket], Future]


class _FunctionalOptimizer:
    """An optimizer that is handed one parameter and its gradient at a time.

    Parameters
    ----------
    optimizer_class
        Any optimizer whose steps are per parameter.
    *args, **kwargs
        Its arguments after ``params``.
    """

    def __init__(self, optimizer_class: type[Optimizer], *args: Any, **kwargs: Any) -> None:
        self._make = lambda parameter: optimizer_class([parameter], *args, **kwargs)
        self._optimizers: dict[Tensor, Optimizer] = {}

    def step_param(self, param: Tensor, grad: Tensor | None) -> None:
        """Step ``param`` along ``grad``; its ``.grad`` stays as it is."""
        optimizer = self._optimizers.get(param)
        if optimizer is None:
            optimizer = self._optimizers[param] = self._make(param)
        before = param._grad
        param._grad = grad
        try:
            optimizer.step()
        finally:
            param._grad = before


def as_functional_optim(
    optim_cls: type[Optimizer], *args: Any, **kwargs: Any
) -> _FunctionalOptimizer:
    """Return an optimizer with ``step_param(param, grad)``, for :class:`_OptimizerHookState`.

    Parameters
    ----------
    optim_cls
        An optimizer class, such as ``minitorch.optim.SGD``.
    *args, **kwargs
        Its arguments after ``params``.
    """
    return _FunctionalOptimizer(optim_cls, *args, **kwargs)


class _OptimizerHookState:
    """Which optimizer :func:`_hook_then_optimizer` runs, and on what.

    Parameters
    ----------
    functional_optim
        Has a method ``step_param(param, grad)``.
    params
        Which parameters to step; None: all of the wrapper's.

    Raises
    ------
    ValueError
        If it has no such method.
    """

    __slots__ = ["functional_optimizer", "params_to_optimize"]

    def __init__(self, functional_optim: Any, params: Iterable[Tensor] | None = None) -> None:
        if not hasattr(functional_optim, "step_param"):
            raise ValueError(f"Class {type(functional_optim)} must implement method step_param.")
        self.functional_optimizer = functional_optim
        self.params_to_optimize = None if params is None else set(params)


def _hook_then_optimizer(hook: Hook, optimizer_state: _OptimizerHookState) -> Hook:
    """Make a hook that steps a bucket's parameters once ``hook`` has averaged their gradients.

    Examples
    --------
    >>> state = _OptimizerHookState(as_functional_optim(SGD, lr=0.1))  # doctest: +SKIP
    >>> ddp.register_comm_hook(None, _hook_then_optimizer(allreduce_hook, state))  # doctest: +SKIP
    """
    wanted = optimizer_state.params_to_optimize

    def hook_then_optimizer_wrapper(hook_state: Any, bucket: GradBucket) -> Future:
        def optimizer_step(future: Future) -> Tensor:
            value = future.value()
            bucket.set_buffer(value[0] if isinstance(value, (list, tuple)) else value)
            with stepping_on_averages():
                for parameter, gradient in zip(
                    bucket.parameters(), bucket.gradients(), strict=True
                ):
                    if wanted is None or parameter in wanted:
                        optimizer_state.functional_optimizer.step_param(parameter, gradient)
            return bucket.buffer()

        return hook(hook_state, bucket).then(optimizer_step)

    return hook_then_optimizer_wrapper


# -- one optimizer per parameter -------------------------------------------------------------------

# By id of the parameter: what steps it as long as no DistributedDataParallel does.
_own_hooks: dict[int, RemovableHandle] = {}


def _apply_optimizer_in_backward(
    optimizer_class: type[Optimizer],
    params: Iterable[Tensor],
    optimizer_kwargs: dict[str, Any],
    register_hook: bool = True,
) -> None:
    """Step each parameter as soon as its gradient is ready, and then drop the gradient.

    Call it before the module is wrapped in DistributedDataParallel, which then steps on averages.

    Parameters
    ----------
    optimizer_class
        Any optimizer whose steps are per parameter.
    params
        What it steps. A parameter may get several optimizers, which step in this order.
    optimizer_kwargs
        The optimizer's arguments.
    register_hook
        With False only the optimizers are made; something else is to run them.

    Examples
    --------
    >>> _apply_optimizer_in_backward(SGD, model.parameters(), {"lr": 0.1})  # doctest: +SKIP
    """
    for parameter in params:
        optimizers: list[Optimizer] = parameter.__dict__.setdefault("_in_backward_optimizers", [])
        optimizers.append(optimizer_class([parameter], **optimizer_kwargs))
        if register_hook and id(parameter) not in _own_hooks:
            _own_hooks[id(parameter)] = parameter.register_post_accumulate_grad_hook(_own_step)
            weakref.finalize(parameter, _own_hooks.pop, id(parameter), None)


def _own_step(parameter: Tensor) -> None:
    for optimizer in parameter._in_backward_optimizers:
        optimizer.step()
    parameter.grad = None


def _get_in_backward_optimizers(module: Module) -> list[Optimizer]:
    """Return the optimizers of all of a module's parameters."""
    found: list[Optimizer] = []
    for parameter in module.parameters():
        found.extend(getattr(parameter, "_in_backward_optimizers", ()))
    return found


def take_over(ddp: DistributedDataParallel, parameters: Sequence[Tensor]) -> None:
    """Let ``ddp`` run the in-backward optimizers of its parameters, if they have any."""
    if not any(hasattr(parameter, "_in_backward_optimizers") for parameter in parameters):
        return
    for parameter in parameters:
        if (handle := _own_hooks.pop(id(parameter), None)) is not None:
            handle.remove()
    ddp.register_comm_hook(weakref.ref(ddp), _apply_optim_in_backward_hook())


def _apply_optim_in_backward_hook(gradient_is_bucket_view: bool = False) -> Hook:
    """Make the hook by which DistributedDataParallel runs its parameters' own optimizers.

    The hook's state is a weak reference to the wrapper. ``gradient_is_bucket_view`` is PyTorch's;
    it makes no difference here.
    """

    def apply_optim_in_backward_hook(
        hook_state: weakref.ref[DistributedDataParallel], bucket: GradBucket
    ) -> Future:
        ddp = hook_state()
        assert ddp is not None
        if bucket.index() == 0:
            managed = ddp.reducer.parameters
            queue_callback(lambda: _drop_gradients(managed))

        def step(future: Future) -> Tensor:
            with stepping_on_averages():
                for parameter, gradient in zip(
                    bucket.parameters(), bucket.gradients(), strict=True
                ):
                    parameter._grad = gradient
                    for optimizer in getattr(parameter, "_in_backward_optimizers", ()):
                        optimizer.step()
            return future.value()

        return allreduce_hook(ddp.process_group, bucket).then(step)

    return apply_optim_in_backward_hook


def _drop_gradients(parameters: Iterable[Tensor]) -> None:
    for parameter in parameters:
        if hasattr(parameter, "_in_backward_optimizers"):
            parameter.grad = None
