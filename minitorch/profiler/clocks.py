"""Putting the clocks of several machines onto one axis.

A steady clock starts anywhere. Rank 0 asks each other rank what time it is, a few times, and
believes the answer whose round trip was the shortest: it was given half a round trip ago, give or
take that half (Cristian 1989, "Probabilistic clock synchronization"). Asked at the start and at the
end of a recording, the answers also show how far the clocks drift apart in between.

Cost: `ROUNDS` round trips of 8 bytes between rank 0 and each other rank, twice per recording.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from minitorch.autograd.graph import wrap

from .recorder import now_ns

__all__ = ["Mapping", "Offset", "estimate", "measure_offsets"]

ROUNDS = 8


@dataclass(frozen=True)
class Offset:
    """A clock's lead over rank 0's: `lead` at rank 0's time `at`, both in ns, known to within
    `error`.
    """

    at: int
    lead: int
    error: int


def estimate(answers: list[tuple[int, int, int]]) -> Offset:
    """Return the lead from `(asked, answer, returned)`: rank 0's clock, the other clock, rank 0's
    clock.

    Two clocks that could be equal within the error are taken as one: ranks on one machine share it,
    and correcting it by noise would make things worse.
    """
    asked, answer, returned = min(answers, key=lambda triple: triple[2] - triple[0])
    middle, error = (asked + returned) // 2, (returned - asked + 1) // 2
    lead = answer - middle
    return Offset(middle, 0 if abs(lead) <= error else lead, error)


@dataclass(frozen=True)
class Mapping:
    """From a rank's clock to rank 0's, by the straight line through the leads at start and stop."""

    start: Offset
    stop: Offset

    def __call__(self, moment: int) -> int:
        """Return what rank 0's clock showed when the other one showed `moment`."""
        span = (self.stop.at + self.stop.lead) - (self.start.at + self.start.lead)
        if self.start.lead == self.stop.lead or span <= 0:
            return moment - self.start.lead
        passed = moment - (self.start.at + self.start.lead)
        return moment - self.start.lead - round((self.stop.lead - self.start.lead) * passed / span)


def measure_offsets(dist: Any, group: Any, clock: Callable[[], int] = now_ns) -> dict[int, Offset]:
    """Ask every rank for its time; all ranks call. Rank 0 gets the offsets, the others `{}`."""
    rank, size = dist.get_rank(group), dist.get_world_size(group)
    peers = dist.get_process_group_ranks(group)
    message = wrap(np.zeros(1, dtype=np.int64))
    if rank != 0:
        for _ in range(ROUNDS):
            dist.recv(message, src=peers[0], group=group)
            message._array[0] = clock()
            dist.send(message, dst=peers[0], group=group)
        return {}
    offsets = {}
    for peer in range(1, size):
        answers = []
        for _ in range(ROUNDS):
            asked = clock()
            dist.send(message, dst=peers[peer], group=group)
            dist.recv(message, src=peers[peer], group=group)
            answers.append((asked, int(message._array[0]), clock()))
        offsets[peer] = estimate(answers)
    return offsets
