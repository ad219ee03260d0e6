"""Groups within the world: ``new_group``, and what splits a world into equal parts.

Costs: one all-gather of 8 bytes per rank in the world, by which the ranks make sure that they mean
the same group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from ._environment import check_timeout, transport_for
from ._native import CollectiveMismatch
from ._rank_state import current
from .process_group import GroupMember, ProcessGroup, _get_default_group


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> ProcessGroup | int:
    """Make a group of some ranks of the world.

    *Every* rank of the world must call this, in the same order, members or not. One small
    all-gather in the world makes sure that all mean the same group.

    Parameters
    ----------
    ranks : sequence of int, optional
        Global ranks; by default all.
    timeout : datetime.timedelta, optional
        By default the default group's.
    use_local_synchronization : bool
        Not supported: groups are numbered by everybody.
    group_desc : str, optional
        For people.
    sort_ranks : bool
        Number the members by global rank instead of by their order in ``ranks``.

    Returns
    -------
    ProcessGroup or int
        ``GroupMember.NON_GROUP_MEMBER`` on the ranks outside.

    Raises
    ------
    ValueError
        If a rank does not exist or is named twice.
    CollectiveMismatch
        If the ranks ask for different groups.
    """
    world = _get_default_group()
    state = current()
    transport_for(backend)
    limit = world.timeout if timeout is None else check_timeout(timeout)
    if use_local_synchronization:
        raise ValueError(
            "use_local_synchronization=True is not supported: let every rank of the world call "
            "new_group"
        )
    members = _checked_ranks(ranks, world.size(), sort_ranks)
    _agree(world, members)
    # Outsiders number the group too, so that the numbers stay equal on all ranks.
    native = state.engine.new_group(members, limit.total_seconds())
    if world.rank() not in members:
        return GroupMember.NON_GROUP_MEMBER
    group = ProcessGroup(
        native,
        state.engine,
        members,
        limit,
        world._backend,
        str(native.id),
        group_desc or "undefined",
    )
    state.groups.append(group)
    return group


def _checked_ranks(ranks: Sequence[int] | None, size: int, sort_ranks: bool) -> list[int]:
    if ranks is None:
        return list(range(size))
    members = [int(rank) for rank in ranks]
    if not members:
        raise ValueError("new_group: ranks must name at least one rank")
    if len(members) > size:
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by "
            "init_process_group"
        )
    for rank in members:
        if not 0 <= rank < size:
            raise ValueError(
                f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} "
                f"(world_size={size}): the new group's rank should "
                "be within the world_size set by init_process_group"
            )
    if len(set(members)) != len(members):
        raise ValueError(f"ranks list must not contain duplicate entries, got {members}")
    return sorted(members) if sort_ranks else members


def _agree(world: ProcessGroup, members: list[int]) -> None:
    digest = hashlib.blake2b(repr(members).encode(), digest_size=8).digest()
    mine = np.frombuffer(digest, np.int64).copy()
    everybody = np.empty(world.size(), np.int64)
    world._group.all_gather_now(everybody, mine)
    different = [rank for rank, theirs in enumerate(everybody) if theirs != mine[0]]
    if different:
        raise CollectiveMismatch(
            f"new_group: rank {world.rank()} asks for ranks {members}, but rank "
            f"{', '.join(map(str, different))} for others. Every "
            "rank of the world must call new_group with the same ranks, in the same order."
        )


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup | int | None, list[ProcessGroup | int]]:
    """Cut the world into groups of ``group_size`` consecutive ranks.

    Returns
    -------
    tuple
        The calling rank's group, and all groups (``NON_GROUP_MEMBER`` where it is not in).

    Raises
    ------
    ValueError
        If ``group_size`` is missing, is not positive, or does not divide the world.
    """
    size = _get_default_group().size()
    if group_size is None:
        raise ValueError("new_subgroups: group_size must be given (there are no devices to count)")
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if group_size > size or size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by group_size={group_size}")
    blocks = [list(range(start, start + group_size)) for start in range(0, size, group_size)]
    return new_subgroups_by_enumeration(blocks, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup | int | None, list[ProcessGroup | int]]:
    """Make one group for each list of ranks; the lists may not overlap.

    Returns
    -------
    tuple
        The calling rank's group (``None`` if it is in no list), and all groups.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: dict[int, Sequence[int]] = {}
    for ranks in ranks_per_subgroup_list:
        for rank in ranks:
            if rank in seen:
                raise ValueError(
                    f"Rank {rank} has appeared in both subgroup {seen[rank]} and {ranks}"
                )
            seen[rank] = ranks
    groups = [
        new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        for ranks in ranks_per_subgroup_list
    ]
    mine = next((group for group in groups if isinstance(group, ProcessGroup)), None)
    return mine, groups
