"""``DistributedDataParallel``: the same model on every rank, its gradients averaged while backward
computes them.

Plain data parallelism (Li et al., PVLDB 13(12) 2020): all ranks start from rank 0's weights, each
computes the gradients of its own share of the batch, the gradients are averaged, and so every rank
takes the same step.

    forward:  complain about an unfinished backward -> rebuild buckets (once) -> broadcast buffers
              -> the module's forward -> arm the reducer (not under no_sync)
    backward: gradient ready -> bucket -> all-reduce beside the computation -> wait -> ``.grad`` is
    the average

Cost: at construction one all-gather of 24 bytes and the model's bytes broadcast; per forward the
buffers' bytes broadcast; per backward one ring all-reduce per bucket, 2 (W-1)/W of the gradients'
bytes sent per rank.

Next rooms: ``_ddp_reducer.py`` (gradients), ``csrc/reducer`` (buckets and states),
``_ddp_buffers.py`` (broadcasts),
``_ddp_verify.py`` (do the ranks agree?), ``_ddp_graph.py`` (unused parameters),
``_ddp_hooks.py`` (other ways to send), ``_ddp_logging.py`` (what it took).
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from minitorch.autograd import is_grad_enabled, no_grad
from minitorch.nn import Module

from ._ddp_bucketing import bucket_limits
from ._ddp_buffers import COALESCED_BYTES, broadcast_coalesced
from ._ddp_graph import find_tensors
from ._ddp_hooks import BucketHook, check_hook
from ._ddp_logging import logging_data
from ._ddp_options import refuse_unsupported
from ._ddp_reducer import GradientReducer
from ._ddp_step_check import guard_optimizers
from ._ddp_verify import describe, verify_same_on_all_ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from minitorch.nn import Parameter

    from .process_group import ProcessGroup

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Average gradients over the ranks of a process group, overlapped with backward.

    Parameters
    ----------
    module : Module
        The model; every rank passes the same one. Weights and buffers start as rank 0's.
    device_ids, output_device, dim
        Only None, None and 0: the one device is the CPU.
    broadcast_buffers, forward_sync_buffers : bool, optional
        Whether rank 0's buffers (batch-norm statistics) are broadcast at the start of a forward;
        default True. The two differ at construction: ``broadcast_buffers=False`` leaves buffers
        alone there too.
    init_sync : bool
        Verify and broadcast the module at construction. With False the caller guarantees equality.
    process_group : ProcessGroup, optional
        Default: the default group.
    bucket_cap_mb : float, optional
        Bucket size in MiB, default 25 with a first bucket of 1. A bucket closes once it reaches its
        cap, so it may be larger. The first iteration uses one bucket per dtype.
    bucket_cap_mb_list : list of float, optional
        One cap per bucket, the last repeats.
    find_unused_parameters : bool
        Walk the graph after each forward and do not wait for parameters that it does not reach.
    check_reduction : bool
        Deprecated in PyTorch; warns.
    gradient_as_bucket_view : bool
        Let ``.grad`` be a view into the bucket: saves one copy and the memory of all gradients.

    Raises
    ------
    RuntimeError
        If the ranks' modules differ in the number, order, names, shapes, strides, dtypes or
        ``requires_grad`` of parameters (on every rank); or if nothing requires a gradient.
    NotImplementedError
        For an argument of PyTorch's that is not supported, by name.

    Notes
    -----
    The gradient is divided by the number of ranks before the sum, ``sum_r(g_r * (1/W))``: the
    average of per-rank gradients. It equals the gradient of the mean loss over the whole batch iff
    the ranks' batches are equally large. All ranks end with the same bits.

    Attributes of ``module`` can be read through the wrapper (``ddp.num_classes``), which PyTorch
    does not do; keys of ``state_dict`` start with ``module.``, which PyTorch does.

    Examples
    --------
    >>> import minitorch as torch, minitorch.distributed as dist
    >>> from minitorch.nn.parallel import DistributedDataParallel as DDP
    >>> def train(rank):
    ...     model = DDP(torch.nn.Linear(1, 1, bias=False))
    ...     model(torch.full((1, 1), float(rank))).sum().backward()
    ...     return model.module.weight.grad.item()
    >>> dist.run_local(train, 2)
    [0.5, 0.5]
    """

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: ProcessGroup | None = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: Sequence[float] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        refuse_unsupported(
            device_ids=device_ids,
            output_device=output_device,
            dim=dim,
            static_graph=static_graph,
            delay_all_reduce_named_params=delay_all_reduce_named_params,
            param_to_hook_all_reduce=param_to_hook_all_reduce,
            mixed_precision=mixed_precision,
            device_mesh=device_mesh,
            skip_all_reduce_unused_params=skip_all_reduce_unused_params,
            batched_grad_copy=batched_grad_copy,
        )
        if check_reduction:
            warnings.warn(
                "The `check_reduction` argument in `DistributedDataParallel` module is deprecated. "
                "Please avoid using it.",
                FutureWarning,
                stacklevel=2,
            )
        self.device_ids = self.output_device = None
        self.dim = dim
        self.process_group = _member_of(process_group)
        self.module = module
        self.static_graph = False
        self.find_unused_parameters = bool(find_unused_parameters)
        self.gradient_as_bucket_view = bool(gradient_as_bucket_view)
        if forward_sync_buffers is None:
            forward_sync_buffers = broadcast_buffers is None or bool(broadcast_buffers)
            init_sync_buffers = forward_sync_buffers
        else:
            init_sync_buffers = True
        self.broadcast_buffers = self.forward_sync_buffers = bool(forward_sync_buffers)
        self._bucket_limits = bucket_limits(bucket_cap_mb, bucket_cap_mb_list)
        self.bucket_bytes_cap = max(self._bucket_limits)
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._refuse_uninitialized()

        if init_sync:
            self._verify(with_buffers=init_sync_buffers)
        if not any(parameter.requires_grad for _, parameter in self._named_parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter "
                "that requires a gradient."
            )
        if init_sync:
            self._sync_module_states(with_buffers=init_sync_buffers)
        self._build_reducer()

    # -- construction ------------------------------------------------------------------------------

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

    def _refuse_uninitialized(self) -> None:
        for name, parameter in self._named_parameters():
            if type(parameter).__name__ == "UninitializedParameter":
                raise RuntimeError(
                    "Modules with uninitialized parameters can't be used with "
                    "`DistributedDataParallel`. Run a dummy forward pass to correctly initialize "
                    f"the modules ({name} is not initialized)."
                )

    def _verify(self, *, with_buffers: bool) -> None:
        options = {
            "broadcast_buffers": self.broadcast_buffers,
            "find_unused_parameters": self.find_unused_parameters,
            "bucket_limits": self._bucket_limits,
        }
        buffers = self._named_buffers() if with_buffers else []
        verify_same_on_all_ranks(
            self.process_group, describe(self._named_parameters(), buffers, options)
        )

    def _sync_module_states(self, *, with_buffers: bool) -> None:
        tensors: list[Any] = [parameter for _, parameter in self._named_parameters()]
        if with_buffers:
            tensors += [buffer for _, buffer in self._named_buffers()]
        broadcast_coalesced(self.process_group, tensors, 0, COALESCED_BYTES, "initial model state")

    def _build_reducer(self) -> None:
        managed = [(name, p) for name, p in self._named_parameters() if p.requires_grad]
        self.reducer = GradientReducer(
            self.process_group,
            managed,
            self._bucket_limits,
            find_unused_parameters=self.find_unused_parameters,
            gradient_as_bucket_view=self.gradient_as_bucket_view,
        )
        self._has_rebuilt_buckets = False
        guard_optimizers()

    # -- one iteration -----------------------------------------------------------------------------

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Run the module; with grad mode on and outside ``no_sync``, arm the next backward.

        Raises
        ------
        RuntimeError
            "Expected to have finished reduction in the prior iteration before starting a new one.",
            naming the parameters that got no gradient.
        """
        self._pre_forward()
        output = self.module(*inputs, **kwargs)
        self._post_forward(output)
        return output

    def _pre_forward(self) -> None:
        if is_grad_enabled():
            self.reducer.mark_forward_start()
            if self.reducer.before_forward():
                self._has_rebuilt_buckets = True
        if self._will_sync_buffers():
            self._sync_buffers()

    def _post_forward(self, output: Any) -> None:
        synced = is_grad_enabled() and self.require_backward_grad_sync
        if synced:
            self.reducer.prepare_for_backward(list(find_tensors(output)))
        self.require_forward_param_sync = synced

    def _will_sync_buffers(self) -> bool:
        """Before every synced forward, and before the first other one after it.

        The latter may be evaluation, or the first forward of ``no_sync``. PyTorch looks at the
        forward before this one alone, so that its first synced forward after
        ``no_sync`` or after evaluation starts from buffers that have drifted apart.
        """
        synced = is_grad_enabled() and self.require_backward_grad_sync
        return self.broadcast_buffers and (synced or self.require_forward_param_sync)

    def _sync_buffers(self) -> None:
        buffers = [buffer for _, buffer in self._named_buffers()]
        if buffers:
            with no_grad():
                broadcast_coalesced(self.process_group, buffers, 0, COALESCED_BYTES, "buffers")

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulate gradients locally: a forward in this context does not arm its backward.

        The next synced backward averages what has accumulated. What counts is where *forward* runs:
        a backward in this context of a forward outside of it does synchronize.

        Examples
        --------
        >>> with ddp.no_sync():  # doctest: +SKIP
        ...     for x in micro_batches[:-1]:
        ...         ddp(x).sum().backward()
        >>> ddp(micro_batches[-1]).sum().backward()  # doctest: +SKIP
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    # -- communication hooks and diagnosis ---------------------------------------------------------

    def register_comm_hook(self, state: object, hook: Callable) -> None:
        """Replace the all-reduce of a bucket by ``hook(state, bucket) -> Future[Tensor]``.

        The bucket holds this rank's gradients, not divided by the number of ranks. The future's
        value, a tensor of the bucket's shape, becomes the result.

        Raises
        ------
        TypeError, ValueError
            If the hook is not callable, or its signature or annotations do not fit.
        RuntimeError
            If a hook is registered already.
        """
        check_hook(hook)
        self.reducer.register_hook(BucketHook(self.reducer, state, hook))

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """Return what the reducer did and what it took (see ``_ddp_logging.py``)."""
        return logging_data(self)

    def _remove_autograd_hooks(self) -> None:
        """Stop reducing gradients; the module can be wrapped again."""
        self.reducer.remove_hooks()

    def _check_reducer_finalized(self) -> None:
        """Raise if a backward left gradients unreduced."""
        if text := self.reducer.unfinished():
            raise RuntimeError(text)

    # -- being a module ----------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        # Only called when ordinary look-up failed.
        try:
            return super().__getattr__(name)
        except AttributeError:
            module = self.__dict__.get("_modules", {}).get("module")
            if module is None:
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
        if self.process_group is not _default_group():
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default "
                "process group. That is, when you have called init_process_group and have not "
                "passed process_group argument to DDP constructor"
            )
        state = self.__dict__.copy()
        for name in ("process_group", "reducer"):
            state.pop(name)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.process_group = _default_group()
        self.require_forward_param_sync = self.require_backward_grad_sync = True
        self._build_reducer()


def _default_group() -> ProcessGroup:
    from .process_group import _get_default_group

    return _get_default_group()


def _member_of(process_group: ProcessGroup | None) -> ProcessGroup:
    from .process_group import ProcessGroup

    if process_group is None:
        return _default_group()
    if not isinstance(process_group, ProcessGroup):  # what new_group gives to outsiders
        raise ValueError(
            "DistributedDataParallel: this rank is not a member of process_group. Construct it on "
            "the ranks of the group only."
        )
    return process_group
