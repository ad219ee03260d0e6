"""The ops as methods: ``x.exp()`` is ``exp(x)``. One line each; ``tensor.py`` adds the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minitorch.ops import (
    arithmetic,
    counting,
    division,
    einsum,
    extremes,
    gathering,
    indexing,
    inplace,
    joining,
    matmul,
    pointwise,
    powers,
    rearranging,
    reduction,
    rounding,
    selection,
    shape,
    trigonometry,
)

_FUNCTIONS = {
    arithmetic: "add sub rsub neg mul lerp addcmul multiply subtract",
    division: "div reciprocal floor_divide remainder fmod addcdiv true_divide divide",
    powers: "pow square float_power",
    pointwise: """exp exp2 expm1 log log2 log10 log1p sqrt rsqrt tanh sigmoid logit relu erf
        erfc""",
    trigonometry: "sin cos tan asin acos atan sinh cosh arcsin arccos arctan",
    rounding: "abs sign floor ceil trunc round frac nan_to_num absolute fix",
    selection: """maximum minimum clamp clamp_min clamp_max clip eq ne lt le gt ge not_equal greater
        greater_equal less less_equal logical_and logical_or logical_xor logical_not bitwise_and
        bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift isnan isinf
        isfinite isclose allclose equal""",
    reduction: """sum mean var std prod logsumexp norm cumsum any all count_nonzero""",
    extremes: "amax amin max min argmax argmin sort argsort topk kthvalue median",
    gathering: """gather take_along_dim scatter scatter_add index_select index_add index_fill
        masked_fill masked_select nonzero argwhere""",
    counting: "unique bincount",
    matmul: "matmul mm bmm mv dot outer addmm baddbmm",
    shape: """reshape view view_as reshape_as flatten unflatten ravel squeeze unsqueeze permute
        transpose t movedim moveaxis swapaxes swapdims expand expand_as broadcast_to clone
        contiguous""",
    joining: "split chunk tensor_split unbind narrow select",
    rearranging: """flip fliplr flipud roll tril triu repeat tile repeat_interleave diagonal diag
        trace""",
}

# What `import minitorch` offers as functions beyond the methods.
_ONLY_FUNCTIONS = {
    selection: "where",
    counting: "searchsorted",
    reduction: "var_mean std_mean",
    shape: "broadcast_tensors",
    joining: "cat stack concat concatenate hstack vstack",
    rearranging: "meshgrid",
    einsum: "einsum",
    pointwise: "softplus gelu",
}
_NOT_FUNCTIONS = {"view", "view_as", "reshape_as", "expand", "expand_as", "repeat", "contiguous"}


def functions() -> dict[str, Callable]:
    """Return the ops that are module-level functions, by name."""
    return {
        name: getattr(module, name)
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
        setattr(Methods, _name, getattr(_module, _name))
for _name, _value in vars(inplace).items():
    if _name.endswith("_") and not _name.startswith("_"):
        setattr(Methods, _name, _value)


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
    "ifloordiv": inplace.floor_divide_,
    "imod": inplace.remainder_,
    "ipow": inplace.pow_,
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
