"""Distributed SAGA is one process's SAGA on the same samples, and the same bits on all ranks."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from optim.finite_sums import Linear, optimum, random_problem

import minitorch as torch
import minitorch.distributed as dist
from minitorch.distributed.saga import (
    DistributedProxSGD,
    DistributedSAG,
    DistributedSAGA,
    DistributedSVRG,
)
from minitorch.optim import SAG, SAGA, SVRG, ProxSGD
from minitorch.optim.prox import L1

N, DIM, STEPS, LR, L2 = 17, 4, 40, 0.05, 0.1
PROX = L1(0.01)
PAIRS = [
    (DistributedSAGA, SAGA),
    (DistributedSAG, SAG),
    (DistributedSVRG, SVRG),
    (DistributedProxSGD, ProxSGD),
]


def whole(seed=0):
    return random_problem(N, DIM, seed=seed)


def edges(world):
    """Where shards begin and end: as different in size as they can be."""
    return [0, *(N * (r + 1) ** 2 // world**2 for r in range(world))]


def sample_numbers(world):
    """Row k: the local number that each rank draws in step k."""
    sizes = np.diff(edges(world))
    return np.random.default_rng(world).integers(sizes, size=(STEPS, world))


def in_one_process(cls, world, kind="log"):
    """The same index sequence, all samples and the whole table in one place: plain NumPy."""
    problem, begins = random_problem(N, DIM, kind), np.array(edges(world))
    share = np.diff(begins) / N
    w = np.full(DIM, 0.5)

    def gradients(w):
        return problem.gradients(w) + L2 * w

    table = gradients(w)
    for k, draws in enumerate(sample_numbers(world)):
        rows = begins[:-1] + draws
        fresh = gradients(w)[rows]
        if cls is SAG:
            table[rows] = fresh
            direction = table.mean(0)
        elif cls is ProxSGD:
            direction = share @ fresh
        else:  # unbiased, also with shards of different sizes
            direction = share @ (fresh - table[rows]) + table.mean(0)
        if cls is SAGA:
            table[rows] = fresh
        w = PROX.prox(w - LR * direction, LR)
        if cls is SVRG and (k + 1) % (2 * -(-N // world)) == 0:
            table = gradients(w)
    return w


def on_rank(rank, world, distributed, dtype=torch.float64, group=None):
    """Train on this rank's shard; return parameters and what was sent."""
    problem, begins = whole(), edges(world)
    mine = slice(begins[rank], begins[rank + 1])
    # Ranks begin apart on purpose: construction makes the parameters rank 0's.
    local = Linear(problem.x[mine], problem.y[mine], "log", np.full(DIM, 0.5 + rank))
    local.w = local.w.detach().to(dtype).requires_grad_(True)

    def backward(i):
        local.w.grad = torch.from_numpy(local.slopes(local.w.detach().numpy(), i) * local.x[i]).to(
            dtype
        )

    opt = distributed([local.w], local.n, lr=LR, prox=PROX, weight_decay=L2, process_group=group)
    opt.init_table(backward)
    dist.reset_meter()
    for draws in sample_numbers(world):
        backward(draws[rank])
        opt.step(draws[rank])
    return local.w.detach().numpy().copy(), dist.meter()


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[1].__name__)
@pytest.mark.parametrize("world", [1, 2, 3, 4])
def test_equals_one_process_with_the_same_samples(pair, world):
    results = [w for w, _ in dist.run_local(on_rank, world, (world, pair[0]))]
    for w in results[1:]:
        np.testing.assert_array_equal(w, results[0])
    # Each step rounds W + 4 sums of numbers below 10, times lr; steps do not amplify.
    tolerance = STEPS * (world + 4) * 2.0**-53 * 10 * LR
    np.testing.assert_allclose(results[0], in_one_process(pair[1], world), rtol=0, atol=tolerance)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[1].__name__)
def test_one_rank_has_the_bits_of_the_plain_optimizer(pair):
    distributed, plain = pair
    problem = whole()
    problem.w.detach().numpy()[:] = 0.5
    opt = plain([problem.w], N, lr=LR, prox=PROX, weight_decay=L2)
    opt.init_table(problem.backward)
    for (j,) in sample_numbers(1):
        problem.backward(j)
        opt.step(j)
    alone = dist.run_local(on_rank, 1, (1, distributed))[0][0]
    np.testing.assert_array_equal(alone, problem.w.detach().numpy())


@pytest.mark.parametrize("world", [2, 3])
def test_in_single_precision(world):
    results = [
        w for w, _ in dist.run_local(on_rank, world, (world, DistributedSAGA, torch.float32))
    ]
    for w in results:
        np.testing.assert_array_equal(w, results[0])
    expected = in_one_process(SAGA, world)
    np.testing.assert_allclose(results[0], expected, atol=STEPS * (world + 4) * 2.0**-24 * 10 * LR)


@pytest.mark.parametrize("world", [1, 2, 4])
def test_one_all_reduce_of_the_parameters_per_step(world):
    def price(rank):
        dist.reset_meter()
        dist.all_reduce(torch.zeros(DIM, dtype=torch.float64))
        return dist.meter()["all_reduce"]["bytes_sent"]

    each = dist.run_local(price, world)
    for (_, meter), bytes_of_one in zip(
        dist.run_local(on_rank, world, (world, DistributedSAGA)), each, strict=True
    ):
        sent = {name: part["bytes_sent"] for name, part in meter.items() if part["calls"]}
        assert sent == ({} if world == 1 else {"all_reduce": STEPS * bytes_of_one})


@pytest.mark.parametrize("world", [2, 3])
def test_the_direction_is_unbiased(world):
    """The mean over all combinations of the ranks' samples is the gradient of the whole sum."""

    def mean_direction(rank):
        problem, begins = whole(), edges(world)
        mine = slice(begins[rank], begins[rank + 1])
        local = Linear(problem.x[mine], problem.y[mine], "log")
        opt = DistributedSAGA([local.w], local.n, lr=LR)
        opt.init_table(local.backward)
        local.backward(0)
        opt.step(0)
        sizes = np.diff(begins)
        total = np.zeros(DIM)
        for combination in np.ndindex(*sizes):
            local.backward(combination[rank])
            total += opt.gradient_estimate(combination[rank]).numpy()
        w = local.w.detach().numpy()
        return total / np.prod(sizes), problem.gradients(w).mean(0)

    for estimate, full in dist.run_local(mean_direction, world):
        np.testing.assert_allclose(estimate, full, rtol=0, atol=1e-14)


@pytest.mark.parametrize("world", [2, 5])
def test_it_converges_and_more_ranks_than_samples_are_fine(world):
    """4 samples; with 5 ranks one has none and steps with None."""
    problem = random_problem(4, 2, "sq")
    best = optimum(problem, 0.5)

    def train(rank):
        mine = slice(rank, None, world)
        local = Linear(problem.x[mine], problem.y[mine], "sq") if rank < 4 else None
        w = local.w if local else torch.zeros(2, dtype=torch.float64, requires_grad=True)
        n = local.n if local else 0
        opt = DistributedSAGA([w], n, L=local.L if local else 1e-3, weight_decay=0.5)
        opt.init_table(local.backward if local else None)
        for k in range(600):
            if local:
                local.backward(k % n)
            opt.step(k % n if local else None)
        return opt.param_groups[0]["lr"], w.detach().numpy()

    results = dist.run_local(train, world)
    assert {lr for lr, _ in results} == {1 / (3 * (problem.L + 0.5))}, "the largest L of all ranks"
    for _, w in results:
        np.testing.assert_array_equal(w, results[0][1])
        np.testing.assert_allclose(w, best, atol=1e-10)


def test_step_sizes_take_all_samples_into_account():
    def rates(rank):
        w = torch.zeros(2, requires_grad=True)
        one = DistributedSAGA([w], 3 + rank, L=2.0 + rank, mu=0.5 - 0.1 * rank)
        return one.param_groups[0]["lr"]

    assert dist.run_local(rates, 2) == [1 / (2 * (0.4 * 7 + 3.0))] * 2


def test_line_search_agrees_on_the_largest():
    def train(rank):
        local = whole(seed=rank)
        local.x *= 4.0 * rank + 1
        opt = DistributedSAGA([local.w], N, init="zero")
        for k in range(N):
            local.autograd(k)
            opt.step(k, lambda k=k: local.loss(k))
        return opt.param_groups[0]["L"], opt.param_groups[0]["lr"], local.w.tolist()

    first, second = dist.run_local(train, 2)
    assert first == second
    assert first[0] > 1.0


def test_a_bad_gradient_of_one_rank_is_refused_by_all():
    def train(rank):
        w = torch.ones(2, requires_grad=True)
        opt = DistributedSAGA([w], 2, lr=0.1, init="zero")
        w.grad = torch.tensor([1.0, float("nan") if rank == 1 else 0.0])
        with pytest.raises(FloatingPointError, match="not finite"):
            opt.step(1)
        return w.tolist(), opt.state["samples"]["rows"].tolist()

    assert dist.run_local(train, 3) == [([1.0, 1.0], [[0.0, 0.0], [0.0, 0.0]])] * 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (lambda rank: {"lr": 0.1 + rank}, "ranks disagree on lr: rank 0 has 0.1, rank 1 has 1.1"),
        (lambda rank: {"L": [1.0, None][rank], "lr": 0.1}, "disagree on whether L is given"),
        (lambda rank: {"lr": 0.1, "prox": L1(0.1 + rank)}, r"disagree on prox: rank 0 has L1\(0.1"),
        (lambda rank: {"lr": 0.1, "weight_decay": 0.1 * rank}, "disagree on .*weight_decay"),
        (lambda rank: {"lr": 0.1, "size": 2 + rank}, "disagree on shapes of the parameters"),
        (lambda rank: {"lr": 0.1, "n_samples": 0}, "no rank has samples"),
    ],
)
def test_disagreements_are_told_on_all_ranks(options, message):
    def construct(rank):
        given = {"n_samples": 3, "size": 2, **options(rank)}
        w = torch.zeros(given.pop("size"), requires_grad=True)
        with pytest.raises(ValueError, match=message):
            DistributedSAGA([w], **given)
        return True

    assert dist.run_local(construct, 2) == [True, True]


def test_none_is_for_ranks_without_samples():
    def train(rank):
        w = torch.ones(2, requires_grad=True)
        opt = DistributedSAGA([w], 1 + rank, lr=0.1, init="zero")
        with pytest.raises(TypeError, match="number of one sample"):
            opt.step(None)
        with pytest.raises(ValueError, match="at least 1"):
            opt._checked_count(-1)

    dist.run_local(train, 2)


def test_state_is_of_a_shard():
    def train(rank):
        local = whole(seed=rank)
        opt = DistributedSAGA([local.w], N, lr=LR)
        opt.init_table(local.backward)
        twin = copy.deepcopy(opt)
        states = [None, None]
        dist.all_gather_object(states, opt.state_dict()["state"]["samples"]["shard"])
        assert states == [[0, 2, 2 * N], [1, 2, 2 * N]]
        twin.load_state_dict(opt.state_dict())
        wrong = opt.state_dict()
        wrong["state"] = {"samples": {**wrong["state"]["samples"], "shard": [1 - rank, 2, 2 * N]}}
        with pytest.raises(ValueError, match=f"another shard.*rank {1 - rank}, not {rank}"):
            opt.load_state_dict(wrong)
        other = twin.param_groups[0]["params"][0]
        for k in range(5):
            local.backward(k)
            other.grad = local.w.grad.clone()
            opt.step(k)
            twin.step(k)
        assert torch.equal(other, local.w)

    dist.run_local(train, 2)


def test_in_a_group():
    """Ranks 1 and 2 of three, in a group of their own."""

    def program(rank):
        group = dist.new_group([1, 2])
        if rank == 0:
            return None
        return on_rank(rank - 1, 2, DistributedSAGA, group=group)[0]

    _, first, second = dist.run_local(program, 3)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first, in_one_process(SAGA, 2), atol=1e-13)
