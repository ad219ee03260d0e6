"""``ProcessGroup``: some ranks that communicate, and how to find the one that is meant.

Every function of this package takes ``group=None``, which means the default group of the calling
rank. The group itself does little: it owns the core's group (``_group``) and translates between
*global* ranks, by which PyTorch's API names a root or a peer, and ranks within the group, which is
what the core speaks.

Next rooms: ``world.py`` makes groups, ``collectives.py`` uses them.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ._rank_state import current

default_pg_timeout = timedelta(minutes=30)


class ReduceOp(enum.Enum):
    """How the ranks' values are combined. ``AVG`` needs floating point tensors."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"


class ProcessGroup:
    """A group of ranks.

    Made by ``init_process_group`` and ``new_group``; not meant to be constructed by hand.

    Attributes
    ----------
    timeout : datetime.timedelta
        How long any collective of this group may take.
    group_name, group_desc : str
        For people.
    """

    __slots__ = (
        "__weakref__",
        "_backend",
        "_engine",
        "_group",
        "_index",
        "_rank",
        "_ranks",
        "_reduce_in_place",
        "group_desc",
        "group_name",
        "timeout",
    )

    def __init__(
        self,
        group: Any,
        engine: Any,
        ranks: Sequence[int],
        timeout: timedelta,
        backend: str,
        name: str = "",
        description: str = "undefined",
    ) -> None:
        self._group = group
        self._engine = engine
        self._rank = group.rank
        self._ranks = list(ranks)
        self._index = {rank: index for index, rank in enumerate(self._ranks)}
        self._backend = backend
        self.timeout = timeout
        self.group_name = name
        self.group_desc = description
        # Looked up once: at a few microseconds per small all-reduce, an attribute counts.
        self._reduce_in_place = group.all_reduce_now

    def rank(self) -> int:
        """The calling rank's place in the group."""
        return self._rank

    def size(self) -> int:
        """How many ranks the group has."""
        return len(self._ranks)

    def name(self) -> str:
        """The backend's name, as PyTorch has it."""
        return self._backend

    def __repr__(self) -> str:
        return f"ProcessGroup({self.group_desc}, ranks={self._ranks}, backend={self._backend!r})"

    def __deepcopy__(self, memo: dict) -> ProcessGroup:
        # A copied model goes on communicating in the group of the original.
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            "cannot pickle 'ProcessGroup' object: a group belongs to the process that made it"
        )

    def _global(self, group_rank: int) -> int:
        return self._ranks[group_rank]

    def _refuse(self, reason: str) -> None:
        """Let every later use raise ``reason``: the group was destroyed or belongs to another
        process.
        """
        refusing = _Refusing(reason)
        self._group = self._engine = self._reduce_in_place = refusing


class _Refusing:
    """Stands where a core object was: whatever is asked of it raises."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __getattr__(self, name: str) -> Any:
        raise ValueError(self._reason)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ValueError(self._reason)


class _DefaultGroup(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The default group of the calling rank, ``None`` before ``init_process_group``."""
        return current().default_group


class GroupMember(metaclass=_DefaultGroup):
    """``GroupMember.WORLD`` is the default group; ``NON_GROUP_MEMBER`` what ``new_group`` gives to
    outsiders.
    """

    NON_GROUP_MEMBER = -100


class group(metaclass=_DefaultGroup):
    """``group.WORLD`` is the default group."""


def _get_default_group() -> ProcessGroup:
    """The calling rank's default group.

    Raises
    ------
    ValueError
        Before ``init_process_group``.
    """
    default = current().default_group
    if default is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return default


def member_group(group: Any, operation: str) -> ProcessGroup | None:
    """The group that an argument means; ``None``, with PyTorch's warning, if this rank is not in
    it.
    """
    if group is None:
        return _get_default_group()
    if type(group) is ProcessGroup:
        return group
    if group == GroupMember.NON_GROUP_MEMBER:
        warnings.warn(
            f"Running {operation} on global rank {_get_default_group().rank()} which does not "
            "belong to the given group.",
            stacklevel=3,
        )
        return None
    raise TypeError(
        f"Invalid process group specified: {operation} expects the result of new_group or None, "
        f"got {type(group).__name__}"
    )


def outsider(group: Any) -> bool:
    """Whether this is what ``new_group`` gave to a rank that is not in the group."""
    return type(group) is int and group == GroupMember.NON_GROUP_MEMBER


def _given(group: Any) -> ProcessGroup:
    """The group that a look-up is about."""
    if outsider(group):
        raise ValueError("Invalid process group specified")
    return _get_default_group() if group is None else group


def get_rank(group: ProcessGroup | None = None) -> int:
    """The calling rank's number in ``group``; -1 if it does not belong to it."""
    if outsider(group):
        return -1
    return _given(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of ranks in ``group``; -1 if the calling rank does not belong to it."""
    if outsider(group):
        return -1
    return _given(group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """What the script asked for ("gloo", ...), else the transport in use."""
    return _given(group)._backend


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The global ranks of ``group``, in the order of their group ranks."""
    return list(_given(group)._ranks)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Where a global rank stands in ``group``.

    Raises
    ------
    ValueError
        If it is not part of the group.
    """
    index = _given(group)._index.get(global_rank)
    if index is None:
        raise ValueError(f"Global rank {global_rank} is not part of group {_given(group)}")
    return index


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The global rank of the group's member number ``group_rank``.

    Raises
    ------
    ValueError
        If the group has no such member.
    """
    ranks = _given(group)._ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {_given(group)}")
    return ranks[group_rank]


def root_of(
    pg: ProcessGroup,
    operation: str,
    global_rank: int | None,
    group_rank: int | None,
    default: int | None,
) -> int:
    """The group rank of a root or peer that is named by a global or by a group rank, as PyTorch
    does.
    """
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        if not 0 <= group_rank < len(pg._ranks):
            raise ValueError(f"Group rank {group_rank} is not part of group {pg}")
        return group_rank
    if global_rank is None:
        if default is None:
            raise ValueError("Must specify global_rank or group_rank")
        global_rank = default
    index = pg._index.get(global_rank)
    if index is None:
        if pg is current().default_group:
            raise RuntimeError(
                f"{operation}: invalid root rank: {global_rank}. Invalid rank: the world has "
                f"ranks 0 to {len(pg._ranks) - 1}."
            )
        raise ValueError(f"Global rank {global_rank} is not part of group {pg}")
    return index
