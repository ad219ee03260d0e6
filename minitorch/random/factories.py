"""New random tensors: ``rand``, ``randn``, ``randint``, ``randperm``, and those like others.

Arguments are PyTorch's. ``layout``, ``device`` and ``pin_memory`` are accepted where they mean what
minitorch has: a strided tensor on the CPU. ``draws.py`` holds what draws by parameters of its own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dtypes import get_default_dtype
from . import streams
from ._arguments import finish, new_like, new_or_out, shape_of
from .draws import bernoulli, multinomial, normal
from .generator import Generator, stream_of
from .inplace import check_bounds, fill, normal_, uniform_
from .picks import permutation

__all__ = [
    "bernoulli",
    "multinomial",
    "normal",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
]


def _drawn(name: str, fill_: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """Return the function `name`, which makes a tensor and fills it by `fill_`."""

    def make(
        *sizes: Any,
        size: Any = None,
        generator: Generator | None = None,
        out: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
    ) -> Any:
        shape = shape_of(name, sizes if size is None else (*sizes, size))
        x = new_or_out(shape, dtype, get_default_dtype(), out, device, layout, requires_grad)
        return finish(fill_(x, generator=generator), requires_grad)

    return _named(make, name, doc)


def _named(function: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


rand = _drawn(
    "rand",
    uniform_,
    """A tensor of values uniform in [0, 1).

    Parameters
    ----------
    *size : int, or one sequence of int
        The shape; also by keyword.
    generator : Generator, optional
        By default the default generator.
    out : Tensor, optional
        Filled and returned.
    dtype : dtype, optional
        A floating one; the default dtype if None.
    requires_grad : bool, default False
        Whether autograd records operations on the result.

    Examples
    --------
    >>> import minitorch
    >>> _ = minitorch.manual_seed(0)
    >>> minitorch.rand(2)
    tensor([0.4963, 0.7682])
    """,
)
randn = _drawn("randn", normal_, "A tensor of standard normal values; arguments as :func:`rand`.")


def randint(
    *args: Any,
    low: int = 0,
    high: int | None = None,
    size: Sequence[int] | None = None,
    generator: Generator | None = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A tensor of integers in [low, high): ``randint(high, size)`` or ``randint(low, high, size)``.

    Parameters
    ----------
    low, high : int
        ``low`` is 0 by default.
    size : sequence of int
        The shape.
    dtype : dtype, optional
        int64 if None.

    Other arguments as :func:`rand`.
    """
    left = list(args)
    if size is None:
        if not left:
            raise TypeError("randint() received an invalid combination of arguments: no size")
        size = left.pop()
        if not isinstance(size, (tuple, list)):
            raise TypeError(
                f"randint(): argument 'size' must be tuple of ints, not {type(size).__name__}"
            )
    if high is None:
        if not left:
            raise TypeError("randint() received an invalid combination of arguments: no high")
        high = left.pop()
    if left:
        low = left.pop()
    if left:
        raise TypeError("randint() received an invalid combination of arguments: too many")
    low, high = operator.index(low), operator.index(high)
    for bound in (low, high):
        if not -(2**63) <= bound < 2**63:
            raise ValueError(f"Overflow when unpacking long long: {bound}")
    x = new_or_out(shape_of("randint", (size,)), dtype, int, out, device, layout, requires_grad)
    return finish(_integers_into(x, low, high, generator), requires_grad)


def _integers_into(x: Any, low: int, high: int, generator: Generator | None) -> Any:
    kind = x._array.dtype
    check_bounds(kind, low, high)
    stream = stream_of(generator)
    return fill(x, lambda shape, _: streams.integers(stream, shape, kind, low, high))


def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A random permutation of ``0 .. n-1``, int64 unless ``dtype`` says otherwise."""
    if not hasattr(n, "__index__"):
        raise TypeError(
            f"randperm(): argument 'n' (position 1) must be int, not {type(n).__name__}"
        )
    n = operator.index(n)
    x = new_or_out(shape_of("randperm", (n,)), dtype, int, out, device, layout, requires_grad)
    kind = x._array.dtype
    if kind.kind in "iu" and n - 1 > np.iinfo(kind).max:
        raise RuntimeError(f"n is too large for result tensor type: {n} elements in {kind.name}")
    stream = stream_of(generator)
    fill(x, lambda *_: permutation(stream, n).astype(kind))
    return finish(x, requires_grad)


# -- after another tensor -------------------------------------------------------------------------


def _like(name: str, fill_: Callable[..., Any], doc: str) -> Callable[..., Any]:
    def make(
        input: Any,
        *,
        generator: Generator | None = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
    ) -> Any:
        x = new_like(input, dtype, device, layout, requires_grad)
        return finish(fill_(x, generator=generator), requires_grad)

    return _named(make, name, doc)


rand_like = _like(
    "rand_like",
    uniform_,
    "Values uniform in [0, 1), with the shape, dtype and layout of ``input``.",
)
randn_like = _like(
    "randn_like", normal_, "Standard normal values, with the shape, dtype and layout of ``input``."
)


def randint_like(
    input: Any,
    low: int,
    high: int | None = None,
    *,
    generator: Generator | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Any:
    """Integers in [low, high), or [0, low) without ``high``, shaped like ``input``."""
    low, high = (0, low) if high is None else (low, high)
    x = new_like(input, dtype, device, layout, requires_grad)
    return finish(
        _integers_into(x, operator.index(low), operator.index(high), generator), requires_grad
    )
