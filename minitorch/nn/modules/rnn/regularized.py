"""Recurrent layers that can be regularised in every way that zoneout's paper compares.

==========================  =====================================================================
``zoneout_*``               units keep their old value: a mask per step, sample and unit
``shared_mask``             one mask for cell and hidden state
``static_mask``             one mask per step and unit, drawn once for the run and used in
                            evaluation too: an ablation (identity connections that stay)
``stochastic_depth``        a mask per step and sample: all units keep their value together
``recurrent_dropout``       zeros in the update (``g`` of the LSTM, ``n`` of the GRU), per step
``variational_dropout``     zeros in the hidden state as the gates see it, the same at every step
``output_dropout``          zeros in the outputs of every layer: non-recurrent dropout
``layer_norm``              both products of the gates, and the LSTM's cell, are normalised
==========================  =====================================================================

All but `layer_norm` run inside the fused sequence; with it, every step is spelled out in
elementary ops (``ops/recurrent_plain.py``), at several times the price.

Sources: Krueger et al., 2016 (zoneout); Huang et al., 2016 (stochastic depth); Semeniuta et al.,
2016 (recurrent dropout without memory loss); Gal and Ghahramani, 2016 (variational dropout);
Zaremba et al., 2014 (dropout of non-recurrent connections); Ba et al., 2016 (layer normalisation).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import minitorch
from minitorch.autograd import TensorBase, no_grad, wrap
from minitorch.nn import functional as F
from minitorch.nn.modules.rnn.base import RNNBase
from minitorch.nn.modules.rnn.masks import (
    CANDIDATE,
    CELL,
    HIDDEN,
    OUTPUT,
    VARIATIONAL,
    MaskedModule,
    checked_mask,
    checked_pair,
    checked_rate,
)
from minitorch.nn.parameter import Parameter
from minitorch.ops import recurrent_plain
from minitorch.ops._typing import Tensor
from minitorch.ops.recurrent_common import Expect, Extras, Keep
from minitorch.ops.recurrent_schedule import Schedule
from minitorch.ops.recurrent_sequence import sequence

__all__ = ["OPTIONS", "RegularizedRNN"]

# Arguments beside the rates of zoneout; the names of :meth:`RegularizedRNN._init_options`.
OPTIONS = (
    "static_mask",
    "stochastic_depth",
    "recurrent_dropout",
    "variational_dropout",
    "output_dropout",
    "layer_norm",
    "mask_seed",
)


class RegularizedRNN(MaskedModule, RNNBase):
    """A recurrent stack with zoneout and its rivals; the rates are (hidden, cell)."""

    def _init_options(
        self,
        zoneout: dict[str, float],
        static_mask: bool = False,
        stochastic_depth: bool = False,
        recurrent_dropout: float = 0.0,
        variational_dropout: float = 0.0,
        output_dropout: float = 0.0,
        layer_norm: bool = False,
        mask_seed: int | None = None,
    ) -> None:
        if static_mask and stochastic_depth:
            raise ValueError(
                "static_mask and stochastic_depth exclude each other: a mask that stays would "
                "remove the same steps for ever"
            )
        for name, rate in zoneout.items():
            setattr(self, name, rate)
        self._rate_names = tuple(zoneout)
        self.static_mask, self.stochastic_depth = static_mask, stochastic_depth
        self.recurrent_dropout = checked_rate("recurrent_dropout", recurrent_dropout)
        self.variational_dropout = checked_rate("variational_dropout", variational_dropout)
        self.output_dropout = checked_rate("output_dropout", output_dropout)
        self.layer_norm = layer_norm
        if layer_norm:
            for suffix, weights in zip(self._suffixes(), self.all_weights, strict=True):
                self._add_norms(suffix, weights[0])
        self._init_masks(mask_seed)

    def _suffixes(self) -> list[str]:
        return [names[0].removeprefix("weight_ih") for names in self._all_weights]

    def _add_norms(self, suffix: str, w_ih: Parameter) -> None:
        gates, dtype = w_ih.shape[0], w_ih.dtype
        for name in ("norm_ih", "norm_hh"):
            setattr(self, name + suffix, Parameter(minitorch.ones(gates, dtype=dtype)))
        if self.mode == "LSTM":
            size = self.hidden_size
            setattr(self, "norm_c" + suffix, Parameter(minitorch.ones(size, dtype=dtype)))
            setattr(self, "norm_c_bias" + suffix, Parameter(minitorch.zeros(size, dtype=dtype)))

    def reset_parameters(self) -> None:
        """Draw new weights; gains of layer norms become 1, their biases 0."""
        super().reset_parameters()
        with no_grad():
            for name, parameter in self._parameters.items():
                if name.startswith("norm_"):
                    parameter.fill_(0.0 if name.startswith("norm_c_bias") else 1.0)

    def extra_repr(self) -> str:
        parts = [super().extra_repr()]
        for name in (
            *self._rate_names,
            "shared_mask",
            "static_mask",
            "stochastic_depth",
            "recurrent_dropout",
            "variational_dropout",
            "output_dropout",
            "layer_norm",
        ):
            value = getattr(self, name, False)
            if value:
                parts.append(f"{name}={value}")
        return ", ".join(parts)

    # -- running -----------------------------------------------------------------------------------

    def _rates(self) -> tuple[float, ...]:
        """Zoneout of the hidden state, and of the LSTM's cell."""
        names = ("zoneout_hidden", "zoneout_cell") if self.mode == "LSTM" else ("zoneout",)
        return tuple(getattr(self, name) for name in names)

    def _masked_run(self, input: Any, hx: Any, masks: Sequence[Any] | None) -> tuple[Any, Any]:
        count = self.num_layers * self._directions
        if masks is not None and len(masks) != count:
            raise ValueError(
                f"masks must be a list with one entry per layer and direction, {count} here, but "
                f"it has {len(masks)}"
            )
        random = (self.recurrent_dropout, self.variational_dropout, self.output_dropout)
        zones = () if self.static_mask else self._rates()
        call = self._calls.take() if self.training and any((*random, *zones)) else None
        return self._run(input, hx, masks=masks, call=call)

    def _run_one(
        self,
        number: int,
        rows: Tensor,
        initial: tuple,
        schedule: Schedule,
        order: Any = None,
        masks: Sequence[Any] | None = None,
        call: int | None = None,
    ) -> tuple[Tensor, ...]:
        given = self._given_masks(masks, number, initial, schedule, order)
        extras = self._extras(number, rows, initial, schedule, given, call)
        weights = self._weights_of(number)
        if not self.layer_norm:
            return sequence(self.mode, rows, initial, weights, schedule, extras)
        return recurrent_plain.sequence(
            self.mode, rows, initial, weights, schedule, extras, self._norm_of(number)
        )

    def _norm_of(self, number: int) -> Any:
        suffix = self._suffixes()[number]

        def norm(place: str, x: Tensor) -> Tensor:
            gain = getattr(self, f"norm_{place}{suffix}")
            bias = getattr(self, f"norm_c_bias{suffix}") if place == "c" else None
            return F.layer_norm(x, (x.shape[-1],), gain, bias)

        return norm

    def _between(
        self,
        layer: int,
        rows: Tensor,
        order: Any = None,
        masks: Any = None,
        call: int | None = None,
    ) -> Tensor:
        rows = super()._between(layer, rows)
        if call is None or self.output_dropout == 0.0:
            return rows
        factors = self._factors(call, layer, OUTPUT, tuple(rows.shape), self.output_dropout, rows)
        return rows * wrap(factors.astype(rows._array.dtype, copy=False))

    # -- masks -------------------------------------------------------------------------------------

    def _given_masks(
        self,
        masks: Sequence[Any] | None,
        number: int,
        initial: tuple,
        schedule: Schedule,
        order: np.ndarray | None,
    ) -> tuple:
        """Masks of the hidden state and the cell as (rows, H), None where none was given."""
        if masks is None or masks[number] is None:
            return (None,) * len(initial)
        entry = masks[number]
        pair: tuple[Any, ...]
        if self.mode != "LSTM":
            pair = (entry,)
        elif isinstance(entry, (tuple, list)):
            cell, hidden = checked_pair(entry, f"masks[{number}]")
            pair = (hidden, cell)
        else:
            pair = (entry, entry)
        found: list[np.ndarray | None] = []
        for mask, state in zip(pair, initial, strict=True):
            if mask is None:
                found.append(None)
                continue
            if not isinstance(mask, TensorBase):
                mask = np.asarray(mask)
            if schedule.batch == 1 and len(mask.shape) == 2:
                mask = mask.reshape(mask.shape[0], 1, mask.shape[1])
            shape = (len(schedule.sizes), schedule.batch, state.shape[1])
            block = checked_mask(mask, shape, f"masks[{number}]")
            if order is not None:
                block = block[:, order]
            found.append(
                np.concatenate([b[:n] for b, n in zip(block, schedule.sizes, strict=True)])
            )
        return tuple(found)

    def _extras(
        self,
        number: int,
        rows: Tensor,
        initial: tuple,
        schedule: Schedule,
        given: tuple,
        call: int | None,
    ) -> Extras:
        keeps = [
            self._keep(number, purpose, rate, mask, rows, state.shape[1], schedule, call)
            for purpose, rate, mask, state in zip(
                (HIDDEN, CELL), self._rates(), given, initial, strict=False
            )
        ]
        candidate = variational = None
        if call is not None:
            if self.recurrent_dropout:
                shape = (schedule.rows, self.hidden_size)
                candidate = self._factors(
                    call, number, CANDIDATE, shape, self.recurrent_dropout, rows
                )
            if self.variational_dropout:
                shape = tuple(initial[0].shape)
                variational = self._factors(
                    call, number, VARIATIONAL, shape, self.variational_dropout, rows
                )
        return Extras(keeps[0], keeps[1] if len(keeps) > 1 else None, candidate, variational)

    def _keep(
        self,
        number: int,
        purpose: int,
        rate: float,
        given: np.ndarray | None,
        rows: Tensor,
        width: int,
        schedule: Schedule,
        call: int | None,
    ) -> Keep | Expect | None:
        """Zoneout of one state: by the given mask, a drawn one, its mean, or none at all."""
        if given is not None:
            return Keep(given, _wide(rows))
        if rate == 0.0:
            return None
        if getattr(self, "shared_mask", False) or self.stochastic_depth:
            purpose = HIDDEN
        if self.static_mask:
            steps = self._draw_static(number, purpose, (len(schedule.sizes), width), rate)
            return Keep(np.repeat(steps, schedule.sizes, axis=0), _wide(rows))
        if call is None:
            return Expect(rate)
        if self.stochastic_depth:
            mask = self._draw(call, number, purpose, (schedule.rows, 1), rate)
            return Keep(np.repeat(mask, width, axis=1), _wide(rows))
        return Keep(self._draw(call, number, purpose, (schedule.rows, width), rate), _wide(rows))

    def _factors(
        self,
        call: int,
        number: int,
        purpose: int,
        shape: tuple[int, ...],
        rate: float,
        rows: Tensor,
    ) -> np.ndarray:
        """Dropout's factors: 0 with probability `rate`, else ``1 / (1 - rate)``."""
        kept = ~self._draw(call, number, purpose, shape, rate)
        factors = kept.astype(_wide(rows))
        if rate < 1.0:
            factors *= 1 / (1 - rate)
        return factors


def _wide(rows: Tensor) -> np.dtype:
    """The type in which the sequence is computed."""
    return np.dtype(np.float64 if rows._array.dtype == np.float64 else np.float32)
