"""Record what PyTorch's CPU generator gives, for tests/random.

Run with a PyTorch at hand:  python tests/golden/record_random.py
The cases take the library as an argument, so that the tests play the same code on minitorch. The
answers in random.npz are torch 2.13.0's on a CPU where scalar ``bernoulli_`` takes the portable
path (not Intel's).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

ANSWERS = Path(__file__).with_name("random.npz")
#: Cases whose values go through log, sin and cos: equal to rounding, not bit for bit.
ROUNDED = ("randn", "normal", "mixed", "linear", "half")


def _linear(t: Any) -> Any:
    # What nn.Linear(20, 30) draws: Kaiming-uniform weights, then the bias.
    bound = 20**-0.5
    return [t.empty(30, 20).uniform_(-bound, bound), t.empty(30).uniform_(-bound, bound)]


def _own_generator(t: Any) -> Any:
    g = t.Generator()
    first = t.rand(3, generator=g)  # the constant default seed
    g.manual_seed(7)
    state = g.get_state()
    second = t.randint(0, 1000, (5,), generator=g)
    g.set_state(state)
    return [first, second, t.randint(0, 1000, (5,), generator=g), t.rand(2)]


def _mixed(t: Any) -> Any:
    # Scalar normals keep a second value; other draws in between must not lose it, seeding must.
    out = [t.randn(3), t.rand(2), t.randn(2, dtype=t.float64), t.randperm(5), t.randn(1)]
    out += [t.randint(9, (4,)), t.randn(17), t.randn(2), t.empty(3).bernoulli_(0.5)]
    t.manual_seed(8)
    return [*out, t.randn(2), t.rand(1)]


def _forked(t: Any) -> Any:
    with t.random.fork_rng():
        inside = t.rand(2)
    return [inside, t.rand(2)]


def cases(t: Any) -> dict[str, Any]:
    """Name -> function that draws; each runs under ``manual_seed(123)``."""
    f16, bf16, f64 = t.float16, t.bfloat16, t.float64
    weights = t.arange(1, 60).to(t.float32)
    found: dict[str, Any] = {
        "rand": lambda: t.rand(7, 5),
        "rand_f64": lambda: t.rand(33, dtype=f64),
        "half_rand": lambda: [t.rand(40, dtype=f16), t.rand(400, dtype=bf16)],
        "rand_across_blocks": lambda: [t.rand(623), t.rand(2), t.rand(700, dtype=f64)[-3:]],
        "uniform": lambda: [t.empty(400).uniform_(-3.3, 7.1), t.empty(400).uniform_(-0.04, 0.04)],
        "uniform_f64": lambda: t.empty(400, dtype=f64).uniform_(-3.3, 7.1),
        "half_uniform": lambda: t.empty(600, dtype=bf16).uniform_(-1, 1),
        "linear": lambda: _linear(t),
        "normal_f64": lambda: t.empty(40, dtype=f64).normal_(1, 2),
        "normal_size": lambda: t.normal(2.0, 0.5, (3, 9)),
        "normal_tensors": lambda: t.normal(t.arange(20).to(t.float32), t.ones(20) * 0.1),
        "normal_broadcast": lambda: t.normal(t.zeros(2, 1), t.arange(3).to(t.float32)),
        "normal_strided": lambda: t.zeros(20, 30).t().normal_(),
        "normal_log": lambda: t.empty(21).log_normal_(1, 0.2),
        "half_randn": lambda: [t.randn(37, dtype=f16), t.randn(7, dtype=bf16)],
        "uniform_strided": lambda: [
            t.zeros(6, 8).t().uniform_(),
            t.zeros(6, 8)[::2, 1::2].uniform_(),
            t.zeros(4, 6, 8).permute(1, 2, 0)[:, ::2].random_(0, 1000),
        ],
        "randint": lambda: [t.randint(10, (40,)), t.randint(-5, 20, (3, 4))],
        "randint_power": lambda: t.randint(0, 2**20, (40,)),
        "randint_below_64": lambda: t.randint(-5, 2**28 - 6, (40,)),
        "randint_from_64": lambda: t.randint(-5, 2**28 - 5, (40,)),
        "randint_wide": lambda: t.randint(-(2**62), 2**62 + 5, (40,)),
        "randint_dtypes": lambda: [
            t.randint(0, 200, (9,), dtype=t.uint8),
            t.randint(-9, 9, (9,), dtype=t.float32),
            t.randint(0, 2, (9,), dtype=t.bool),
        ],
        "random": lambda: [
            t.empty(5, dtype=kind).random_()
            for kind in (t.uint8, t.int8, t.int16, t.int32, t.int64, t.bool)
        ],
        "random_float": lambda: [
            t.empty(5, dtype=kind).random_() for kind in (f16, t.float32, f64)
        ],
        "random_bounds": lambda: [t.zeros(5).random_(7), t.zeros(5).random_(3, 9)],
        "random_full": lambda: t.zeros(5, dtype=t.int64).random_(-(2**63), None),
        "randperm": lambda: [t.randperm(n) for n in (0, 1, 2, 100, 1000)],
        "randperm_dtype": lambda: t.randperm(50, dtype=t.int32),
        "bernoulli_scalar": lambda: t.empty(100).bernoulli_(0.3),
        "bernoulli_int": lambda: t.empty(30, dtype=t.int64).bernoulli_(0.5),
        "bernoulli": lambda: t.bernoulli(t.arange(50).to(t.float32) / 50),
        "bernoulli_f64": lambda: t.bernoulli(t.arange(50).to(f64) / 50),
        "bernoulli_tensor_": lambda: t.zeros(50).bernoulli_(t.arange(50).to(t.float32) / 50),
        "bernoulli_p": lambda: t.bernoulli(t.ones(20), 0.25),
        "exponential": lambda: t.empty(50).exponential_(2.5),
        "exponential_f64": lambda: t.empty(50, dtype=f64).exponential_(),
        "geometric": lambda: t.empty(50).geometric_(0.2),
        "cauchy": lambda: t.empty(50).cauchy_(1, 2),
        "multinomial": lambda: t.multinomial(weights, 40),
        "multinomial_one": lambda: t.multinomial(weights.reshape(1, -1).expand(30, -1), 1),
        "multinomial_rows": lambda: t.multinomial(weights.reshape(1, -1).expand(5, -1), 20),
        "multinomial_replace": lambda: t.multinomial(weights, 200, replacement=True),
        "multinomial_replace_f64": lambda: t.multinomial(weights.to(f64), 200, True),
        "like": lambda: [t.rand_like(t.ones(3, 4).t()), t.randint_like(t.ones(9), 3, 8)],
        "randn_like": lambda: [t.randn_like(t.ones(20)), t.randn_like(t.ones(5, 4).t())],
        "dropout": lambda: t.nn.functional.dropout(t.ones(100), 0.3),
        "own_generator": lambda: _own_generator(t),
        "forked": lambda: _forked(t),
        "mixed": lambda: _mixed(t),
        "negative_seed": lambda: [t.manual_seed(-5), t.rand(3)][1:],
        "wide_seed": lambda: [t.manual_seed(2**63 + 12345), t.rand(3)][1:],
        "state": lambda: [t.randn(3), t.get_rng_state()][1:],
        "state_block": lambda: [t.rand(624), t.get_rng_state()][1:],
    }
    for n in (1, 2, 15, 16, 17, 31, 32, 100):
        found[f"randn_{n}"] = lambda n=n: t.randn(n)
        found[f"randn_f64_{n}"] = lambda n=n: t.randn(n, dtype=f64)
    return found


def to_numpy(t: Any, value: Any) -> list[np.ndarray]:
    """The tensors of an answer, as arrays (bfloat16 widened)."""
    values = value if isinstance(value, list) else [value]
    return [np.array(v.float().numpy() if v.dtype == t.bfloat16 else v.numpy()) for v in values]


def play(t: Any, only: str | None = None) -> dict[str, np.ndarray]:
    """Run the cases on a library: ``name/position`` -> array, and what the next draw would be."""
    answers = {}
    for name, draw in cases(t).items():
        if only is not None and name != only:
            continue
        t.manual_seed(123)
        value = draw()
        for position, array in enumerate(to_numpy(t, value)):
            answers[f"{name}/{position}"] = array
        # Equal values are not enough: the stream must go on from the same place.
        answers[f"{name}/next"] = t.empty(1, dtype=t.int64).random_().numpy().copy()
    return answers


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    np.savez_compressed(ANSWERS, **play(torch))
    print(f"{ANSWERS}: {ANSWERS.stat().st_size} bytes, torch {torch.__version__}")
