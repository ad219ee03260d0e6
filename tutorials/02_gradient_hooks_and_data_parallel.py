# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 2 · Gradient hooks, and data parallelism by hand
#
# Four workers, four copies of one model, each with a quarter of the batch. What must they tell each other so
# that they stay one model?
#
# **After this lesson you can**
# - show that averaging gradients is the same as training on the whole batch, and name the two cases where it is not,
# - hang a function onto a parameter's gradient, so that communication starts *while* backward still runs,
# - build a working `DistributedDataParallel` in twenty lines, and say what the real one adds.
#
# Everything runs in this process: `dist.run_local(fn, 4)` starts four ranks as threads, each with its own
# gradients and its own process group. The same code runs under `mpirun`.

# %%
import matplotlib.pyplot as plt
import numpy as np
from exercises import lesson_02

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.nn.parallel import DistributedDataParallel

WORLD = 4


def make_model():
    torch.manual_seed(0)  # the same start on every rank
    return nn.Sequential(
        nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)
    ).double()


rng = np.random.default_rng(0)
inputs = torch.from_numpy(rng.normal(size=(32, 8)))
targets = torch.from_numpy(rng.normal(size=(32, 1)))


def whole_batch_gradients():
    model = make_model()
    nn.functional.mse_loss(model(inputs), targets).backward()
    return [p.grad.numpy() for p in model.parameters()]


reference = whole_batch_gradients()

# %% [markdown]
# ## The average of gradients is the gradient of the average
#
# The loss of a batch is a mean over samples, and a derivative of a mean is the mean of derivatives. So each rank
# computes the gradient on its own shard, all add up theirs (`all_reduce`) and divide by four.


# %%
def average_after_backward(rank):
    model = make_model()
    shard = slice(rank * 8, rank * 8 + 8)
    nn.functional.mse_loss(model(inputs[shard]), targets[shard]).backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= WORLD
    return [p.grad.numpy() for p in model.parameters()]


by_rank = dist.run_local(average_after_backward, WORLD)
error = max(np.abs(a - b).max() for a, b in zip(by_rank[0], reference, strict=True))
same_bits = all(
    np.array_equal(a, b) for r in by_rank[1:] for a, b in zip(r, by_rank[0], strict=True)
)
print(
    f"largest difference to the whole batch: {error:.1e}; the same bits on all ranks: {same_bits}"
)

# %% [markdown]
# The difference is rounding: the sums are taken in another order. That all ranks hold *the same bits* is not luck but a promise of
# the ring (lesson 3), and it matters: replicas that differ by one bit drift apart.
#
# **Predict:** rank 0 gets 20 samples and the others 4 each. Is the average of the four gradients still the gradient of
# the batch of 32?


# %%
def unequal_shards(rank):
    model = make_model()
    cuts = [0, 20, 24, 28, 32]
    shard = slice(cuts[rank], cuts[rank + 1])
    nn.functional.mse_loss(model(inputs[shard]), targets[shard]).backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= WORLD
    return [p.grad.numpy() for p in model.parameters()]


unequal = dist.run_local(unequal_shards, WORLD)[0]
wrong = max(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(unequal, reference, strict=True))
print(f"relative error with unequal shards: {wrong:.0%}")

# %% [markdown]
# No: each rank's mean weighs the same, so a sample on a small shard counts five times as much. That is one case; the other is a loss
# that is a *sum* over samples, where the average is the whole-batch gradient divided by the number of ranks. PyTorch's DDP behaves the
# same, and so does ours. (Layers that look across the batch, like batch norm, are a third, subtler one.)
#
# ## Backward delivers gradients one at a time, last layer first
#
# Waiting for all of backward before the first byte moves wastes the network. When does each gradient become final? A
# **post-accumulate hook** is called right then.

# %%
model = make_model()
names = [name for name, _ in model.named_parameters()]
order = []
for name, parameter in model.named_parameters():
    parameter.register_post_accumulate_grad_hook(lambda p, name=name: order.append(name))
nn.functional.mse_loss(model(inputs), targets).backward()

figure, axis = plt.subplots(figsize=(6.5, 2.8))
arrival = np.arange(1, len(order) + 1)
axis.barh(order, len(order) + 1 - arrival, left=arrival, color="#d6e6f7", edgecolor="#555")
axis.invert_yaxis()
axis.set(
    xlabel="gradients that arrived so far",
    title="Each gradient, from its arrival to the end of backward",
)
figure.tight_layout()
plt.show()
print("registered:", names)
print("arrived:   ", order)

# %% [markdown]
# Everything left of a bar's start is backward still running: time in which that gradient can already travel.
#
# ## A DistributedDataParallel in twenty lines
#
# Start an asynchronous all-reduce in each hook; wait for all of them when backward is over.


# %%
class TinyDDP(nn.Module):
    """Average every gradient as soon as it arrives. One message per parameter."""

    def __init__(self, module):
        super().__init__()
        self.module = module
        self.pending = []
        for parameter in module.parameters():
            dist.broadcast(parameter.data, src=0)  # all start from rank 0's weights
            parameter.register_post_accumulate_grad_hook(self.launch)

    def launch(self, parameter):
        parameter.grad /= dist.get_world_size()
        self.pending.append(dist.all_reduce(parameter.grad, async_op=True))

    def forward(self, *args):
        return self.module(*args)

    def finish(self):
        while self.pending:
            self.pending.pop(0).wait()


def train(rank, wrap):
    model = wrap(make_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    shard = slice(rank, None, WORLD)
    before = dist.meter()
    for _ in range(20):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs[shard]), targets[shard])
        loss.backward()
        if isinstance(model, TinyDDP):
            model.finish()
        optimizer.step()
    calls = dist.meter()["all_reduce"]["calls"] - before.get("all_reduce", {"calls": 0})["calls"]
    return [p.detach().numpy() for p in model.parameters()], calls


tiny, tiny_calls = dist.run_local(train, WORLD, (TinyDDP,))[0]
real, real_calls = dist.run_local(train, WORLD, (DistributedDataParallel,))[0]
difference = max(np.abs(a - b).max() for a, b in zip(tiny, real, strict=True))
print(f"TinyDDP against the real one after 20 steps: largest difference {difference:.1e}")
print(f"all-reduces: TinyDDP {tiny_calls}, DistributedDataParallel {real_calls}")

# %% [markdown]
# Equal weights, and the real one sends far fewer messages: it packs gradients into **buckets** (lesson 4). What else does it add?
# The waiting happens by itself at the end of backward; buckets leave in the same order on all ranks even when gradients do not arrive in
# the same order; a model that differs between ranks is refused by every rank before anything is sent; a parameter that got no gradient is
# reported by name, where `TinyDDP` would hang or average the wrong things.
#
# **Predict:** what happens to `TinyDDP` when rank 1 skips one layer for one step? Which all-reduces get paired?


# %%
def skip_a_layer(rank):
    model = TinyDDP(make_model())
    layers = list(model.module)
    x = layers[1](layers[0](inputs[:4]))
    if rank != 1:
        x = layers[3](layers[2](x))
    layers[4](x).sum().backward()
    model.finish()


try:
    dist.run_local(skip_a_layer, WORLD)
except RuntimeError as error:
    print(type(error).__name__ + ":", str(error)[:400])

# %% [markdown]
# Rank 1's third all-reduce met the others' third: a different parameter. Every message here carries a fingerprint of what its
# sender believes to be doing, so instead of silently adding unlike things all ranks are told who ran what.
#
# ## Exercises
#
# **1.** Make unequal shards right: given this rank's gradient (of a *mean* loss), its number of samples and an
# `all_reduce_sum(array) -> array`, return the gradient of the whole batch's mean.


# %%
def weighted_average(grad, samples, all_reduce_sum): ...  # your turn


lesson_02.weighted_average.check(weighted_average)

# %% [markdown]
# **2.** Gradient accumulation: `k` backward passes, one synchronization (`no_sync` in DDP). Given this rank's list of `k` gradients,
# return the average over ranks of their sum with **one** call of `all_reduce_sum`.


# %%
def accumulate_then_average(grads, world_size, all_reduce_sum): ...  # your turn


lesson_02.accumulate_then_average.check(accumulate_then_average)

# %% [markdown]
# **Where next?** `all_reduce` did all the work here. Lesson 3 opens it: how N ranks add up their arrays while each sends hardly more
# than two arrays' worth of bytes, however many they are.
