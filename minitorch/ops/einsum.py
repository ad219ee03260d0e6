"""``einsum``: sums of products named by letters.

The gradient for one operand is again an einsum: of the result's gradient with the other operands.
An axis that only this operand has was summed alone, so its gradient is repeated along it.
"""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from minitorch.autograd.graph import Node, record
from minitorch.ops import generic
from minitorch.ops.casting import same_type
from minitorch.ops.generic import expand, sum_to


def einsum(equation: str, *operands: Any) -> Any:
    """Return the sum of products that `equation` describes, such as ``"bij,bjk->bik"``.

    Raises
    ------
    RuntimeError
        If subscripts and operands do not fit.
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    tensors = list(operands)
    for i in range(1, len(tensors)):
        tensors[0], tensors[i] = same_type(tensors[0], tensors[i])
    tensors = [same_type(each, tensors[0])[0] for each in tensors]
    terms, result = _parse(equation, [each._array.ndim for each in tensors])
    for i, term in enumerate(terms):
        tensors[i], terms[i] = _take_diagonals(tensors[i], term, i)
    _check_sizes(terms, tensors)
    out = _contract(terms, result, [each._array for each in tensors])
    wanted = any(each._requires_grad for each in tensors)
    return record(
        out, einsum_backward, tuple(tensors), tuple(tensors) if wanted else (), (terms, result)
    )


def _contract(terms: list[str], result: str, arrays: list) -> Any:
    spec = ",".join(terms) + "->" + result
    short = arrays[0].dtype.itemsize == 2 and arrays[0].dtype.kind in "fV"
    if short:
        wide = [array.astype(np.float32) for array in arrays]
        return np.einsum(spec, *wide, optimize=len(wide) > 1).astype(arrays[0].dtype)
    # A view of an operand would tie the result's memory to it: copy.
    out = np.einsum(spec, *arrays, optimize=len(arrays) > 1)
    return np.array(out) if any(np.may_share_memory(out, array) for array in arrays) else out


def _product(terms: list[str], result: str, factors: list) -> Any:
    if any(generic.is_tensor(each) for each in factors):
        return einsum(",".join(terms) + "->" + result, *factors)
    return _contract(terms, result, factors)


def einsum_backward(node: Node, grad: Any) -> tuple:
    factors = node.saved
    terms, result = node.ctx
    grads: list[Any] = []
    for i, (term, needed) in enumerate(zip(terms, node._next, strict=True)):
        if needed is None:
            grads.append(None)
            continue
        other_terms = [result, *terms[:i], *terms[i + 1 :]]
        others = [grad, *factors[:i], *factors[i + 1 :]]
        known = set("".join(other_terms))
        reachable = "".join([letter for letter in term if letter in known])
        g = _product(other_terms, reachable, others)
        shape = factors[i].shape
        if reachable != term:
            lengths = [1] * len(term)
            for letter, length in zip(reachable, g.shape, strict=True):
                lengths[term.index(letter)] = length
            full = [
                length if letter in known else n
                for letter, length, n in zip(term, lengths, shape, strict=True)
            ]
            g = expand(g.reshape(tuple(lengths)), tuple(full))
        grads.append(sum_to(g, tuple(shape)))
    return tuple(grads)


def _parse(equation: str, ranks: list[int]) -> tuple[list[str], str]:
    """Return one letter per axis for each operand and the result, ellipses spelled out."""
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        more = "fewer" if len(terms) > len(ranks) else "more"
        raise RuntimeError(
            f"einsum(): {more} operands were provided than specified in the equation"
        )
    used = set(equation)
    spare = [letter for letter in string.ascii_letters if letter not in used]
    widest = max(
        [
            rank - len(term.replace("...", ""))
            for term, rank in zip(terms, ranks, strict=True)
            if "..." in term
        ],
        default=0,
    )
    if widest < 0:
        raise RuntimeError("einsum(): the number of subscripts exceeds an operand's dimensions")
    dots = "".join(spare[:widest])
    spelled = []
    for number, (term, rank) in enumerate(zip(terms, ranks, strict=True)):
        hidden = rank - len(term.replace("...", ""))
        if hidden != 0 and "..." not in term:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(term)}) does not match "
                f"the number of dimensions ({rank}) for operand {number} and no ellipsis was given"
            )
        spelled.append(term.replace("...", dots[len(dots) - hidden :] if hidden else ""))
    if arrow:
        result = right.replace("...", dots)
    else:
        letters = "".join(terms).replace(".", "")
        result = dots + "".join([c for c in sorted(set(letters)) if letters.count(c) == 1])
    for letter in result:
        if result.count(letter) > 1:
            raise RuntimeError(
                f"einsum(): output subscript {letter} appears more than once in the output"
            )
        if letter not in "".join(spelled):
            raise RuntimeError(
                f"einsum(): output subscript {letter} does not appear in the equation for any "
                "input operand"
            )
    return spelled, result


def _take_diagonals(tensor: Any, term: str, number: int) -> tuple[Any, str]:
    """Replace an axis pair with one letter ("ii") by its diagonal."""
    from minitorch.ops.diagonals import diagonal

    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            a, b = tensor._array.shape[first], tensor._array.shape[second]
            if a != b:
                raise RuntimeError(
                    f"einsum(): subscript {letter} is repeated for operand {number} but the sizes "
                    f"don't match, {b} != {a}"
                )
            tensor = diagonal(tensor, 0, first, second)
            term = "".join([c for i, c in enumerate(term) if i not in (first, second)]) + letter
    return tensor, term


def _check_sizes(terms: list[str], tensors: list) -> None:
    sizes: dict[str, int] = {}
    for number, (term, tensor) in enumerate(zip(terms, tensors, strict=True)):
        for letter, n in zip(term, tensor._array.shape, strict=True):
            held = sizes.setdefault(letter, n)
            if held == 1:
                sizes[letter] = n
            elif n not in (1, held):
                raise RuntimeError(
                    f"einsum(): subscript {letter} has size {n} for operand {number} which does "
                    f"not broadcast with previously seen size {held}"
                )
