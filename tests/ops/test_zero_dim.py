"""A tensor without dimensions behaves as one element of a vector does: in value and gradient."""

from __future__ import annotations

import pytest

import minitorch as torch
from minitorch.nn import functional as F

ACTIVATIONS = """
    celu elu gelu hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu relu6 selu sigmoid
    silu softplus softshrink softsign tanh tanhshrink
"""
FUNCTIONS = {name: getattr(F, name) for name in ACTIVATIONS.split()}
FUNCTIONS |= {
    "softmax": lambda x: F.softmax(x, 0),
    "log_softmax": lambda x: F.log_softmax(x, 0),
    "logsumexp": lambda x: torch.logsumexp(x, 0),
    "cumsum": lambda x: x.cumsum(0),
    "bce_with_logits": lambda x: F.binary_cross_entropy_with_logits(x, torch.ones_like(x)),
    "bce": lambda x: F.binary_cross_entropy(x.sigmoid(), torch.ones_like(x)),
    "mse": lambda x: F.mse_loss(x, torch.ones_like(x)),
    "smooth_l1": lambda x: F.smooth_l1_loss(x, torch.ones_like(x)),
    "norm": lambda x: x.norm(),
    "clamp": lambda x: x.clamp(-2, 2),
    "prod": lambda x: x.prod(),
    "var": lambda x: x.var(correction=0),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_one_element(name, dtype):
    for value in (-1.5, 0.25):
        scalar = torch.tensor(value, dtype=dtype, requires_grad=True)
        vector = torch.tensor([value], dtype=dtype, requires_grad=True)
        results = [FUNCTIONS[name](x) for x in (scalar, vector)]
        assert results[0].shape == ()
        for result in results:
            result.sum().backward()
        assert results[0].item() == results[1].sum().item()
        assert scalar.grad.item() == vector.grad.item()
        assert scalar.grad.dtype is dtype


def test_formats_as_its_number():
    assert f"{torch.tensor(5)} {torch.tensor(0.5):.2f} {torch.tensor(True)}" == "5 0.50 True"
    assert f"{torch.ones(2)}" == "tensor([1., 1.])"
    with pytest.raises(TypeError, match="unsupported format string passed to"):
        f"{torch.ones(2):.2f}"
