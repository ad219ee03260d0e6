# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 3 · The ring, chunk by chunk
#
# N ranks each hold an array; all want the sum. The obvious way sends everything to one rank and back. The ring needs no
# such centre, and what each rank sends hardly grows with N.
#
# **After this lesson you can**
# - follow a ring all-reduce step by step, and write one with nothing but `send` and `recv`,
# - price an all-reduce in steps and bytes before running it, and check the price with the byte meter,
# - say when the ring is *not* the right choice, and what pipelining in segments changes.

# %%
import matplotlib.pyplot as plt
import numpy as np
from exercises import lesson_03

import minitorch as torch
import minitorch.distributed as dist

WORLD = 4

# %% [markdown]
# ## Two laps
#
# Cut the array into N chunks. In the first lap (**reduce-scatter**) every rank passes one chunk to its right-hand neighbour in
# each step and adds the one that comes from the left to its own. After N − 1 steps, each rank owns one chunk that holds everybody's share.
# In the second lap (**all-gather**) the finished chunks go round once more.
#
# **Predict:** in which chunk does rank 0 hold the finished sum after the first lap: 0, 1, 2 or 3?


# %%
def ring_all_reduce(rank, array, record):
    """In place. `record` gets a copy of the array after every step."""
    world, right, left = dist.get_world_size(), (rank + 1) % WORLD, (rank - 1) % WORLD
    chunks = np.array_split(array, world)  # views: writing into a chunk writes into the array
    record(array)
    for step in range(2 * (world - 1)):
        first_lap = step < world - 1
        outgoing = (rank - step - 1) % world
        incoming = (rank - step - 2) % world
        arrived = torch.zeros(len(chunks[incoming])).double()
        sending = dist.isend(torch.from_numpy(chunks[outgoing].copy()), dst=right)
        dist.recv(arrived, src=left)
        sending.wait()
        if first_lap:
            chunks[incoming] += arrived.numpy()
        else:
            chunks[incoming][:] = arrived.numpy()
        record(array)


def watch_the_ring(rank):
    history = []
    array = np.full(
        WORLD, 10.0**rank
    )  # so that each digit of a sum tells which rank has contributed
    ring_all_reduce(rank, array, lambda a: history.append(a.copy()))
    return history


histories = np.array(dist.run_local(watch_the_ring, WORLD))  # rank, step, chunk
assert (histories[:, -1] == 1111).all()

figure, axes = plt.subplots(1, 7, figsize=(11, 2.6), sharey=True)
for step, axis in enumerate(axes):
    values = histories[:, step, :]
    shares = np.vectorize(lambda v: str(int(v)).count("1"))(values)
    axis.imshow(shares, cmap="Blues", vmin=0, vmax=5)
    for rank in range(WORLD):
        for chunk in range(WORLD):
            axis.text(
                chunk, rank, f"{int(values[rank, chunk]):04d}", ha="center", va="center", fontsize=7
            )
    axis.set(
        title="start" if step == 0 else f"step {step}",
        xticks=range(4),
        yticks=range(4),
        xlabel="chunk",
    )
axes[0].set_ylabel("rank")
figure.suptitle(
    "A digit 1 per rank that has contributed: three steps to reduce, three to gather", fontsize=10
)
figure.tight_layout()
plt.show()

# %% [markdown]
# Read a row: that rank's four chunks. After step 3 each row has exactly one `1111`: rank *r* owns chunk *r*, because it began by
# sending chunk *r − 1* and so adds its own chunk *r* last.
#
# Note also that a chunk's sum is taken in *one* fixed order, along the ring, and then copied. So all ranks get the same bits, even
# though floating-point addition depends on the order.
#
# ## The price
#
# Each of 2(N − 1) steps sends one chunk, B/N bytes. So a rank sends **2(N − 1)/N · B** bytes: less than twice the array however many ranks
# there are. The library's ring (C++, `csrc/collectives/`) is the same walk; its meter counts what really was sent.
#
# **Predict:** for 1,000 doubles on 4 ranks, how many bytes does each rank send by the ring? And rank 0 in the naive way (everybody sends to
# rank 0, which sends the sum back)?


# %%
def measured_bytes(rank, algorithm, elements):
    before = dist.meter().get("all_reduce", {"bytes_sent": 0})["bytes_sent"]
    dist.all_reduce(torch.ones(elements).double(), algorithm=algorithm)
    return dist.meter()["all_reduce"]["bytes_sent"] - before


ALGORITHMS = ["naive", "tree", "halving_doubling", "ring"]
table = {}
for algorithm in ALGORITHMS:
    table[algorithm] = [
        max(dist.run_local(measured_bytes, n, (algorithm, 840))) for n in (2, 3, 4, 6, 8)
    ]
    print(f"{algorithm:>17}: busiest rank sends", table[algorithm], "bytes for 2, 3, 4, 6, 8 ranks")
assert table["ring"] == [2 * (n - 1) * 840 * 8 // n for n in (2, 3, 4, 6, 8)]

figure, axis = plt.subplots(figsize=(6, 3.2))
for algorithm, marker in zip(ALGORITHMS, "os^D", strict=True):
    axis.plot(
        (2, 3, 4, 6, 8), np.array(table[algorithm]) / (840 * 8), marker + "-", label=algorithm
    )
axis.axhline(2, color="grey", lw=0.8, ls=":")
axis.set(
    xlabel="ranks",
    ylabel="arrays sent by the busiest rank",
    title="What the busiest rank sends (measured)",
)
axis.legend()
figure.tight_layout()
plt.show()

# %% [markdown]
# ## Bytes are not everything
#
# A message costs a start-up time α, whatever its size, and then β per byte. With the steps and bytes of each algorithm:
#
# | algorithm | steps | bytes through the busiest wire |
# |---|---|---|
# | naive | 2 (N − 1) | 2 (N − 1) B |
# | tree | 2 log₂N | 2 B log₂N |
# | halving–doubling | 2 log₂N | 2 (N − 1)/N · B |
# | ring | 2 (N − 1) | 2 (N − 1)/N · B |
#
# **Predict:** with 64 ranks, α = 20 µs and 1 Gbit/s, which is fastest for 100 bytes? For 100 MB?


# %%
def cost(algorithm, ranks, size, alpha=20e-6, beta=8e-9):
    log = np.ceil(np.log2(ranks))
    steps, sent = {
        "naive": (2 * (ranks - 1), 2 * (ranks - 1) * size),
        "tree": (2 * log, 2 * log * size),
        "halving_doubling": (2 * log, 2 * (ranks - 1) / ranks * size),
        "ring": (2 * (ranks - 1), 2 * (ranks - 1) / ranks * size),
    }[algorithm]
    return steps * alpha + sent * beta


sizes = np.logspace(1, 8, 60)
figure, axis = plt.subplots(figsize=(6, 3.4))
for algorithm in ALGORITHMS:
    axis.loglog(sizes, [cost(algorithm, 64, s) for s in sizes], label=algorithm)
axis.set(xlabel="bytes", ylabel="seconds (model)", title="64 ranks, 20 µs + 1 Gbit/s (a model)")
axis.legend()
figure.tight_layout()
plt.show()

# %% [markdown]
# For small arrays the number of steps decides, and the ring loses; for large ones it is as good as anything can be, because no
# all-reduce can send less than 2(N − 1)/N · B per rank. Then why the ring, when halving–doubling has both? In the ring every rank only ever
# talks to its neighbours, so no two messages compete for a wire; and it needs no power of two.
#
# ## Pipelining
#
# In the walk above, a rank waits for a whole chunk before it adds and passes it on. The wire is idle while it adds, and the adder while it
# waits. Cut each chunk into **segments** and pass each on as soon as it has been added. On a virtual clock, for ranks that share a machine
# (5 µs per message, 5 GB/s for the wire and for the adder):


# %%
def ring_time(ranks, size, segments, alpha=5e-6, beta=0.2e-9, add=0.2e-9):
    """Finish time of a pipelined ring; wire and adder of a rank each do one thing at a time (all ranks alike)."""
    piece = size / ranks / segments
    wire = adder = 0.0
    ready = np.zeros(segments)  # when each segment may be sent in this step
    for step in range(2 * (ranks - 1)):
        for k in range(segments):
            wire = max(wire, ready[k]) + alpha + piece * beta
            adder = max(adder, wire) + (piece * add if step < ranks - 1 else 0.0)
            ready[k] = adder
    return ready.max()


counts = 2 ** np.arange(0, 11)
figure, axis = plt.subplots(figsize=(6, 3.2))
for size in (1e6, 1e7, 1e8):
    times = np.array([ring_time(4, size, int(s)) for s in counts])
    axis.loglog(counts, times / times[0], "o-", label=f"{size / 1e6:.0f} MB")
axis.set(
    xlabel="segments per chunk",
    ylabel="time / time with one segment",
    title="Pipelining (virtual clock)",
)
axis.legend()
figure.tight_layout()
plt.show()

# %% [markdown]
# There is a best segment size: small enough that adding hides behind sending, large enough that α stays small beside it. The core
# uses 256 KiB, measured between processes (`minitorch bench allreduce`).
#
# ## Exercises
#
# **1.** Which chunk does rank `rank` send in step `step` of the first lap of a ring that runs the *other* way (each sends to its left
# neighbour)? Rank r starts by sending chunk r.


# %%
def chunk_to_send(rank, step, world_size): ...  # your turn


lesson_03.chunk_to_send.check(chunk_to_send)

# %% [markdown]
# **2.** Write the ring's second lap (all-gather) yourself. `chunks` is a list with `None` everywhere but at `rank`; `exchange(chunk)` sends
# to the right and returns what comes from the left. Return the full list.


# %%
def ring_all_gather(rank, world_size, chunks, exchange): ...  # your turn


lesson_03.ring_all_gather.check(ring_all_gather)

# %% [markdown]
# **Where next?** `csrc/README.md` is the map of the C++ ring: the loop you wrote stands there as a coroutine that stops at
# `co_await` wherever you wrote `recv`. Lesson 4 puts gradients into buckets and the ring behind backward.
