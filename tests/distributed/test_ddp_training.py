"""DDP over W ranks is one process on the whole batch; and all ranks hold the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from distributed.ddp_cases import DDP, F32, F64, arrays, batch, mlp, run

import minitorch as torch
from minitorch import nn

STEPS = 4
ROWS = 24  # a multiple of 2, 3 and 4
TOLERANCE = {F32: 1e-6, F64: 1e-12}


def train(model, shards, *, optimizer=torch.optim.SGD, set_to_none=True):
    steps = optimizer(model.parameters(), lr=0.05)
    for x, y in shards:
        steps.zero_grad(set_to_none=set_to_none)
        nn.functional.mse_loss(model(x), y).backward()
        steps.step()
    return arrays(model)


def train_alone(dtype, optimizer):
    return train(
        mlp(dtype), [batch(ROWS, dtype, seed) for seed in range(STEPS)], optimizer=optimizer
    )


def train_rank(rank, world, dtype, optimizer, options, set_to_none):
    # Ranks start from different weights on purpose: construction makes them rank 0's.
    model = DDP(mlp(dtype, seed=rank), **options)
    shards = []
    for seed in range(STEPS):
        x, y = batch(ROWS, dtype, seed)
        shards.append((x[rank::world], y[rank::world]))
    return train(model, shards, optimizer=optimizer, set_to_none=set_to_none)


@pytest.mark.parametrize("world", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", [F32, F64])
def test_equals_one_process_on_the_whole_batch(world, dtype):
    expected = train_alone(dtype, torch.optim.SGD)
    ranks = run(train_rank, world, world, dtype, torch.optim.SGD, {"bucket_cap_mb": 0.0001}, True)
    for got in ranks:
        for ours, right, first in zip(got, expected, ranks[0], strict=True):
            np.testing.assert_allclose(ours, right, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
            assert ours.tobytes() == first.tobytes()


@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gradient_as_bucket_view": True},
        {"bucket_cap_mb": 0},
        {"bucket_cap_mb": 0, "gradient_as_bucket_view": True},
        {"bucket_cap_mb_list": [0.0001, 0.0003], "gradient_as_bucket_view": True},
        {"find_unused_parameters": True, "gradient_as_bucket_view": True, "bucket_cap_mb": 0.0001},
    ],
    ids=lambda options: "-".join(options) or "default",
)
@pytest.mark.filterwarnings("ignore:find_unused_parameters=True was specified")
def test_options_do_not_change_the_result(options, set_to_none):
    expected = train_alone(F64, torch.optim.Adam)
    for got in run(train_rank, 2, 2, F64, torch.optim.Adam, options, set_to_none):
        for ours, right in zip(got, expected, strict=True):
            np.testing.assert_allclose(ours, right, rtol=1e-10, atol=1e-10)


def test_convolutional_network_with_strided_gradients():
    def model():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(1, 3, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(48, 4),
        ).to(F64)

    rng = np.random.default_rng(1)
    x, y = (
        torch.from_numpy(rng.standard_normal((8, 1, 8, 8))),
        torch.from_numpy(rng.integers(0, 4, 8)),
    )

    def step(module, inputs, targets):
        nn.functional.cross_entropy(module(inputs), targets).backward()
        return [p.grad.numpy().copy() for p in module.parameters()]

    expected = step(model(), x, y)

    def rank_step(rank):
        return step(DDP(model(), gradient_as_bucket_view=True), x[rank::2], y[rank::2])

    for got in run(rank_step):
        for ours, right in zip(got, expected, strict=True):
            np.testing.assert_allclose(ours, right, rtol=1e-12, atol=1e-12)


def test_transposed_gradients_are_copied_right():
    """A user's hook may hand over a gradient in any memory order."""

    def rank_step(rank):
        layer = nn.Linear(3, 2, bias=False)
        layer.weight.register_hook(lambda g: torch.from_numpy(np.asfortranarray(g.numpy())))
        model = DDP(layer, gradient_as_bucket_view=True)
        model(torch.tensor([[1.0, 2.0, 3.0]]) * (rank + 1)).sum().backward()
        return layer.weight.grad.tolist()

    assert run(rank_step) == [[[1.5, 3.0, 4.5]] * 2] * 2


def test_sum_loss_differs_from_one_process_by_the_number_of_ranks():
    """Averaged gradients: right for a mean over equal shards, W times too small for a sum."""

    def rank_step(rank, reduction):
        model = DDP(nn.Linear(1, 1, bias=False))
        x = torch.tensor([[1.0], [2.0], [3.0], [4.0]])[rank * 2 : rank * 2 + 2]
        getattr(model(x), reduction)().backward()
        return model.module.weight.grad.item()

    assert run(rank_step, 2, "mean") == [2.5, 2.5]  # one process: 2.5
    assert run(rank_step, 2, "sum") == [5.0, 5.0]  # one process: 10.0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("view", [False, True], ids=["copy", "view"])
def test_half_precision(dtype, view):
    """Small integers and halves are exact in eight bits of mantissa."""

    def rank_step(rank):
        layer = nn.Linear(3, 2, bias=False).to(dtype)
        model = DDP(layer, gradient_as_bucket_view=view)
        for _ in range(2):
            model.zero_grad()
            model((torch.tensor([[1.0, 2.0, 3.0]]) * (rank + 1)).to(dtype)).sum().backward()
        assert layer.weight.grad.dtype == dtype
        return layer.weight.grad.float().tolist()

    assert run(rank_step) == [[[1.5, 3.0, 4.5]] * 2] * 2
