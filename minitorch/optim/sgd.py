"""Stochastic gradient descent, with momentum (Sutskever et al., 2013) in PyTorch's form.

v <- momentum * v + (1 - dampening) * g          (the first step: v <- g)
p <- p - lr * v                                  (Nesterov: p <- p - lr * (g + momentum * v))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd.graph import bump_version
from ._blocks import blockwise, descent_direction
from ._rules import check_hints, check_lr, new_state, plain
from .optimizer import Optimizer, ParamsT

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent.

    Parameters
    ----------
    params : iterable of Tensor, of dict (parameter groups), or of (name, Tensor)
        What to optimize.
    lr : float or 1-element Tensor, default 1e-3
        Learning rate.
    momentum, dampening, weight_decay : float, default 0
        Momentum factor, its dampening, and L2 penalty (added to the gradient).
    nesterov : bool, default False
        Nesterov momentum; needs momentum and no dampening.
    maximize : bool, default False
        Ascend instead.
    foreach, fused : bool, optional
        Accepted for compatibility; there is one implementation.
    differentiable : bool, default False
        Must be False: updates are made in place, outside the graph.

    Examples
    --------
    >>> import minitorch
    >>> w = minitorch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = minitorch.optim.SGD([w], lr=0.5)
    >>> w.sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.5000, 1.5000], requires_grad=True)
    """

    _elementwise_state = ("momentum_buffer",)

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        if momentum < 0.0:
            raise ValueError(f"Invalid momentum value: {momentum}")
        if plain(weight_decay) < 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_hints("SGD", foreach=foreach, fused=fused, differentiable=differentiable)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        Parameters
        ----------
        closure : callable, optional
            Re-evaluates the model and returns the loss, which is then returned.
        """
        loss = self._evaluate(closure)
        for group in self.param_groups:
            lr, momentum = plain(group["lr"]), group["momentum"]
            hyper = {
                "lr": lr,
                "momentum": momentum,
                "dampening": group["dampening"],
                "weight_decay": plain(group["weight_decay"]),
                "nesterov": group["nesterov"],
                "maximize": group["maximize"],
            }
            for param in group["params"]:
                if param.grad is None:
                    continue
                array = param._array
                if param.grad.is_sparse and momentum == 0:
                    _sgd_sparse(array, param.grad._coo, **hyper)
                    bump_version(param)
                    continue
                grad = param.grad.to_dense()._array if param.grad.is_sparse else param.grad._array
                if momentum == 0:
                    blockwise(_sgd, array, grad, **hyper)
                else:
                    state = self.state[param]
                    velocity = state.get("momentum_buffer")
                    if first := velocity is None:
                        velocity = state["momentum_buffer"] = new_state(param)
                    blockwise(_sgd_momentum, array, grad, velocity._array, first=first, **hyper)
                bump_version(param)
        return loss


def _sgd(
    param: np.ndarray,
    grad: np.ndarray,
    scratch: tuple[np.ndarray, np.ndarray],
    lr: float,
    weight_decay: float,
    maximize: bool,
    **_unused: Any,
) -> None:
    grad = descent_direction(param, grad, scratch, weight_decay, maximize)
    param -= np.multiply(grad, lr, out=scratch[0])


def _sgd_sparse(
    param: np.ndarray, grad: Any, lr: float, weight_decay: float, maximize: bool, **_unused: Any
) -> None:
    """Touch only the rows that were read."""
    if weight_decay != 0:
        raise RuntimeError(
            "SGD: weight_decay reaches every row of a table, and is not compatible with sparse "
            "gradients. Leave it out for this parameter, or build nn.Embedding with sparse=False."
        )
    grad.add_to(param, lr if maximize else -lr)


def _sgd_momentum(
    param: np.ndarray,
    grad: np.ndarray,
    velocity: np.ndarray,
    scratch: tuple[np.ndarray, np.ndarray],
    first: bool,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    grad = descent_direction(param, grad, scratch, weight_decay, maximize)
    spare = scratch[1]
    if first:
        velocity[...] = grad
    else:
        velocity *= momentum
        velocity += grad if dampening == 0 else np.multiply(grad, 1 - dampening, out=spare)
    if nesterov:
        np.multiply(velocity, momentum, out=spare)
        spare += grad
        spare *= lr
    else:
        np.multiply(velocity, lr, out=spare)
    param -= spare
