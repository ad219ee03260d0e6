"""Second derivatives of fused ops.

A fused op has a hand-written backward rule on arrays, which is where its speed comes from. When the
gradient itself shall be differentiable (``create_graph=True``), the op is spelled out once more in
elementary ops, and that composition is differentiated instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from minitorch import autograd
from minitorch.autograd import TensorBase
from minitorch.ops._typing import Tensor


def composed_gradients(
    composition: Callable,
    inputs: Sequence[Tensor | None],
    grads: Tensor | Sequence[Tensor | None],
    needs: Sequence[bool],
) -> tuple[Tensor | None, ...]:
    """Differentiable gradients of ``composition(*inputs)``, given the gradients of its results.

    Each input is replaced by an alias first: an input may be computed from another one, and the
    gradient asked for is the partial derivative, which must not run on into that computation.
    """
    with autograd.enable_grad():
        aliases = [None if t is None else t.view_as(t) for t in inputs]
        outputs = composition(*aliases)
    if isinstance(outputs, TensorBase):
        outputs, grads = (outputs,), (grads,)
    arrived = [(out, grad) for out, grad in zip(outputs, grads, strict=True) if grad is not None]
    wanted = [t for t, need in zip(aliases, needs, strict=True) if need]
    found = iter(
        autograd.grad(
            [out for out, _ in arrived],
            wanted,
            [grad for _, grad in arrived],
            create_graph=True,
            allow_unused=True,
        )
    )
    return tuple(next(found) if need else None for need in needs)
