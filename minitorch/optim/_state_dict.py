"""Optimizer state to and from PyTorch's checkpoint layout.

Inside an optimizer, state hangs on the parameter itself; in a checkpoint parameters have no
identity, so each is replaced by its running number over all groups.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from copy import deepcopy
from itertools import chain
from typing import Any

import numpy as np

from ..autograd.graph import RemovableHandle, wrap
from ..tensor import Tensor

__all__ = ["add_hook", "check", "pack", "unpack"]


def add_hook(
    hooks: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any], prepend: bool
) -> RemovableHandle:
    """Register a hook at the end or the beginning of a table."""
    handle = RemovableHandle(hooks, hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def pack(state: dict[Any, Any], groups: list[dict[str, Any]]) -> dict[str, Any]:
    """The ``state_dict`` of the given state and groups."""
    numbers: dict[int, int] = {}
    packed_groups = []
    for group in groups:
        for param in group["params"]:
            numbers.setdefault(id(param), len(numbers))
        packed = {key: value for key, value in group.items() if key != "params"}
        packed["params"] = [numbers[id(param)] for param in group["params"]]
        packed_groups.append(packed)
    packed_state = {
        numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in state.items()
    }
    return {"state": packed_state, "param_groups": packed_groups}


def check(
    state: dict[Any, Any],
    groups: list[dict[str, Any]],
    defaults: dict[str, Any],
    elementwise: tuple[str, ...],
) -> None:
    """Refuse unpacked state that was saved by another optimizer or for another model.

    Parameters
    ----------
    state, groups
        As :func:`unpack` returned them.
    defaults
        The optimizer's options; the numbers among them must be in every group. Flags may be
        missing: old checkpoints lack those that came later.
    elementwise
        Names of the state that has one value per element of its parameter.

    Raises
    ------
    ValueError
        Naming the parameter, or the option.
    """
    needed = [name for name, value in defaults.items() if isinstance(value, (float, tuple))]
    for number, group in enumerate(groups):
        for name in needed:
            if name not in group:
                raise ValueError(
                    f"loaded state dict has no '{name}' in parameter group {number}: it was saved "
                    "by another kind of optimizer"
                )
    places = chain.from_iterable(_named_parameters(group) for group in groups)
    for number, (name, param) in enumerate(places):
        held = state.get(param, {})
        if not isinstance(held, dict):
            raise ValueError(
                f"loaded state dict has {type(held).__name__} instead of a dict as the state of "
                f"parameter {number}{name}"
            )
        for key in elementwise:
            value = held.get(key)
            if value is None:
                continue
            shape = list(value.shape) if isinstance(value, Tensor) else type(value).__name__
            if shape != list(param.shape):
                raise ValueError(
                    f"loaded state dict has '{key}' of shape {shape} for parameter "
                    f"{number}{name}, whose shape is {list(param.shape)}: it was saved for "
                    "another model, or the parameters were in another order"
                )


def _named_parameters(group: dict[str, Any]) -> list[tuple[str, Tensor]]:
    names = group.get("param_names")
    labels = [""] * len(group["params"]) if names is None else [f" ('{name}')" for name in names]
    return list(zip(labels, group["params"], strict=True))


def unpack(
    state_dict: dict[str, Any], groups: list[dict[str, Any]]
) -> tuple[defaultdict[Any, Any], list[dict[str, Any]]]:
    """State and groups of a ``state_dict``, fitted to the parameters in ``groups``.

    Everything is copied; floating state takes its parameter's dtype (except ``step``).
    """
    saved_groups = deepcopy(state_dict["param_groups"])
    if len(groups) != len(saved_groups):
        raise ValueError("loaded state dict has a different number of parameter groups")
    if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, saved_groups, strict=True)):
        raise ValueError(
            "loaded state dict contains a parameter group that doesn't match the size of "
            "optimizer's group"
        )
    by_number = dict(
        zip(
            chain.from_iterable(group["params"] for group in saved_groups),
            chain.from_iterable(group["params"] for group in groups),
            strict=True,
        )
    )
    state: defaultdict[Any, Any] = defaultdict(dict)
    for key, value in state_dict["state"].items():
        if key in by_number:
            state[by_number[key]] = _fitted(by_number[key], value)
        else:
            state[key] = deepcopy(value)
    fitted_groups = []
    for group, saved in zip(groups, saved_groups, strict=True):
        saved["params"] = group["params"]
        if "param_names" in group and "param_names" not in saved:
            saved["param_names"] = group["param_names"]
        fitted_groups.append(saved)
    return state, fitted_groups


def _fitted(param: Tensor, value: Any, key: Any = None) -> Any:
    """A copy of a state value for ``param``."""
    if isinstance(value, Tensor):
        array = value._array
        if key == "step" or not param.is_floating_point():
            return wrap(np.array(array))
        return wrap(np.array(array, dtype=param._array.dtype))
    if isinstance(value, dict):
        return {name: _fitted(param, item, name) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_fitted(param, item) for item in value)
    return deepcopy(value)
