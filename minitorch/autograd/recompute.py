"""``checkpoint``: keep no activations of a part of the model; compute them again in backward.

``use_reentrant=False`` (preferable): the part is recorded as usual, then everything its nodes saved
is dropped. The first node that misses its values runs the function once more and hands every node
the values of its twin in the second graph. So hooks, ``autograd.grad``, ``inputs=`` and
``create_graph`` all work.

``use_reentrant=True``: the part is one node whose rule runs the function again and calls
``backward`` inside the backward; only arguments that are tensors get gradients through the graph,
parameters accumulate from within.

Source: Chen et al., Training deep nets with sublinear memory cost, 2016.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minitorch.autograd.api import backward
from minitorch.autograd.function import Function, FunctionCtx
from minitorch.autograd.grad_mode import enable_grad, mode
from minitorch.autograd.graph import (
    AccumulateGrad,
    Node,
    TensorBase,
    memory_owner,
    wrap,
)
from minitorch.autograd.inplace import detached
from minitorch.autograd.writes import clock


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function did not do what the first did."""


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    determinism_check: str = "default",
    context_fn: Callable[[], tuple] | None = None,
    **kwargs: Any,
) -> Any:
    """Run ``function(*args, **kwargs)`` without keeping its activations for backward.

    Parameters
    ----------
    use_reentrant : bool
        Which of the two ways (see the head of this file); should be given.
    preserve_rng_state : bool
        Give the second run the random numbers of the first.
    determinism_check : {"default", "none"}
        "none" accepts a second run whose operations differ in kind.
    context_fn
        Returns two context managers, for the first and the second run; not reentrant only.

    Raises
    ------
    CheckpointError
        In backward, if the second run recorded other operations than the first.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "use_reentrant=False is recommended. Refer to docs for more details on the differences "
            "between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not None:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        if not any(isinstance(a, TensorBase) and a.requires_grad for a in args):
            warnings.warn(
                "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
            )
        return _Reentrant.apply(function, preserve_rng_state, *args)
    first, second = context_fn() if context_fn else (contextlib.nullcontext(),) * 2
    surroundings = _Surroundings(preserve_rng_state)
    start = next(clock)
    with first, surroundings.recorded():
        outputs = function(*args, **kwargs)
    if mode.grad_enabled:
        again = _Again(function, args, kwargs, surroundings, second, determinism_check)
        again.drop(outputs, start)
    return outputs


class _Surroundings:
    """Random state, numbers of calls, autocast: as they were, to be had again in the second run."""

    def __init__(self, keep_random: bool) -> None:
        from minitorch import random
        from minitorch.amp import autocast_mode

        self._state = random.get_rng_state() if keep_random else None
        self._low = autocast_mode.active.dtype
        self._calls: list[int] = []

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Remember what the first run draws by address."""
        from minitorch.random.callers import recorded_calls

        with recorded_calls() as self._calls:
            yield

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        from minitorch import random
        from minitorch.amp import autocast_mode
        from minitorch.random.callers import replayed_calls

        active = autocast_mode.active
        low, cache = active.dtype, active.cache
        state = random.get_rng_state() if self._state is not None else None
        try:
            active.dtype = self._low
            if self._state is not None:
                random.set_rng_state(self._state)
            with replayed_calls(self._calls):
                yield
        finally:
            active.dtype, active.cache = low, cache
            if state is not None:
                random.set_rng_state(state)


# -- not reentrant -------------------------------------------------------------------------------


class _Emptied(Node):
    """A node whose saved values were dropped; asking for them runs the function again."""

    __slots__ = ()

    @property
    def ctx(self) -> Any:
        _refill(self)
        return self.ctx

    @property
    def saved(self) -> tuple:
        _refill(self)
        return self.saved


def _refill(node: Node) -> None:
    """Let the node that was emptied be an ordinary one again, with all its values."""
    if node._saved is None:
        node.__class__ = Node
        _ = node.saved  # raises: the graph was freed
    else:
        node._saved[0].refill()


# The slots behind the properties: an emptied node is written through them.
_ctx_slot: Any = vars(Node)["ctx"]


class _Again:
    """Everything needed to run a checkpointed function a second time."""

    def __init__(
        self,
        function: Callable,
        args: tuple,
        kwargs: dict,
        surroundings: _Surroundings,
        context: Any,
        check: str,
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.surroundings, self.context, self.check = surroundings, context, check
        self.nodes: list[Node] = []

    def drop(self, outputs: Any, start: int) -> None:
        """Empty the nodes that were made since `start` and lead to `outputs`."""
        self.nodes = _made_since(outputs, start)
        for node in self.nodes:
            if node.__class__ is Node:
                _ctx_slot.__set__(node, None)
                node._saved = (self,)
                node.__class__ = _Emptied

    def refill(self) -> None:
        """Run the function again and give each emptied node what its twin saved."""
        start = next(clock)
        differentiable, task = mode.differentiable, mode.task
        mode.differentiable, mode.task = False, None
        try:
            with enable_grad(), self.surroundings.restored(), self.context:
                outputs = self.function(*self.args, **self.kwargs)
        finally:
            mode.differentiable, mode.task = differentiable, task
        twins = _made_since(outputs, start)
        self._compare(twins)
        original = dict(zip(twins, self.nodes, strict=True))
        for twin, node in original.items():
            if node.__class__ is _Emptied and node._saved is not None:
                node.__class__ = Node  # type: ignore[assignment]
                _ctx_slot.__set__(node, twin.ctx)
                node._own = twin._own
                node._saved = tuple(
                    [
                        _as_first_saved(item, original, node._seq, start)
                        for item in twin._saved or ()
                    ]
                )
        self.nodes = []

    def _compare(self, twins: list[Node]) -> None:
        names = [node.name() for node in self.nodes]
        again = [node.name() for node in twins]
        if len(names) != len(again):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(names)}\n"
                f"Number of tensors saved during recomputation: {len(again)}"
            )
        if self.check != "none" and names != again:
            changed = next(
                i for i, pair in enumerate(zip(names, again, strict=True)) if pair[0] != pair[1]
            )
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                "different metadata than during the forward pass.\n"
                f"operation {changed}: {names[changed]} in forward, {again[changed]} in "
                "recomputation"
            )


def _as_first_saved(item: Any, original: dict[Node, Node], seq: int, start: int) -> Any:
    """Return a tensor that the second run saved as the first run's node would hold it.

    It gets the history of the first run (for higher derivatives), and forgets writes that belong to
    the second run. Writes between the two runs stay on record: they make the gradient wrong.
    """
    if not isinstance(item, TensorBase):
        return item
    log = memory_owner(item)._writes
    rewritten = log is not None and log.times[-1] >= start
    if rewritten and any(seq < time < start for time in log.times):
        return item
    if not rewritten and item._node not in original:
        return item
    twin = wrap(item._array)
    maker = item._node
    twin._node, twin._output_nr = maker and original.get(maker), item._output_nr
    twin._requires_grad = item._requires_grad
    return twin


def _tensors_in(value: Any) -> Iterator[TensorBase]:
    if isinstance(value, TensorBase):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _tensors_in(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from _tensors_in(each)


def _made_since(outputs: Any, start: int) -> list[Node]:
    """Return the nodes younger than `start` that lead to the outputs, oldest first."""
    stack = [t.grad_fn for t in _tensors_in(outputs)]
    seen: set[Node] = set()
    while stack:
        node = stack.pop()
        if node is None or node in seen or node.__class__ is AccumulateGrad or node._seq < start:
            continue
        seen.add(node)
        stack.extend(node._next)
    return sorted(seen, key=lambda node: node._seq)


# -- reentrant -----------------------------------------------------------------------------------


class _Reentrant(Function):
    @staticmethod
    def forward(ctx: FunctionCtx, function: Callable, keep_random: bool, *args: Any) -> Any:
        ctx.function, ctx.surroundings = function, _Surroundings(keep_random)
        ctx.tensor_places = [i for i, a in enumerate(args) if isinstance(a, TensorBase)]
        ctx.args = [None if isinstance(a, TensorBase) else a for a in args]
        ctx.save_for_backward(*[a for a in args if isinstance(a, TensorBase)])
        with ctx.surroundings.recorded():
            return function(*args)

    @staticmethod
    def backward(ctx: FunctionCtx, *grads: Any) -> tuple:
        if mode.task is not None and mode.task.has_targets:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument."
            )
        args = list(ctx.args)
        for place, tensor in zip(ctx.tensor_places, ctx.saved_tensors, strict=True):
            alias = detached(tensor)
            alias._requires_grad = tensor.requires_grad
            args[place] = alias
        with enable_grad(), ctx.surroundings.restored():
            outputs = ctx.function(*args)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [
            (out, grad)
            for out, grad in zip(outputs, grads, strict=True)
            if isinstance(out, TensorBase) and out.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([out for out, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *[a._grad if isinstance(a, TensorBase) else None for a in args])


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
) -> Any:
    """Run a sequence of modules in `segments` parts, all but the last checkpointed."""
    layers: Sequence[Callable] = (
        list(functions.children()) if hasattr(functions, "children") else list(functions)
    )

    def part(start: int, end: int) -> Callable:
        def run(x: Any) -> Any:
            for layer in layers[start:end]:
                x = layer(x)
            return x

        return run

    size = len(layers) // segments
    end = 0
    for _ in range(segments - 1):
        start, end = end, end + size
        input = checkpoint(
            part(start, end),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve_rng_state,
        )
    return part(end, len(layers))(input)
