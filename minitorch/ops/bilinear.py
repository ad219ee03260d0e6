"""The bilinear map ``x1^T A_k x2 + b_k``."""

from __future__ import annotations

import math

from minitorch.ops._typing import Tensor


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1^T A_k input2 + b_k`` for every output ``k``.

    `input1` is ``(*, I1)``, `input2` ``(*, I2)``, `weight` ``(O, I1, I2)``; returns ``(*, O)``.
    """
    lead, outputs = tuple(input1.shape[:-1]), weight.shape[0]
    for number, x in enumerate((input1, input2), 1):
        if x.shape[-1] != weight.shape[number]:
            raise RuntimeError(
                f"bilinear(): input{number} size does not match weight size: got "
                f"{x.shape[-1]} but expected {weight.shape[number]}"
            )
    if tuple(input2.shape[:-1]) != lead:
        raise RuntimeError(
            f"bilinear(): input batch dimensions do not match: got {list(lead)} and "
            f"{list(input2.shape[:-1])}"
        )
    rows = math.prod(lead)
    left = input1.reshape(rows, input1.shape[-1])
    right = input2.reshape(rows, input2.shape[-1])
    # (O, rows, I2): the left product for every output, then the row-wise dot with the right.
    out = ((left @ weight) * right).sum(-1).transpose(0, 1).reshape(*lead, outputs)
    return out if bias is None else out + bias
