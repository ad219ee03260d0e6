"""Which rule follows a decomposition through which op or module.

A rule is a function ``rule(call, *inputs)``. Its inputs are those of the call: :class:`Parts` for
what depends on the model's input, Tensors for constants, None for what is missing. It returns the
:class:`Parts` of the output (a tuple of them for several outputs), or :data:`WHOLE` to leave the
output undecomposed: it is a constant from there on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import minitorch
from minitorch.autograd.graph import watch
from minitorch.interpret.parts import Parts
from minitorch.interpret.recorder import Call, name_of
from minitorch.nn.modules.module import Module
from minitorch.ops.generic import LinearMap

__all__ = ["WHOLE", "find_rule", "has_module_rule", "node_name", "register_rule"]

WHOLE = None
"""What a rule returns to leave an output whole: a statistic, a gate, an attention weight."""

Rule = Callable[..., Any]
R = TypeVar("R", bound=Rule)

_op_rules: dict[str, Rule] = {}
_module_rules: dict[type, Rule] = {}
# Rules that also hold for token ids, because they only move elements.
_moves_elements: set[Rule] = set()


def register_rule(*ops_or_modules: Any, moves_elements: bool = False) -> Callable[[R], R]:
    """Register a rule of contextual decomposition; a later one replaces an earlier one.

    Parameters
    ----------
    *ops_or_modules
        Any number of: an op (``F.mish``, ``minitorch.tanh``), the name of its node as an error
        message gives it (``"MishBackward0"``), a module class. A module's rule covers all that
        happens inside it, also for subclasses that keep its ``forward``.
    moves_elements : bool
        The op only rearranges or repeats elements, so the rule holds for token ids too.

    Raises
    ------
    TypeError
        If an argument is none of these, or an op that is composed of others.

    Examples
    --------
    The Shapley split of a smooth function is one line:

    >>> from minitorch import interpret
    >>> import minitorch.nn.functional as F
    >>> _ = interpret.register_rule(F.mish)(interpret.smooth(F.mish))
    """
    for target in ops_or_modules:
        if not (isinstance(target, str) or callable(target)):
            raise TypeError(
                "register_rule: expected an op, the name of its node or a module class, not "
                f"{type(target).__name__}"
            )
    names = [
        target if isinstance(target, (str, type)) else node_name(target)
        for target in ops_or_modules
    ]
    for name in names:
        if isinstance(name, type) and not issubclass(name, Module):
            raise TypeError(f"register_rule: {name.__name__} is not a subclass of nn.Module")

    def register(rule: R) -> R:
        for name in names:
            if isinstance(name, str):
                _op_rules[name] = rule
            else:
                _module_rules[name] = rule
        if moves_elements:
            _moves_elements.add(rule)
        return rule

    return register


def _samples() -> list[tuple]:
    """Arguments that most ops accept, to see what they record."""
    tries: list[tuple] = []
    for shape in ((3, 3), (1, 1, 3, 3), (1, 1, 3)):
        x, y = (minitorch.ones(*shape, requires_grad=True) for _ in range(2))
        tries += [([x, y],), (x,), (x, y), (x, 1), (x, 0, 1), (x, (3,)), (x, x.gt(0), 0.0)]
    return tries


def node_name(op: Callable) -> str:
    """Return the name of the node that an op records, found by trying it on small tensors.

    Raises
    ------
    TypeError
        If it records several nodes (then each has its own rule) or cannot be tried.
    """
    title = getattr(op, "__name__", repr(op))
    for arguments in _samples():
        names: list[str] = []

        def note(outs: tuple, rule: Any, *rest: Any, names: list[str] = names) -> None:
            names.append(name_of(rule, rest[-1]))

        try:
            with watch(note):
                op(*arguments)
        except Exception:  # these arguments do not suit the op; the next may
            continue
        if len(names) == 1:
            return names[0]
        if names:
            raise TypeError(
                f"register_rule: {title} is composed of {', '.join(dict.fromkeys(names))}; a rule "
                "belongs to one of these names, or to a module class"
            )
    raise TypeError(
        f"register_rule: cannot tell what {title} records; give the node's name instead, such as "
        '"AddmmBackward0" (an error about a missing rule names it)'
    )


def _module_rule(module: Module) -> Rule | None:
    for cls in type(module).__mro__[:-1]:
        rule = _module_rules.get(cls)
        if rule is not None:
            # A subclass with a forward of its own does something else.
            return rule if type(module).forward is getattr(cls, "forward", None) else None
    return None


def has_module_rule(module: Module) -> bool:
    """Whether a module is followed as one call."""
    return _module_rule(module) is not None


def linear_map(call: Call, x: Parts) -> Parts:
    """Any op that is a linear function of one array: apply it to each mask's parts in turn."""
    op: LinearMap = call.op.__self__

    def apply(part: Any) -> Any:
        return minitorch.stack([op(each, call.ctx) for each in part.unbind(0)])

    return x.map(apply)


def find_rule(call: Call) -> Rule:
    """Return the rule for a recorded call.

    Raises
    ------
    NotImplementedError
        If there is none; names the op, the line of the model, and the way out.
    """
    if isinstance(call.op, Module):
        rule = _module_rule(call.op)
    else:
        rule = _op_rules.get(call.name)
        if rule is None and isinstance(getattr(call.op, "__self__", None), LinearMap):
            rule = linear_map
    if rule is None:
        place = f" (called at {call.where})" if call.where else ""
        raise NotImplementedError(
            f"contextual decomposition has no rule for {call.name}{place}; add one with "
            f'@interpret.register_rule("{call.name}"), or keep it whole with '
            f'interpret.register_rule("{call.name}")(interpret.whole)'
        )
    return rule


def moves_elements(rule: Rule) -> bool:
    """Whether a rule only rearranges elements."""
    return rule in _moves_elements
