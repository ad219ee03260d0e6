"""Exercises of lesson 8: SAGA's step, the soft threshold, and how large a table may be."""

from __future__ import annotations

import numpy as np

from . import answered, exercise


@exercise(
    "SAGA's step",
    hint="the OLD mean of the table, before its row is replaced; the change of the row counts fully",
)
def saga_step(answer):
    rng = np.random.default_rng(0)
    for n, dim in ((3, 2), (5, 1), (1, 4)):
        table = rng.standard_normal((n, dim))
        for j in range(n):
            w, gradient = rng.standard_normal(dim), rng.standard_normal(dim)
            given = table.copy()
            new_w, new_table = answered(answer(w.copy(), given, j, gradient, 0.1))
            expected = w - 0.1 * (gradient - table[j] + table.mean(0))
            assert np.allclose(new_w, expected), (
                f"n = {n}, sample {j}: w became {np.round(new_w, 3)}, expected "
                f"{np.round(expected, 3)}"
            )
            rows = table.copy()
            rows[j] = gradient
            assert np.allclose(new_table, rows), (
                f"n = {n}, sample {j}: the row should hold the gradient, and the others stay"
            )
            table = rows


@saga_step.solve
def _(w, table, j, gradient, lr):
    direction = gradient - table[j] + table.mean(axis=0)
    table[j] = gradient
    return w - lr * direction, table


@saga_step.mistake
def _(w, table, j, gradient, lr):
    old = table[j].copy()
    table[j] = gradient
    return w - lr * (gradient - old + table.mean(axis=0)), table  # the new mean


@saga_step.mistake
def _(w, table, j, gradient, lr):
    table[j] = gradient
    return w - lr * table.mean(axis=0), table  # that is SAG


@saga_step.mistake
def _(w, table, j, gradient, lr):
    return w - lr * (gradient - table[j] + table.mean(axis=0)), table  # never remembers


@exercise(
    "Soft threshold",
    hint="minimise t |x| + (x - v)^2 / 2: towards zero by t, but never past it",
)
def soft_threshold(answer):
    for v, t, expected in (
        ([3.0, -0.5, -1.5, 0.0], 1.0, [2.0, 0.0, -0.5, 0.0]),
        ([1.0, -1.0], 0.0, [1.0, -1.0]),
        ([0.2, -7.0], 0.2, [0.0, -6.8]),
    ):
        got = np.asarray(answered(answer(np.array(v), t)))
        assert np.allclose(got, expected), f"v = {v}, t = {t}: got {got}, expected {expected}"


@soft_threshold.solve
def _(v, t):
    return np.sign(v) * np.maximum(np.abs(v) - t, 0)


@soft_threshold.mistake
def _(v, t):
    return np.where(np.abs(v) > t, v, 0.0)  # cuts, but does not shrink


@soft_threshold.mistake
def _(v, t):
    return v - t * np.sign(v)  # goes past zero


@exercise(
    "Which method fits?",
    hint="a table has a number per sample and parameter; SVRG keeps two vectors of parameters",
)
def method_for(answer):
    gib = 2**30
    for n, dim, limit, expected in (
        (60_000, 7_850, 4 * gib, "saga"),  # 1.75 GiB
        (60_000, 7_850, gib, "svrg"),
        (1_000, 1_000_000, gib, "svrg"),
        (16, 16_777_216, gib, "saga"),  # 1 GiB, to the byte
        (10**9, 10, gib, "svrg"),
    ):
        got = answered(answer(n, dim, limit))
        assert got == expected, (
            f"{n:,} samples of {dim:,} float32 parameters make a table of {n * dim * 4:,} bytes; "
            f"the limit is {limit:,}: got {got!r}, expected {expected!r}"
        )


@method_for.solve
def _(n_samples, n_parameters, limit):
    return "saga" if n_samples * n_parameters * 4 <= limit else "svrg"


@method_for.mistake
def _(n_samples, n_parameters, limit):
    return "saga" if n_parameters * 4 <= limit else "svrg"  # one row


@method_for.mistake
def _(n_samples, n_parameters, limit):
    return "saga" if n_samples * n_parameters <= limit else "svrg"  # numbers, not bytes
