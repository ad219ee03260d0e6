"""Exercises of lesson 2: weighing unequal shards, accumulating before synchronizing."""

from __future__ import annotations

import threading

import numpy as np

from . import answered, exercise


def _on_ranks(world_size, body):
    """Run ``body(rank, all_reduce_sum)`` on threads; return the results and each rank's number of calls."""
    barrier = threading.Barrier(world_size, timeout=5)
    slots, results, calls, errors = [None] * world_size, [None] * world_size, [0] * world_size, []

    def run(rank):
        def all_reduce_sum(array):
            calls[rank] += 1
            slots[rank] = np.array(array, dtype=np.float64)
            barrier.wait()
            total = sum(slots[1:], start=slots[0].copy())
            barrier.wait()
            return total

        try:
            results[rank] = body(rank, all_reduce_sum)
        except threading.BrokenBarrierError:
            errors.append(AssertionError("the ranks did not make the same number of all-reduces"))
        except Exception as error:
            errors.insert(0, error)
            barrier.abort()

    threads = [
        threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(world_size)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results, calls


@exercise("Unequal shards", hint="turn means into sums, add the sums and the counts, divide once")
def weighted_average(answer):
    samples = [20, 4, 5, 3]
    rng = np.random.default_rng(1)
    per_sample = [rng.normal(size=(n, 6)) for n in samples]
    expected = np.concatenate(per_sample).mean(axis=0)

    def body(rank, all_reduce_sum):
        return answered(answer(per_sample[rank].mean(axis=0), samples[rank], all_reduce_sum))

    results, _ = _on_ranks(4, body)
    for rank, got in enumerate(results):
        assert np.allclose(got, expected), (
            f"rank {rank} got {got}, the batch's gradient is {expected}"
        )


@weighted_average.solve
def _(grad, samples, all_reduce_sum):
    return all_reduce_sum(grad * samples) / all_reduce_sum(np.array(samples))


@weighted_average.mistake
def _(grad, samples, all_reduce_sum):
    return all_reduce_sum(grad) / 4


@weighted_average.mistake
def _(grad, samples, all_reduce_sum):
    return all_reduce_sum(grad * samples) / samples


@exercise("Accumulate, then average", hint="add up locally first; the network only sees the sum")
def accumulate_then_average(answer):
    rng = np.random.default_rng(2)
    grads = rng.normal(size=(3, 5, 4))  # rank, micro-batch, element
    expected = grads.sum(axis=1).mean(axis=0)

    def body(rank, all_reduce_sum):
        return answered(answer(list(grads[rank].copy()), 3, all_reduce_sum))

    results, calls = _on_ranks(3, body)
    for rank, got in enumerate(results):
        assert np.allclose(got, expected), f"rank {rank} got {got}, expected {expected}"
        assert calls[rank] == 1, f"rank {rank} made {calls[rank]} all-reduces instead of one"


@accumulate_then_average.solve
def _(grads, world_size, all_reduce_sum):
    return all_reduce_sum(sum(grads)) / world_size


@accumulate_then_average.mistake
def _(grads, world_size, all_reduce_sum):
    return sum(all_reduce_sum(g) for g in grads) / world_size  # right, but k messages


@accumulate_then_average.mistake
def _(grads, world_size, all_reduce_sum):
    return all_reduce_sum(grads[-1]) / world_size
