"""Automatic differentiation: recording a graph of operations and walking it backward.

===================  ===============================================================
``graph.py``         ``record``, by which an op enters the graph: read this first
``nodes.py``         the nodes, and a tensor's fields of the graph
``engine.py``        the walk, newest node first
``accumulate.py``    what happens at a leaf; ``hook_calls.py``: hooks on the way
``api.py``           ``backward`` and ``grad``
``grad_mode.py``     ``no_grad`` and its relatives
``inplace.py``       views and in-place writes; ``writes.py``: when memory was written
``overlap.py``       whose elements share memory, and which writes that forbids
``function.py``      user-defined operations
``gradcheck.py``     numerical verification of gradients
``recompute.py``     `checkpoint`: recomputing activations to save memory
===================  ===============================================================
"""

from typing import Any

from minitorch.autograd.api import backward, grad, grad_accumulator, retain_grad
from minitorch.autograd.engine import queue_callback
from minitorch.autograd.function import Function, once_differentiable
from minitorch.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from minitorch.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from minitorch.autograd.graph import (
    AccumulateGrad,
    Node,
    RemovableHandle,
    TensorBase,
    accumulator_of,
    bump_version,
    make_node,
    record,
    record_many,
    set_tensor_type,
    version_of,
    wrap,
)
from minitorch.autograd.inplace import alias_of, detached, record_view, requires_grad, write
from minitorch.autograd.recompute import CheckpointError, checkpoint, checkpoint_sequential


class Variable:
    """PyTorch's old name for Tensor; scripts still use it for ``queue_callback``.

    ``Variable(t, requires_grad=True)`` returns a tensor that shares `t`'s memory.
    """

    class _execution_engine:
        queue_callback = staticmethod(queue_callback)

    def __new__(cls, data: TensorBase, requires_grad: bool = False) -> Any:
        alias = detached(data)
        alias._requires_grad = requires_grad
        return alias


__all__ = [
    "AccumulateGrad",
    "CheckpointError",
    "Function",
    "GradcheckError",
    "Node",
    "RemovableHandle",
    "TensorBase",
    "Variable",
    "accumulator_of",
    "alias_of",
    "backward",
    "bump_version",
    "checkpoint",
    "checkpoint_sequential",
    "detached",
    "enable_grad",
    "grad",
    "grad_accumulator",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "make_node",
    "no_grad",
    "once_differentiable",
    "queue_callback",
    "record",
    "record_many",
    "record_view",
    "requires_grad",
    "retain_grad",
    "set_grad_enabled",
    "set_tensor_type",
    "version_of",
    "wrap",
    "write",
]
