"""Exercises of lesson 3: who sends which chunk, and the second lap of the ring."""

from __future__ import annotations

import queue
import threading

from . import answered, exercise


@exercise(
    "The ring, the other way round", hint="after each step you pass on what you have just received"
)
def chunk_to_send(answer):
    for world in (1, 2, 3, 5):
        held = list(range(world))  # the chunk that each rank sends in step 0
        for step in range(world):
            for rank in range(world):
                got = answered(answer(rank, step, world))
                assert got == held[rank], (
                    f"{world} ranks, step {step}: rank {rank} sends chunk {held[rank]}, not {got}"
                )
            held = [held[(rank + 1) % world] for rank in range(world)]  # what came from the right


@chunk_to_send.solve
def _(rank, step, world_size):
    return (rank + step) % world_size


@chunk_to_send.mistake
def _(rank, step, world_size):
    return (rank - step) % world_size


@chunk_to_send.mistake
def _(rank, step, world_size):
    return rank + step


@exercise(
    "The second lap",
    hint="N − 1 times: pass on what you got last; its owner is one further to the left each time",
)
def ring_all_gather(answer):
    for world in (1, 2, 3, 5):
        wires = [queue.Queue() for _ in range(world)]  # wires[r]: from rank r − 1 to rank r
        results, errors, sent = [None] * world, [], [0] * world

        def run(rank, world=world, wires=wires, results=results, errors=errors, sent=sent):
            def exchange(chunk):
                sent[rank] += 1
                wires[(rank + 1) % world].put(chunk)
                return wires[rank].get(timeout=2)

            chunks = [None] * world
            chunks[rank] = f"chunk {rank}"
            try:
                results[rank] = answered(answer(rank, world, chunks, exchange))
            except queue.Empty:
                errors.append(
                    AssertionError(
                        f"{world} ranks: rank {rank} waits for a chunk that nobody sends"
                    )
                )
            except Exception as error:
                errors.insert(0, error)

        threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(world)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        expected = [f"chunk {r}" for r in range(world)]
        for rank in range(world):
            assert list(results[rank]) == expected, (
                f"{world} ranks: rank {rank} ends with {results[rank]}"
            )
            assert sent[rank] == world - 1, (
                f"{world} ranks: {sent[rank]} messages, {world - 1} are enough"
            )


@ring_all_gather.solve
def _(rank, world_size, chunks, exchange):
    latest = chunks[rank]
    for step in range(world_size - 1):
        latest = exchange(latest)
        chunks[(rank - step - 1) % world_size] = latest
    return chunks


@ring_all_gather.mistake
def _(rank, world_size, chunks, exchange):
    for step in range(world_size - 1):
        chunks[(rank - step - 1) % world_size] = exchange(chunks[rank])  # always its own
    return chunks


@ring_all_gather.mistake
def _(rank, world_size, chunks, exchange):
    latest = chunks[rank]
    for step in range(world_size):
        latest = exchange(latest)
        chunks[(rank - step - 1) % world_size] = latest
    return chunks  # one message too many
