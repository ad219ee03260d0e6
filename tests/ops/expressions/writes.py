"""In-place writes whose operands overlap: refused where PyTorch refuses them.

``a`` is ``t.arange(6.0)``, and its values after the write are the answer. Left out are writes that
overlap and that PyTorch lets pass: what they give depends on the order of its loops.
"""

_BINARY = {
    "add_": "a{to}.add_(a{of})",
    "mul_": "a{to}.mul_(a{of})",
    "alpha": "a{to}.sub_(a{of}, alpha=2)",
    "pow_": "a{to}.pow_(a{of})",
    "copy_": "a{to}.copy_(a{of})",
    "lerp_": "a{to}.lerp_(a{of}, 0.5)",
    "addcmul_": "a{to}.addcmul_(a{of}, a{to})",
    "clamp_": "a{to}.clamp_(min=a{of})",
    "eq_": "a{to}.eq_(a{of})",
    "setitem": "a{to}.__setitem__(slice(None), a{of})",
    "masked_fill_": "a{to}.masked_fill_(a{of} > 1, 5.0)",
    "index_add_": "a{to}.index_add_(0, t.arange(len(a{to})), a{of})",
    "index_copy_": "a{to}.index_copy_(0, t.arange(len(a{to})), a{of})",
    "index_put_": "a{to}.index_put_((t.arange(len(a{to})),), a{of})",
    "scatter_": "a{to}.scatter_(0, t.tensor([0, 1]), a{of})",
    "recorded": "(w * a){to}.add_((w * a){of})",
}
_PARTS = {
    "shifted": ("[1:]", "[:-1]"),
    "shifted back": ("[:-1]", "[1:]"),
    "the same": ("[1:]", "[1:]"),
    "every second": ("[::2]", "[1::2]"),
    "halves": ("[:3]", "[3:]"),
    "itself": ("", ""),
}
_SQUARES = ("[:4].view(2, 2)", "[:4].view(2, 2).t()")
_REPEATED = "a[:1].expand(3)"

EXPRESSIONS = [
    *[
        form.format(to=to, of=of)
        for name, form in _BINARY.items()
        for to, of in (
            [*_PARTS.values(), _SQUARES]
            if name not in ("index_add_", "index_copy_", "index_put_", "scatter_")
            else _PARTS.values()
        )
    ],
    *[
        f"{form.format(to='', of='[0]')}"
        for name, form in _BINARY.items()
        if "index" not in name and name != "scatter_"
    ],
    *[
        f"{_REPEATED}.{call}"
        for call in (
            "add_(1)",
            "mul_(2.0)",
            "add_(t.ones(3))",
            "copy_(t.ones(3))",
            "exp_()",
            "relu_()",
            "clamp_(0, 1)",
            "cumsum_(0)",
            "normal_()",
            "bernoulli_(0.5)",
            "zero_()",
            "fill_(2.0)",
            "fill_(t.tensor(2.0))",
            "__setitem__(0, 5.0)",
            "__setitem__(slice(0, 2), 5.0)",
            "__setitem__(slice(0, 2), t.ones(2))",
            "scatter_(0, t.tensor([0]), t.ones(1))",
            "index_add_(0, t.tensor([0]), t.ones(1))",
            "masked_scatter_(t.tensor([True, False, False]), t.ones(1))",
        )
    ],
    "a[:1].expand(1).add_(1)",
    "a.expand(1, 6).mul_(2)",
    "a.view(2, 3)[:, :1].add_(a.view(2, 3)[:, 1:2])",
    "a.__setitem__(t.tensor([0, 1]), a[1:3])",
    "a.__setitem__(a > 2, a[:3])",
    "a.__setitem__(slice(None), a.flip(0))",
    "a.diagonal()",
    "a.view(2, 3).diagonal().add_(10)",
    "a.view(2, 3).diagonal(1).copy_(t.ones(2))",
    "a.view(2, 3).t().diagonal(-1).mul_(3)",
    "a.view(2, 3).diagonal(5).add_(1)",
    "a.view(1, 2, 3).diagonal(0, -1, 1).fill_(9)",
    "a.view(2, 3).fill_diagonal_(4)",
    "a.unfold(0, 2, 2)[1].mul_(10)",
    "a.index_copy_(0, t.tensor([0, 1]), t.ones(3))",
    "a.index_copy_(0, t.tensor([9]), t.ones(1))",
    "a.index_add_(0, t.tensor([0, 1]), t.ones(3))",
    "a.masked_scatter_(a > 1, t.ones(2))",
]
