"""Adagrad (Duchi et al., 2011) and RMSprop (Tieleman & Hinton, 2012).

Both divide by the root of accumulated squared gradients; Adagrad sums them, RMSprop averages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd.graph import bump_version
from ._blocks import blockwise, descent_direction
from ._rules import check_hints, check_lr, new_state, next_step, plain, refuse_sparse
from .optimizer import Optimizer, ParamsT

__all__ = ["Adagrad", "RMSprop"]


class Adagrad(Optimizer):
    """Adagrad: ``p <- p - lr / (1 + (t-1) * lr_decay) * g / (sqrt(sum g**2) + eps)``.

    Parameters
    ----------
    params : iterable of Tensor, of dict (parameter groups), or of (name, Tensor)
        What to optimize.
    lr, lr_decay, weight_decay, initial_accumulator_value, eps : float
        Learning rate and its decay, L2 penalty, start of the sum, denominator's offset.
    maximize : bool, default False
        Ascend.
    """

    _elementwise_state = ("sum",)

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        if not lr_decay >= 0.0:
            raise ValueError(f"Invalid lr_decay value: {lr_decay}")
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if not initial_accumulator_value >= 0.0:
            raise ValueError(
                f"Invalid initial_accumulator_value value: {initial_accumulator_value}"
            )
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_hints("Adagrad", foreach=foreach, fused=fused, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                start = group["initial_accumulator_value"]
                state = self.state[param]
                state["step"] = None
                next_step(state, 0)
                state["sum"] = new_state(param, start)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; see :meth:`SGD.step`."""
        loss = self._evaluate(closure)
        for group in self.param_groups:
            lr = plain(group["lr"])
            for param in group["params"]:
                if param.grad is None:
                    continue
                refuse_sparse(type(self).__name__, param)
                state = self.state[param]
                if not state:  # a group added after construction
                    state["step"] = None
                    state["sum"] = new_state(param, group["initial_accumulator_value"])
                step = next_step(state)
                blockwise(
                    _adagrad,
                    param._array,
                    param.grad._array,
                    state["sum"]._array,
                    lr=lr / (1 + (step - 1) * group["lr_decay"]),
                    eps=group["eps"],
                    weight_decay=group["weight_decay"],
                    maximize=group["maximize"],
                )
                bump_version(param)
        return loss


def _adagrad(
    param: np.ndarray,
    grad: np.ndarray,
    total: np.ndarray,
    scratch: tuple[np.ndarray, np.ndarray],
    lr: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    grad = descent_direction(param, grad, scratch, weight_decay, maximize)
    spare = scratch[1]
    total += np.multiply(grad, grad, out=spare)
    np.sqrt(total, out=spare)
    spare += eps
    np.divide(grad, spare, out=spare)
    spare *= lr
    param -= spare


class RMSprop(Optimizer):
    """RMSprop: ``p <- p - lr * g / (sqrt(mean g**2) + eps)``, optionally centered, with momentum.

    Parameters
    ----------
    params : iterable of Tensor, of dict (parameter groups), or of (name, Tensor)
        What to optimize.
    lr, alpha, eps, weight_decay, momentum : float
        Learning rate, decay of the mean, denominator's offset, L2 penalty, momentum.
    centered, maximize : bool, default False
        Divide by the estimated standard deviation instead; ascend.
    """

    _elementwise_state = ("square_avg", "momentum_buffer", "grad_avg")

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_lr(lr)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        if not momentum >= 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if not alpha >= 0.0:
            raise ValueError(f"Invalid alpha value: {alpha}")
        check_hints(
            "RMSprop", foreach=foreach, capturable=capturable, differentiable=differentiable
        )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; see :meth:`SGD.step`."""
        loss = self._evaluate(closure)
        for group in self.param_groups:
            lr = plain(group["lr"])
            for param in group["params"]:
                if param.grad is None:
                    continue
                refuse_sparse(type(self).__name__, param)
                state = self.state[param]
                if not state:
                    state["step"] = None
                    state["square_avg"] = new_state(param)
                    if group["momentum"] > 0:
                        state["momentum_buffer"] = new_state(param)
                    if group["centered"]:
                        state["grad_avg"] = new_state(param)
                next_step(state)
                averages = [state["square_avg"]._array]
                if group["centered"]:
                    averages.append(state["grad_avg"]._array)
                if group["momentum"] > 0:
                    averages.append(state["momentum_buffer"]._array)
                blockwise(
                    _rmsprop,
                    param._array,
                    param.grad._array,
                    *averages,
                    lr=lr,
                    alpha=group["alpha"],
                    eps=group["eps"],
                    weight_decay=group["weight_decay"],
                    momentum=group["momentum"],
                    centered=group["centered"],
                    maximize=group["maximize"],
                )
                bump_version(param)
        return loss


def _rmsprop(
    param: np.ndarray,
    grad: np.ndarray,
    square: np.ndarray,
    *rest: Any,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
    maximize: bool,
) -> None:
    *averages, scratch = rest
    grad = descent_direction(param, grad, scratch, weight_decay, maximize)
    spare = scratch[1]
    square *= alpha
    np.multiply(grad, grad, out=spare)
    spare *= 1 - alpha
    square += spare
    if centered:
        mean = averages[0]
        np.subtract(grad, mean, out=spare)
        spare *= 1 - alpha
        mean += spare
        np.multiply(mean, mean, out=spare)
        np.subtract(square, spare, out=spare)
        np.sqrt(spare, out=spare)
    else:
        np.sqrt(square, out=spare)
    spare += eps
    np.divide(grad, spare, out=spare)
    if momentum > 0:
        velocity = averages[-1]
        velocity *= momentum
        velocity += spare
        np.multiply(velocity, lr, out=spare)
    else:
        spare *= lr
    param -= spare
