"""Every collective x dtype x operation x size against closed forms, on 1 to 4 ranks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from distributed.values import DTYPES, OPS, SIZES, as_float64, combined, numbers, tensor

import minitorch as torch
import minitorch.distributed as dist


def on_ranks(fn, world_size, **kwargs):
    return dist.run_local(fn, world_size, timeout=30, **kwargs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_reduce(world_size, dtype):
    def program(rank):
        for op, size in itertools.product(OPS, SIZES):
            t = tensor(numbers(rank, size, op), dtype)
            assert dist.all_reduce(t, op=getattr(dist.ReduceOp, op)) is None
            np.testing.assert_array_equal(
                as_float64(t), combined(world_size, size, op), f"{op} {size}"
            )

    on_ranks(program, world_size)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_average(world_size, dtype):
    def program(rank):
        t = tensor(numbers(rank, 7), dtype)
        dist.all_reduce(t, op=dist.ReduceOp.AVG)
        relative = {"float32": 1e-6, "float64": 1e-15, "float16": 1e-3, "bfloat16": 1e-2}[dtype]
        np.testing.assert_allclose(as_float64(t), combined(world_size, 7, "AVG"), rtol=relative)
        return t.to(torch.float64).numpy().tobytes()

    assert len(set(on_ranks(program, world_size))) == 1


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16"])
def test_small_integers_are_reduced_in_their_own_arithmetic(world_size, dtype):
    def program(rank):
        t = tensor(numbers(rank, 5) % 2, dtype)
        dist.all_reduce(t)
        assert t.dtype == getattr(torch, dtype)
        rows = np.stack([(numbers(r, 5) % 2).astype(dtype) for r in range(world_size)])
        expected = rows.any(axis=0) if dtype == "bool" else rows.sum(axis=0)
        np.testing.assert_array_equal(t.numpy(), expected)

    on_ranks(program, world_size)


@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_all_ranks_hold_the_same_bits(world_size, dtype):
    """Random reals, where the order of summation shows."""
    size = 5003

    def program(rank):
        values = np.random.default_rng(rank).standard_normal(size)
        t = torch.from_numpy(values).to(getattr(torch, dtype))
        dist.all_reduce(t)
        return as_float64(t).tobytes()

    bits = on_ranks(program, world_size)
    assert len(set(bits)) == 1
    exact = sum(np.random.default_rng(rank).standard_normal(size) for rank in range(world_size))
    tolerance = {"float32": 1e-5, "float16": 2e-2, "bfloat16": 2e-1}[dtype]
    np.testing.assert_allclose(np.frombuffer(bits[0]), exact, atol=tolerance)


@pytest.mark.parametrize("dtype", [*DTYPES, "bool", "int8", "int16"])
def test_all_gather(world_size, dtype):
    def program(rank):
        for size in SIZES:
            given = tensor(numbers(rank, size) % 5, dtype)
            outputs = [tensor(np.zeros(size), dtype) for _ in range(world_size)]
            dist.all_gather(outputs, given)
            whole = tensor(np.zeros(size * world_size), dtype)
            dist.all_gather_into_tensor(whole, given)
            for peer in range(world_size):
                expected = as_float64(tensor(numbers(peer, size) % 5, dtype))
                np.testing.assert_array_equal(as_float64(outputs[peer]), expected)
                np.testing.assert_array_equal(
                    as_float64(whole)[peer * size : (peer + 1) * size], expected
                )

    on_ranks(program, world_size)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
def test_reduce_scatter(world_size, dtype):
    def program(rank):
        for op, size in itertools.product(OPS, SIZES):
            whole = numbers(rank, size * world_size, op)
            expected = combined(world_size, size * world_size, op)[rank * size : (rank + 1) * size]
            output = tensor(np.zeros(size), dtype)
            dist.reduce_scatter_tensor(output, tensor(whole, dtype), op=getattr(dist.ReduceOp, op))
            np.testing.assert_array_equal(as_float64(output), expected)
            parts = [tensor(part, dtype) for part in whole.reshape(world_size, size)]
            output = tensor(np.zeros(size), dtype)
            dist.reduce_scatter(output, parts, op=getattr(dist.ReduceOp, op))
            np.testing.assert_array_equal(as_float64(output), expected)

    on_ranks(program, world_size)


def test_reduce_scatter_average(world_size):
    def program(rank):
        output = torch.zeros(3)
        dist.reduce_scatter_tensor(
            output, tensor(numbers(rank, 3 * world_size), "float32"), op=dist.ReduceOp.AVG
        )
        expected = combined(world_size, 3 * world_size, "AVG")[rank * 3 : rank * 3 + 3]
        np.testing.assert_allclose(output.numpy(), expected, rtol=1e-6)

    on_ranks(program, world_size)


@pytest.mark.parametrize("dtype", [*DTYPES, "bool", "int16"])
def test_broadcast(world_size, dtype):
    def program(rank):
        for root, size in itertools.product(range(world_size), SIZES):
            t = tensor(numbers(rank, size) % 5, dtype)
            dist.broadcast(t, src=root)
            expected = as_float64(tensor(numbers(root, size) % 5, dtype))
            np.testing.assert_array_equal(as_float64(t), expected)

    on_ranks(program, world_size)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_reduce(world_size, dtype):
    def program(rank):
        for root, op, size in itertools.product(range(world_size), OPS, SIZES):
            t = tensor(numbers(rank, size, op), dtype)
            dist.reduce(t, dst=root, op=getattr(dist.ReduceOp, op))
            mine = combined(world_size, size, op) if rank == root else numbers(rank, size, op)
            np.testing.assert_array_equal(as_float64(t), mine)
        t = tensor(numbers(rank, 7), "float32")
        dist.reduce(t, dst=0, op=dist.ReduceOp.AVG)
        if rank == 0:
            np.testing.assert_allclose(t.numpy(), combined(world_size, 7, "AVG"), rtol=1e-6)

    on_ranks(program, world_size)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "int32", "bool"])
def test_gather_and_scatter(world_size, dtype):
    def program(rank):
        for root, size in itertools.product(range(world_size), SIZES):
            given = tensor(numbers(rank, size) % 5, dtype)
            outputs = [tensor(np.zeros(size), dtype) for _ in range(world_size)]
            dist.gather(given, outputs if rank == root else None, dst=root)
            if rank == root:
                for peer, output in enumerate(outputs):
                    expected = as_float64(tensor(numbers(peer, size) % 5, dtype))
                    np.testing.assert_array_equal(as_float64(output), expected)
            mine = tensor(np.zeros(size), dtype)
            dist.scatter(mine, outputs if rank == root else None, src=root)
            np.testing.assert_array_equal(as_float64(mine), as_float64(given))

    on_ranks(program, world_size)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_all_to_all(world_size, dtype):
    """Element i of what rank s sends to rank r is i + 3 s + 5 r."""

    def block(source, destination, size):
        return (np.arange(size) + 3 * source + 5 * destination) % 100

    def program(rank):
        for size in SIZES:
            given = np.concatenate([block(rank, peer, size) for peer in range(world_size)])
            output = tensor(np.zeros(size * world_size), dtype)
            dist.all_to_all_single(output, tensor(given, dtype))
            expected = np.concatenate([block(peer, rank, size) for peer in range(world_size)])
            np.testing.assert_array_equal(as_float64(output), expected)
        # Uneven: rank s sends s + r + 1 elements to rank r.
        outputs = [tensor(np.zeros(rank + peer + 1), dtype) for peer in range(world_size)]
        inputs = [tensor(block(rank, peer, rank + peer + 1), dtype) for peer in range(world_size)]
        dist.all_to_all(outputs, inputs)
        for peer, output in enumerate(outputs):
            np.testing.assert_array_equal(as_float64(output), block(peer, rank, rank + peer + 1))
        splits = [rank + peer + 1 for peer in range(world_size)]
        joined = tensor(np.zeros(sum(splits)), dtype)
        dist.all_to_all_single(joined, torch.cat(inputs), splits, splits)
        expected = np.concatenate(
            [block(peer, rank, rank + peer + 1) for peer in range(world_size)]
        )
        np.testing.assert_array_equal(as_float64(joined), expected)

    on_ranks(program, world_size)


def test_barrier_separates(world_size):
    """No rank leaves the barrier before the last has entered it."""
    entered = []

    def program(rank):
        for _ in range(5):
            entered.append(rank)
            dist.barrier()
            count = len(entered)
            assert count % world_size == 0
            dist.monitored_barrier()

    on_ranks(program, world_size)


def test_send_recv_in_a_ring(world_size):
    if world_size == 1:
        pytest.skip("a ring of one sends nothing")

    def program(rank):
        after, before = (rank + 1) % world_size, (rank - 1) % world_size
        for dtype, size in itertools.product(("float32", "bfloat16", "bool"), SIZES):
            got = tensor(np.zeros(size), dtype)
            work = dist.irecv(got, src=before, tag=3)
            dist.send(tensor(numbers(rank, size) % 2, dtype), dst=after, tag=3)
            work.wait()
            np.testing.assert_array_equal(as_float64(got), numbers(before, size) % 2)
            assert work.source_rank() == before

    on_ranks(program, world_size)


def test_recv_from_anybody_names_the_sender():
    def program(rank):
        if rank == 0:
            t = torch.zeros(2)
            return sorted((dist.recv(t), t.tolist()) for _ in range(2))
        dist.send(torch.full((2,), float(rank)), dst=0)
        return None

    assert on_ranks(program, 3)[0] == [(1, [1.0, 1.0]), (2, [2.0, 2.0])]


def test_batch_isend_irecv(world_size):
    if world_size == 1:
        pytest.skip("nobody to talk to")

    def program(rank):
        after, before = (rank + 1) % world_size, (rank - 1) % world_size
        got = torch.zeros(3)
        ops = [
            dist.P2POp(dist.isend, torch.full((3,), float(rank)), after),
            dist.P2POp(dist.irecv, got, before),
        ]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        assert got.tolist() == [float(before)] * 3

    on_ranks(program, world_size)


def test_zero_dimensional_and_strided_tensors():
    """Whatever the strides, the tensor that was given holds the result, and nothing beside it is
    touched.
    """

    def program(rank):
        scalar = torch.tensor(float(rank + 1))
        dist.all_reduce(scalar)
        assert scalar.item() == 6.0
        assert scalar.shape == ()

        base = torch.zeros(4, 6)
        part = base[:, ::2]
        part += rank + 1
        dist.all_reduce(part)
        assert base.sum().item() == 12 * 6.0
        assert base[:, 1::2].sum().item() == 0.0

        wide = torch.arange(6.0).reshape(2, 3)
        turned = wide.t()
        work = dist.all_reduce(turned, async_op=True)
        work.wait()
        np.testing.assert_array_equal(wide.numpy(), 3 * np.arange(6.0).reshape(2, 3))

        column = torch.full((3, 2), float(rank))[:, 0]
        dist.broadcast(column, src=2)
        assert column.tolist() == [2.0] * 3

        outputs = [torch.zeros(2, 4)[:, ::2] for _ in range(3)]
        dist.all_gather(outputs, torch.full((2, 4), float(rank))[:, 1::2])
        assert [output.sum().item() for output in outputs] == [0.0, 4.0, 8.0]

    on_ranks(program, 3)
