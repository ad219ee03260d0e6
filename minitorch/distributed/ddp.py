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

Next rooms: ``_ddp/`` (one for each part, listed in its ``__init__`` in the order of a step),
``csrc/reducer`` (buckets and states).
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from minitorch.autograd import is_grad_enabled

from ._ddp.accumulation import Accumulation
from ._ddp.bucketing import bucket_limits
from ._ddp.buffer_sync import BufferSync
from ._ddp.building import Building
from ._ddp.consistency import require_consistency
from ._ddp.delayed import check_delayed
from ._ddp.graph import find_tensors
from ._ddp.join import UnevenInputs, begin_forward
from ._ddp.logging import logging_data
from ._ddp.module import member_of
from ._ddp.options import check_mixed_precision, refuse_unsupported, require_module

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minitorch.nn import Module, Parameter

    from ._ddp.mixed_precision import _MixedPrecision
    from .process_group import ProcessGroup

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Building, Accumulation, BufferSync, UnevenInputs):
    """Average gradients over the ranks of a process group, overlapped with backward.

    Parameters
    ----------
    module : Module
        The model; every rank passes the same one. Weights and buffers start as rank 0's.
    device_ids, output_device
        Only None: the one device is the CPU.
    dim : int
        Along which axis inputs are scattered over ``device_ids``; over one device, any is the same.
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
        One cap per bucket, the last repeats. Holds in the first iteration too, where the buckets
        are cut in the order of registration.
    find_unused_parameters : bool
        Walk the graph after each forward and do not wait for parameters that it does not reach.
    check_reduction : bool
        Deprecated in PyTorch; warns.
    gradient_as_bucket_view : bool
        Let ``.grad`` be a view into the bucket: saves one copy and the memory of all gradients.
    static_graph : bool
        The graph never changes: which parameters take part, and how often, is learned in the first
        backward, which is reduced at its end. Allows unused parameters without the search, and
        re-entrant checkpoints of one layer several times.
    delay_all_reduce_named_params, param_to_hook_all_reduce : list of (str, Parameter), Parameter
        Parameters that are reduced together, apart from the buckets, when the gradient of the
        second argument arrives. Both or neither.
    mixed_precision : _MixedPrecision, optional
        Compute and reduce in lower precision (``_ddp/mixed_precision.py``).
    skip_all_reduce_unused_params : bool
        Do not send buckets of which no parameter is used. All ranks must use the same parameters.

    Raises
    ------
    ValueError
        If an argument does not fit the module or the other arguments.
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
        delay_all_reduce_named_params: Sequence[tuple[str, Parameter]] | None = None,
        param_to_hook_all_reduce: Parameter | None = None,
        mixed_precision: _MixedPrecision | None = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: Sequence[float] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        UnevenInputs.__init__(self)
        require_module(module)
        refuse_unsupported(
            device_ids=device_ids,
            output_device=output_device,
            device_mesh=device_mesh,
            batched_grad_copy=batched_grad_copy,
        )
        check_mixed_precision(mixed_precision)
        self._delayed_names = check_delayed(
            module, delay_all_reduce_named_params, param_to_hook_all_reduce
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
        self.process_group = member_of(process_group)
        self.module = module
        self.static_graph = bool(static_graph)
        self.skip_all_reduce_unused_params = bool(skip_all_reduce_unused_params)
        self.mixed_precision = mixed_precision
        self._param_to_hook_all_reduce = param_to_hook_all_reduce
        self.find_unused_parameters = bool(find_unused_parameters)
        self.gradient_as_bucket_view = bool(gradient_as_bucket_view)
        if forward_sync_buffers is None:
            forward_sync_buffers = broadcast_buffers is None or bool(broadcast_buffers)
            init_sync_buffers = forward_sync_buffers
        else:
            init_sync_buffers = True
        self.broadcast_buffers = self.forward_sync_buffers = bool(forward_sync_buffers)
        self._bucket_limits = bucket_limits(bucket_cap_mb, bucket_cap_mb_list)
        self._always_bounded = bucket_cap_mb_list is not None and len(bucket_cap_mb_list) > 0
        self.bucket_bytes_cap = max(self._bucket_limits)
        self.parameters_to_ignore = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._refuse_uninitialized()

        if init_sync:
            self._verify(self._options(), with_buffers=init_sync_buffers)
        if not any(parameter.requires_grad for _, parameter in self._named_parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter "
                "that requires a gradient."
            )
        if init_sync:
            self._sync_module_states(with_buffers=init_sync_buffers)
        self._build_reducer()

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
        if self._low_precision is None:
            output = self.module(*inputs, **kwargs)
        else:
            inputs, kwargs = self._low_precision.cast((inputs, kwargs))
            with self._low_precision.parameters_cast():
                output = self.module(*inputs, **kwargs)
        self._post_forward(output)
        return output

    def _pre_forward(self) -> None:
        source = begin_forward(self)
        if is_grad_enabled():
            self._before_reduced_forward()
        self._buffer_sync_is_due = self._will_sync_buffers()
        if self._buffer_sync_is_due and not self._syncs_buffers_after_forward:
            self._sync_buffers(source)

    def _before_reduced_forward(self) -> None:
        self.reducer.mark_forward_start()
        if self._delayed is not None:
            self._delayed.ensure_finished()
        if self.reducer.before_forward():
            self._has_rebuilt_buckets = True

    def _post_forward(self, output: Any) -> None:
        if self._buffer_sync_is_due and self._syncs_buffers_after_forward:
            self._sync_buffers()
        synced = is_grad_enabled() and self.require_backward_grad_sync
        if synced:
            outputs = list(find_tensors(output))
            self.reducer.prepare_for_backward(outputs)
            if self._delayed is not None:
                self._delayed.arm(outputs)
        elif is_grad_enabled():
            self.reducer.expect_local_backward(list(find_tensors(output)))
        self.require_forward_param_sync = synced

    # -- diagnosis ---------------------------------------------------------------------------------

    def check_consistency(self, buffers: bool = True) -> None:
        """Raise on every rank unless all hold the same parameters and buffers, bit by bit; a
        collective.

        Parameters
        ----------
        buffers : bool
            Also compare buffers. Statistics of a batch norm differ between forwards, and are
            broadcast before each one.

        Raises
        ------
        RuntimeError
            Names the first parameter or buffer that differs, and which ranks agree with each other.
        """
        tensors = [*self._named_parameters(), *(self._named_buffers() if buffers else [])]
        require_consistency(self.process_group, tensors)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """Return what the reducer did and what it took (see ``_ddp/logging.py``)."""
        return logging_data(self)

    def _check_reducer_finalized(self) -> None:
        """Raise if a backward left gradients unreduced."""
        for part in (self.reducer, self._delayed):
            if part is not None and (text := part.unfinished()):
                raise RuntimeError(text)
