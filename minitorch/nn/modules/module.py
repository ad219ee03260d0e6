"""The base class of all models: a tree of modules that own parameters and buffers.

Assigning a :class:`Parameter` or a Module to an attribute registers it; everything else (finding
all parameters, converting types, saving) walks the tree. Calling and hooks are in `_hooks.py`,
saving and loading in `_state.py`, finding things in `_tree.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import minitorch
from minitorch.autograd import TensorBase, no_grad
from minitorch.nn.modules._hooks import (
    HookMixin,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from minitorch.nn.modules._state import StateMixin
from minitorch.nn.modules._tree import TreeMixin, typename
from minitorch.nn.parameter import Buffer, Parameter
from minitorch.ops._typing import Tensor

__all__ = [
    "Module",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
]

M = TypeVar("M", bound="Module")


class Module(HookMixin, StateMixin, TreeMixin):
    """Base class of models and layers: define ``__init__`` and ``forward``.

    Attributes
    ----------
    training : bool
        Whether dropout, batch norm and the like behave as in training.

    Examples
    --------
    >>> from minitorch import nn
    >>> class Net(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = nn.Linear(2, 1)
    ...     def forward(self, x):
    ...         return self.layer(x).relu()
    >>> [name for name, _ in Net().named_parameters()]
    ['layer.weight', 'layer.bias']
    """

    training: bool
    _version: int = 1

    def __init__(self) -> None:
        super().__setattr__("training", True)
        for name in ("_parameters", "_buffers", "_modules"):
            super().__setattr__(name, {})
        super().__setattr__("_non_persistent_buffers_set", set())
        self._init_hooks()
        self._init_state()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output; every subclass defines this."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    # -- attributes --------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        for table in ("_parameters", "_buffers", "_modules"):
            entries = self.__dict__.get(table)
            if entries is not None and name in entries:
                return entries[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        fields = self.__dict__
        if isinstance(value, Parameter):
            self._table("_parameters", "parameters")
            self._forget(name, fields, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._table("_modules", "module")
            self._forget(name, fields, "_parameters", "_buffers")
            fields["_modules"][name] = value
        elif isinstance(value, Buffer):
            self._table("_buffers", "buffer")
            self._forget(name, fields, "_parameters", "_modules")
            self.register_buffer(name, value, value.persistent)
        elif name in fields.get("_parameters", ()):
            self._set_registered("_parameters", name, value, "parameter", "torch.nn.Parameter")
        elif name in fields.get("_modules", ()):
            self._set_registered("_modules", name, value, "child module", "torch.nn.Module")
        elif name in fields.get("_buffers", ()):
            if value is not None and not isinstance(value, TensorBase):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, "
                    "torch.Tensor or None expected)"
                )
            fields["_buffers"][name] = value
        else:
            super().__setattr__(name, value)

    def _set_registered(self, table: str, name: str, value: Any, what: str, wanted: str) -> None:
        if value is not None:
            raise TypeError(
                f"cannot assign '{typename(value)}' as {what} '{name}' ({wanted} or None expected)"
            )
        self.__dict__[table][name] = None

    def _table(self, table: str, what: str) -> dict[str, Any]:
        if table not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")
        return self.__dict__[table]

    def _forget(self, name: str, fields: dict[str, Any], *tables: str) -> None:
        fields.pop(name, None)
        for table in tables:
            fields[table].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        for table in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(table, ()):
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*super().__dir__(), *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[:1].isdigit())

    # -- registration ------------------------------------------------------------------------------

    def _check_name(self, name: Any, what: str, table: dict[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        if "." in name:
            got = f", got: {name}" if what == "module" else ""
            raise KeyError(f'{what} name can\'t contain "."{got}')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter that is reached as an attribute; None reserves the name."""
        table = self._table("_parameters", "parameter")
        self._check_name(name, "parameter", table)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                "created explicitly."
            )
        table[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but not a parameter, such as a running mean.

        A buffer that is not `persistent` is not part of ``state_dict``.
        """
        table = self._table("_buffers", "buffer")
        self._check_name(name, "buffer", table)
        if tensor is not None and not isinstance(tensor, TensorBase):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or "
                "None required)"
            )
        table[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child that is reached as an attribute; None reserves the name."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        table = self._table("_modules", "module")
        self._check_name(name, "module", table)
        table[name] = module

    def register_module(self, name: str, module: Module | None) -> None:
        """Another name of `add_module`."""
        self.add_module(name, module)

    # -- changing the whole tree -------------------------------------------------------------------

    def apply(self: M, fn: Callable[[Module], None]) -> M:
        """Call ``fn(module)`` for every module below this one, then for this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self: M, mode: bool = True) -> M:
        """Switch this module and all below it to training (or evaluation)."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: M) -> M:
        """Switch to evaluation: ``train(False)``."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Say for all parameters whether they shall receive gradients."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset all gradients: to None, or to zeros in place."""
        for parameter in self.parameters():
            if parameter.grad is not None:
                if set_to_none:
                    parameter.grad = None
                else:
                    if parameter.grad.grad_fn is not None:
                        parameter.grad.detach_()
                    else:  # also a view, such as DDP's into a bucket, which cannot be detached
                        parameter.grad.requires_grad_(False)
                    parameter.grad.zero_()

    def _apply(self: M, fn: Callable[[Any], Any], recurse: bool = True) -> M:
        """Replace the data of every parameter, gradient and buffer by ``fn`` of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with no_grad():
            for parameter in self._parameters.values():
                if parameter is None:
                    continue
                grad = parameter.grad
                parameter.grad = None
                parameter.data = fn(parameter.data)
                if grad is not None:
                    parameter.grad = fn(grad.detach()).requires_grad_(grad.requires_grad)
            for name, buffer in self._buffers.items():
                if buffer is not None:
                    self._buffers[name] = fn(buffer)
        return self

    def to(self: M, *args: Any, **kwargs: Any) -> M:
        """Convert floating parameters and buffers in place: ``to(dtype)``, ``to(device)``,
        ``to(tensor)``, or several by keyword.
        """
        dtype = kwargs.get("dtype")
        device = kwargs.get("device")
        for arg in (*args, kwargs.get("tensor")):
            if isinstance(arg, TensorBase):
                dtype = arg.dtype
            elif isinstance(arg, minitorch.dtype):
                dtype = arg
            elif isinstance(arg, (str, minitorch.device)):
                device = arg
        if device is not None:
            minitorch.device(device)  # raises for any device but the CPU
        if dtype is None:
            return self
        if not dtype.is_floating_point:
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def type(self: M, dst_type: Any) -> M:
        """Convert all parameters and buffers to `dst_type`, integers too."""
        return self._apply(lambda t: t.to(dst_type))

    def float(self: M) -> M:
        """Convert to float32."""
        return self.to(minitorch.float32)

    def double(self: M) -> M:
        """Convert to float64."""
        return self.to(minitorch.float64)

    def half(self: M) -> M:
        """Convert to float16."""
        return self.to(minitorch.float16)

    def bfloat16(self: M) -> M:
        """Convert to bfloat16."""
        return self.to(minitorch.bfloat16)

    def cpu(self: M) -> M:
        """Return this module: the CPU is where it is."""
        return self

    # -- text --------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What to show between the parentheses; override it."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indent(repr(module))}" for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({extra})"
        if not lines and not children:
            return f"{self._get_name()}()"
        body = "\n  ".join(lines + children)
        return f"{self._get_name()}(\n  {body}\n)"


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")
