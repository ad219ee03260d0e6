"""The module inside DistributedDataParallel: what of it counts, what it looks like from outside,
and how it is made the same on all ranks and copied.

Cost: ``_verify`` one all-gather of 24 bytes, ``_sync_module_states`` the model's bytes broadcast;
both at construction only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.nn import Module

from .buffers import COALESCED_BYTES, broadcast_coalesced
from .verify import describe, verify_same_on_all_ranks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from minitorch.nn import Parameter

    from ..process_group import ProcessGroup

# What a wrapper holds that belongs to this process, and that a copy builds anew.
_OF_THIS_PROCESS = ("process_group", "reducer", "_delayed", "_low_precision")


class WrappedModule(Module):
    """Base of DistributedDataParallel; holds ``module`` and ``process_group``."""

    module: Module
    process_group: ProcessGroup
    parameters_to_ignore: set[str]

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Module, names: Iterable[str]) -> None:
        """Have a wrapper of `module`, made later, leave these parameters and buffers alone.

        `names` are full names, as ``module.named_parameters()`` gives them. They stay out of the
        broadcast at construction, out of gradient averaging, and out of the agreement checks.
        """
        module._ddp_params_and_buffers_to_ignore = set(names)

    def _named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """All parameters but the ignored ones; a shared one once, under its first name."""
        for name, parameter in self.module.named_parameters():
            if name not in self.parameters_to_ignore:
                yield name, parameter

    def _named_buffers(self) -> list[tuple[str, Any]]:
        # Read anew each time: a module may replace a buffer by assignment.
        return [
            (name, buffer)
            for name, buffer in self.module.named_buffers()
            if name not in self.parameters_to_ignore
        ]

    # -- the same on all ranks -------------------------------------------------------------------

    def _refuse_uninitialized(self) -> None:
        for name, parameter in self._named_parameters():
            if type(parameter).__name__ == "UninitializedParameter":
                raise RuntimeError(
                    "Modules with uninitialized parameters can't be used with "
                    "`DistributedDataParallel`. Run a dummy forward pass to correctly initialize "
                    f"the modules ({name} is not initialized)."
                )

    def _verify(self, options: Mapping[str, object], *, with_buffers: bool) -> None:
        buffers = self._named_buffers() if with_buffers else []
        verify_same_on_all_ranks(
            self.process_group, describe(self._named_parameters(), buffers, options)
        )

    def _sync_module_states(self, *, with_buffers: bool, src: int = 0) -> None:
        tensors: list[Any] = [parameter for _, parameter in self._named_parameters()]
        if with_buffers:
            tensors += [buffer for _, buffer in self._named_buffers()]
        broadcast_coalesced(self.process_group, tensors, src, COALESCED_BYTES, "module state")

    # -- from outside ----------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        # Only called when ordinary look-up failed.
        try:
            return super().__getattr__(name)
        except AttributeError:
            module = self.__dict__.get("_modules", {}).get("module")
            if module is None or name in _OF_THIS_PROCESS:
                raise
            try:
                return getattr(module, name)
            except AttributeError:
                raise AttributeError(
                    f"neither '{type(self).__name__}' nor the '{type(module).__name__}' it wraps "
                    f"has an attribute '{name}'"
                ) from None

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what is tied to this process: copies and pickles build their own reducer.

        Raises
        ------
        RuntimeError
            If the wrapper uses a group other than the default one, which the copy could not find.
        """
        if self.process_group is not default_group():
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default "
                "process group. That is, when you have called init_process_group and have not "
                "passed process_group argument to DDP constructor"
            )
        state = self.__dict__.copy()
        for name in _OF_THIS_PROCESS:
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.process_group = default_group()
        self._build_reducer()

    def _build_reducer(self) -> None:
        raise NotImplementedError


def default_group() -> ProcessGroup:
    """The default process group."""
    from ..process_group import _get_default_group

    return _get_default_group()


def member_of(process_group: ProcessGroup | None) -> ProcessGroup:
    """The group, by default the default one.

    Raises
    ------
    TypeError
        If it is no group.
    ValueError
        If this rank does not belong to it.
    """
    from ..process_group import ProcessGroup, outsider

    if process_group is None:
        return default_group()
    if isinstance(process_group, ProcessGroup):
        return process_group
    if outsider(process_group):
        raise ValueError(
            "DistributedDataParallel: this rank is not a member of process_group. Construct it on "
            "the ranks of the group only."
        )
    raise TypeError(
        "DistributedDataParallel: process_group must be what new_group returns, or None for the "
        f"default group, got {type(process_group).__name__}"
    )
