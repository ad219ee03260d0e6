# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 5 · The reducer, read along
#
# Lesson 4 told what DDP does with gradients. The part that does it is a state machine in C++, `csrc/reducer/`, a few hundred lines. Here you
# read it, drive it by hand from Python, one call at a time, and then change it.
#
# **After this lesson you can**
# - name the four states of the reducer, and the call that moves it from each to the next,
# - find in the source why a bucket may be full and still not leave,
# - say which of its lines would corrupt gradients if they were swapped, and which test would tell,
# - rebuild the core after an edit, and read what the tests say.
#
# Open `csrc/reducer/reducer.hpp` beside this page: its head is the whole protocol.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from exercises import lesson_05

import minitorch._core as core
import minitorch.distributed as dist

WORLD = 2
SOURCES = Path("csrc") if Path("csrc").exists() else Path(__file__).resolve().parents[1] / "csrc"


def excerpt(file, first, last):
    """Print the lines of a source from the one that contains `first` to the next with `last`."""
    lines = (SOURCES / file).read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if first in line)
    stop = next(i for i in range(start, len(lines)) if lines[i].startswith(last))
    print(f"// {file}:{start + 1}")
    print("\n".join(lines[start : stop + 1]))


# %% [markdown]
# ## Four states
#
# | state | meaning | leaves it |
# |---|---|---|
# | idle | no backward is expected | the end of a forward arms it: `prepare_for_backward` |
# | armed | a forward ran; nothing came back yet | the first `mark_ready` |
# | filling | gradients arrive, buckets fill and leave | the last bucket was launched |
# | draining | all are on the wire | `finish`, after waiting for each |
#
# **Predict:** `loss.backward()` runs although no forward of the DDP wrapper came before it. In which state are the gradients met, and what
# happens to them? (§ "while not armed" in the header.)

# %%
excerpt("reducer/reducer.cpp", "bool Reducer::mark_ready(", "}")

# %% [markdown]
# Not armed: `mark_ready` returns at once, and gradients stay local. That silence is PyTorch's, and the source of many a bug report; minitorch's
# Python side warns about it (lesson 6).
#
# The second half of the function is the countdown: one number per bucket, `waiting_for_`, and when it reaches zero the bucket is *ready*.
# Ready is not launched:

# %%
excerpt("reducer/reducer.cpp", "void Reducer::launch_ready_buckets()", "}")

# %% [markdown]
# ## Driving it by hand
#
# The reducer knows nothing of autograd. It is told "the gradient of parameter 2 is complete, here it is". Below, three parameters in three
# buckets; parameter 0 is in bucket 2, as DDP packs in reverse. Both ranks hand in their gradients in *different* orders.
#
# **Predict:** after each call, how many buckets have left? Rank 0 marks 2, 1, 0; rank 1 marks 0, 1, 2.


# %%
def drive(rank, order):
    group = dist.group.WORLD._group
    reducer = core.Reducer(
        group,
        ["weight_0", "weight_1", "weight_2"],
        [np.dtype(np.float32)] * 3,
        [4, 4, 4],
        [False] * 3,
        [[2], [1], [0]],
        [1] * 3,
        rebuild_limits=[1],
    )
    story = [("construct", reducer.armed, reducer.launched)]
    reducer.prepare_for_backward()
    story.append(("prepare_for_backward", reducer.armed, reducer.launched))
    for index in order[rank]:
        gradient = np.full(4, (rank + 1) * 10.0**index, np.float32)
        reducer.mark_ready(index, gradient)
        story.append((f"mark_ready({index})", reducer.armed, reducer.launched))
    reducer.begin_draining()
    for bucket in range(3):
        reducer.wait_bucket(bucket)
    averages = [float(reducer.bucket_memory(b).view(np.float32)[0]) for b in range(3)]
    reducer.finish()
    story.append(("finish", reducer.armed, reducer.launched))
    return story, averages


told = dist.run_local(drive, WORLD, ([[2, 1, 0], [0, 1, 2]],))
for rank, (story, averages) in enumerate(told):
    print(f"rank {rank}")
    for call, armed, launched in story:
        print(f"  {call:<22} {'armed' if armed else 'idle':<6} {launched} of 3 buckets have left")
    print(f"  averages by bucket: {averages}")

# %% [markdown]
# Rank 1 had bucket 2 full after its first call and bucket 1 after its second, and sent neither until bucket 0 was there. Take the `while` away
# (launch whatever is ready) and rank 1's bucket 2 meets rank 0's bucket 0 on the wire: the sums are of different parameters. In minitorch the
# 32-byte header of each message says which collective it belongs to, so this ends in an error on both ranks instead of in garbage.
#
# ## The picture
#
# The same two ranks: a dot is a call of `mark_ready`, a bar reaches from the moment when a bucket is ready to the moment when it may leave.

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 2.6), sharex=True, sharey=True)
for axis, order, title in zip(
    axes, ([2, 1, 0], [0, 1, 2]), ("rank 0: in bucket order", "rank 1: the other way"), strict=True
):
    ready = {2 - parameter: time for time, parameter in enumerate(order, start=1)}
    leaves = {b: max(ready[k] for k in range(b + 1)) for b in range(3)}
    for bucket in range(3):
        axis.plot(ready[bucket], bucket, "o", color="#30629c", zorder=3)
        axis.barh(
            bucket, leaves[bucket] - ready[bucket], left=ready[bucket], height=0.25, color="#f2a65a"
        )
        axis.plot(leaves[bucket], bucket, ">", color="#c8553d", zorder=3)
    axis.set(title=title, yticks=range(3), xticks=range(1, 4), xlabel="call of mark_ready")
    axis.set(xlim=(0.8, 3.2), ylim=(2.4, -0.4))  # room for the marks; bucket 0 on top
    axis.set_yticklabels([f"bucket {b}" for b in range(3)])
figure.suptitle(
    "dot: ready    bar: waits for its predecessors    arrow: leaves", y=1.04, fontsize=9
)
figure.tight_layout()
plt.show()

# %% [markdown]
# ## Division, and where it stands
#
# `averages` above is right although nobody divided: `fill_slot` copies `gradient * (1/W)` into the slot, *before* the sum.

# %%
excerpt("reducer/reducer.cpp", "Reducer::fill_slot(", "}")

# %% [markdown]
# **Predict:** in float16 the largest number is 65504. Eight ranks have gradients of 10,000 each. What is the average if one sums first? If one
# divides first?

# %%
gradients = np.full(8, 10_000, np.float16)
with np.errstate(over="ignore"):
    summed_first = np.float16(np.add.reduce(gradients, dtype=np.float16) / np.float16(8))
divided_first = np.add.reduce((gradients * np.float16(1 / 8)).astype(np.float16), dtype=np.float16)
print(f"sum, then divide: {summed_first}    divide, then sum: {divided_first}")

# %% [markdown]
# ## The rebuild
#
# In the first backward the reducer writes down the order in which gradients became ready (`ready_order_`), and before the next forward rank 0's
# order is broadcast and buckets are laid out afresh. Why rank 0's? Because all ranks must have the same buckets, and their own orders may differ.

# %%
excerpt("reducer/layout.cpp", "bool Reducer::rebuild_buckets()", "}")


# %%
def rebuild(rank, order):
    group = dist.group.WORLD._group
    reducer = core.Reducer(
        group,
        [f"weight_{i}" for i in range(4)],
        [np.dtype(np.float32)] * 4,
        [256] * 4,
        [False] * 4,
        [[0, 1, 2, 3]],
        [2**62],
        rebuild_limits=[2048],
    )
    layouts = [reducer.bucket_indices]
    for _ in range(2):
        reducer.rebuild_buckets()
        layouts.append(reducer.bucket_indices)
        reducer.prepare_for_backward()
        for index in order[rank]:
            reducer.mark_ready(index, np.ones(256, np.float32))
        reducer.begin_draining()
        for bucket in range(len(reducer.bucket_indices)):
            reducer.wait_bucket(bucket)
        reducer.finish()
    return layouts


for rank, layouts in enumerate(dist.run_local(rebuild, WORLD, ([[1, 3, 2, 0], [0, 1, 2, 3]],))):
    print(f"rank {rank}: " + "  ->  ".join(map(str, layouts)))

# %% [markdown]
# Two parameters of 1 KiB fit a bucket of 2 KiB. Both ranks now use rank 0's order, although rank 1 computes in another.
#
# ## Break it
#
# Everything here is yours to break. From the project's folder:
#
# ```console
# $ make core                                   # build and run the C++ tests: a minute or two, then seconds
# $ $EDITOR csrc/reducer/reducer.cpp            # e.g. replace the `while` of launch_ready_buckets by an `if`
# $ make core                                   # which test says what?
# $ make build && make test-python PYTEST_ARGS=tests/distributed
# ```
#
# | edit in `reducer.cpp` | the first test that fails, in `test_reducer` |
# |---|---|
# | the `while` of `launch_ready_buckets` becomes an `if` | `buckets_launch_strictly_in_index_order` |
# | `division_factor` returns 1 | `averages_on_any_number_of_ranks`: 3 is not 1.5 |
# | `finish` forgets `reset_pass()` | the second pass: "Expected to have finished reduction" |
#
# ## Exercises
#
# **1.** The countdown. Write `mark(state, parameter)`. `state` holds `bucket_of` (parameter → bucket), `waiting` (gradients that each bucket
# lacks) and `launched` (list of buckets that left, in order). Update it; return nothing extra: return `state`.


# %%
def mark(state, parameter): ...  # your turn


lesson_05.mark.check(mark)

# %% [markdown]
# **2.** The next state. Given a state's name and a call's name, return the state after it, or raise `ValueError` where the call makes no sense.
# Calls: `prepare`, `mark`, `mark_last` (launches the last bucket), `finish`. A `mark` while idle changes nothing.


# %%
def after(state, call): ...  # your turn


lesson_05.after.check(after)

# %% [markdown]
# **3.** How long does a bucket wait for its predecessors? Given the time at which each bucket is ready, return the list of waits.


# %%
def waits(ready_times): ...  # your turn


lesson_05.waits.check(waits)

# %% [markdown]
# **Where next?** Lesson 6: what DDP does that one would not guess, and how minitorch tells you.
