"""Where gradients live: one Tensor per parameter, a view of its slot in a bucket.

A view is an ordinary one of the bucket's flat tensor, so that ``detach_()`` raises on it as it
must. After a rebuild, gradients that were slots are moved to their new places. A bucket of a sparse
gradient has no memory and no slots; what is on its way stands in ``flat``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.autograd.grad_mode import enable_grad
from minitorch.autograd.graph import wrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minitorch.tensor import Tensor


class Slots:
    """The views of one reducer; indexed by parameter, ``None`` for a sparse one.

    Attributes
    ----------
    members : list of list of int
        By bucket: its parameters.
    flat : list of Tensor or None
        By bucket: its memory.
    """

    def __init__(self, core: Any, parameters: Sequence[Tensor]) -> None:
        self._core = core
        self._parameters = parameters
        self._views: list[Any] = [None] * len(parameters)
        self.lay_out()

    def __getitem__(self, index: int) -> Any:
        return self._views[index]

    def lay_out(self) -> None:
        """Make views of the core's present buckets; move gradients out of the old ones."""
        old = self._views
        self._views = [None] * len(self._parameters)
        self.members: list[list[int]] = self._core.bucket_indices
        self.flat: list[Any] = [None] * len(self.members)
        for bucket, members in enumerate(self.members):
            if not self._core.is_sparse(bucket):
                self.flat[bucket] = self._cut(bucket, members)
        for index, view in enumerate(old):
            parameter = self._parameters[index]
            if view is not None and parameter._grad is view:
                self._views[index]._array[...] = view._array
                parameter._grad = self._views[index]

    def _cut(self, bucket: int, members: list[int]) -> Any:
        dtype = self._parameters[members[0]]._array.dtype
        flat = wrap(self._core.bucket_memory(bucket).view(dtype))
        start = 0
        for index in members:
            like = self._parameters[index]._array
            stop = start + like.size
            with enable_grad():
                self._views[index] = flat[start:stop].view(like.shape)
            start = stop
        return flat
