"""Largest, smallest and order where elements are NaN, equal, or not there at all."""

NAN = "t.tensor([[1.0, nan, 3.0, nan], [4.0, 2.0, 2.0, 0.0], [inf, -inf, nan, 1.0]])"
_OPS = {
    "max": "{x}.max({dim})",
    "min": "{x}.min({dim})",
    "amax": "{x}.amax({dim})",
    "aminmax": "{x}.aminmax({key})",
    "median": "{x}.median({dim})",
    "nanmedian": "{x}.nanmedian({dim})",
    "argmax": "{x}.argmax({dim})",
    "argmin": "{x}.argmin({dim})",
    "nansum": "{x}.nansum({dim})",
    "nanmean": "{x}.nanmean({dim})",
    "sum": "{x}.sum({dim})",
    "prod": "{x}.prod({dim})",
    "any": "{x}.any({dim})",
    "all": "{x}.all({dim})",
    "norm": "{x}.norm({key})",
    "count_nonzero": "{x}.count_nonzero({dim})",
    "unique": "t.unique({x}.nan_to_num(9.0), {key})",
}
_ALONG = {
    "sort": "{x}.sort(dim={dim}, stable=True)",
    "argsort": "{x}.argsort(dim={dim}, descending=True, stable=True)",
    "kthvalue": "{x}.kthvalue(2, {dim})",
    "cummax": "{x}.cummax({dim})",
    "cummin": "{x}.cummin({dim})",
    "cumsum": "{x}.cumsum({dim})",
    "cumprod": "{x}.cumprod({dim})",
    "logsumexp": "{x}.logsumexp({dim})",
    "softmax": "{x}.softmax({dim})",
    "log_softmax": "{x}.log_softmax({dim})",
}


def _spelled(x: str, dims: tuple, along: tuple = ()) -> list[str]:
    some = [
        form.format(x=x, dim="" if dim is None else dim, key="" if dim is None else f"dim={dim}")
        for form in _OPS.values()
        for dim in dims
    ]
    return some + [form.format(x=x, dim=dim) for form in _ALONG.values() for dim in along]


EXPRESSIONS = [
    *_spelled(NAN, (None, 0, -1), (0, 1)),
    *_spelled(f"{NAN}.bfloat16()", (None, 1), (1,)),
    *[
        call
        for shape in ("0", "0, 3", "3, 0", "2, 0, 3")
        for call in _spelled(f"t.zeros({shape})", (None, 0, -1), (0, -1))
        if "kthvalue" not in call
    ],
    *_spelled("t.tensor(2.5)", (None, 0, -1, 1), (0, -1)),
    *[
        f"grad_of(lambda x: x.{call}, {values})"
        for call in (
            "max()",
            "min()",
            "amax()",
            "median()",
            "nanmedian()",
            "max(0)[0].sum()",
            "median(0)[0].sum()",
            "maximum(x.detach() * 0 + 1).sum()",
            "fmax(x.detach() * 0 + 1).sum()",
            "cummax(0)[0].sum()",
            "sort(0)[0].cumsum(0).sum()",
            "nansum()",
            "relu().sum()",
            "abs().sum()",
            "clamp(0, 2).sum()",
            "norm()",
            "std()",
        )
        for values in (
            "[1.0, 3.0, 3.0, 2.0]",
            "[nan, 1.0, 2.0, nan]",
            "[0.0, 0.0, 0.0, 0.0]",
            "[inf, -inf, 1.0, 1.0]",
        )
        if not ("cumsum" in call and "nan" in values)
    ],
    "grad_of(lambda x: x.std(), [1e30, -1e30, 88.0])",
    "grad_of(lambda x: F.elu(x).sum(), [inf, -inf, nan, 1.0])",
    "grad_of(lambda x: F.hardswish(x).sum(), [inf, 4.0, 1.0])",
    "grad_of(lambda x: F.hardtanh(x).sum(), [inf, -1.0, nan, 0.5])",
    "grad_of(lambda x: F.silu(x).sum(), [-30.0, -90.0, 30.0, 0.5])",
    "grad_of(lambda x: F.softplus(x).sum(), [-200.0, 200.0, 0.0, 19.0])",
    "t.topk(t.zeros(0), 0)",
    "t.topk(t.zeros(3), 4)",
    "t.kthvalue(t.zeros(0), 1)",
    "t.kthvalue(t.zeros(3), 0)",
    "t.kthvalue(t.tensor(3.0), 1)",
    f"{NAN}.topk(2, 1, largest=False).values",
    f"{NAN}.topk(2, 1).values",
    "t.median(t.tensor([3, 1, 2, 5]))",
    "t.median(t.tensor([[3, 1], [2, 5]]), 1, True)",
    "t.median(t.tensor([True]))",
    "t.zeros(0, dtype=t.int64).median()",
    "t.max(t.tensor([True, False]), 0)",
    "t.argmax(t.tensor([True, False]))",
    "t.sort(t.tensor([True, False, True]), stable=True)",
    "t.sort(t.tensor([3, 1, 2, 3, 1]), descending=True, stable=True)",
    "t.quantile(t.arange(5.0), 0.3)",
    "t.quantile(t.arange(6.0).reshape(2, 3), t.tensor([0.25, 0.5]), dim=1, keepdim=True)",
    "t.quantile(t.tensor([1.0, nan, 2.0]), 0.5)",
    "t.quantile(t.tensor([1.0, 2.0, 4.0, 8.0]), 0.4, interpolation='nearest')",
    "t.quantile(t.tensor([1.0, 2.0, 4.0, 8.0]), 0.4, interpolation='midpoint')",
    "t.quantile(t.tensor([1.0, 2.0, 4.0, 8.0]), 0.4, interpolation='higher')",
    "t.quantile(t.arange(5), 0.5)",
    "t.quantile(t.arange(5.0), 1.5)",
    "t.unique_consecutive(t.tensor([1, 1, 2, 2, 1]), return_inverse=True, return_counts=True)",
    "t.unique_consecutive(t.tensor([[1, 1], [1, 1], [2, 1]]), dim=0)",
    "t.unique_consecutive(t.zeros(0))",
    "t.sign(t.tensor([nan, -0.0, -2.0, inf]))",
]
