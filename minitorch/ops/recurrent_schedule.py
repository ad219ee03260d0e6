"""Time in a fused recurrence: which rows each step works on, and a state's way through them.

The data of all steps lie in one array ``(rows, features)``, step after step, as in a
``PackedSequence``: ``sizes[t]`` rows belong to step ``t``, and sizes never grow, because the
longest sequences come first. A padded batch is the case of equal sizes.

======  =================  ==========================================================
step    rows (sizes 3,3,1)
======  =================  ==========================================================
0       ``a0 b0 c0``
1       ``a1 b1 c1``
2       ``a2``             sequences b and c are over: their state stays as it is
======  =================  ==========================================================

Backwards in time, the state of b and c stays at its initial value until step 1 is reached. So in
both directions a step touches the first ``sizes[t]`` rows of the state and no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from minitorch.ops.recurrent_memory import reused


class Schedule:
    """The rows of every step, in the order in which the steps run.

    Parameters
    ----------
    sizes : sequence of int
        Rows per step, never growing; at least one step.
    reverse : bool
        Run from the last step to the first.
    """

    __slots__ = ("batch", "reverse", "rows", "sizes", "steps", "uniform")

    def __init__(self, sizes: Sequence[int], reverse: bool = False) -> None:
        self.sizes = list(sizes)
        self.batch = self.sizes[0]
        self.uniform = self.sizes[-1] == self.batch
        self.reverse = reverse
        ends = np.cumsum(self.sizes).tolist()
        self.rows = ends[-1]
        steps = [(slice(end - n, end), n) for end, n in zip(ends, self.sizes, strict=True)]
        self.steps = steps[::-1] if reverse else steps

    def backward(self) -> Iterator[tuple[slice, int]]:
        """The steps in the order of the backward pass."""
        return reversed(self.steps)

    def per_row(self, values: np.ndarray) -> np.ndarray:
        """Repeat what is given per sequence, ``(batch, H)``, for every step: ``(rows, H)``."""
        return np.concatenate([values[:n] for n in self.sizes])


class Chain:
    """One state at every step: ``before`` the step and ``after`` it, both ``(rows, H)``.

    With equal sizes, what one step leaves is what the next one starts from: both are views of one
    buffer, shifted against each other by a step. Otherwise there are two buffers, and the state
    of all sequences is carried along.
    """

    __slots__ = ("_state", "after", "before")

    def __init__(self, schedule: Schedule, initial: np.ndarray) -> None:
        rows, batch, width = schedule.rows, schedule.batch, initial.shape[1]
        self._state = None
        if not schedule.uniform:
            self._state = initial.copy()
            self.before = reused((rows, width), initial.dtype)
            self.after = reused((rows, width), initial.dtype)
            return
        buffer = reused((rows + batch, width), initial.dtype)
        early, late = buffer[:rows], buffer[batch:]
        self.before, self.after = (late, early) if schedule.reverse else (early, late)
        self.before[schedule.steps[0][0]] = initial

    def start(self, rows: slice, n: int) -> np.ndarray:
        """Return what a step starts from."""
        before = self.before[rows]
        if self._state is not None:
            before[...] = self._state[:n]
        return before

    def finish(self, rows: slice, n: int) -> None:
        """Carry what the step has left in ``after``."""
        if self._state is not None:
            self._state[:n] = self.after[rows]

    def final(self, schedule: Schedule) -> np.ndarray:
        """The last state of every sequence, ``(batch, H)``, in memory of its own."""
        if self._state is not None:
            return self._state
        return self.after[schedule.steps[-1][0]].copy()

    def outputs(self, shared: bool) -> np.ndarray:
        """What all steps left. With `shared`, in memory of its own if ``before`` needs this one:
        a user may write into an output.
        """
        if not shared or self._state is not None:
            return self.after
        out = reused(self.after.shape, self.after.dtype)
        np.copyto(out, self.after)
        return out
