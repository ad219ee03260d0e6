"""Autograd by itself: custom functions, hooks, double backward, checkpointing, detach, in-place."""

import torch
from torch.autograd import Function, grad
from torch.utils.checkpoint import checkpoint


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * 3 * x**2


x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
Cube.apply(x).sum().backward()
print(x.grad)

x.grad = None
handle = x.register_hook(lambda g: g * 2)
(x * x).sum().backward()
print(x.grad, x.grad_fn, (x * x).grad_fn is not None)
handle.remove()

(first,) = grad((x**4).sum(), x, create_graph=True)
(second,) = grad(first.sum(), x)
print(first, second)

y = torch.linspace(0, 1, 5, requires_grad=True)
out = checkpoint(lambda t: (t.sin() * t.exp()).cumsum(0), y, use_reentrant=False)
out[-1].backward()
print(y.grad)

z = torch.zeros(2, 3)
z[0] = torch.tensor([1.0, 2.0, 3.0])
z[:, 1] += 5
view = z.t()
view[2].mul_(10)
print(z, z.dtype, view.shape)

w = torch.randn(3, generator=torch.Generator().manual_seed(0)).requires_grad_()
try:
    w.add_(1)
except RuntimeError as error:
    print(str(error).split(".")[0])
loss = w.sum()
loss.backward()
try:
    (w.exp().sum() * 2).backward(torch.ones(2))
except RuntimeError as error:
    print(str(error).split(":")[0])
with torch.no_grad():
    print((w * 2).requires_grad, torch.is_grad_enabled())
print(
    torch.arange(6).reshape(2, 3) @ torch.ones(3, dtype=torch.int64),
    torch.tensor(2) * 0.5,
    torch.tensor([1, 2]) / 2,
)
