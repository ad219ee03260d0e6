# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 4 · Buckets and overlap
#
# One message per gradient pays the start-up cost too often. One message for all gradients cannot leave before backward is over. DDP packs
# gradients into buckets and sends each as soon as it is full.
#
# **After this lesson you can**
# - tell which parameters share a bucket, and why the first iteration looks different,
# - explain why buckets leave strictly in order,
# - read a timeline: gradient ready → bucket → all-reduce → wait, and find the communication that was *not* hidden,
# - choose a bucket size, and say what it trades.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from exercises import lesson_04

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn, profiler
from minitorch.nn.parallel import DistributedDataParallel

WORLD = 2

# %% [markdown]
# ## Who shares a bucket
#
# Gradients arrive last layer first (lesson 2), so parameters are packed in *reverse*: a bucket takes parameters until it is at least as large
# as `bucket_cap_mb`. Two rules surprise everybody once:
#
# - In the **first** iteration there is a single bucket: the order in which gradients really arrive is not known yet. It is recorded, and
#   the buckets are rebuilt for the second.
# - Without `bucket_cap_mb`, the first bucket to leave is small (1 MiB): the sooner something is on the wire, the better.
#
# **Predict:** six layers of 1 MiB each. How many buckets with `bucket_cap_mb=2`? And by default (25 MiB)?


# %%
def bucket_sizes(rank, options):
    model = nn.Sequential(*(nn.Linear(512, 512, bias=False) for _ in range(6)))
    ddp = DistributedDataParallel(model, **options)
    seen = []
    for _ in range(2):
        ddp(torch.ones(1, 512)).sum().backward()
        data = ddp._get_ddp_logging_data()
        seen.append(
            data["rebuilt_bucket_sizes"] if data["has_rebuilt_buckets"] else data["bucket_sizes"]
        )
    return seen


def mebibytes(sizes):
    sizes = sizes.split(", ") if isinstance(sizes, str) else sizes
    return [int(s) // 2**20 for s in sizes]


for options in ({}, {"bucket_cap_mb": 2}):
    first, then = dist.run_local(bucket_sizes, WORLD, (options,))[0]
    print(
        f"{options!s:>22}: first iteration {mebibytes(first)} MiB, from then on {mebibytes(then)} MiB"
    )

# %% [markdown]
# ## Why strictly in order
#
# Rank 0 may fill bucket 2 before bucket 1, rank 1 the other way round. If each sent what it has, rank 0's bucket 2 would be added to rank 1's
# bucket 1. So bucket k leaves only after buckets 0 … k − 1, on every rank: a full bucket may have to wait for an earlier one.
#
# ## What overlap buys
#
# A model of one step: backward computes layer after layer (last first); a full bucket goes onto the wire when the wire is free. The step ends
# when both are done.


# %%
def step_timeline(layer_bytes, layer_seconds, cap_bytes, alpha=200e-6, beta=8e-9):
    """Simulate one backward pass: a virtual clock, no measurement. Returns compute and wire intervals."""
    clock, compute = 0.0, []
    buckets, current = [], 0
    for size, seconds in zip(reversed(layer_bytes), reversed(layer_seconds), strict=True):
        compute.append((clock, clock + seconds))
        clock += seconds
        current += size
        if current >= cap_bytes:
            buckets.append((clock, current))
            current = 0
    if current:
        buckets.append((clock, current))
    wire_free, wire = 0.0, []
    for ready, size in buckets:
        start = max(ready, wire_free)
        wire_free = start + alpha + size * beta
        wire.append((start, wire_free))
    return compute, wire


layers = 24
layer_bytes, layer_seconds = [400_000] * layers, [3e-3] * layers
caps = np.array([4e5, 8e5, 1.2e6, 1.6e6, 2.4e6, 3.2e6, 4.8e6, 9.6e6])
totals = []
for cap in caps:
    compute, wire = step_timeline(layer_bytes, layer_seconds, cap, alpha=1e-3)
    totals.append(max(compute[-1][1], wire[-1][1]) * 1e3)

figure, axes = plt.subplots(1, 2, figsize=(11, 3.4), width_ratios=(3, 2))
for row, cap in enumerate((4e5, 2.4e6, 9.6e6)):
    compute, wire = step_timeline(layer_bytes, layer_seconds, cap, alpha=1e-3)
    for intervals, offset, color in ((compute, 0.0, "#7aa6d8"), (wire, -0.35, "#f2a65a")):
        axes[0].broken_barh(
            [(a * 1e3, (b - a) * 1e3) for a, b in intervals],
            (2 - row + offset, 0.3),
            color=color,
            edgecolor="white",
            lw=0.5,
        )
axes[0].set(
    yticks=[2, 1, 0],
    yticklabels=["a bucket per layer", "6 layers per bucket", "one bucket"],
    xlabel="ms on the virtual clock",
    title="backward (blue) and the wire (orange)",
)
axes[1].plot(caps / 1e6, totals, "o-")
axes[1].set(
    xlabel="bucket cap, MB", ylabel="step, ms", title="Neither extreme is best", xscale="log"
)
figure.tight_layout()
plt.show()

# %% [markdown]
# **Predict:** for which bucket size is the step shortest if the start-up cost α of a message were zero? Try it: the curve loses its left arm.
#
# ## A real timeline
#
# The next cell trains a small model with two ranks for four steps on an emulated 200 Mbit/s link and records what happened. Ranks are threads
# here and share the interpreter, so read the **order** of events, not their lengths; for lengths, record between processes:
# `minitorch launch -n 2 tutorials/trainers/images.py --trace timeline.json`.


# %%
def train_four_steps(rank, path):
    torch.manual_seed(0)
    model = nn.Sequential(
        *(layer for _ in range(6) for layer in (nn.Linear(256, 256), nn.Tanh())), nn.Linear(256, 1)
    )
    ddp = DistributedDataParallel(model, bucket_cap_mb=0.5)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    with profiler.trace(path):
        for _ in range(4):
            optimizer.zero_grad()
            ddp(torch.ones(64, 256)).pow(2).mean().backward()
            optimizer.step()


path = Path(tempfile.mkdtemp()) / "timeline.json"
dist.run_local(train_four_steps, WORLD, (path,), link="200Mbit/s,100us")
figure = profiler.draw_timeline(path)
plt.show()

# %% [markdown]
# Find in the picture: a gradient becoming ready, the bucket that it completes, its all-reduce starting, and the wait at the end of backward.
# Whatever of an all-reduce lies under backward is **hidden**; what lies under the wait is **exposed**, and is what the step pays for. The same
# file opens in [Perfetto](https://ui.perfetto.dev) or `chrome://tracing`; `minitorch trace timeline.json` prints the sums.
#
# ## Exercises
#
# **1.** Assign buckets. Given parameter sizes in bytes in definition order, return lists of indices, first bucket to leave first: walk in reverse,
# append, close a bucket when its size reaches `cap`.


# %%
def assign_buckets(sizes, cap): ...  # your turn


lesson_04.assign_buckets.check(assign_buckets)

# %% [markdown]
# **2.** Launch in order. `ready` lists buckets in the order in which they fill on this rank. Return, for each arrival, the list of buckets that
# can be launched then.


# %%
def launches(ready): ...  # your turn


lesson_04.launches.check(launches)

# %% [markdown]
# **3.** Exposed communication. Given `(start, end)` intervals of all-reduces that do not overlap each other and the end of backward's computation,
# return the seconds of communication that computation did not hide.


# %%
def exposed(all_reduces, compute_end): ...  # your turn


lesson_04.exposed.check(exposed)

# %% [markdown]
# **Where next?** `csrc/reducer/` is the state machine you just assembled: `mark_ready`, launch in order, finalize. Break it, run `make core`,
# and see which test tells you.
