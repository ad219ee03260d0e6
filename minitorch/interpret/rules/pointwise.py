"""Functions of one number: rectifiers one-sided, smooth ones by the Shapley value.

The ACD paper gives a ReLU's relevant part what the relevant input alone makes of it, and the rest
to the irrelevant part; it chose this over the symmetric split of the CD paper because it is sparser
for images. Everything smooth gets the symmetric (two-way Shapley) split; a function's value at zero
is a bias and shared like one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minitorch.interpret.parts import Parts, two_way
from minitorch.interpret.recorder import Call
from minitorch.interpret.registry import WHOLE, register_rule
from minitorch.nn import functional as F
from minitorch.ops import pointwise, powers, rounding, trigonometry
from minitorch.ops.generic import exp, where

Function = Callable[[Any], Any]


def rectifier(call: Call, x: Parts, f: Function) -> Parts:
    """``rel' = f(rel)``, ``irr' = f(rel + irr) - f(rel)``."""
    relevant = f(x.rel)
    return Parts(relevant, f(x.total) - relevant)


@register_rule("ReluBackward0")
def relu(call: Call, x: Parts) -> Parts:
    """The rectifier of the ACD paper."""
    return rectifier(call, x, pointwise.relu)


@register_rule("LeakyReluBackward0")
def leaky_relu(call: Call, x: Parts) -> Parts:
    """Like the ReLU."""
    (slope,) = call.ctx
    return rectifier(call, x, lambda part: F.leaky_relu(part, slope))


def smooth(f: Function) -> Callable[[Call, Parts], Parts]:
    """Return the rule for a function of one number: the two-way Shapley split.

    Examples
    --------
    >>> from minitorch import interpret
    >>> import minitorch.nn.functional as F
    >>> _ = interpret.register_rule(F.mish)(interpret.smooth(F.mish))
    """

    def rule(call: Call, x: Parts) -> Parts:
        return two_way(f, x, call.run)

    return rule


def whole(call: Call, *inputs: Any) -> None:
    """Return the rule's verdict "undecomposed": the output is a constant from here on."""
    return WHOLE


_FUNCTIONS: dict[str, Function] = {
    "TanhBackward0": pointwise.tanh,
    "SigmoidBackward0": pointwise.sigmoid,
    "ExpBackward0": pointwise.exp,
    "Exp2Backward0": pointwise.exp2,
    "Expm1Backward0": pointwise.expm1,
    "Log1PBackward0": pointwise.log1p,
    "SqrtBackward0": pointwise.sqrt,
    "ErfBackward0": pointwise.erf,
    "ErfcBackward0": pointwise.erfc,
    "AbsBackward0": rounding.abs,
    "SinBackward0": trigonometry.sin,
    "CosBackward0": trigonometry.cos,
    "TanBackward0": trigonometry.tan,
    "AtanBackward0": trigonometry.atan,
    "SinhBackward0": trigonometry.sinh,
    "CoshBackward0": trigonometry.cosh,
    "SiluBackward0": F.silu,
    "MishBackward0": F.mish,
    "HardswishBackward0": F.hardswish,
    "HardsigmoidBackward0": F.hardsigmoid,
    "LogSigmoidBackward0": F.logsigmoid,
}
for _name, _function in _FUNCTIONS.items():
    register_rule(_name)(smooth(_function))


# Those with constants: what the op noted for its gradient tells which.
_WITH_CONSTANTS: dict[str, Callable[[Call], Function]] = {
    "GeluBackward0": lambda call: (
        lambda x: pointwise.gelu(x, "tanh" if call.op is pointwise.gelu_tanh_backward else "none")
    ),
    "SoftplusBackward0": lambda call: lambda x: pointwise.softplus(x, *call.ctx),
    "HardtanhBackward0": lambda call: lambda x: F.hardtanh(x, *call.ctx),
    "EluBackward0": lambda call: lambda x: _elu(x, *call.ctx[1]),
}


def _elu(x: Any, alpha: float, scale: float, sharpness: float) -> Any:
    """ELU, SELU and CELU in one formula."""
    low = exp(where(x < 0, x, 0.0 * x) * sharpness) - 1
    return where(x > 0, x * scale, low * (alpha * scale))


def _registered(name: str, function_of: Callable[[Call], Function]) -> None:
    def rule(call: Call, x: Parts) -> Parts:
        return two_way(function_of(call), x, call.run)

    register_rule(name)(rule)


for _name, _function_of in _WITH_CONSTANTS.items():
    _registered(_name, _function_of)


@register_rule("PowBackward0")
def power(call: Call, x: Parts) -> Parts | None:
    """A fixed exponent. A negative one makes a scale (of a norm, say), which stays whole."""
    exponent = call.ctx
    if exponent < 0:
        return WHOLE
    return two_way(lambda part: powers.pow(part, exponent), x, call.run)


register_rule("ReciprocalBackward0", "RsqrtBackward0")(whole)
