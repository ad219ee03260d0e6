"""``LRScheduler``: the clock that all schedules share.

A schedule answers ``get_lr()`` for the current ``last_epoch``, usually from the current rate alone
(the *chainable* form: several schedules may multiply into one rate). Where a closed form exists,
``_get_closed_form_lr`` gives it, and ``step(epoch)`` uses it to jump.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...tensor import Tensor
from .._rules import plain
from ..optimizer import Optimizer

__all__ = ["EPOCH_DEPRECATION_WARNING", "LRScheduler", "set_lr"]

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available."
)


def set_lr(group: dict[str, Any], lr: float) -> None:
    """Set a group's learning rate, in place where it is a tensor."""
    if isinstance(group["lr"], Tensor):
        group["lr"]._array[...] = lr
    else:
        group["lr"] = lr


class LRScheduler:
    """Base class of the learning rate schedules.

    Parameters
    ----------
    optimizer : Optimizer
        Whose groups' ``"lr"`` is set.
    last_epoch : int, default -1
        -1 starts anew; otherwise the schedule continues after that epoch and every group must
        have ``"initial_lr"``.

    Raises
    ------
    TypeError
        If ``optimizer`` is not an Optimizer.
    KeyError
        If the schedule continues and a group has no ``"initial_lr"``.
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for index, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", plain(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{index}] when resuming "
                    "scheduler with last_epoch >= 0. Load the optimizer's state before creating "
                    "the scheduler, or start with last_epoch=-1"
                )
        self.base_lrs: list[float] = [plain(g["initial_lr"]) for g in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._watch_optimizer()
        self._initial_step()

    def _watch_optimizer(self) -> None:
        """Let the optimizer record its steps, to tell the wrong order of the two ``step``."""
        if self.optimizer._opt_called is None:
            self.optimizer._opt_called = False

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from :meth:`state_dict`."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[float]:
        """The rates last set, one per group."""
        return self._last_lr

    def get_lr(self) -> list[float]:
        """The rates for ``last_epoch``; a schedule defines it."""
        raise NotImplementedError(f"{type(self).__name__} does not implement get_lr")

    def step(self, epoch: int | None = None) -> None:
        """Advance by one epoch (after the optimizer's ``step``), or jump to ``epoch``."""
        if self._step_count == 1 and not self.optimizer._opt_called:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should "
                "call them in the opposite order: `optimizer.step()` before "
                "`lr_scheduler.step()`. Failure to do this will result in skipping the first "
                "value of the learning rate schedule.",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._within_step():
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form = getattr(self, "_get_closed_form_lr", None)
                rates = self.get_lr() if closed_form is None else closed_form()
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_lr(group, rate)
        self._last_lr = self._current()

    def _current(self) -> list[float]:
        return [plain(group["lr"]) for group in self.optimizer.param_groups]

    @contextmanager
    def _within_step(self) -> Iterator[None]:
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _warn_get_lr_called_within_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )
