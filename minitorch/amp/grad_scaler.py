"""``GradScaler``: keep small float16 gradients from vanishing (Micikevicius et al., 2018, §3.2).

The loss is multiplied by a large factor, the gradients are divided by it before the step. A step
whose gradients overflowed is skipped and the factor halved; after many good ones it is doubled.
bfloat16 has float32's range and needs none of this: use ``enabled=False`` there.
"""

from __future__ import annotations

import warnings
from typing import Any, cast

import numpy as np

from ..autograd.graph import TensorBase, bump_version

__all__ = ["GradScaler"]


class GradScaler:
    """Scale the loss, unscale the gradients, skip steps that overflowed.

    Parameters
    ----------
    device : str, default "cpu"
        The only device.
    init_scale : float, default 65536
        First factor.
    growth_factor, backoff_factor : float, default 2 and 0.5
        What the factor is multiplied with after ``growth_interval`` good steps, and after a bad
        one.
    growth_interval : int, default 2000
        Good steps in a row before the factor grows.
    enabled : bool, default True
        False makes every method pass through.
    """

    def __init__(
        self,
        device: str = "cpu",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if enabled and device != "cpu":
            warnings.warn(
                f"GradScaler is enabled, but {device} is not available. Disabling.", stacklevel=2
            )
            enabled = False
        if enabled and growth_factor <= 1.0:
            raise ValueError("The growth factor must be > 1.0.")
        if enabled and backoff_factor >= 1.0:
            raise ValueError("The backoff factor must be < 1.0.")
        self._enabled = enabled
        self._scale = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        # Per optimizer since the last update: whether an overflow was found, whether it stepped.
        self._found_inf: dict[int, bool] = {}
        self._stepped: set[int] = set()

    def is_enabled(self) -> bool:
        """Whether this scaler does anything."""
        return self._enabled

    def get_scale(self) -> float:
        """The current factor; 1 if disabled."""
        return self._scale if self._enabled else 1.0

    def scale(self, outputs: Any) -> Any:
        """The loss (or several, in nested lists and tuples) times the factor."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, TensorBase):
            return cast(Any, outputs) * self._scale
        if isinstance(outputs, (list, tuple)):
            return type(outputs)([self.scale(output) for output in outputs])
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the optimizer's gradients by the factor, for instance to clip them."""
        if not self._enabled:
            return
        if id(optimizer) in self._stepped:
            raise RuntimeError("unscale_() is being called after step().")
        if id(optimizer) in self._found_inf:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        found = False
        inverse = 1.0 / self._scale
        for group in optimizer.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                array = param.grad._array
                if array.dtype == np.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                found = found or not bool(np.isfinite(array).all())
                array *= inverse
                bump_version(param.grad)
        self._found_inf[id(optimizer)] = found

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """``optimizer.step(*args, **kwargs)``, unless a gradient is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        if id(optimizer) in self._stepped:
            raise RuntimeError("step() has already been called since the last update().")
        if id(optimizer) not in self._found_inf:
            self.unscale_(optimizer)
        result = None
        if not self._found_inf[id(optimizer)]:
            result = optimizer.step(*args, **kwargs)
        self._stepped.add(id(optimizer))
        return result

    def update(self, new_scale: Any = None) -> None:
        """Adapt the factor to what was found since the last update, or set it."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._found_inf:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(self._found_inf.values()):
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale *= self._growth_factor
                self._growth_tracker = 0
        self._found_inf = {}
        self._stepped = set()

    def get_growth_factor(self) -> float:
        """What the factor grows by."""
        return self._growth_factor

    def get_backoff_factor(self) -> float:
        """What the factor shrinks by."""
        return self._backoff_factor

    def get_growth_interval(self) -> int:
        """Good steps before the factor grows."""
        return self._growth_interval

    def state_dict(self) -> dict[str, Any]:
        """The factor and its rules; empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale,
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from :meth:`state_dict`."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._scale = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]
