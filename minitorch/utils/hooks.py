"""PyTorch's long path to the handle that registering a hook returns."""

from ..autograd.graph import RemovableHandle

__all__ = ["RemovableHandle"]
