"""Samples of ops of two operands beyond arithmetic, and of running, order and diagonal ones."""

from __future__ import annotations

from typing import Any

from op_samples import FLAT, PAIRS, OpSample, S, index, unary

PAIRED_OPS = [
    OpSample("atan2", lambda t, a, b: t.atan2(a, b), PAIRS),
    OpSample("hypot", lambda t, a, b: t.hypot(a, b), PAIRS),
    OpSample("logaddexp", lambda t, a, b: t.logaddexp(a, b), PAIRS),
    OpSample("xlogy", lambda t, a, b: t.xlogy(a, b), PAIRS, 0.2, 3),
    OpSample("fmax", lambda t, a, b: t.fmax(a, b), PAIRS),
    OpSample("fmin", lambda t, a, b: t.fmin(a, b), PAIRS),
    OpSample("copysign", lambda t, a, b: t.copysign(a, b.detach()) * b, PAIRS[:3]),
    OpSample("inner", lambda t, a, b: t.inner(a, b), [(S, S), ((4,), S), ((), S)]),
    OpSample("tensordot", lambda t, a, b: t.tensordot(a, b, ([1, 0], [0, 1])), [(S, (4, 3, 2))]),
    OpSample("kron", lambda t, a, b: t.kron(a, b), [((2, 2), (2, 1)), ((2,), (2, 2))]),
    OpSample("cross", lambda t, a, b: t.cross(a, b, dim=0), [(S, S)]),
    OpSample("cdist", lambda t, a, b: t.cdist(a, b, 1.5), [(S, (2, 4))]),
    OpSample("addmv", lambda t, c, a, b: t.addmv(c, a, b, alpha=2), [((3,), S, (4,))]),
    OpSample("dist", lambda t, a, b: t.dist(a, b, 3), [(S, S)]),
]

RUNNING = [
    unary("asinh"),
    unary("acosh", 1.2, 3),
    unary("atanh", -0.9, 0.9),
    OpSample("cumprod", lambda t, x: x.cumprod(-1), [(S,), ((0, 3),), ((2, 3, 2),)]),
    OpSample("cumprod_zero", lambda t, x: (x * t.tensor([1.0, 0.0, 1, 0])).cumprod(1), [(S,)]),
    OpSample("cummax", lambda t, x: x.cummax(1).values ** 2, [(S,), ((2, 3, 2),)]),
    OpSample("cummin", lambda t, x: x.cummin(0).values ** 2, [(S,)]),
    OpSample("diff", lambda t, x: x.diff(dim=1) ** 2, FLAT),
    OpSample("nanmedian", lambda t, x: x.nanmedian(1).values ** 2, FLAT),
    OpSample("quantile", lambda t, x: x.quantile(0.3, 1) ** 2, FLAT),
    OpSample("aminmax", lambda t, x: x.aminmax().max * x.aminmax().min, FLAT),
    OpSample("nansum", lambda t, x: x.nansum(0) * x.nanmean(0), FLAT),
    OpSample("diag_embed", lambda t, x: t.diag_embed(x, 1), FLAT),
    OpSample("diagonal_written", lambda t, x: _write_diagonal(x * 1), [(S,)]),
    OpSample("unfold", lambda t, x: x.unfold(1, 2, 1) ** 2, FLAT),
    OpSample("rot90", lambda t, x: t.rot90(x, 3) * 2, FLAT),
    OpSample("take", lambda t, x: x.take(index(t, [0, 5, 5, -1])) ** 2, [(S,)]),
    OpSample("block_diag", lambda t, a, b: t.block_diag(a, b), [(S, (2,))]),
    OpSample("index_copy", lambda t, x, s: x.index_copy(0, index(t, [2]), s) ** 2, [(S, (1, 4))]),
    OpSample("masked_scatter", lambda t, x, s: x.masked_scatter(x > 0.1, s) ** 2, [(S, (12,))]),
]


def _write_diagonal(y: Any) -> Any:
    y.diagonal(1).mul_(3)
    y.diagonal()[0] = y[2, 3]
    return y * y
