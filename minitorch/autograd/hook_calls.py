"""Running the hooks of a node during the walk: hooks see Tensors, rules see arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minitorch.autograd.graph import Node, TensorBase, wrap


def _to_tensor(grad: Any) -> Any:
    return grad if grad is None or isinstance(grad, TensorBase) else wrap(grad)


def _from_tensor(grad: Any, create_graph: bool) -> Any:
    if grad is None or create_graph:
        return grad
    return grad._coo if grad.is_sparse else grad._array


def through_hooks(hooks: dict, grad: Any, create_graph: bool) -> Any:
    """Run a tensor's hooks one after the other; each sees what the one before made of it."""
    tensor = _to_tensor(grad)
    for hook in list(hooks.values()):
        result = hook(tensor)
        if result is not None:
            if not isinstance(result, TensorBase):
                raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
            if result.shape != tensor.shape:
                raise RuntimeError(
                    f"hook '{getattr(hook, '__name__', hook)}' has changed the size of value"
                )
            tensor = result
    return _from_tensor(tensor, create_graph)


def before_node(node: Node, grad: Any, create_graph: bool) -> Any:
    """Tensor hooks, then retained gradients, then the node's own pre-hooks."""
    rare = node.rare
    single = node.arity is None
    grads = [grad] if single else list(grad)
    for number, hooks in rare.tensor.items():
        if hooks and grads[number] is not None:
            grads[number] = through_hooks(hooks, grads[number], create_graph)
    for number, reference in rare.retained.items():
        tensor = reference()
        if tensor is not None and grads[number] is not None:
            kept = grads[number]
            if not create_graph:
                kept = wrap(kept.copy())
            tensor._grad = kept if tensor._grad is None else tensor._grad + kept
    for hook in list(rare.pre.values()):
        result = hook(tuple([_to_tensor(g) for g in grads]))
        if result is not None:
            result = result if isinstance(result, tuple) else (result,)
            grads = [_from_tensor(g, create_graph) for g in result]
    return grads[0] if single else grads


def after_node(node: Node, grads: Sequence, incoming: Any, create_graph: bool) -> Sequence:
    """Run the node's post hooks; each may replace the gradients that the rule returned."""
    incoming = incoming if isinstance(incoming, (list, tuple)) else (incoming,)
    outputs = tuple([_to_tensor(g) for g in incoming])
    for hook in list(node.rare.post.values()):
        result = hook(tuple([_to_tensor(g) for g in grads]), outputs)
        if result is not None:
            result = result if isinstance(result, tuple) else (result,)
            grads = [_from_tensor(g, create_graph) for g in result]
    return grads
