"""What DistributedDataParallel did and what it took, under PyTorch's keys."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from minitorch.dtypes import c_type_word
from minitorch.nn import SyncBatchNorm

from .._debug import DebugLevel, get_debug_level

if TYPE_CHECKING:
    from ..ddp import DistributedDataParallel
    from .reducer import GradientReducer


def logging_data(ddp: DistributedDataParallel) -> dict[str, Any]:
    """Gather construction facts, bucket layout and times.

    Lists are text, as in PyTorch: numbers joined by ", ", the indices within a bucket by spaces.
    Times are nanoseconds of the last reduced step and, with ``avg_``, the mean over all reduced
    steps after the first (which has one bucket per dtype, and so nothing to overlap).

    With ``MINITORCH_DISTRIBUTED_DEBUG`` at INFO or DETAIL, names are added: of the parameters in
    the order of their indices, and of those that no rank used.

    ``backward_comm_time`` counts moments in which a bucket was on the wire. Of these,
    ``backward_compute_comm_overlap_time`` is
    the part under backward's computation, by the collectives' own clocks;
    ``backward_comm_exposed_time`` (ours) is a stopwatch around the waits.
    """
    reducer = ddp.reducer
    core = reducer._core
    data: dict[str, Any] = {
        "world_size": ddp.process_group.size(),
        "rank": ddp.process_group.rank(),
        "module_name": type(ddp.module).__name__,
        "backend_name": ddp.process_group.name(),
        "torch_distributed_debug": get_debug_level().name,
        "master_addr": os.environ.get("MASTER_ADDR", "N/A"),
        "master_port": os.environ.get("MASTER_PORT", "N/A"),
        "device_ids": "",
        "output_device": -1,
        "is_multi_device_module": 0,
        "num_parameter_tensors": len(reducer.parameters),
        "total_parameter_size_bytes": sum(p._array.nbytes for p in reducer.parameters),
        "dtypes": _joined(sorted({c_type_word(p.dtype) for p in reducer.parameters})),
        "bucket_cap_bytes": ddp.bucket_bytes_cap,
        "bucket_sizes": _joined(reducer.first_bucket_sizes),
        "broadcast_buffers": int(ddp.broadcast_buffers),
        "find_unused_parameters": int(ddp.find_unused_parameters),
        "gradient_as_bucket_view": int(ddp.gradient_as_bucket_view),
        "static_graph": int(ddp.static_graph),
        "can_set_static_graph": int(reducer.can_set_static_graph),
        "has_sync_bn": int(any(isinstance(m, SyncBatchNorm) for m in ddp.module.modules())),
        "join_uneven_inputs": int(ddp._uses_join),
        "has_rebuilt_buckets": int(core.has_rebuilt),
        "num_buckets_reduced": len(reducer.bucket_indices),
        "iteration": core.iterations,
        "has_error": int(bool(core.unfinished())),
        "comm_hook": "builtin_hook: ALLREDUCE" if reducer.hook is None else reducer.hook.name,
    }
    if core.has_rebuilt:
        data["rebuilt_bucket_sizes"] = _joined(core.bucket_sizes)
        data["rebuilt_per_bucket_param_indices"] = _joined(
            " ".join(map(str, members)) for members in reducer.bucket_indices
        )
    if core.iterations:
        data["prev_iteration_grad_ready_order_indices"] = _joined(core.ready_order)
        unused = _unused(reducer)
        data["unused_parameter_size"] = sum(reducer.parameters[i]._array.nbytes for i in unused)
        data.update(_times(core))
        if get_debug_level() > DebugLevel.OFF:
            data["unused_parameter_names"] = _joined(reducer.names[i] for i in unused)
    if get_debug_level() > DebugLevel.OFF:
        data["parameter_names"] = _joined(reducer.names)
    return data


def _joined(items: Any) -> str:
    return ", ".join(map(str, items))


def _unused(reducer: GradientReducer) -> list[int]:
    """Parameters that no rank used, in the last step that looked."""
    if not (reducer.find_unused_parameters or reducer.static_graph):
        return []
    return [index for index, ranks in enumerate(reducer._core.used_map()) if ranks == 0]


def _times(core: Any) -> dict[str, int]:
    names = {
        "forward": "forward_compute_time",
        "backward": "backward_compute_time",
        "communication": "backward_comm_time",
        "hidden": "backward_compute_comm_overlap_time",
        "exposed": "backward_comm_exposed_time",
    }
    last, mean = core.overlap(), core.mean_overlap()
    times = {name: last[key] for key, name in names.items()}
    times.update({f"avg_{name}": mean[key] for key, name in names.items()})
    step = core.last_step()
    times["forward_compute_time_start"] = step["forward_start"]
    times["backward_compute_time_start"] = step["backward_start"]
    times["backward_compute_time_end"] = step["compute_end"]
    times["backward_comm_time_start"] = min((b["started"] for b in step["buckets"]), default=0)
    times["backward_comm_time_end"] = max((b["finished"] for b in step["buckets"]), default=0)
    return times
