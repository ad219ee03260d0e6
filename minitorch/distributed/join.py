"""``Join``: training goes on when some ranks have run out of inputs.

A rank that has used up its inputs leaves the loop and *joins*: from then on it shadows what the
other ranks do, one round per iteration of theirs, so that every collective finds all its ranks.

    active rank                             joined rank
    -----------                             -----------
    iteration: all-reduce 1        <---->   all-reduce 0: how many are still active?
               its collectives     <---->   main_hook() of every joinable shadows them
    (no input left: leaves the loop and becomes a joined rank)
    all-reduce 0                   <---->   all-reduce 0: nobody is
    post_hook(is_last_joiner)               post_hook(is_last_joiner)

Whatever communicates once per iteration can take part: it is a :class:`Joinable`, says so at the
start of its iteration (``Join.notify_join_context(self)``), and its :class:`JoinHook` knows how to
shadow it. DistributedDataParallel's is in ``_ddp/join.py``.

Cost per iteration: one all-reduce of 4 bytes; one more with ``throw_on_early_termination``.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from minitorch.autograd.graph import wrap

from .collectives import all_reduce

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from .process_group import ProcessGroup
    from .work import Work

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a joined rank does in place of the iterations that it has no inputs for."""

    def main_hook(self) -> None:
        """Shadow the collectives of one iteration; called again and again until all have joined."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Finish, once all ranks have joined.

        Parameters
        ----------
        is_last_joiner : bool
            Whether this rank had as many iterations as any: there may be several such ranks.
        """


class _JoinConfig(NamedTuple):
    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False  # the one that counts the active ranks for all


_DISABLED = _JoinConfig()


class Joinable(ABC):
    """What can take part in a :class:`Join`.

    A subclass calls ``Joinable.__init__``, calls ``Join.notify_join_context(self)`` once per
    iteration before its own collectives, and returns from :meth:`join_hook` what shadows them.
    """

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()
        self._join_config = _DISABLED

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook for one context; ``kwargs`` are all those that ``Join`` was given."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of its collectives: ``minitorch.device("cpu")``."""

    @property
    @abstractmethod
    def join_process_group(self) -> ProcessGroup:
        """The group of its collectives."""


class Join:
    """A context in which ranks may run different numbers of iterations.

    Parameters
    ----------
    joinables : list of Joinable
        All that communicates in the loop, in the same order on every rank. The hooks run in this
        order; the first one counts the active ranks.
    enable : bool
        With False the context does nothing, for loops whose inputs are known to be even.
    throw_on_early_termination : bool
        Raise on all ranks once one has run out of inputs, instead of shadowing. For loops whose
        own collectives (``SyncBatchNorm``'s, for one) nobody could shadow.
    **kwargs
        Handed to every ``join_hook``.

    Raises
    ------
    ValueError
        If there is no joinable, or they communicate in different groups.
    RuntimeError
        With ``throw_on_early_termination``, at the end of the context: "Rank r exhausted all
        inputs." on the ranks that did, "Detected at least one rank that exhausted inputs. Throwing
        across all ranks." on the others, at the start of their next iteration.

    Notes
    -----
    An exception in the body is passed on, and nothing is shadowed. A context that has ended leaves
    its joinables as it found them (PyTorch's go on counting).

    Examples
    --------
    >>> import minitorch as torch, minitorch.distributed as dist
    >>> from minitorch.nn.parallel import DistributedDataParallel as DDP
    >>> def train(rank):
    ...     model = DDP(torch.nn.Linear(1, 1, bias=False))
    ...     seen = []
    ...     with dist.algorithms.Join([model]):
    ...         for _ in range(1 + rank):
    ...             model.zero_grad()
    ...             model(torch.ones(1, 1)).sum().backward()
    ...             seen.append(model.module.weight.grad.item())
    ...     return seen
    >>> dist.run_local(train, 2)
    [[1.0], [1.0, 0.5]]
    """

    # Rounds that a rank shadows before it says that the inputs are very uneven.
    WARN_THRESHOLD = 1000

    def __init__(
        self,
        joinables: Sequence[Joinable],
        enable: bool = True,
        throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:
        if len(joinables) == 0:
            raise ValueError("The join context manager requires at least one joinable")
        for joinable in joinables:
            _require_config(joinable)
        self._joinables = list(joinables)
        self._enable = enable
        self._throw_on_early_termination = throw_on_early_termination
        self._process_group = _common_group(joinables)
        self._join_hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._configs_before: list[_JoinConfig] = []

    def __enter__(self) -> None:
        self._configs_before = [joinable._join_config for joinable in self._joinables]
        for index, joinable in enumerate(self._joinables):
            joinable._join_config = _JoinConfig(
                self._enable, self._throw_on_early_termination, index == 0
            )

    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if self._enable and type is None:
                self._shadow_until_all_have_joined()
        finally:
            for joinable, before in zip(self._joinables, self._configs_before, strict=True):
                joinable._join_config = before

    def _shadow_until_all_have_joined(self) -> None:
        rounds = 0
        while _sum_over(self._process_group, 0) > 0:
            if self._throw_on_early_termination:
                _sum_over(self._process_group, 1)
                raise RuntimeError(f"Rank {self._process_group.rank()} exhausted all inputs.")
            for hook in self._join_hooks:
                hook.main_hook()
            rounds += 1
            if rounds == self.WARN_THRESHOLD + 1:
                self._warn_of_skew()
        for hook in self._join_hooks:
            hook.post_hook(is_last_joiner=rounds == 0)

    def _warn_of_skew(self) -> None:
        warnings.warn(
            f"Detected uneven input skew of greater than {self.WARN_THRESHOLD}. This means that "
            f"rank {self._process_group.rank()} has at least {self.WARN_THRESHOLD} fewer inputs "
            "than other currently-active ranks. It goes on shadowing their steps, which costs them "
            "as much as its own would: deal the inputs out more evenly.",
            stacklevel=4,
        )

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Tell the joined ranks that this one is active, at the start of an iteration.

        Does nothing outside of a context, in a disabled one, and for all but the first joinable.

        Returns
        -------
        Work or None
            The all-reduce that counts the active ranks, in flight.

        Raises
        ------
        RuntimeError
            With ``throw_on_early_termination``, if a rank has run out of inputs.
        """
        _require_config(joinable)
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        process_group = joinable.join_process_group
        work = all_reduce(wrap(np.ones(1, np.float32)), group=process_group, async_op=True)
        if config.throw_on_early_termination and _sum_over(process_group, 0) > 0:
            raise RuntimeError(
                "Detected at least one rank that exhausted inputs. Throwing across all ranks."
            )
        return work


def _sum_over(process_group: ProcessGroup, value: int) -> int:
    total = wrap(np.full(1, value, np.float32))
    all_reduce(total, group=process_group)
    return int(total._array[0])


def _require_config(joinable: Any) -> None:
    if not hasattr(joinable, "_join_config"):
        raise AssertionError(  # PyTorch's
            f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor"
        )


def _common_group(joinables: Sequence[Joinable]) -> ProcessGroup:
    groups = [joinable.join_process_group for joinable in joinables]
    if any(group is not groups[0] for group in groups):
        raise ValueError("Using join context manager with multiple process groups")
    return groups[0]
