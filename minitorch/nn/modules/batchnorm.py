"""Batch and instance normalisation, which keep running statistics of what they saw."""

from __future__ import annotations

from typing import Any

import minitorch
from minitorch.autograd import no_grad
from minitorch.nn import functional as F
from minitorch.nn import init
from minitorch.nn.modules.module import Module
from minitorch.nn.parameter import Parameter
from minitorch.ops._typing import Tensor


class _NormBase(Module):
    """Parameters and running statistics that batch and instance norm share."""

    # State dictionaries from before version 2 lack `num_batches_tracked`.
    _version = 2

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            values = minitorch.empty(num_features, dtype=dtype) if wanted else None
            self.register_parameter(name, None if values is None else Parameter(values))
        if track_running_stats:
            self.register_buffer("running_mean", minitorch.zeros(num_features, dtype=dtype))
            self.register_buffer("running_var", minitorch.ones(num_features, dtype=dtype))
            self.register_buffer("num_batches_tracked", minitorch.tensor(0))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Forget the running statistics."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Reset statistics, and scale and shift to 1 and 0."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: dict[str, Any], *rest: Any
    ) -> None:
        key = prefix + "num_batches_tracked"
        old = local_metadata.get("version") is None or local_metadata["version"] < 2
        if old and self.track_running_stats and key not in state_dict:
            tracked = self.num_batches_tracked
            state_dict[key] = minitorch.tensor(0) if tracked is None else tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_NormBase):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            with no_grad():
                self.num_batches_tracked.add_(1)
            if self.momentum is None:
                # A cumulative average: every batch so far counts the same.
                momentum = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or (self.running_mean is None and self.running_var is None)
        keep_running = not self.training or self.track_running_stats
        return self._normalize(
            input,
            self.running_mean if keep_running else None,
            self.running_var if keep_running else None,
            use_batch,
            momentum,
        )

    def _normalize(
        self,
        input: Tensor,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        use_batch: bool,
        momentum: float,
    ) -> Tensor:
        return F.batch_norm(
            input,
            running_mean,
            running_var,
            self.weight,
            self.bias,
            use_batch,
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Normalise each channel of ``(N, C)`` or ``(N, C, L)`` over the batch.

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
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """Normalise each channel of ``(N, C, H, W)`` over the batch; see :class:`BatchNorm1d`."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype)

    dims: int

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (self.dims + 1, self.dims + 2):
            raise ValueError(
                f"expected {self.dims + 1}D or {self.dims + 2}D input (got {input.dim()}D input)"
            )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        batched = input.dim() == self.dims + 2
        out = F.instance_norm(
            input if batched else input.unsqueeze(0),
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return out if batched else out.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Normalise every channel of every sample of ``(N, C, L)`` on its own."""

    dims = 1


class InstanceNorm2d(_InstanceNorm):
    """Normalise every channel of every sample of ``(N, C, H, W)`` on its own."""

    dims = 2
