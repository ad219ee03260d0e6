"""Adam (Kingma & Ba, 2015) and AdamW (Loshchilov & Hutter, 2019).

    m <- b1 * m + (1 - b1) * g                 v <- b2 * v + (1 - b2) * g**2
    p <- p - lr / (1 - b1**t) * m / (sqrt(v) / sqrt(1 - b2**t) + eps)

Weight decay is added to the gradient by Adam and shrinks the parameter directly in AdamW. AMSGrad
(Reddi et al., 2018) uses the largest ``v`` seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd.graph import bump_version
from ._blocks import blockwise, descent_direction
from ._rules import check_hints, check_lr, new_state, next_step, plain, refuse_sparse
from .optimizer import Optimizer, ParamsT

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """Adam.

    Parameters
    ----------
    params : iterable of Tensor, of dict (parameter groups), or of (name, Tensor)
        What to optimize.
    lr : float or 1-element Tensor, default 1e-3
        Learning rate.
    betas : (float, float), default (0.9, 0.999)
        Decay of the running means of gradient and squared gradient.
    eps : float, default 1e-8
        Added to the denominator.
    weight_decay : float, default 0
        L2 penalty.
    amsgrad, maximize : bool, default False
        Keep the largest second moment; ascend.
    foreach, fused : bool, optional
        Accepted for compatibility; there is one implementation.
    capturable, differentiable : bool, default False
        Must be False.
    decoupled_weight_decay : bool, default False
        Decay as AdamW does.
    """

    _elementwise_state = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_lr(lr)
        if not eps >= 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for index, beta in enumerate(betas):
            if not 0.0 <= plain(beta) < 1.0:
                raise ValueError(f"Invalid beta parameter at index {index}: {beta}")
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        check_hints(
            type(self).__name__,
            foreach=foreach,
            fused=fused,
            capturable=capturable,
            differentiable=differentiable,
        )
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("amsgrad", False)
            group.setdefault("maximize", False)
            group.setdefault("decoupled_weight_decay", False)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; see :meth:`SGD.step`."""
        loss = self._evaluate(closure)
        for group in self.param_groups:
            lr, decay = plain(group["lr"]), group["weight_decay"]
            beta1, beta2 = (plain(beta) for beta in group["betas"])
            amsgrad, decoupled = group["amsgrad"], group["decoupled_weight_decay"]
            for param in group["params"]:
                if param.grad is None:
                    continue
                refuse_sparse(type(self).__name__, param)
                state = self.state[param]
                if not state:
                    state["step"] = None
                    state["exp_avg"] = new_state(param)
                    state["exp_avg_sq"] = new_state(param)
                    if amsgrad:
                        state["max_exp_avg_sq"] = new_state(param)
                moments = [state["exp_avg"]._array, state["exp_avg_sq"]._array]
                if amsgrad:
                    moments.append(state["max_exp_avg_sq"]._array)
                step = next_step(state)
                blockwise(
                    _adam,
                    param._array,
                    param.grad._array,
                    *moments,
                    step_size=lr / (1 - beta1**step),
                    beta1=beta1,
                    beta2=beta2,
                    correction=math.sqrt(1 - beta2**step),
                    eps=group["eps"],
                    weight_decay=0 if decoupled else decay,
                    shrink=1 - lr * decay if decoupled else 1,
                    maximize=group["maximize"],
                )
                bump_version(param)
        return loss


def _adam(
    param: np.ndarray,
    grad: np.ndarray,
    mean: np.ndarray,
    square: np.ndarray,
    *rest: Any,
    step_size: float,
    beta1: float,
    beta2: float,
    correction: float,
    eps: float,
    weight_decay: float,
    shrink: float,
    maximize: bool,
) -> None:
    *largest, scratch = rest
    grad = descent_direction(param, grad, scratch, weight_decay, maximize)
    spare = scratch[1]
    if shrink != 1:
        param *= shrink
    np.subtract(grad, mean, out=spare)
    spare *= 1 - beta1
    mean += spare
    square *= beta2
    np.multiply(grad, grad, out=spare)
    spare *= 1 - beta2
    square += spare
    if largest:
        square = np.maximum(largest[0], square, out=largest[0])
    np.sqrt(square, out=spare)
    spare /= correction
    spare += eps
    np.divide(mean, spare, out=spare)
    spare *= step_size
    param -= spare


class AdamW(Adam):
    """Adam with decoupled weight decay: ``p <- p * (1 - lr * weight_decay)`` before the update.

    Parameters as :class:`Adam`; ``weight_decay`` is 1e-2 by default.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
