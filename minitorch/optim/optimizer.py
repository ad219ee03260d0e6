"""The base of all optimizers: parameter groups, state, hooks, and PyTorch's ``state_dict`` layout.

A subclass writes ``step``; whatever must happen around every step (checks, hooks, the record
that a scheduler needs) is wrapped around it here, once, when the class is created. Updates run on
the arrays themselves, outside the graph; ``bump_version`` tells autograd that a parameter changed.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias

from ..autograd.grad_mode import enable_grad
from ..autograd.graph import RemovableHandle
from ..tensor import Tensor
from . import _state_dict

__all__ = [
    "Optimizer",
    "ParamsT",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "required",
]

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
Hook: TypeAlias = Callable[..., Any]


class _Required:
    """Marks a group option without a default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()

#: Called with the optimizer before every step (and again after a closure ran). The distributed
#: layer adds the check that no gradient reduction is still unfinished; a check raises to refuse.
_pre_step_checks: list[Callable[[Optimizer], None]] = []

_global_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_post_hooks: OrderedDict[int, Hook] = OrderedDict()


def register_optimizer_step_pre_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before the step of every optimizer."""
    return RemovableHandle(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Hook) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after the step of every optimizer."""
    return RemovableHandle(_global_post_hooks, hook)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a class's ``step`` in the checks and hooks of every step."""

    @functools.wraps(step)
    def hooked_step(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if self._stepping:  # a subclass calls its parent's step
            return step(self, *args, **kwargs)
        for check in _pre_step_checks:
            check(self)
        # PyTorch's hooks see the optimizer as the first of the arguments.
        args = (self, *args)
        for hook in chain(_global_pre_hooks.values(), self._step_pre_hooks.values()):
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        f"{hook} must return None or a tuple of (new_args, new_kwargs), but got "
                        f"{changed}."
                    )
                args, kwargs = changed
        self._stepping = True
        try:
            result = step(*args, **kwargs)
        finally:
            self._stepping = False
        if self._opt_called is not None:
            self._opt_called = True
        for hook in chain(self._step_post_hooks.values(), _global_post_hooks.values()):
            hook(self, args, kwargs)
        return result

    return hooked_step


class Optimizer:
    """Base class of all optimizers.

    Parameters
    ----------
    params : iterable of Tensor, of dict (parameter groups), or of (name, Tensor)
        What to optimize; the order must be the same in every run.
    defaults : dict
        Options of groups that do not set them.

    Attributes
    ----------
    param_groups : list of dict
        Options and ``"params"`` of each group.
    state : defaultdict
        State of each parameter.
    """

    _stepping = False
    _opt_called: bool | None = None  # None: no scheduler watches

    #: Names of the state that has one value per element of its parameter.
    _elementwise_state: tuple[str, ...] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])  # type: ignore[method-assign]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hook_tables()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {type(params).__name__}"
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hook_tables(self) -> None:
        self._step_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
        self._step_post_hooks: OrderedDict[int, Hook] = OrderedDict()
        self._state_dict_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
        self._state_dict_post_hooks: OrderedDict[int, Hook] = OrderedDict()
        self._load_state_dict_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
        self._load_state_dict_post_hooks: OrderedDict[int, Hook] = OrderedDict()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, with options of its own, to those optimized.

        Raises
        ------
        TypeError, ValueError
            If the group is not a dict with an ordered collection of leaf tensors, repeats a
            parameter of another group, or lacks a required option. Nothing is added then.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, (set, frozenset)):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        group = dict(param_group, params=list(params))
        _split_names(group)
        for param in group["params"]:
            if not isinstance(param, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is "
                    f"{type(param).__name__}"
                )
            if not (param.is_leaf or getattr(param, "retains_grad", False)):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization "
                    f"parameter {name}"
                )
            group.setdefault(name, default)
        ids = {id(param) for param in group["params"]}
        if len(ids) != len(group["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                stacklevel=3,
            )
        for other in self.param_groups:
            if not ids.isdisjoint(map(id, other["params"])):
                raise ValueError("some parameters appear in more than one parameter group")
            if ("param_names" in other) != ("param_names" in group):
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    "cannot add a param group with different naming"
                )
        self.param_groups.append(group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make one optimization step; subclasses do."""
        raise NotImplementedError(f"{type(self).__name__} does not implement step")

    def _evaluate(self, closure: Callable[[], Any] | None) -> Any:
        """Run the closure of a step, with gradients enabled, and return its loss."""
        if closure is None:
            return None
        with enable_grad():
            loss = closure()
        for check in _pre_step_checks:
            check(self)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or fill them with zeros if ``set_to_none`` is False."""
        for group in self.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is None:
                    continue
                if set_to_none:
                    param.grad = None
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # -- hooks ---------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return new ones."""
        return RemovableHandle(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Hook) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return RemovableHandle(self._step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before ``state_dict``."""
        return _state_dict.add_hook(self._state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Hook, prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` on the result of ``state_dict``."""
        return _state_dict.add_hook(self._state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before loading; it may return another one."""
        return _state_dict.add_hook(self._load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Hook, prepend: bool = False
    ) -> RemovableHandle:
        """Call ``hook(optimizer)`` after loading."""
        return _state_dict.add_hook(self._load_state_dict_post_hooks, hook, prepend)

    # -- state ---------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """State and options, with parameters replaced by their running number.

        Returns
        -------
        dict
            ``{"state": {number: {...}}, "param_groups": [{..., "params": [number, ...]}]}``; the
            tensors are the optimizer's own, not copies.
        """
        for hook in self._state_dict_pre_hooks.values():
            hook(self)
        packed = _state_dict.pack(self.state, self.param_groups)
        for hook in self._state_dict_post_hooks.values():
            changed = hook(self, packed)
            if changed is not None:
                packed = changed
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from :meth:`state_dict`, this library's or PyTorch's.

        Raises
        ------
        ValueError
            If groups, options or the shapes of the state do not fit this optimizer's; nothing is
            changed then.
        """
        state_dict = dict(state_dict)
        for hook in self._load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        state, groups = _state_dict.unpack(state_dict, self.param_groups)
        _state_dict.check(state, groups, self.defaults, self._elementwise_state)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._load_state_dict_post_hooks.values():
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_step_pre_hooks" not in self.__dict__:
            self._make_hook_tables()
        self.defaults.setdefault("differentiable", False)

    def __deepcopy__(self, memo: dict[int, Any]) -> Optimizer:
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__setstate__(deepcopy(self.__getstate__(), memo))
        return twin

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for index, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {index}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def _split_names(group: dict[str, Any]) -> None:
    """Turn ``(name, tensor)`` pairs of a group into ``params`` and ``param_names``."""
    params = group["params"]
    named = [isinstance(param, tuple) for param in params]
    if not any(named):
        return
    if not all(named):
        raise ValueError(
            "all optimizer params should be with/without names. Some param names are missing"
        )
    group["params"] = [param for _, param in params]
    group["param_names"] = [name for name, _ in params]
