# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 8 · SAGA: a memory that takes the noise away
#
# SGD with a constant step never arrives: near the goal it is the *noise* of single samples that moves it. SAGA (Defazio, Bach and
# Lacoste-Julien, 2014) remembers one gradient per sample, and the noise dies out by itself.
#
# **After this lesson you can**
# - tell SGD's noise floor from slow convergence, and say what sets its height,
# - write SAGA in five lines, and say why its direction is right on average,
# - choose a step size from L and μ, and check a run against the paper's bound,
# - fit a penalised model, on one rank or on several, and say when a table is too much memory.

# %%
import matplotlib.pyplot as plt
import numpy as np
from exercises import lesson_08

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn
from minitorch.distributed.saga import DistributedSAGA
from minitorch.optim import SAGA, saga_bound, saga_step_size
from minitorch.optim.prox import L1

# %% [markdown]
# ## A finite sum
#
# 60 points of two classes, and logistic regression with a little L2: the mean of 60 functions $f_i$, each convex, each with its own idea
# of where to go. With two weights we can watch.

# %%
N, MU = 60, 0.1
rng = np.random.default_rng(2)
X = rng.standard_normal((N, 2)) @ np.array([[2.0, 0.6], [0.0, 0.7]])
Y = np.where(X @ [1.0, -1.5] + rng.standard_normal(N) > 0, 1.0, -1.0)


def gradients(w):
    """One row per sample."""
    return (-Y / (1 + np.exp(Y * (X @ w))))[:, None] * X + MU * w


def objective(w):
    return np.logaddexp(0, -Y * (X @ w)).mean() + MU / 2 * w @ w


L = (X**2).sum(axis=1).max() / 4 + MU  # no f_i is more curved than this
best = np.zeros(2)
for _ in range(3000):
    best = best - gradients(best).mean(axis=0) / L
print(f"L = {L:.2f}, μ = {MU}; at the minimiser {np.round(best, 3)}:")
print(
    f"   the mean of the gradients has length {np.linalg.norm(gradients(best).mean(axis=0)):.1e},"
)
print(f"   a single one {np.linalg.norm(gradients(best), axis=1).mean():.2f} on average")

# %% [markdown]
# That last line is all of SGD's trouble. At the minimiser the gradients add up to zero, but none of them *is* zero.
#
# **Predict:** SGD starts *at* the minimiser, with a constant step. Where is it after a thousand steps? What changes with half the step?


# %%
def sgd(w, lr, steps, seed=0):
    draws = np.random.default_rng(seed).integers(N, size=steps)
    path = [w]
    for j in draws:
        x, y = X[j], Y[j]
        w = w - lr * (-y / (1 + np.exp(y * (x @ w))) * x + MU * w)
        path.append(w)
    return np.array(path)


def saga(w, lr, steps, seed=0, record=None):
    draws = np.random.default_rng(seed).integers(N, size=steps)
    table, path = gradients(w), [w]
    mean = table.mean(axis=0)
    for j in draws:
        x, y = X[j], Y[j]
        gradient = -y / (1 + np.exp(y * (x @ w))) * x + MU * w
        direction = gradient - table[j] + mean  # the old row, the old mean
        mean = mean + (gradient - table[j]) / N
        table[j] = gradient
        w = w - lr * direction
        path.append(w)
        if record is not None:
            record(w, table)
    return np.array(path)


figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), sharex=True, sharey=True)
for axis, (name, path) in zip(
    axes,
    {
        "SGD, lr = 1/(3L)": sgd(best, 1 / (3 * L), 1000),
        "SGD, half of it": sgd(best, 1 / (6 * L), 1000),
        "SAGA, lr = 1/(3L)": saga(np.array([1.6, -0.2]), 1 / (3 * L), 1000),
    }.items(),
    strict=True,
):
    axis.plot(*path.T, "-", lw=0.5, color="#7aa6d8")
    axis.plot(*path[-1], "o", color="#c1440e", label="after 1000 steps")
    axis.plot(*best, "k+", ms=12, label="minimiser")
    axis.set(title=name, xlabel="first weight")
axes[0].set_ylabel("second weight")
axes[0].legend(fontsize=8)
figure.tight_layout()
plt.show()

# %% [markdown]
# SGD walks in a cloud around the minimiser, and with half the step in a smaller cloud. SAGA came from outside, with the *larger* step, and
# sits on the cross.
#
# ## The noise floor
#
# The same as distances. SGD's curve falls until what a step gains is what the noise costs; its height goes with the step size. To get ten times
# closer you need a step ten times smaller, and then ten times the steps.

# %%
STEPS = 6000
start = best + np.array([1.5, 1.0])


def distance(path):
    return ((path - best) ** 2).sum(axis=1)


def smooth(values, width=60):
    return np.convolve(values, np.ones(width) / width, mode="valid")


floors = {}
figure, axis = plt.subplots(figsize=(7, 3.8))
for divisor, color in ((3, "#c1440e"), (12, "#e08e45"), (48, "#f2c48d")):
    squared = distance(sgd(start, 1 / (divisor * L), STEPS))
    floors[divisor] = squared[-2000:].mean()
    axis.semilogy(smooth(squared), color=color, label=f"SGD, lr = 1/({divisor}L)")
squared_saga = distance(saga(start, 1 / (3 * L), STEPS))
axis.semilogy(smooth(squared_saga), color="#2b6cb0", label="SAGA, lr = 1/(3L)")
axis.set(xlabel="step", ylabel="|w − w*|², mean of 60 steps", title="A floor, and none")
axis.legend(fontsize=8)
figure.tight_layout()
plt.show()
for divisor in (3, 12):
    print(
        f"a quarter of lr = 1/({divisor}L): the floor is {floors[divisor] / floors[4 * divisor]:.1f} times lower"
    )
assert squared_saga[-1] < 1e-8 * floors[48]

# %% [markdown]
# ## The table
#
# SAGA steps along
#
# $$ f_j'(w) \; - \; g_j \; + \; \tfrac1n \textstyle\sum_i g_i, $$
#
# where row $g_i$ of the table holds the gradient of sample $i$ as it was when $i$ was last drawn. Take the mean over $j$: the first two
# terms leave $f'(w) - \frac1n\sum g_i$, and the third adds what is missing. **Right on average, whatever is in the table.** And how noisy? What
# varies with $j$ is $f_j'(w) - g_j$. As $w$ settles, rows and gradients come together, and the noise goes away.
#
# **Predict:** the table is filled at the start and $w$ moves away from there. Does the noise of SAGA's direction first grow or shrink?

# %%
noise = {"a single gradient (SGD)": [], "SAGA's direction": []}
rows = []


def look(w, table):
    fresh = gradients(w)
    noise["a single gradient (SGD)"].append(fresh.var(axis=0).sum())
    noise["SAGA's direction"].append((fresh - table).var(axis=0).sum())
    rows.append(np.linalg.norm(table - gradients(best), axis=1))


saga(start, 1 / (3 * L), 1500, record=look)
figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), width_ratios=(1, 1))
for (name, values), color in zip(noise.items(), ("#c1440e", "#2b6cb0"), strict=True):
    axes[0].semilogy(np.maximum(values, 1e-20), color=color, label=name)
axes[0].set(xlabel="step", ylabel="variance over the samples", title="The noise that is left")
axes[0].legend(fontsize=8)
picture = np.log10(np.maximum(np.array(rows).T, 1e-8))
image = axes[1].imshow(picture, aspect="auto", cmap="viridis", interpolation="nearest")
axes[1].set(
    xlabel="step", ylabel="row of the table", title="Each row's distance from its final value"
)
figure.colorbar(image, ax=axes[1], label="log10")
figure.tight_layout()
plt.show()

# %% [markdown]
# It begins at zero (every row is fresh), rises as $w$ leaves the rows behind, and then falls as fast as $w$ converges. On the right, each row
# changes only when it is drawn: see the steps.
#
# ## The rate
#
# How large may the step be? The paper knows two answers, from the smoothness $L$ of every $f_i$ and their strong convexity $\mu$:
#
# | step size | each step shrinks the bound by |
# |---|---|
# | $1/(2(\mu n + L))$ | $1 - \mu/(2(\mu n + L))$ |
# | $1/(3L)$, needs no $\mu$ | $1 - \min(1/(4n), \mu/(3L))$ |
#
# **Predict:** both are bounds on the *mean* of $|w - w^*|^2$. By how much does a typical run beat them?

# %%
RUNS = 30
slope = gradients(best).mean(axis=0)
excess = objective(start) - objective(best) - slope @ (start - best)
apart = ((start - best) ** 2).sum()
steps = np.arange(801)
figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), sharey=True)
for axis, rule, title in zip(
    axes, ("strong", "adaptive"), ("1/(2(μn + L))", "1/(3L)"), strict=True
):
    lr = saga_step_size(L, MU if rule == "strong" else None, N)
    runs = np.array([distance(saga(start, lr, steps[-1], seed=s)) for s in range(RUNS)])
    bound = [saga_bound(int(k), L, MU, N, apart, excess, step=rule) for k in steps]
    axis.semilogy(runs.T, color="#7aa6d8", lw=0.4, alpha=0.6)
    axis.semilogy(runs.mean(axis=0), color="#2b6cb0", label=f"mean of {RUNS} runs")
    axis.semilogy(bound, "k--", label="the paper's bound")
    axis.set(xlabel="step", title=f"lr = {title}", ylim=(1e-10, 30))
    axis.legend(fontsize=8)
    assert (runs.mean(axis=0) <= bound).all()
axes[0].set_ylabel("|w − w*|²")
figure.tight_layout()
plt.show()

# %% [markdown]
# The bound is honest about the beginning and pessimistic about the rate, as worst cases are.
#
# ## A penalty that is not smooth
#
# With an L1 penalty the objective has a kink at zero, and a gradient step would hop over it for ever. The **proximal operator** steps on
# the penalty exactly: after each gradient step, $w \leftarrow \mathrm{argmin}_x \; \gamma\lambda|x|_1 + \frac12|x - w|^2$. For L1 that
# shortens every weight by $\gamma\lambda$, and stops at zero.
#
# From here on with the library: `optim.SAGA` works on any module and loss. One sample's forward and backward, then `opt.step(sample)`.

# %%
torch.manual_seed(0)
features, samples = 12, 80
data = torch.randn(samples, features, dtype=torch.float64)
truth = torch.tensor([3.0, -2.0, 1.5] + [0.0] * (features - 3), dtype=torch.float64)
target = data @ truth + 0.3 * torch.randn(samples, dtype=torch.float64)


def fit(prox, steps=1600):
    model = nn.Linear(features, 1, bias=False).double()
    smoothness = float((data**2).sum(dim=1).max())
    opt = SAGA(model.parameters(), n_samples=samples, L=smoothness, prox=prox)

    def closure(i):
        opt.zero_grad()
        loss = 0.5 * (model(data[i]) - target[i]).pow(2).sum()
        loss.backward()

    opt.init_table(closure)  # one pass: every sample's gradient at the start
    path = []
    for j in np.random.default_rng(0).integers(samples, size=steps):
        closure(j)
        opt.step(j)
        path.append(model.weight.detach().numpy()[0].copy())
    return opt, np.array(path)


figure, axes = plt.subplots(1, 2, figsize=(11, 3.4), sharey=True)
for axis, prox in zip(axes, (None, L1(0.3)), strict=True):
    opt, path = fit(prox)
    axis.plot(path, lw=0.9)
    zeros = int((path[-1] == 0).sum())
    axis.set(xlabel="step", title=f"prox = {prox}: {zeros} of {features} weights are exactly 0")
axes[0].set_ylabel("weight")
figure.tight_layout()
plt.show()
assert zeros == features - 3
print(opt)

# %% [markdown]
# The last line of the print says what the memory costs. A table has a number for every sample *and* parameter: fine here, 1.9 GB for
# softmax regression on MNIST, and out of the question for a deep network. Then: number fixed mini-batches instead of samples; or `optim.SVRG`, which
# keeps two gradients and computes twice; or, for linear models, `minitorch.linear`, which knows that the gradient of sample $i$ is a
# *number* times $x_i$ and stores the number.
#
# ## Several ranks
#
# Each rank owns some samples and their rows. In a step each draws one of its own, and the directions are summed, weighted with the size of the
# shard. Only that one sum travels, never a row.
#
# **Predict:** after the same number of steps, is two ranks' result closer to the minimiser than one rank's?


# %%
def on_rank(rank, steps):
    mine = slice(rank, None, dist.get_world_size())
    x, y = torch.from_numpy(X[mine]), torch.from_numpy(Y[mine])
    w = torch.tensor(start, requires_grad=True)
    opt = DistributedSAGA([w], n_samples=len(y), L=L - MU, weight_decay=MU)

    def closure(i):
        opt.zero_grad()
        nn.functional.softplus(-y[i] * (x[i] @ w)).backward()

    opt.init_table(closure)
    path = []
    for j in np.random.default_rng(rank).integers(len(y), size=steps):
        closure(int(j))
        opt.step(int(j))
        path.append(w.detach().numpy().copy())
    return np.array(path)


figure, axis = plt.subplots(figsize=(7, 3.6))
for ranks in (1, 2, 4):
    paths = dist.run_local(on_rank, ranks, (500,))
    assert all(np.array_equal(path, paths[0]) for path in paths)  # the same bits everywhere
    axis.semilogy(distance(paths[0]), label=f"{ranks} rank" + "s" * (ranks > 1))
axis.set(xlabel="step", ylabel="|w − w*|²", title="One sample per rank and step")
axis.legend(fontsize=8)
figure.tight_layout()
plt.show()

# %% [markdown]
# Not by much: with the same step size the expected path is the same. More ranks see more samples per step, so that the wiggles are smaller, the table is
# fresher, and a *larger* step would be safe; and each rank's table is a fraction of the whole.
#
# ## Exercises
#
# **1.** SAGA's step: given `w`, the `table`, the sample's number `j`, its `gradient` at `w`, and `lr`, return the new `w` and the new table.


# %%
def saga_step(w, table, j, gradient, lr): ...  # your turn


lesson_08.saga_step.check(saga_step)

# %% [markdown]
# **2.** The proximal operator of $t\,|x|_1$, for a whole array.


# %%
def soft_threshold(v, t): ...  # your turn


lesson_08.soft_threshold.check(soft_threshold)

# %% [markdown]
# **3.** Which method fits into `limit` bytes, for float32 gradients: `"saga"`, or else `"svrg"`?


# %%
def method_for(n_samples, n_parameters, limit): ...  # your turn


lesson_08.method_for.check(method_for)

# %% [markdown]
# **Where next?** `minitorch/optim/saga.py` is the table and its mean; `saga_theory.py` has the step sizes and bounds that were used here;
# `minitorch/distributed/saga.py` the sum over ranks. `tutorials/trainers/linear.py` fits a whole model, certifies the result, and shows SGD's floor with
# `--method sgd`.
