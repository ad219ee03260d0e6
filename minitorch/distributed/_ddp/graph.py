"""Which parameters can this forward's outputs reach? The question behind
``find_unused_parameters``.

Costs no communication: one walk over the graph that forward has just recorded.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any

from minitorch.autograd.graph import gradient_edge
from minitorch.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def find_tensors(output: Any) -> Iterator[Tensor]:
    """Yield the tensors in a forward's return value.

    Looked into, as in PyTorch: tensors, lists, tuples, dicts (their values) and dataclasses, nested
    in any way. Any other object hides its tensors.
    """
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, (list, tuple)):
        for item in output:
            yield from find_tensors(item)
    elif isinstance(output, dict):
        for item in output.values():
            yield from find_tensors(item)
    elif dataclasses.is_dataclass(output) and not isinstance(output, type):
        for field in dataclasses.fields(output):
            yield from find_tensors(getattr(output, field.name))


def find_unreached(outputs: Iterable[Tensor], accumulators: Sequence[Any]) -> list[int]:
    """Return the indices of those ``accumulators`` that backward from ``outputs`` cannot reach.

    Parameters
    ----------
    outputs
        Tensors; those without a ``grad_fn`` reach nothing but themselves.
    accumulators
        The AccumulateGrad node of each managed parameter.
    """
    roots = []
    seen: set[int] = set()
    for tensor in outputs:
        node, _ = gradient_edge(tensor)
        if node is not None and id(node) not in seen:
            seen.add(id(node))
            roots.append(node)
    while roots:
        for next_node, _ in roots.pop().next_functions:
            if next_node is not None and id(next_node) not in seen:
                seen.add(id(next_node))
                roots.append(next_node)
    return [i for i, node in enumerate(accumulators) if id(node) not in seen]


class UnusedSearch:
    """The search after each forward of one wrapper.

    Parameters
    ----------
    accumulators
        The AccumulateGrad node of each managed parameter.

    Attributes
    ----------
    always_the_same : bool
        Whether there were at least one search and no two different results: ``static_graph`` would
        do.
    """

    def __init__(self, accumulators: Sequence[Any]) -> None:
        self._accumulators = accumulators
        self._before: list[int] | None = None
        self._warned = False
        self.always_the_same = False

    def unused(self, outputs: Iterable[Tensor]) -> list[int]:
        """Return the parameters that ``outputs`` do not reach; warns once if there are none."""
        found = find_unreached(outputs, self._accumulators)
        self.always_the_same = self._before is None or (
            self.always_the_same and self._before == found
        )
        self._before = found
        if not found and not self._warned:
            self._warned = True
            warnings.warn(
                "find_unused_parameters=True was specified in DDP constructor, but did not "
                "find any unused parameters in the forward pass. The flag costs a walk over "
                "the graph in every iteration and keeps buckets from being rebuilt; drop it if "
                "your model always uses every parameter.",
                stacklevel=5,
            )
        return found
