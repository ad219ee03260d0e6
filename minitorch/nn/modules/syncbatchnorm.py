"""Batch norm whose batch is that of all ranks."""

from __future__ import annotations

import sys
from typing import Any

from minitorch.nn.modules.batchnorm import _BatchNorm
from minitorch.nn.modules.module import Module
from minitorch.ops._typing import Tensor


class SyncBatchNorm(_BatchNorm):
    """Normalise each channel of ``(N, C, *)`` over the batches of all ranks together.

    In evaluation, without a process group, and in one of a single rank it is :class:`BatchNorm1d`
    or :class:`BatchNorm2d`. Otherwise forward and backward are collectives: all ranks of the group
    call them in the same order. The ranks' batches may differ in size, and be empty.

    Parameters
    ----------
    num_features : int
        The number of channels ``C``.
    momentum : float or None
        How far each batch moves the running statistics; None averages over all batches.
    affine, bias : bool
        Whether to scale and shift.
    track_running_stats : bool
        Keep running statistics and use them in evaluation.
    process_group : ProcessGroup, optional
        Over which ranks; by default all.

    Examples
    --------
    >>> import minitorch as torch, minitorch.distributed as dist
    >>> def program(rank):
    ...     norm = torch.nn.SyncBatchNorm(1)
    ...     norm(torch.tensor([[float(rank)]]))
    ...     return norm.running_mean.item()
    >>> dist.run_local(program, 2) == [torch.tensor(0.05).item()] * 2
    True
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def _normalize(
        self,
        input: Tensor,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        use_batch: bool,
        momentum: float,
    ) -> Tensor:
        group = self._group() if self.training else None
        if group is None or group.size() == 1:
            return super()._normalize(input, running_mean, running_var, use_batch, momentum)
        from minitorch.distributed._sync_batch_norm import sync_batch_norm

        return sync_batch_norm(
            input, self.weight, self.bias, running_mean, running_var, self.eps, momentum, group
        )

    def _group(self) -> Any:
        # The one look upwards from this floor: without `minitorch.distributed` loaded there is no
        # group, and asking does not load it.
        dist = sys.modules.get("minitorch.distributed")
        if dist is None or not dist.is_initialized():
            return None
        return self.process_group or dist.group.WORLD

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace every batch norm inside ``module`` by a SyncBatchNorm with the same parameters.

        Parameters
        ----------
        module : Module
            Changed in place; if it is a batch norm itself, the new module is returned instead.
        process_group : ProcessGroup, optional
            For all of them.

        Examples
        --------
        >>> from minitorch import nn
        >>> model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
        >>> nn.SyncBatchNorm.convert_sync_batchnorm(model)[1]
        SyncBatchNorm(4, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
        """
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            # The very same tensors: an optimizer that holds them goes on.
            for table in ("_parameters", "_buffers"):
                getattr(converted, table).update(getattr(module, table))
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
