"""Types, printing, and in-place methods beyond the common ones."""

from __future__ import annotations

from answers import message

from .registry import leaf, scenario


@scenario
def mixed_types_get_their_own_gradients(t):
    a = t.ones(2, requires_grad=True)
    b = t.full((2,), 2.0, dtype=t.float64, requires_grad=True)
    c = t.tensor(3.0, dtype=t.float64, requires_grad=True)
    h = t.ones(2, dtype=t.float16, requires_grad=True)
    ((a * b).sum() + (a * c).sum() + (h * a).sum()).backward()
    return a.grad, b.grad, c.grad, h.grad, (a * c).dtype


@scenario
def half_products(t):
    x = (t.arange(6.0).reshape(2, 3) / 3).half().requires_grad_()
    y = (t.arange(6.0).reshape(3, 2) / 7).half().requires_grad_()
    z = x @ y
    z.sum().backward()
    return z, x.grad, y.grad


@scenario
def bfloat16_arithmetic(t):
    x = t.tensor([1.0, 2.5, 3.25], dtype=t.bfloat16, requires_grad=True)
    y = (x * 2 + 1).exp().sum() + x.mean()
    y.backward()
    return y, x.grad, x.tolist(), x.detach().to(t.float32)


@scenario
def conversions(t):
    x = t.tensor([1.7, -1.7, 0.0, 300.0])
    return [
        x.int(),
        x.long(),
        x.bool(),
        x.half(),
        x.double(),
        x.to(t.int16),
        t.tensor([True, False]).float(),
        t.tensor([1, 2]).to(t.tensor(1.0)),
        t.tensor([300]).to(t.uint8),
        t.tensor([1.5]).to("cpu"),
        x.short(),
    ]


@scenario
def repr_of_many(t):
    return [
        repr(each)
        for each in (
            t.tensor(1.0),
            t.tensor(3),
            t.tensor([1, 20, 300]),
            t.tensor([1.0, 2.5]),
            t.tensor([1e-9, 1.0]),
            t.tensor([1e10, 1.0]),
            t.tensor([float("nan"), float("inf"), 1.0]),
            t.tensor([True, False]),
            t.zeros(0),
            t.zeros(0, 3),
            t.zeros(2, 0, dtype=t.int32),
            t.ones(2, 2, dtype=t.float64),
            t.ones(2, requires_grad=True),
            t.ones(2, requires_grad=True) * 2,
            t.arange(2000.0),
            t.arange(40),
            t.arange(24.0).reshape(2, 3, 4) / 7,
            t.arange(5000).reshape(50, 100),
            t.tensor([-1.5, 22.25]),
            t.tensor([1.0, 100000.0]),
            t.tensor([0.001, 0.0]),
            t.tensor([1.5], dtype=t.float16),
            t.tensor([1.5], dtype=t.bfloat16),
            t.tensor(2.5, requires_grad=True).exp(),
            t.ones(3, 3, dtype=t.float64, requires_grad=True) @ t.ones(3, 3, dtype=t.float64),
            t.tensor(-7, dtype=t.int8),
            t.tensor([[1.0, -2.0], [3.0, 4.0]]),
            t.tensor(float("inf")),
            t.tensor(1e-7),
            t.tensor([123456.789]),
        )
    ]


@scenario
def more_in_place_methods(t):
    results = []
    for name, args in (
        ("neg_", ()),
        ("abs_", ()),
        ("sqrt_", ()),
        ("log_", ()),
        ("sin_", ()),
        ("tanh_", ()),
        ("floor_", ()),
        ("reciprocal_", ()),
        ("pow_", (3,)),
        ("remainder_", (0.7,)),
        ("clamp_min_", (1.1,)),
        ("lerp_", (t.tensor([5.0, 6.0]), 0.5)),
        ("addcmul_", (t.tensor([5.0, 6.0]), t.tensor([2.0, 3.0]))),
        ("index_fill_", (0, t.tensor([1]), 9.0)),
        ("index_add_", (0, t.tensor([1]), t.tensor([9.0]))),
        ("index_copy_", (0, t.tensor([1]), t.tensor([9.0]))),
        ("index_put_", ((t.tensor([1]),), t.tensor([9.0]))),
        ("masked_scatter_", (t.tensor([False, True]), t.tensor([9.0]))),
    ):
        x = leaf(t, 1.3, 2.1)
        y = x * 1
        outcome = message(
            lambda y=y, name=name, args=args: getattr(y, name)(*args).sum().backward()
        )
        results.append([name, outcome, y, x.grad])
    return results
