"""A module's state as a dictionary: ``state_dict`` and ``load_state_dict``."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from minitorch.autograd import RemovableHandle, TensorBase, no_grad
from minitorch.nn.parameter import Parameter
from minitorch.ops._typing import Tensor


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(_Keys):
    """What `load_state_dict` returns: a pair of lists that prints well when both are empty."""

    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__() if any(self) else "<All keys matched successfully>"

    __str__ = __repr__


_EXTRA = "_extra_state"


class StateMixin:
    """The part of :class:`Module` that saves and loads."""

    _version: int
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_pre_hooks: dict[int, Callable]
    _state_dict_hooks: dict[int, Callable]
    _load_state_dict_pre_hooks: dict[int, Callable]
    _load_state_dict_post_hooks: dict[int, Callable]

    def _init_state(self) -> None:
        for name in (
            "_state_dict_pre_hooks",
            "_state_dict_hooks",
            "_load_state_dict_pre_hooks",
            "_load_state_dict_post_hooks",
        ):
            object.__setattr__(self, name, {})

    # -- hooks -------------------------------------------------------------------------------------

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before this module's state is collected."""
        return RemovableHandle(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` afterwards."""
        return RemovableHandle(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)`` before this module loads.
        """
        return RemovableHandle(self._load_state_dict_pre_hooks, hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may edit the keys in place."""
        return RemovableHandle(self._load_state_dict_post_hooks, hook)

    def get_extra_state(self) -> Any:
        """Return what to save besides parameters and buffers; override it together with
        `set_extra_state`.
        """
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called."
        )

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` returned."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called."
        )

    def _has_extra_state(self) -> bool:
        return type(self).get_extra_state is not StateMixin.get_extra_state

    # -- saving ------------------------------------------------------------------------------------

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> OrderedDict[str, Any]:
        """Return parameters and persistent buffers by their dotted names.

        Parameters
        ----------
        destination : dict, optional
            Where to put them.
        prefix : str
            What the names start with.
        keep_vars : bool
            Return the parameters themselves; otherwise detached tensors that share their memory.
        """
        if args:
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and not keep_vars else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in list(self._state_dict_hooks.values()):
            result = hook(self, destination, prefix, metadata)
            if result is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in self._own_state().items():
            destination[prefix + name] = value if keep_vars else value.detach()
        if self._has_extra_state():
            destination[prefix + _EXTRA] = self.get_extra_state()

    def _own_state(self) -> dict[str, Tensor]:
        """This module's own parameters and persistent buffers, without its children's."""
        buffers = {
            name: value
            for name, value in self._buffers.items()
            if name not in self._non_persistent_buffers_set
        }
        return {k: v for k, v in (*self._parameters.items(), *buffers.items()) if v is not None}

    # -- loading -----------------------------------------------------------------------------------

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy parameters and buffers from `state_dict` into this module and its children.

        Parameters
        ----------
        strict : bool
            Raise if a key is missing or unexpected. Wrong shapes raise in any case.
        assign : bool
            Take over the given tensors instead of copying their values.

        Returns
        -------
        (missing_keys, unexpected_keys)

        Raises
        ------
        RuntimeError
            Names every missing and unexpected key and every size mismatch.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        # Nothing is written before everything was checked: a failed load changes nothing.
        writes: list[Callable[[], str | None]] = []

        def load(module: Any, given: dict[str, Any], prefix: str) -> None:
            local = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
            local["assign_to_params_buffers"] = assign
            local["writes"] = writes
            module._load_from_state_dict(given, prefix, local, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    inner = f"{prefix}{name}."
                    load(child, {k: v for k, v in given.items() if k.startswith(inner)}, inner)
            keys = _IncompatibleKeys(missing, unexpected)
            for hook in list(module._load_state_dict_post_hooks.values()):
                if hook(module, keys) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                        "expected to return new values, if incompatible_keys need to be modified, "
                        "it should be done inplace."
                    )

        load(self, state_dict, "")
        if strict:
            for words, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    listed = ", ".join(f'"{key}"' for key in keys)
                    errors.insert(0, f"{words} key(s) in state_dict: {listed}. ")
        if not errors:
            errors = [error for error in (write() for write in writes) if error]
        if errors:
            lines = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}"
            )
        return _IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own parameters and buffers; errors are collected, not raised."""
        for hook in list(self._load_state_dict_pre_hooks.values()):
            hook(
                self,
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        assign = local_metadata.get("assign_to_params_buffers", False)
        writes = local_metadata.get("writes", [])
        own = self._own_state()
        for name, value in own.items():
            key = prefix + name
            if key not in state_dict:
                missing_keys.append(key)
                continue
            given: Any = state_dict[key]
            if isinstance(given, TensorBase) and (value.shape, given.shape) == ((), (1,)):
                given = given.reshape(())
            error = _misfit(key, value, given)
            if error:
                error_msgs.append(error)
            else:
                writes.append(partial(self._load_one, name, key, value, given, assign))
        extra_key = prefix + _EXTRA
        if self._has_extra_state():
            if extra_key in state_dict:
                writes.append(partial(self.set_extra_state, state_dict[extra_key]))
            else:
                missing_keys.append(extra_key)
        for key in state_dict:
            if not key.startswith(prefix):
                continue
            head, _, rest = key[len(prefix) :].partition(".")
            if key == extra_key and self._has_extra_state():
                continue
            if head not in (self._modules if rest else own):
                unexpected_keys.append(key)

    def _load_one(
        self, name: str, key: str, value: Tensor, given: Tensor, assign: bool
    ) -> str | None:
        """Load one tensor that fits; return what went wrong, or None."""
        try:
            with no_grad():
                if not assign:
                    value.copy_(given)
                    return None
                if isinstance(value, Parameter):
                    if isinstance(given, Parameter):
                        given.requires_grad_(value.requires_grad)
                    else:
                        given = Parameter(given, requires_grad=value.requires_grad)
                setattr(self, name, given)
                return None
        except Exception as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{value.shape!r} and whose dimensions in the checkpoint are {given.shape!r}, an "
                f"exception occurred : {error.args}."
            )


def _misfit(key: str, value: Tensor, given: Any) -> str | None:
    """Return why `given` cannot be loaded into `value`, or None if it can."""
    if not isinstance(given, TensorBase):
        return (
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
            f"object from checkpoint but received {type(given)}"
        )
    if given.shape != value.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {given.shape!r} from "
            f"checkpoint, the shape in current model is {value.shape!r}."
        )
    return None
