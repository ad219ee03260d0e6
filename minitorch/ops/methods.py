"""The ops as methods: ``x.exp()`` is ``exp(x)``. One line each; ``tensor.py`` adds the rest."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from minitorch.ops import (
    arithmetic,
    counting,
    cumulative,
    diagonals,
    division,
    einsum,
    extremes,
    gathering,
    index_writes,
    indexing,
    inplace,
    joining,
    magnitude,
    matmul,
    order,
    paired,
    pointwise,
    powers,
    products,
    rearranging,
    reduction,
    rounding,
    selection,
    shape,
    stacking,
    trigonometry,
)

_FUNCTIONS = {
    arithmetic: "add sub rsub neg negative mul lerp addcmul multiply subtract",
    division: "div reciprocal floor_divide remainder fmod addcdiv true_divide divide",
    powers: "pow square float_power",
    pointwise: """exp exp2 expm1 log log2 log10 log1p sqrt rsqrt tanh sigmoid logit relu erf
        erfc""",
    trigonometry: """sin cos tan asin acos atan sinh cosh asinh acosh atanh deg2rad rad2deg arcsin
        arccos arctan arcsinh arccosh arctanh""",
    rounding: "abs sign sgn signbit positive floor ceil trunc round frac nan_to_num absolute fix",
    selection: """maximum minimum clamp clamp_min clamp_max clip eq ne lt le gt ge not_equal greater
        greater_equal less less_equal logical_and logical_or logical_xor logical_not bitwise_and
        bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift isnan isinf
        isfinite isposinf isneginf isclose allclose equal""",
    paired: """atan2 arctan2 hypot logaddexp xlogy fmax fmin copysign heaviside""",
    reduction: "sum mean var std prod nansum nanmean any all count_nonzero",
    magnitude: "logsumexp norm dist",
    cumulative: "cumsum cumprod cummax cummin diff",
    extremes: "amax amin aminmax max min argmax argmin",
    order: "sort argsort msort topk kthvalue median nanmedian quantile",
    gathering: """gather take_along_dim take scatter scatter_add index_select index_add index_fill
        masked_fill masked_select nonzero argwhere""",
    index_writes: "index_put index_copy masked_scatter",
    counting: "unique unique_consecutive bincount histc bucketize isin",
    matmul: "matmul mm bmm mv dot outer addmm baddbmm",
    products: "inner vdot ger kron cross addmv addr",
    shape: """reshape view view_as reshape_as flatten unflatten ravel squeeze unsqueeze permute
        transpose t movedim moveaxis swapaxes swapdims expand expand_as broadcast_to clone
        contiguous""",
    joining: """split split_with_sizes chunk tensor_split hsplit vsplit dsplit unbind narrow
        select""",
    stacking: "unfold",
    rearranging: "flip fliplr flipud roll rot90 repeat tile repeat_interleave",
    diagonals: "tril triu diagonal diag diag_embed diagflat trace",
}

# What `import minitorch` offers as functions beyond the methods.
_ONLY_FUNCTIONS = {
    selection: "where",
    counting: "searchsorted",
    reduction: "var_mean std_mean",
    shape: "broadcast_tensors broadcast_shapes",
    joining: "cat stack concat concatenate",
    stacking: "hstack vstack dstack column_stack row_stack atleast_1d atleast_2d atleast_3d",
    products: "tensordot chain_matmul cdist",
    rearranging: "meshgrid cartesian_prod combinations",
    diagonals: "block_diag",
    einsum: "einsum",
    pointwise: "softplus gelu",
}
_NOT_FUNCTIONS = frozenset(
    ["view", "view_as", "reshape_as", "expand", "expand_as", "repeat", "contiguous", "unfold"]
)


_NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim"}


def numpy_keywords(op: Callable) -> Callable:
    """Let an op that has ``dim`` or ``keepdim`` take NumPy's ``axis`` or ``keepdims`` as well."""
    names = inspect.signature(op).parameters
    renamed = {alias: name for alias, name in _NUMPY_NAMES.items() if name in names}
    if not renamed:
        return op

    @functools.wraps(op)
    def method(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            for alias, name in renamed.items():
                if alias in kwargs and name not in kwargs:
                    kwargs[name] = kwargs.pop(alias)
        return op(*args, **kwargs)

    return method


def functions() -> dict[str, Callable]:
    """Return the ops that are module-level functions, by name."""
    return {
        name: numpy_keywords(getattr(module, name))
        for table in (_FUNCTIONS, _ONLY_FUNCTIONS)
        for module, names in table.items()
        for name in names.split()
        if name not in _NOT_FUNCTIONS
    }


class Methods:
    """Mixed into Tensor: every op whose first argument is the tensor, and the in-place ones."""

    __slots__ = ()

    def where(self, condition: Any, other: Any) -> Any:
        """Return ``minitorch.where(condition, self, other)``."""
        return selection.where(condition, self, other)


for _module, _names in _FUNCTIONS.items():
    for _name in _names.split():
        setattr(Methods, _name, numpy_keywords(getattr(_module, _name)))
for _module in (inplace, index_writes):
    for _name, _value in vars(_module).items():
        if _name.endswith("_") and not _name.startswith("_"):
            setattr(Methods, _name, numpy_keywords(_value))


def _operator(op: Callable, reverse: bool = False) -> Callable:
    """Return a dunder method: NotImplemented for foreign operands, so that theirs is tried."""
    if reverse:

        def method(self: Any, other: Any) -> Any:
            try:
                return op(other, self)
            except TypeError:
                return NotImplemented

    else:

        def method(self: Any, other: Any) -> Any:
            try:
                return op(self, other)
            except TypeError:
                return NotImplemented

    return method


_BINARY = {
    "add": arithmetic.add,
    "sub": arithmetic.sub,
    "mul": arithmetic.mul,
    "truediv": division.div,
    "floordiv": division.floor_divide,
    "mod": division.remainder,
    "pow": powers.pow,
    "and": selection.bitwise_and,
    "or": selection.bitwise_or,
    "xor": selection.bitwise_xor,
    "lshift": selection.bitwise_left_shift,
    "rshift": selection.bitwise_right_shift,
}
for _name, _op in _BINARY.items():
    setattr(Methods, f"__{_name}__", _operator(_op))
    setattr(Methods, f"__r{_name}__", _operator(_op, reverse=True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Methods, f"__{_name}__", _operator(getattr(selection, _name)))
for _name, _op in {
    "iadd": inplace.add_,
    "isub": inplace.sub_,
    "imul": inplace.mul_,
    "itruediv": inplace.div_,
    "ifloordiv": inplace.in_place(division.floor_divide),
    "imod": inplace.in_place(division.remainder),
    "ipow": inplace.in_place(powers.pow),
    "iand": inplace.in_place(selection.bitwise_and),
    "ior": inplace.in_place(selection.bitwise_or),
    "ixor": inplace.in_place(selection.bitwise_xor),
}.items():
    setattr(Methods, f"__{_name}__", _op)
for _name, _op in {
    "matmul": matmul.matmul,
    "neg": arithmetic.neg,
    "pos": lambda self: self,
    "abs": rounding.abs,
    "invert": selection.bitwise_not,
    "getitem": indexing.getitem,
    "setitem": indexing.setitem,
}.items():
    setattr(Methods, f"__{_name}__", _op)
