"""What the tests of ops run on: one table of samples, used under minitorch and under PyTorch.

A sample is a function ``f(torch, *tensors)`` and the shapes of its tensors. Values come from
NumPy's seeded generator, so that the recording script (which has PyTorch) and the tests (which do
not) see the same bits. They keep away from kinks (ties, zeros), where a numerical derivative means
nothing.
"""

from __future__ import annotations

import numpy as np
from generators_more import PAIRED_OPS, RUNNING
from op_samples import FLAT, PAIRS, SHAPES, OpSample, S, index, unary

UNARY = [
    unary("exp"),
    unary("exp2"),
    unary("expm1"),
    unary("log", 0.2, 3),
    unary("log2", 0.2, 3),
    unary("log10", 0.2, 3),
    unary("log1p", -0.7, 3),
    unary("sqrt", 0.2, 3),
    unary("rsqrt", 0.2, 3),
    unary("sin"),
    unary("cos"),
    unary("tan", -1.2, 1.2),
    unary("asin", -0.9, 0.9),
    unary("acos", -0.9, 0.9),
    unary("atan"),
    unary("sinh"),
    unary("cosh"),
    unary("tanh"),
    unary("sigmoid", -6, 6),
    unary("logit", 0.05, 0.95),
    unary("relu"),
    unary("erf"),
    unary("erfc"),
    unary("abs"),
    unary("neg"),
    unary("reciprocal", 0.3, 3),
    unary("square"),
    unary("sign"),
    unary("floor"),
    unary("ceil"),
    unary("round"),
    unary("trunc"),
    unary("frac"),
    unary("nan_to_num"),
    OpSample("gelu", lambda t, x: t.nn.functional.gelu(x), SHAPES, -4, 4),
    OpSample("gelu_tanh", lambda t, x: t.nn.functional.gelu(x, approximate="tanh"), SHAPES, -4, 4),
    OpSample("softplus", lambda t, x: t.nn.functional.softplus(x), SHAPES, -4, 4),
    OpSample("softplus_beta", lambda t, x: t.nn.functional.softplus(x, 3.0, 4.0), SHAPES, -3, 3),
]

BINARY = [
    OpSample("add", lambda t, a, b: a + b, PAIRS),
    OpSample("add_alpha", lambda t, a, b: t.add(a, b, alpha=0.5), PAIRS[:2]),
    OpSample("sub", lambda t, a, b: a - b, PAIRS),
    OpSample("mul", lambda t, a, b: a * b, PAIRS),
    OpSample("div", lambda t, a, b: a / b, PAIRS, 0.5, 3),
    OpSample("pow", lambda t, a, b: a**b, PAIRS, 0.3, 2.5),
    OpSample("maximum", lambda t, a, b: t.maximum(a, b), PAIRS),
    OpSample("minimum", lambda t, a, b: t.minimum(a, b), PAIRS),
    OpSample("remainder", lambda t, a, b: t.remainder(a, b), PAIRS, 0.53, 3.1),
    OpSample("fmod", lambda t, a, b: t.fmod(a, b), PAIRS, 0.53, 3.1),
    OpSample("div_floor", lambda t, a, b: t.div(a, b, rounding_mode="floor"), PAIRS[:2], 0.53, 3.1),
    OpSample("div_trunc", lambda t, a, b: t.div(a, b, rounding_mode="trunc"), PAIRS[:2], 0.53, 3.1),
    OpSample("where", lambda t, a, b: t.where(a > 0.1, a, b), PAIRS),
    OpSample("lerp", lambda t, a, b: t.lerp(a, b, 0.3), [(S, S)]),
    OpSample("lerp_tensor", lambda t, a, b, w: t.lerp(a, b, w), [(S, S, S)]),
    OpSample("addcmul", lambda t, a, b, c: t.addcmul(a, b, c, value=0.5), [(S, S, S)]),
    OpSample("addcdiv", lambda t, a, b, c: t.addcdiv(a, b, c, value=0.5), [(S, S, S)], 0.5, 3),
    OpSample("add_number", lambda t, x: 2 + x + 0.5, SHAPES),
    OpSample("sub_number", lambda t, x: (2 - x) - 1.5, SHAPES),
    OpSample("mul_number", lambda t, x: 3 * x * 0.5, SHAPES),
    OpSample("div_number", lambda t, x: (x / 2) + 1 / (x + 4), SHAPES),
    OpSample("pow_number", lambda t, x: x**2 + x**3 + x**1 + x**0, SHAPES),
    OpSample("pow_fraction", lambda t, x: x**0.5 + x**-1.5, SHAPES, 0.3, 3),
    OpSample("pow_base", lambda t, x: 2.0**x, SHAPES),
    OpSample("clamp", lambda t, x: t.clamp(x, -0.5, 0.7), SHAPES),
    OpSample("clamp_min", lambda t, x: x.clamp(min=0.3), SHAPES),
    OpSample("clamp_tensor", lambda t, x, a, b: t.clamp(x, a, b), [(S, (4,), (3, 1))]),
]

REDUCTIONS = [
    OpSample("sum", lambda t, x: x.sum(), SHAPES),
    OpSample("sum_dim", lambda t, x: x.sum(1), FLAT),
    OpSample("sum_dims", lambda t, x: x.sum((0, -1), keepdim=True), FLAT),
    OpSample("mean", lambda t, x: x.mean(), [(S,), ((),), ((2, 3, 2),)]),
    OpSample("mean_dim", lambda t, x: x.mean(dim=-1, keepdim=True), FLAT),
    OpSample("var", lambda t, x: x.var(), FLAT),
    OpSample("var_dim", lambda t, x: x.var(1, unbiased=False), FLAT),
    OpSample("var_correction", lambda t, x: t.var(x, dim=(0, 1), correction=0, keepdim=True), FLAT),
    OpSample("std", lambda t, x: x.std(), FLAT),
    OpSample("std_dim", lambda t, x: x.std(0, keepdim=True), FLAT),
    OpSample("prod", lambda t, x: x.prod(), [(S,), ((),), ((0, 3),)]),
    OpSample("prod_dim", lambda t, x: x.prod(1), FLAT),
    OpSample("prod_zero", lambda t, x: (x * (x > -0.9)).prod(1), [(S,)]),
    OpSample("amax", lambda t, x: x.amax(), [(S,), ((),)]),
    OpSample("amax_dim", lambda t, x: x.amax((0, 1)), FLAT),
    OpSample("amin_dim", lambda t, x: x.amin(1, keepdim=True), FLAT),
    OpSample("max", lambda t, x: x.max(), [(S,), ((),)]),
    OpSample("min", lambda t, x: x.min(), [(S,), ((),)]),
    OpSample("max_dim", lambda t, x: x.max(1).values, FLAT),
    OpSample("min_dim", lambda t, x: x.min(dim=0, keepdim=True)[0], FLAT),
    OpSample("median", lambda t, x: x.median(), FLAT),
    OpSample("median_dim", lambda t, x: x.median(1).values, FLAT),
    OpSample("kthvalue", lambda t, x: x.kthvalue(2, 1).values, FLAT),
    OpSample("sort", lambda t, x: x.sort(-1).values, [(S,), ((),), ((0, 3),)]),
    OpSample("sort_descending", lambda t, x: x.sort(0, descending=True).values, FLAT),
    OpSample("topk", lambda t, x: x.topk(2, 1).values, FLAT),
    OpSample("topk_smallest", lambda t, x: x.topk(2, 0, largest=False)[0], FLAT),
    OpSample("logsumexp", lambda t, x: x.logsumexp(1), FLAT + [((0, 3),)]),
    OpSample("logsumexp_dims", lambda t, x: t.logsumexp(x, (0, 1), keepdim=True), FLAT),
    OpSample("norm", lambda t, x: x.norm(), FLAT),
    OpSample("norm_1", lambda t, x: x.norm(1, dim=1), FLAT),
    OpSample("norm_3", lambda t, x: x.norm(3, dim=0), FLAT),
    OpSample("norm_15", lambda t, x: x.norm(1.5, dim=1, keepdim=True), FLAT),
    OpSample("norm_inf", lambda t, x: x.norm(float("inf"), dim=1), FLAT),
    OpSample("cumsum", lambda t, x: x.cumsum(1), FLAT),
    OpSample("cumsum_0", lambda t, x: t.cumsum(x, 0), [(S,), ((0, 3),), ((),)]),
]

PRODUCTS = [
    OpSample("mm", lambda t, a, b: a @ b, [((3, 4), (4, 2)), ((0, 4), (4, 2)), ((3, 0), (0, 2))]),
    OpSample("mv", lambda t, a, b: t.mv(a, b), [((3, 4), (4,))]),
    OpSample("vm", lambda t, a, b: a @ b, [((3,), (3, 4))]),
    OpSample("dot", lambda t, a, b: t.dot(a, b), [((4,), (4,)), ((0,), (0,))]),
    OpSample("outer", lambda t, a, b: t.outer(a, b), [((3,), (4,))]),
    OpSample("bmm", lambda t, a, b: t.bmm(a, b), [((2, 3, 4), (2, 4, 2))]),
    OpSample(
        "matmul",
        lambda t, a, b: t.matmul(a, b),
        [
            ((2, 3, 4), (4, 2)),
            ((2, 3), (2, 3, 2)),
            ((2, 1, 3, 2), (3, 2, 2)),
            ((2, 3, 2), (2,)),
            ((2,), (3, 2, 2)),
        ],
    ),
    OpSample(
        "linear",
        lambda t, x, w, b: t.nn.functional.linear(x, w, b),
        [((2, 3), (4, 3), (4,)), ((2, 2, 3), (2, 3), (2,)), ((3,), (2, 3), (2,))],
    ),
    OpSample("linear_plain", lambda t, x, w: t.nn.functional.linear(x, w), [((2, 3), (4, 3))]),
    OpSample(
        "addmm", lambda t, c, a, b: t.addmm(c, a, b, beta=0.5, alpha=2), [((2,), (3, 4), (4, 2))]
    ),
    OpSample("baddbmm", lambda t, c, a, b: t.baddbmm(c, a, b), [((2, 3, 2), (2, 3, 2), (2, 2, 2))]),
    OpSample("einsum_mm", lambda t, a, b: t.einsum("ij,jk->ik", a, b), [((3, 4), (4, 2))]),
    OpSample("einsum_trace", lambda t, a: t.einsum("ii", a), [((3, 3),)]),
    OpSample("einsum_diagonal", lambda t, a: t.einsum("bii->bi", a), [((2, 3, 3),)]),
    OpSample("einsum_sum", lambda t, a: t.einsum("ij->j", a), [((3, 4),)]),
    OpSample("einsum_transpose", lambda t, a: t.einsum("...ij->...ji", a), [((2, 3, 4),)]),
    OpSample(
        "einsum_dots",
        lambda t, a, b: t.einsum("...ij,...jk->...ik", a, b),
        [((2, 3, 2), (1, 2, 2))],
    ),
    OpSample(
        "einsum_three",
        lambda t, a, b, c: t.einsum("ij,jk,kl->il", a, b, c),
        [((2, 3), (3, 2), (2, 2))],
    ),
    OpSample("einsum_outer", lambda t, a, b: t.einsum("i,j", a, b), [((3,), (4,))]),
    OpSample("einsum_alone", lambda t, a, b: t.einsum("ij,k->k", a, b), [((2, 3), (2,))]),
]

SHAPES_OPS = [
    OpSample("reshape", lambda t, x: x.reshape(2, -1) * x.reshape(2, -1), [(S,), ((2, 3, 2),)]),
    OpSample("view", lambda t, x: x.view(-1) ** 2, [(S,), ((),)]),
    OpSample("flatten", lambda t, x: x.flatten(1), FLAT),
    OpSample("unflatten", lambda t, x: x.unflatten(-1, (2, -1)), FLAT),
    OpSample("squeeze", lambda t, x: x.unsqueeze(0).unsqueeze(1).squeeze(0).squeeze(), SHAPES),
    OpSample("unsqueeze", lambda t, x: x.unsqueeze(-1) ** 2, SHAPES),
    OpSample("permute", lambda t, x: x.permute(2, 0, 1) ** 2, [((2, 3, 2),)]),
    OpSample("transpose", lambda t, x: x.transpose(0, 1) ** 2, FLAT),
    OpSample("t", lambda t, x: x.t() @ x, [(S,)]),
    OpSample("T", lambda t, x: x.T * 2, FLAT[:1]),
    OpSample("mT", lambda t, x: x.mT * x.mT, FLAT),
    OpSample("movedim", lambda t, x: x.movedim(0, -1), FLAT),
    OpSample("movedims", lambda t, x: t.movedim(x, (0, 1), (2, 0)), [((2, 3, 2),)]),
    OpSample(
        "expand", lambda t, x: x.expand(2, 3, 4) ** 2, [((3, 1),), ((4,),), ((),), ((1, 3, 4),)]
    ),
    OpSample("expand_as", lambda t, x, y: x.expand_as(y) * y, [((4,), S)]),
    OpSample("clone", lambda t, x: x.clone() * 2, SHAPES),
    OpSample("contiguous", lambda t, x: x.transpose(0, 1).contiguous() ** 2, FLAT),
    OpSample(
        "cat", lambda t, a, b: t.cat([a, b], 1), [(S, (3, 2)), ((2, 3, 2), (2, 1, 2)), ((3, 0), S)]
    ),
    OpSample("cat_self", lambda t, a: t.cat([a, a * 2, a], 0), [(S,)]),
    OpSample("stack", lambda t, a, b: t.stack([a, b], -1), [(S, S), ((), ())]),
    OpSample("hstack", lambda t, a, b: t.hstack([a, b]), [((2,), (3,)), (S, S)]),
    OpSample("vstack", lambda t, a, b: t.vstack([a, b]), [((2,), (2,)), (S, S)]),
    OpSample("split", lambda t, x: x.split(2, 1)[0] * x.split(2, 1)[1] ** 2, [(S,)]),
    OpSample("split_sizes", lambda t, x: x.split([1, 3], dim=1)[1] ** 2, [(S,)]),
    OpSample("chunk", lambda t, x: sum(c.sum() ** 2 for c in x.chunk(3, 1)), [(S,)]),
    OpSample("tensor_split", lambda t, x: x.tensor_split(3, 1)[0] ** 2, [(S,)]),
    OpSample("unbind", lambda t, x: x.unbind(1)[0] * x.unbind(1)[2], [(S,)]),
    OpSample("iterate", lambda t, x: sum(i * row**2 for i, row in enumerate(x)), [(S,)]),
    OpSample("narrow", lambda t, x: x.narrow(1, 1, 2) ** 2, FLAT),
    OpSample("select", lambda t, x: x.select(0, 1) ** 2, FLAT),
    OpSample("pad", lambda t, x: t.nn.functional.pad(x, (1, 2)), FLAT),
    OpSample("pad_value", lambda t, x: t.nn.functional.pad(x, (1, 0, 0, 2), value=1.5), FLAT),
    OpSample("pad_crop", lambda t, x: t.nn.functional.pad(x, (-1, 1, 1, -1)), FLAT),
    OpSample("flip", lambda t, x: x.flip(0, 1) * x, FLAT),
    OpSample("roll", lambda t, x: x.roll(1, 0) * x, FLAT),
    OpSample("roll_flat", lambda t, x: x.roll(2) * x, FLAT),
    OpSample("roll_dims", lambda t, x: t.roll(x, (1, -1), (0, 1)), FLAT),
    OpSample("tril", lambda t, x: x.tril(), FLAT),
    OpSample("triu", lambda t, x: x.triu(1), FLAT),
    OpSample("repeat", lambda t, x: x.repeat(2, 1, 2), [(S,), ((),)]),
    OpSample("tile", lambda t, x: x.tile(2), FLAT),
    OpSample("repeat_interleave", lambda t, x: x.repeat_interleave(2, 1), FLAT),
    OpSample("diagonal", lambda t, x: x.diagonal(1), [(S,)]),
    OpSample("diagonal_dims", lambda t, x: x.diagonal(0, 0, 2), [((2, 3, 2),)]),
    OpSample("diag", lambda t, x: t.diag(x), [((3,),), (S,)]),
    OpSample("trace", lambda t, x: x.trace(), [(S,)]),
    OpSample("meshgrid", lambda t, a, b: t.meshgrid(a, b, indexing="ij")[0] * b, [((2,), (3,))]),
    OpSample("float_power", lambda t, x: t.float_power(x, 2.0), FLAT),
]

INDEXING = [
    OpSample("index_int", lambda t, x: x[1] ** 2, FLAT),
    OpSample("index_slice", lambda t, x: x[:, 1:3] ** 2, FLAT),
    OpSample("index_step", lambda t, x: x[::2, ::2] * 3, FLAT),
    OpSample("index_none", lambda t, x: x[None, ..., 1] ** 2, FLAT),
    OpSample("index_list", lambda t, x: x[[0, 2, 0]] ** 2, [(S,)]),
    OpSample("index_tensor", lambda t, x: x[index(t, [[0, 2], [1, 1]])] ** 2, [(S,)]),
    OpSample(
        "index_pair",
        lambda t, x: x[index(t, [0, 2, 2]), index(t, [1, 3, 3])] ** 2,
        [(S,)],
    ),
    OpSample("index_mixed", lambda t, x: x[:, index(t, [1, 1, 0])] ** 2, FLAT),
    OpSample("index_mask", lambda t, x: x[x > 0.1] ** 2, [(S,)]),
    OpSample("index_row_mask", lambda t, x: x[index(t, [True, False, True])] ** 2, [(S,)]),
    OpSample("index_negative", lambda t, x: x[-1, -2] ** 2, FLAT),
    OpSample("gather", lambda t, x: x.gather(1, index(t, [[0, 1, 1], [2, 0, 2]])) ** 2, [(S,)]),
    OpSample("gather_0", lambda t, x: x.gather(0, index(t, [[0, 1, 2, 2]])) ** 2, [(S,)]),
    OpSample(
        "take_along_dim",
        lambda t, x: t.take_along_dim(x, index(t, [[0], [1], [0]]), 1),
        [(S,)],
    ),
    OpSample("index_select", lambda t, x: x.index_select(1, index(t, [1, 1, 0])) ** 2, FLAT),
    OpSample("masked_fill", lambda t, x: x.masked_fill(x > 0.1, -1.5) ** 2, SHAPES),
    OpSample("masked_fill_tensor", lambda t, x, v: x.masked_fill(x > 0.1, v) ** 2, [(S, ())]),
    OpSample("masked_select", lambda t, x: x.masked_select(x > 0.1) ** 2, [(S,)]),
    OpSample(
        "scatter",
        lambda t, x, s: x.scatter(1, index(t, [[0, 1], [2, 0], [3, 1]]), s) ** 2,
        [(S, (3, 2)), (S, S)],
    ),
    OpSample(
        "scatter_value",
        lambda t, x: x.scatter(0, index(t, [[0, 1, 2, 0]]), 2.5) ** 2,
        [(S,)],
    ),
    OpSample(
        "scatter_add",
        lambda t, x, s: x.scatter_add(1, index(t, [[0, 0], [2, 1], [3, 3]]), s) ** 2,
        [(S, (3, 2)), (S, S)],
    ),
    OpSample(
        "index_add",
        lambda t, x, s: x.index_add(0, index(t, [0, 2, 0]), s, alpha=0.5) ** 2,
        [(S, S)],
    ),
    OpSample("index_fill", lambda t, x: x.index_fill(1, index(t, [0, 2]), 1.5) ** 2, [(S,)]),
]

SAMPLES = UNARY + BINARY + REDUCTIONS + PRODUCTS + SHAPES_OPS + INDEXING + PAIRED_OPS + RUNNING
CASES = [(sample, case) for sample in SAMPLES for case in range(len(sample.shapes))]

# PyTorch differentiates scatter only where `src` has the shape of `index`.
NO_GRADIENT_IN_PYTORCH = {"scatter-1", "scatter_add-1"}


def case_id(pair: tuple[OpSample, int]) -> str:
    """Return a test's name."""
    sample, case = pair
    return f"{sample.name}-{case}"


def strided(array: np.ndarray) -> np.ndarray:
    """Return the same values at every second place of a larger memory, in column-major order."""
    if array.ndim == 0:
        return np.stack([array, array + 9])[0:1].reshape(())
    room = np.full((*array.shape[::-1], 2), 7.0, array.dtype)
    view = room[..., 0].transpose()
    view[...] = array
    return view
