"""Gradients accumulated over several backwards: ``no_sync``, and how they are averaged after all.

Cost: nothing inside ``no_sync``; ``sync`` what one backward costs, hidden under nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .delayed import DelayedAllReduce
    from .reducer import GradientReducer


class Accumulation:
    """The part of DistributedDataParallel that decides when gradients are averaged."""

    reducer: GradientReducer
    require_backward_grad_sync: bool
    _delayed: DelayedAllReduce | None

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulate gradients locally: a forward in this context does not arm its backward.

        The next synced backward averages what has accumulated. What counts is where *forward* runs:
        a backward in this context of a forward outside of it does synchronize.

        Examples
        --------
        >>> with ddp.no_sync():  # doctest: +SKIP
        ...     for x in micro_batches[:-1]:
        ...         ddp(x).sum().backward()
        >>> ddp(micro_batches[-1]).sum().backward()  # doctest: +SKIP
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        self.reducer.set_no_sync(True)
        try:
            yield
        finally:
            self.require_backward_grad_sync = before
            self.reducer.set_no_sync(not before)

    def sync(self) -> None:
        """Average what has accumulated in ``.grad``, without another forward and backward; a
        collective.

        For an epoch that ends inside ``no_sync``. Gradients that are the same on all ranks already
        stay what they are; a parameter without a gradient on any rank keeps None. PyTorch has no
        such call: there the rest of the epoch has to be thrown away.

        Raises
        ------
        RuntimeError
            Inside backward; or "Expected to have finished reduction ..." if the last backward did
            not.

        Examples
        --------
        >>> with ddp.no_sync():  # doctest: +SKIP
        ...     for x in inputs:
        ...         ddp(x).sum().backward()
        >>> ddp.sync()  # doctest: +SKIP
        >>> optimizer.step()  # doctest: +SKIP
        """
        self.reducer.flush()
        if self._delayed is not None:
            self._delayed.reduce_now()
