# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 6 · What DDP does that one would not guess
#
# Most questions about `DistributedDataParallel` are about a handful of behaviours that follow from how it works, and that nobody guesses. Each
# below is a prediction, then a run. The numbers are PyTorch's own; where minitorch says more than PyTorch does, the text says so
# (`docs/differences.md` has the whole list).
#
# **After this lesson you can**
# - say when gradients are averaged and when they silently are not,
# - use `find_unused_parameters`, `no_sync` and `join`, and say what each costs,
# - explain why two ranks' batch-norm statistics differ after a forward,
# - choose a bucket size, and a number of steps between synchronizations, from a picture.
#
# In all runs rank r's gradient is r + 1 for every parameter, so on two ranks the local gradients are 1 and 2, and their average is 1.5.

# %%
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from exercises import lesson_06

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.distributed.algorithms.join import Join
from minitorch.nn.parallel import DistributedDataParallel

WORLD = 2


class TwoWays(nn.Module):
    """Two parameters; `way` says which of them take part in the loss."""

    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.zeros(1))
        self.q = nn.Parameter(torch.zeros(1))

    def forward(self, x, way="pq"):
        return sum(getattr(self, name) * x for name in way).sum()


def shown(model):
    return ["None" if w.grad is None else float(w.grad) for w in model.parameters()]


def on_two_ranks(fn, *args):
    for rank, result in enumerate(dist.run_local(fn, WORLD, args)):
        print(f"rank {rank}: {result}")


# %% [markdown]
# ## Unused parameters
#
# Rank 0 uses p and q, rank 1 only p. The bucket that holds both waits for q on rank 1, for ever: the ring is not started there.
#
# **Predict:** with `find_unused_parameters=True`, what is q's gradient on each rank: 1, 0.5, or None on rank 1?


# %%
def one_step(rank, ways, options):
    ddp = DistributedDataParallel(TwoWays(), **options)
    ddp(torch.ones(1) * (rank + 1), ways[rank]).backward()
    return dict(zip("pq", shown(ddp), strict=True))


on_two_ranks(one_step, ["pq", "p"], {"find_unused_parameters": True})

# %% [markdown]
# 0.5 on both: the parameter took part *somewhere*, so its average over two ranks is (1 + 0) / 2, and rank 1 gets it too: replicas must stay
# equal. What no rank used keeps its gradient untouched (None, or whatever was there). To know which case it is, the ranks add up a map of one
# integer per parameter. That, and a walk through the graph after each forward, is what the flag costs. (The warning that the run may show is
# rank 0's: in *its* forward nothing was unused.)
#
# Without the flag PyTorch's backward ends silently with *local* gradients, the optimizer takes that step, and the error comes in the next
# forward. Here the step itself refuses:


# %%
def forgotten(rank):
    ddp = DistributedDataParallel(TwoWays())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    ddp(torch.ones(1), "p").backward()  # q is left out, on all ranks
    try:
        optimizer.step()
    except RuntimeError as error:
        return str(error).split(". ")[0] + " ... (q) ..." * ("q" in str(error))
    return "no error"


on_two_ranks(forgotten)

# %% [markdown]
# ## no_sync is decided in forward
#
# Gradient accumulation: several backward passes, one communication. `with ddp.no_sync():` around a step keeps its gradients local; the next
# synchronized backward averages *the accumulated sum*.
#
# **Predict** for each row whether gradients are averaged: forward and backward inside; only forward inside; only backward inside.


# %%
def accumulate(rank, inside):
    ddp = DistributedDataParallel(TwoWays())
    x = torch.ones(1) * (rank + 1)
    if inside == "both":
        with ddp.no_sync():
            ddp(x).backward()
    elif inside == "forward":
        with ddp.no_sync():
            loss = ddp(x)
        loss.backward()
    else:
        loss = ddp(x)
        with ddp.no_sync():
            loss.backward()
    return shown(ddp)[0]


for inside in ("both", "forward", "backward"):
    averaged = dist.run_local(accumulate, WORLD, (inside,))
    print(f"inside no_sync: {inside:<9} -> gradients {averaged}")

# %% [markdown]
# Only what *forward* saw counts, because the reducer is armed at the end of forward (lesson 5). A `no_sync` around `loss.backward()` alone does
# nothing.
#
# PyTorch has no way to flush what was accumulated without another forward. Here there is one: `ddp.sync()`.


# %%
def flush(rank):
    ddp = DistributedDataParallel(TwoWays())
    with ddp.no_sync():
        for _ in range(3):
            ddp(torch.ones(1) * (rank + 1)).backward()
    before = shown(ddp)[0]
    ddp.sync()
    return f"{before} before, {shown(ddp)[0]} after"


on_two_ranks(flush)

# %% [markdown]
# ### What skipping buys, and what it costs
#
# The all-reduce of a step is paid once per n steps. Below, a model whose backward is emulated by a pause (so that the picture does not depend
# on this machine), on an emulated link.


# %%
class Paused(torch.autograd.Function):
    """The identity; its backward takes `seconds`. Stands for a layer's computation."""

    @staticmethod
    def forward(ctx, x, seconds):
        ctx.seconds = seconds
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        time.sleep(ctx.seconds)
        return grad, None


class Layers(nn.Module):
    """`layers` linear layers of 64 KiB, each with a backward of `seconds`."""

    def __init__(self, layers, seconds):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(128, 128, bias=False) for _ in range(layers))
        self.seconds = seconds

    def forward(self, x):
        for layer in self.layers:
            x = Paused.apply(layer(x), self.seconds)
        return x.sum()


def seconds_per_pass(rank, cap_mb, sync_every, repeats):
    """The best of a few rounds of `sync_every` passes, the last of which is synchronized."""
    torch.manual_seed(0)
    ddp = DistributedDataParallel(Layers(12, 3e-3), bucket_cap_mb=cap_mb)
    x = torch.ones(4, 128)
    for _ in range(2):  # the first step has one bucket, then comes the rebuild
        ddp(x).backward()
    rounds = []
    for _ in range(repeats):
        dist.barrier()
        start = time.perf_counter()
        with ddp.no_sync():
            for _ in range(sync_every - 1):
                ddp(x).backward()
        ddp(x).backward()
        rounds.append((time.perf_counter() - start) / sync_every)
    return min(rounds)


def measured(cap_mb, sync_every, link):
    return max(dist.run_local(seconds_per_pass, WORLD, (cap_mb, sync_every, 4), link=link))


every = [1, 2, 4, 8]
skipping = [1e3 * measured(0.1875, n, "100Mbit/s,1ms") for n in every]


# %%
def final_loss(rank, sync_every, lr):
    """Least squares on 8 samples per step and rank; a synchronized step per `sync_every` passes."""
    generator = np.random.default_rng([rank, 5])
    truth = np.random.default_rng(0).standard_normal(16)
    torch.manual_seed(0)
    ddp = DistributedDataParallel(nn.Linear(16, 1))
    optimizer = torch.optim.SGD(ddp.parameters(), lr=lr)
    losses = []
    for step in range(64):
        x = generator.standard_normal((8, 16)).astype(np.float32)
        y = (x @ truth + 0.5 * generator.standard_normal(8)).astype(np.float32)[:, None]
        last = (step + 1) % sync_every == 0
        if last:
            loss = nn.functional.mse_loss(ddp(torch.from_numpy(x)), torch.from_numpy(y))
            (loss / sync_every).backward()
            optimizer.step()
            optimizer.zero_grad()
        else:
            with ddp.no_sync():
                loss = nn.functional.mse_loss(ddp(torch.from_numpy(x)), torch.from_numpy(y))
                (loss / sync_every).backward()
        losses.append(float(loss))
    return losses


figure, axes = plt.subplots(1, 2, figsize=(10, 3))
axes[0].plot(every, skipping, "o-", color="#30629c")
axes[0].set(
    xlabel="passes per synchronization",
    ylabel="ms per pass",
    xscale="log",
    xticks=every,
    xticklabels=every,
    ylim=(0, None),
    title="emulated 100 Mbit/s link: time falls",
)
axes[0].minorticks_off()
for n, color in zip(every, ("#30629c", "#7aa6d8", "#f2a65a", "#c8553d"), strict=True):
    losses = np.mean(dist.run_local(final_loss, WORLD, (n, 0.05)), axis=0)
    axes[1].plot(losses, color=color, label=f"every {n}")
axes[1].set(xlabel="pass", ylabel="loss", yscale="log", title="same data: fewer, larger steps")
axes[1].legend(fontsize=8)
figure.tight_layout()
plt.show()

# %% [markdown]
# The paper (Li et al., 2020, section 5.3) reports the same pair: skipping is faster, and with a large batch and learning rate the loss suffers,
# since there are fewer updates.
#
# ## The bucket size has an interior optimum
#
# **Predict:** 12 layers of 64 KiB. One bucket per layer hides the most, and pays the latency twelve times; a single bucket pays once and hides
# nothing. Where is the minimum on a link with a latency of 12 ms? And with 0.1 ms?

# %%
caps = np.array([1, 2, 3, 4, 6, 12]) * 0.0625
figure, axis = plt.subplots(figsize=(6, 3))
for link, color in (("200Mbit/s,12ms", "#c8553d"), ("200Mbit/s,100us", "#30629c")):
    times = [1e3 * measured(float(cap), 1, link) for cap in caps]
    axis.plot(caps * 1024, times, "o-", color=color, label=link)
axis.set(xlabel="bucket cap, KiB", ylabel="ms per step", title="emulated links, emulated compute")
axis.legend()
figure.tight_layout()
plt.show()

# %% [markdown]
# The slower the start of a message, the larger the best bucket; the paper's figures 7 and 8 show it on real clusters: 25 MiB is a good default
# for 16 GPUs and NCCL, 5 MiB for gloo.
#
# ## Buffers: rank 0's, at the start of forward
#
# Batch norm keeps running statistics as buffers. Each rank updates its own from its own batch. DDP copies rank 0's to all at the **start** of
# the next forward, so after a forward they differ, and what rank 1 learned about its data is thrown away each time.
#
# **Predict:** momentum 0.1, rank r's batch has mean r + 1. What is `running_mean` on each rank after one forward, and after two?


# %%
def statistics(rank):
    ddp = DistributedDataParallel(nn.BatchNorm1d(1))
    batch = torch.ones(4, 1) * (rank + 1)
    means = []
    for _ in range(2):
        ddp(batch)
        means.append(round(float(ddp.module.running_mean), 4))
    return means


on_two_ranks(statistics)

# %% [markdown]
# 0.1 and 0.2, then 0.19 and 0.29: both went on from rank 0's 0.1. If the statistics should be those of the whole batch, use
# `nn.SyncBatchNorm.convert_sync_batchnorm(model)`; it adds two small collectives per layer and direction.
#
# ## Uneven inputs
#
# Rank 0 has three batches, rank 1 five. In its fourth step rank 1 waits for a rank that has left its loop. `join` lets the finished rank
# shadow the others' collectives with zeros.
#
# **Predict:** gradients are 1 and the learning rate is 1. With `divide_by_initial_world_size=True`, what gradients does rank 1 see in its five
# steps, and what is the weight at the end? And with `False`?


# %%
def uneven(rank, by_initial):
    ddp = DistributedDataParallel(nn.Linear(1, 1, bias=False))
    with torch.no_grad():
        ddp.module.weight.zero_()
    optimizer = torch.optim.SGD(ddp.parameters(), lr=1.0)
    seen = []
    with ddp.join(divide_by_initial_world_size=by_initial):
        for _ in range(3 + 2 * rank):
            optimizer.zero_grad()
            ddp(torch.ones(1, 1)).sum().backward()
            seen.append(float(ddp.module.weight.grad))
            optimizer.step()
    return f"saw {seen}, weight {float(ddp.module.weight)}"


for by_initial in (True, False):
    print(f"divide_by_initial_world_size={by_initial}")
    on_two_ranks(uneven, by_initial)

# %% [markdown]
# `True` keeps each *sample's* weight, `False` each *step's*. The generic form is `Join([ddp, optimizer, ...])`; anything that communicates in
# a loop can take part by giving it a hook.

# %%
print(Join.__doc__.strip().splitlines()[0])

# %% [markdown]
# ## Gradients that stay local
#
# The reducer averages one backward per forward of the *wrapper*. A second backward, a forward of `ddp.module`, `torch.autograd.grad`: nothing
# is armed, and gradients are local. PyTorch is silent; minitorch warns once and says what to do.


# %%
def second_backward(rank):
    ddp = DistributedDataParallel(TwoWays())
    loss = ddp(torch.ones(1) * (rank + 1))
    loss.backward(retain_graph=True)
    loss.backward()
    return f"gradient {shown(ddp)[0]}"


# Caught out here and not in the ranks: they are threads, and filters belong to the whole process.
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    on_two_ranks(second_backward)
warned = [str(w.message) for w in caught if "does not average" in str(w.message)]
print(f"{len(warned)} warnings: {warned[0][:90]} ...")


# %%
def checked(rank):
    ddp = DistributedDataParallel(TwoWays())
    with torch.no_grad():
        ddp.module.q += rank  # a bug of the user's: replicas differ
    try:
        ddp.check_consistency()
    except RuntimeError as error:
        return str(error).splitlines()[0][:110]


on_two_ranks(checked)

# %% [markdown]
# `ddp.check_consistency()` compares checksums of all parameters and buffers: a few bytes, and the first thing to call when a run goes wrong.
#
# ## Exercises
#
# **1.** Averages with unused parameters. `gradients` has one entry per rank, None where the rank did not use the parameter; `stale` is what
# `.grad` held before. Return what `.grad` holds afterwards on every rank.


# %%
def averaged(gradients, stale): ...  # your turn


lesson_06.averaged.check(averaged)

# %% [markdown]
# **2.** What is reduced? A list of passes, each `(forward_in_no_sync, backward_in_no_sync)`, never zeroed in between; every pass adds this
# rank's gradient, 1 or 2. Return the gradient on the two ranks after the last pass.


# %%
def accumulated(passes): ...  # your turn


lesson_06.accumulated.check(accumulated)

# %% [markdown]
# **3.** Uneven inputs. `batches[r]` is how many batches rank r has; every gradient is 1. Return the gradients seen in each step, for
# `divide_by_initial` True or False.


# %%
def join_gradients(batches, divide_by_initial): ...  # your turn


lesson_06.join_gradients.check(join_gradients)

# %% [markdown]
# **Where next?** `docs/differences.md` lists every place where minitorch says more than PyTorch. Lesson 7 leaves the wire and trains a
# recurrent network that forgets to forget.
