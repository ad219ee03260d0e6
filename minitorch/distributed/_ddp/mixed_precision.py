"""``mixed_precision``: compute in a low-precision copy of the parameters, reduce in low precision,
keep parameters, gradients and optimizer in full precision.

During forward each parameter is replaced by ``parameter.to(param_dtype)``, a recorded operation. So
the graph holds the copies, the gradient arrives at the copy in ``param_dtype``, is cast up on its
way to the parameter, and outside of forward nothing is ever in low precision. PyTorch swaps the
parameters' storage instead, on a device with streams, and refuses this on a CPU.

Cost: one cast of the parameters per forward, of the gradients per backward; each bucket is sent in
``reduce_dtype`` (half the bytes for a 16-bit one).
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minitorch.autograd import no_grad
from minitorch.tensor import Tensor

from ..collectives import all_reduce

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from minitorch.nn import Module

    from ..futures import Future
    from ..process_group import ProcessGroup
    from .hooks import GradBucket


@dataclass
class _MixedPrecision:
    """PyTorch's ``torch.nn.parallel.distributed._MixedPrecision``; None leaves as it is.

    Attributes
    ----------
    param_dtype
        Of parameters and floating inputs while forward and backward compute.
    reduce_dtype
        Of gradients while they are summed; by default ``param_dtype``.
    buffer_dtype
        Of floating buffers, from construction on.
    """

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None


class LowPrecision:
    """Runs one module in low precision.

    Parameters
    ----------
    config
        The dtypes.
    module
        Whose parameters are replaced.
    ignored
        Names of parameters and buffers that stay as they are.
    """

    def __init__(self, config: _MixedPrecision, module: Module, ignored: set[str]) -> None:
        self._config, self._module, self._ignored = config, module, ignored
        if config.buffer_dtype is not None:
            with no_grad():
                for name, buffer in module.named_buffers():
                    if name not in ignored and buffer.is_floating_point():
                        buffer.data = buffer.to(config.buffer_dtype)

    def cast(self, value: Any) -> Any:
        """Return inputs with floating tensors in ``param_dtype``; looks into containers."""
        dtype = self._config.param_dtype
        if dtype is None:
            return value
        if isinstance(value, Tensor):
            return value.to(dtype) if value.is_floating_point() else value
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(self.cast, value))
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.cast, value))
        if isinstance(value, dict):
            return {key: self.cast(item) for key, item in value.items()}
        return value

    @contextmanager
    def parameters_cast(self) -> Iterator[None]:
        """Put low-precision copies in the place of the parameters; the same one for shared ones."""
        if self._config.param_dtype is None:
            yield
            return
        places: list[tuple[dict, str, Any]] = []
        copies: dict[int, Any] = {}
        try:
            for path, layer in self._module.named_modules():
                for name, parameter in list(layer._parameters.items()):
                    full = f"{path}.{name}" if path else name
                    if parameter is None or full in self._ignored:
                        continue
                    if not parameter.is_floating_point():
                        continue
                    if id(parameter) not in copies:
                        copies[id(parameter)] = parameter.to(self._config.param_dtype)
                    places.append((layer._parameters, name, parameter))
                    layer._parameters[name] = copies[id(parameter)]
            yield
        finally:
            for table, name, parameter in places:
                table[name] = parameter

    @property
    def hook(self) -> Callable[[ProcessGroup, GradBucket], Future] | None:
        """The communication hook that sums in ``reduce_dtype``; None for full precision."""
        dtype = self._config.reduce_dtype or self._config.param_dtype
        return None if dtype is None else _reducing_in(dtype)


def _reducing_in(dtype: Any) -> Callable[[ProcessGroup, GradBucket], Future]:
    def reduce_in_low_precision(group: ProcessGroup, bucket: GradBucket) -> Future:
        buffer = bucket.buffer()
        low = buffer.to(dtype, copy=True)
        low /= group.size()
        work = all_reduce(low, group=group, async_op=True)
        assert work is not None

        def widen(future: Future) -> Tensor:
            buffer._array[...] = future.value()[0]._array
            return buffer

        return work.get_future().then(widen)

    return reduce_in_low_precision
