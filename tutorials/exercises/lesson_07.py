"""Exercises of lesson 7: selecting, the hidden state's new value, where gradients go."""

from __future__ import annotations

import numpy as np

from . import answered, exercise


@exercise("Select", hint="np.where(mask, old, new): no product, so that kept units keep their bits")
def select(answer):
    old = np.array([1.5, np.inf, -0.0, 2.0], np.float32)
    new = np.array([7.0, 8.0, 9.0, np.nan], np.float32)
    mask = np.array([True, True, True, False])
    got = np.asarray(answered(answer(old, new, mask)))
    assert got.shape == old.shape, f"the state has shape {old.shape}, the answer {got.shape}"
    kept = got[:3].astype(np.float32).view(np.uint32) == old[:3].view(np.uint32)
    assert kept.all(), f"kept units changed: {old[:3]} became {got[:3]}"
    assert np.isnan(got[3]), f"the last unit takes the new value, a nan, and not {got[3]}"


@select.solve
def _(old, new, mask):
    return np.where(mask, old, new)


@select.mistake
def _(old, new, mask):
    with np.errstate(invalid="ignore"):
        return mask * old + (1 - mask) * new  # 0 * inf and 0 * nan are nan


@select.mistake
def _(old, new, mask):
    return np.where(mask, new, old)  # the mask says update, as the authors' flags do


@exercise(
    "The LSTM's two states",
    hint="h_new = o * tanh(c_new), with c_new before its zoneout; then select twice",
)
def lstm_states(answer):
    rng = np.random.default_rng(0)
    h, c, c_new, o = rng.uniform(-1, 1, (4, 50))
    d_cell, d_hidden = rng.random((2, 50)) < 0.5
    got = answered(answer(h, c, c_new, o, d_cell, d_hidden))
    assert len(got) == 2, "return the pair (h, c)"
    for name, value, old, new, mask in (
        ("cell", got[1], c, c_new, d_cell),
        ("hidden state", got[0], h, o * np.tanh(c_new), d_hidden),
    ):
        value = np.asarray(value)
        assert np.array_equal(value[mask], old[mask]), f"kept units of the {name} changed"
        off = np.abs(value[~mask] - new[~mask]).max()
        assert off < 1e-12, f"new units of the {name} are off by up to {off:.2g}"


@lstm_states.solve
def _(h, c, c_new, o, d_cell, d_hidden):
    return np.where(d_hidden, h, o * np.tanh(c_new)), np.where(d_cell, c, c_new)


@lstm_states.mistake
def _(h, c, c_new, o, d_cell, d_hidden):
    c = np.where(d_cell, c, c_new)
    return np.where(d_hidden, h, o * np.tanh(c)), c  # the hidden state sees the zoned cell


@lstm_states.mistake
def _(h, c, c_new, o, d_cell, d_hidden):
    return o * np.tanh(c_new), np.where(d_cell, c, c_new)  # the output forgets its own zoneout


@exercise(
    "Where the gradient goes",
    hint="each unit's gradient goes to the old value or to the new one, whole",
)
def split_gradient(answer):
    rng = np.random.default_rng(1)
    old, new, grad = rng.standard_normal((3, 6))
    mask = rng.random(6) < 0.5
    got = answered(answer(grad, mask))
    assert len(got) == 2, "return the pair (gradient of old, gradient of new)"
    for name, value, which in (("old", got[0], 0), ("new", got[1], 1)):
        step, expected = 1e-6, []
        for unit in range(6):  # finite differences of sum(grad * where(mask, old, new))
            sides = []
            for sign in (1, -1):
                both = [old.copy(), new.copy()]
                both[which][unit] += sign * step
                sides.append(np.sum(grad * np.where(mask, *both)))
            expected.append((sides[0] - sides[1]) / (2 * step))
        assert np.allclose(value, expected, atol=1e-8), (
            f"gradient of {name}: got {value}, finite differences say {np.array(expected)}"
        )


@split_gradient.solve
def _(grad, mask):
    return np.where(mask, grad, 0), np.where(mask, 0, grad)


@split_gradient.mistake
def _(grad, mask):
    return grad, np.where(mask, 0, grad)  # the old value's gradient is counted for all units


@split_gradient.mistake
def _(grad, mask):
    return np.where(mask, grad, 0) * 2, np.where(mask, 0, grad) * 2  # scales as dropout does
