"""SAGA over ranks: samples and table are sharded, every step is a mini-batch of all ranks.

Rank r owns n_r of the N samples and their rows. In a step each rank draws one of *its own*, forms
its local SAGA direction, and the ranks add these up, weighted by the size of their shards:

    direction = sum_r (n_r / N) (f_j' - g_j + mean_r(g))       j drawn by rank r, mean of its rows

The means add up to the exact mean of the whole table, and a rank's difference plus its mean has the
gradient of its shard as expectation: unbiased, also with shards of different sizes. With equal
shards this is one process's step on a mini-batch of W samples. (SAG, SVRG and proximal SGD add up
in the same way.)

Costs, per rank and step: one all-reduce of D numbers, 2 D (W-1)/W sent, whatever N is; nothing
else, no parameter and no row ever travels. The table takes n_r rows per rank. Since all ranks add
up to the same bits, the replicas stay bitwise equal.

The model is not wrapped in DistributedDataParallel, which would average what must stay apart: each
sample's own gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minitorch.autograd.graph import wrap
from minitorch.optim._finite_sum import FiniteSumOptimizer
from minitorch.optim._rules import plain
from minitorch.optim.optimizer import ParamsT
from minitorch.optim.prox import Custom, Prox, as_prox
from minitorch.optim.prox_sgd import ProxSGD
from minitorch.optim.sag import SAG
from minitorch.optim.saga import SAGA
from minitorch.optim.svrg import SVRG

from ._ddp.step_check import is_averaged
from .collectives import all_reduce
from .objects import all_gather_object
from .process_group import ProcessGroup, ReduceOp, _get_default_group
from .rooted import broadcast

__all__ = ["DistributedProxSGD", "DistributedSAG", "DistributedSAGA", "DistributedSVRG"]


class _ShardedSamples(FiniteSumOptimizer):
    """Turns an optimizer of a finite sum into one whose samples lie on several ranks."""

    def __init__(
        self,
        params: ParamsT,
        n_samples: int,
        lr: Any = None,
        L: float | None = None,
        mu: float | None = None,
        prox: Any = None,
        *args: Any,
        process_group: ProcessGroup | None = None,
        **kwargs: Any,
    ) -> None:
        self._group = _get_default_group() if process_group is None else process_group
        own = {
            "n_samples": self._checked_count(n_samples),
            "lr": None if lr is None else float(plain(lr)),
            "L": None if L is None else float(L),
            "mu": None if mu is None else float(mu),
            "prox": _name(as_prox(prox)),
        }
        there = _from_all(own, self._group)
        self._shards = [facts["n_samples"] for facts in there]
        if not sum(self._shards):
            raise ValueError("no rank has samples: n_samples is 0 everywhere")
        _check_alike("lr", [facts["lr"] for facts in there])
        _check_alike("prox", [facts["prox"] for facts in there])
        L = _agreed("L", [facts["L"] for facts in there], max)
        mu = _agreed("mu", [facts["mu"] for facts in there], min)
        super().__init__(params, n_samples, lr, L, mu, prox, *args, **kwargs)
        rank, world = self._group.rank(), self._group.size()
        self._share = self.n_samples / self._total_samples
        self.state["samples"]["shard"] = [rank, world, self._total_samples]
        self._check_like_others()
        start = wrap(self._layout.values())
        broadcast(start, group_src=0, group=self._group)
        self._layout.set_values(start._array)

    def _check_like_others(self) -> None:
        """Refuse, on all ranks, what would make them take different steps."""
        groups = self.param_groups
        own = {
            "the method": self._kind,
            "init": getattr(self, "init", None),
            "shapes of the parameters": [tuple(p.shape) for p, _, _ in self._layout.entries],
            "dtypes of the parameters": [str(p.dtype) for p, _, _ in self._layout.entries],
            "(lr, weight_decay) of the groups": [
                (float(plain(g["lr"])), float(plain(g["weight_decay"]))) for g in groups
            ],
            "decoupled_weight_decay of the groups": [g["decoupled_weight_decay"] for g in groups],
            "prox of the groups": [_name(g["prox"]) for g in groups],
        }
        there = _from_all(own | {"averaged": self._is_averaged()}, self._group)
        if any(facts["averaged"] for facts in there):
            raise ValueError(self._averaged())
        for name in own:
            _check_alike(name, [facts[name] for facts in there])

    @property
    def _total_samples(self) -> int:
        return sum(self._shards)

    @property
    def _steps_per_pass(self) -> int:
        return -(-self._total_samples // len(self._shards))

    def _checked_count(self, n_samples: Any) -> int:
        return (
            0
            if n_samples == 0 and not isinstance(n_samples, bool)
            else super()._checked_count(n_samples)
        )

    def _checked_index(self, index: Any) -> int | None:
        if self.n_samples == 0 and index is None:
            return None
        return super()._checked_index(index)

    def _is_averaged(self) -> bool:
        return is_averaged(param for param, _, _ in self._layout.entries)

    def _averaged(self) -> str:
        return (
            f"the parameters are those of a DistributedDataParallel, which averages gradients over "
            f"ranks, and {type(self).__name__} needs each sample's own: give it the bare module, "
            "which it keeps alike on all ranks by itself"
        )

    def _check_ready(self) -> None:
        if self._is_averaged():  # wrapped since construction
            raise RuntimeError(self._averaged())
        super()._check_ready()

    def _combine(self, direction: np.ndarray) -> None:
        if len(self._shards) > 1:
            direction *= self._share
            all_reduce(wrap(direction), group=self._group)

    def _agree_on_smoothness(self, L: float) -> float:
        largest = wrap(np.array([L]))
        all_reduce(largest, op=ReduceOp.MAX, group=self._group)
        return float(largest._array[0])

    def _check_saved(self, saved: Any) -> None:
        super()._check_saved(saved)
        own = self.state["samples"]["shard"]
        if list(saved["shard"]) != own:
            names = ("rank", "world size", "samples of all ranks")
            what = [
                f"{n} {a}, not {b}"
                for n, a, b in zip(names, saved["shard"], own, strict=True)
                if a != b
            ]
            raise ValueError(
                f"loaded state dict is of another shard of the samples: {'; '.join(what)}"
            )

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_shards": self._shards, "_share": self._share}

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        twin: Any = super().__deepcopy__(memo)
        twin._group = self._group
        return twin


class DistributedSAGA(_ShardedSamples, SAGA):
    """SAGA over ranks; every rank constructs it and steps equally often.

    Parameters
    ----------
    params : iterable of Tensor, of dict, or of (name, Tensor)
        Equal in shape on all ranks; rank 0's values are sent to all, once, at construction.
    n_samples : int
        How many samples, or fixed mini-batches, *this rank* has. It may differ between ranks, and
        be 0: such a rank calls ``step(None)``.
    lr, prox, init, weight_decay, decoupled_weight_decay, memory_limit
        As of :class:`minitorch.optim.SAGA`; equal on all ranks. The memory limit is per rank.
    L, mu : float, optional
        Of this rank's samples: the largest L and the smallest mu of all ranks are used, with the
        number of samples of all ranks.
    process_group : ProcessGroup, optional
        By default the default group.

    Raises
    ------
    ValueError
        On all ranks, if they disagree on what must be equal, or if a DistributedDataParallel
        averages the gradients of the parameters. If that comes later, a step is a RuntimeError.

    Examples
    --------
    >>> import minitorch as torch, minitorch.distributed as dist
    >>> from minitorch.distributed.saga import DistributedSAGA
    >>> def program(rank):
    ...     y = [torch.tensor([1.0, 3.0]), torch.tensor([5.0])][rank]  # this rank's samples
    ...     w = torch.zeros(1, requires_grad=True)
    ...     opt = DistributedSAGA([w], n_samples=len(y), L=1.0)
    ...     def loss(i):
    ...         opt.zero_grad()
    ...         (0.5 * (w - y[i]) ** 2).sum().backward()
    ...     opt.init_table(loss)
    ...     for step in range(60):
    ...         loss(step % len(y))
    ...         opt.step(step % len(y))
    ...     return round(w.item(), 4)  # the mean of all samples
    >>> dist.run_local(program, 2)
    [3.0, 3.0]
    """


class DistributedSAG(_ShardedSamples, SAG):
    """:class:`minitorch.optim.SAG` over ranks; see :class:`DistributedSAGA`."""


class DistributedSVRG(_ShardedSamples, SVRG):
    """:class:`minitorch.optim.SVRG` over ranks; see :class:`DistributedSAGA`."""


class DistributedProxSGD(_ShardedSamples, ProxSGD):
    """:class:`minitorch.optim.ProxSGD` over ranks; see :class:`DistributedSAGA`."""


def _from_all(own: dict[str, Any], group: ProcessGroup) -> list[dict[str, Any]]:
    there: list[Any] = [None] * group.size()
    all_gather_object(there, own, group=group)
    return there


def _name(prox: Prox | None) -> str:
    # Two ranks' functions cannot be compared, and a repr may be an address.
    if isinstance(prox, Custom):
        return "a function"
    return type(prox).__name__ if type(prox).__repr__ is object.__repr__ else repr(prox)


def _check_alike(name: str, values: list[Any]) -> None:
    for rank, value in enumerate(values):
        if repr(value) != repr(values[0]):  # NaN is unlike itself, and refused for what it is
            raise ValueError(
                f"ranks disagree on {name}: rank 0 has {values[0]}, rank {rank} has {value}"
            )


def _agreed(name: str, values: list[float | None], choose: Callable[..., float]) -> float | None:
    _check_alike(f"whether {name} is given", [value is not None for value in values])
    return None if values[0] is None else choose(values)
