"""SyncBatchNorm equals BatchNorm in one process with the whole batch: to 1e-12 in float64.

Ranks hold shares of different sizes, one of them none at all. The loss is a sum, so that the
ranks' gradients of weight and bias add up to the whole batch's.
"""

from __future__ import annotations

import numpy as np
import pytest
from distributed.ddp_cases import DDP, F64, run, same_on_all

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn

SHARES = {1: [5], 2: [3, 2], 3: [4, 1, 0], 4: [1, 5, 2, 3]}
worlds = pytest.mark.parametrize("world", list(SHARES))


def whole_batch(world, channels=3, length=4, seed=0):
    rng = np.random.default_rng(seed)
    rows = sum(SHARES[world])
    shape = (rows, channels, length)
    return 3 + 2 * rng.standard_normal(shape), rng.standard_normal(shape)


def share(values, world, rank):
    start = sum(SHARES[world][:rank])
    return torch.from_numpy(values[start : start + SHARES[world][rank]].copy())


def prepared(layer):
    if layer.affine:
        with torch.no_grad():
            layer.weight.copy_(torch.tensor([0.5, 2.0, -1.0]))
            layer.bias.copy_(torch.tensor([1.0, 0.0, -3.0]))
    return layer


def used(layer, x, loss_weights, steps=3):
    """Output and gradients of the last of some steps, and the running statistics."""
    for step in range(steps):
        layer.zero_grad()
        inputs = (x * (step + 1)).requires_grad_()
        out = layer(inputs)
        (out * loss_weights + out**2 * 0.1).sum().backward()
    found = {"out": out, "x.grad": inputs.grad}
    if layer.affine:
        found |= {"weight.grad": layer.weight.grad, "bias.grad": layer.bias.grad}
    if layer.track_running_stats:
        found |= dict(layer.named_buffers())
    return {name: tensor.detach().numpy().copy() for name, tensor in found.items()}


@worlds
@pytest.mark.parametrize(
    "options",
    [{}, {"momentum": None}, {"affine": False}, {"track_running_stats": False}, {"eps": 0.1}],
    ids=lambda options: "-".join(options) or "default",
)
def test_equals_one_process_with_the_whole_batch(world, options):
    values, loss_weights = whole_batch(world)
    expected = used(
        prepared(nn.BatchNorm1d(3, dtype=F64, **options)),
        torch.from_numpy(values),
        torch.from_numpy(loss_weights),
    )

    def rank(r):
        layer = prepared(nn.SyncBatchNorm(3, dtype=F64, **options))
        return used(layer, share(values, world, r), share(loss_weights, world, r))

    results = run(rank, world)
    for name, value in expected.items():
        parts = [result[name] for result in results]
        if name in ("out", "x.grad"):
            got = np.concatenate(parts)
        elif name.endswith(".grad"):
            got = sum(parts)
        else:
            assert all(part.tobytes() == parts[0].tobytes() for part in parts), name
            got = parts[0]
        np.testing.assert_allclose(got, value, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("shape", [(6, 3), (6, 3, 5), (6, 3, 2, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_shapes_and_dtypes(shape, dtype):
    values = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    axes = (0, *range(2, len(shape)))
    mean, var = values.mean(axes, keepdims=True), values.var(axes, keepdims=True)
    expected = (values - mean) / np.sqrt(var + 1e-5)

    def rank(r):
        layer = nn.SyncBatchNorm(3)
        x = torch.from_numpy(values[3 * r : 3 * r + 3].copy()).to(dtype).requires_grad_()
        out = layer(x)
        assert out.dtype == dtype
        out.float().sum().backward()
        assert x.grad.dtype == dtype
        return out.detach().float().numpy().copy()

    tolerance = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 4e-2}[dtype]
    np.testing.assert_allclose(np.concatenate(run(rank, 2)), expected, atol=tolerance)


def test_evaluation_and_one_rank_and_no_group_communicate_nothing():
    x = torch.from_numpy(whole_batch(2)[0])
    alone, plain = prepared(nn.SyncBatchNorm(3, dtype=F64)), prepared(nn.BatchNorm1d(3, dtype=F64))
    assert alone(x).tolist() == plain(x).tolist()  # not initialized

    def rank(r):
        layer = prepared(nn.SyncBatchNorm(3, dtype=F64))
        plain = prepared(nn.BatchNorm1d(3, dtype=F64))
        dist.reset_meter()
        if dist.get_world_size() > 1:
            layer.eval(), plain.eval()
        same = layer(x + r).tolist() == plain(x + r).tolist()
        return same and dist.meter() == {}

    assert run(rank, 1) == [True]
    assert run(rank, 3) == [True] * 3


def test_statistics_of_evaluation_without_running_ones_are_the_ranks_own():
    def rank(r):
        layer = nn.SyncBatchNorm(1, track_running_stats=False).eval()
        return layer(torch.tensor([[0.0], [float(r + 1)]])).tolist()

    np.testing.assert_allclose(run(rank, 2), [[[-1.0], [1.0]]] * 2, atol=1e-4)


def test_backward_twice_and_gradients_of_gradients():
    """A graph that is kept runs twice; create_graph differentiates through the collectives."""
    values, loss_weights = whole_batch(3)

    def both(layer, x, w):
        x = x.requires_grad_()
        out = layer(x)
        loss = (out**3 * w).sum()
        loss.backward(retain_graph=True)
        once = x.grad.clone()
        loss.backward(retain_graph=True)
        twice = x.grad.clone()
        (first,) = torch.autograd.grad(loss, x, create_graph=True)
        (second,) = torch.autograd.grad((first * first).sum(), x)
        return [t.detach().numpy().copy() for t in (once, twice, first, second)]

    x, w = torch.from_numpy(values), torch.from_numpy(loss_weights)
    expected = both(prepared(nn.BatchNorm1d(3, dtype=F64)), x, w)

    def rank(r):
        layer = prepared(nn.SyncBatchNorm(3, dtype=F64))
        return both(layer, share(values, 3, r), share(loss_weights, 3, r))

    results = run(rank, 3)
    for index, value in enumerate(expected):
        got = np.concatenate([result[index] for result in results])
        np.testing.assert_allclose(got, value, rtol=1e-10, atol=1e-10)
    once, twice = expected[:2]
    np.testing.assert_allclose(twice, 2 * once)


def test_inside_ddp_training_equals_one_process():
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((8, 5)), rng.standard_normal((8, 2))

    def model():
        torch.manual_seed(0)
        layers = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))
        return layers.to(F64)

    def train(net, x, y):
        sgd = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
        for _ in range(5):
            sgd.zero_grad()
            (net(x) - y).pow(2).mean().backward()
            sgd.step()
        return [p.detach().numpy().copy() for p in net.parameters()]

    expected = train(model(), torch.from_numpy(x), torch.from_numpy(y))

    def rank(r):
        net = DDP(nn.SyncBatchNorm.convert_sync_batchnorm(model()), bucket_cap_mb=0)
        assert net._get_ddp_logging_data()["has_sync_bn"] == 1
        rows = slice(4 * r, 4 * r + 4)
        return train(net, torch.from_numpy(x[rows]), torch.from_numpy(y[rows]))

    for weights in run(rank, 2):
        for got, value in zip(weights, expected, strict=True):
            np.testing.assert_allclose(got, value, rtol=1e-11, atol=1e-12)


def test_process_group():
    def rank(r):
        groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
        layer = nn.SyncBatchNorm(1, process_group=groups[r // 2])
        layer(torch.tensor([[float(r)]]))
        return round(layer.running_mean.item(), 6)

    assert run(rank, 4) == [0.05, 0.05, 0.25, 0.25]


def test_cost():
    def rank(r):
        layer = nn.SyncBatchNorm(10, affine=False)
        x = torch.rand(4, 10).requires_grad_()
        dist.reset_meter()
        out = layer(x)
        forward = dist.meter()
        out.sum().backward()
        both = dist.meter()
        return (
            forward["all_gather"]["bytes_sent"],
            "all_reduce" in forward,
            both["all_reduce"]["calls"],
            both["all_reduce"]["bytes_sent"],
        )

    assert run(rank, 2) == [(8 * 21, False, 1, 16 * 10)] * 2


def test_input_without_gradient_needs_no_collective_in_backward():
    def rank(r):
        layer = nn.SyncBatchNorm(2)
        layer(torch.rand(3, 2)).sum().backward()
        return "all_reduce" in dist.meter(), layer.bias.grad.tolist()

    assert run(rank, 2) == [(False, [3.0, 3.0])] * 2


def test_too_few_values_raise_on_all_ranks():
    def rank(r):
        layer = nn.SyncBatchNorm(2)
        with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
            layer(torch.rand(1 if r == 1 else 0, 2))
        with pytest.raises(ValueError, match="Expected more than 1 value per channel"):
            layer(torch.rand(0, 2))
        layer(torch.rand(1, 2))  # two in all
        return layer.num_batches_tracked.item()

    assert run(rank, 2) == [3, 3]


def test_wrong_inputs():
    layer = nn.SyncBatchNorm(2)
    with pytest.raises(ValueError, match=r"expected at least 2D input \(got 1D input\)"):
        layer(torch.rand(2))
    with pytest.raises(ValueError, match="number of input channels should be non-zero"):
        layer(torch.rand(2, 0))


def test_conversion_keeps_parameters_statistics_and_structure():
    net = nn.Sequential(
        nn.BatchNorm1d(3, momentum=0.3, eps=0.01),
        nn.ModuleDict({"a": nn.BatchNorm2d(2, affine=False), "b": nn.Linear(1, 1)}),
        nn.BatchNorm1d(4, track_running_stats=False),
    )
    net[0].eval()
    net[0].running_mean.fill_(7)
    before = dict(net.named_parameters())
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(net, "a group")
    assert converted is net
    assert [type(m).__name__ for m in net.modules()] == [
        "Sequential", "SyncBatchNorm", "ModuleDict", "SyncBatchNorm", "Linear", "SyncBatchNorm",
    ]  # fmt: skip
    assert all(p is before[name] for name, p in net.named_parameters())
    assert net[0].running_mean.tolist() == [7.0] * 3
    assert (net[0].momentum, net[0].eps, net[0].training) == (0.3, 0.01, False)
    assert net[1]["a"].weight is None
    assert net[2].running_mean is None
    assert net[0].process_group == "a group"
    single = nn.BatchNorm1d(2)
    assert isinstance(nn.SyncBatchNorm.convert_sync_batchnorm(single), nn.SyncBatchNorm)


def test_statistics_have_the_same_bits_on_all_ranks():
    def rank(r):
        layer = nn.SyncBatchNorm(50)
        for step in range(5):
            x = np.random.default_rng(10 * step + r).standard_normal((3 + r, 50))
            layer(torch.from_numpy(x.astype(np.float32)))
        return layer.running_mean.numpy().tobytes(), layer.running_var.numpy().tobytes()

    same_on_all(rank, 4)
