# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 7 · Zoneout
#
# Dropout teaches a network not to rely on any single unit: at every step of training some units are set to zero.
# A recurrent network reads its own state again and again, and there the same noise does something else: it erases memory.
# **Zoneout** changes one word. A unit that is hit does not become zero, it *keeps its old value*.
#
# **After this lesson you can**
# - turn dropout into zoneout, and say why the one forgets and the other does not,
# - say what is used in evaluation, and why it is exactly the mean of what training does (for one step),
# - read from a picture how far back a gradient reaches,
# - use `nn.ZoneoutLSTM`, and judge whether a training run was long enough to compare anything.
#
# You need lesson 1, and to have seen an LSTM once. No MPI.
#
# Source: Krueger et al., *Zoneout: regularizing RNNs by randomly preserving hidden activations*, 2016.

# %%
import itertools
import math
import time

import matplotlib.pyplot as plt
import numpy as np
from exercises import lesson_07

import minitorch as torch
import minitorch.nn.functional as F
from minitorch import nn

# %% [markdown]
# ## From dropout to zoneout
#
# Take the best memory there is: a state that each step simply hands on, `h = h`. Put noise on it, 60 times in a row. Dropout
# zeroes a unit with probability 0.1 and scales the others by 1 / 0.9, so that the mean stays.
#
# **Predict:** after 60 steps, how many of 1000 units still hold anything under dropout? And under zoneout?

# %%
rng = np.random.default_rng(0)
units, steps, rate = 1000, 60, 0.1
dropped, zoned = np.ones(units), np.ones(units)
alive = {"dropout": [], "zoneout": []}
for _ in range(steps):
    mask = rng.random(units) < rate
    candidate = dropped  # a perfect memory's next value is its last one
    dropped = np.where(mask, 0.0, candidate / (1 - rate))
    candidate = zoned
    zoned = np.where(mask, zoned, candidate)  # the old value in place of the zero: that is all
    alive["dropout"].append(np.count_nonzero(dropped))
    alive["zoneout"].append(np.count_nonzero(zoned))

print(f"after {steps} steps {alive['dropout'][-1]} units are alive under dropout")
print(f"  (expected: {units * (1 - rate) ** steps:.1f}), each blown up to {dropped.max():.0f}")
print(f"and {alive['zoneout'][-1]} under zoneout, each at {zoned.max():.0f}")

# %% [markdown]
# Dropout multiplies the memory of `t` steps by `t` independent masks; zoneout lets every unit skip some updates.
#
# ## The masks
#
# A mask is 1 where the old value is kept. It is drawn afresh for every step, sample and unit. Three relatives are in the library by name:
# `static_mask` (one mask per step and unit for the whole run, an ablation), `stochastic_depth` (all units of a step together), and, for
# comparison, variational dropout (one mask of zeros for the whole sequence).

# %%
from minitorch.nn.modules.rnn.masks import draw_mask

shape = (30, 24)  # steps, units; one sample
fresh = [draw_mask(seed=0, call=call, stream=(0,), shape=shape, rate=0.3) for call in (0, 1)]
depth = np.repeat(draw_mask(0, 0, (1,), (30, 1), 0.3), 24, axis=1)
variational = np.repeat(draw_mask(0, 0, (2,), (1, 24), 0.3), 30, axis=0)
panels = {
    "zoneout, one call": fresh[0],
    "zoneout, next call": fresh[1],
    "stochastic depth": depth,
    "variational dropout": variational,
}
figure, axes = plt.subplots(1, 4, figsize=(10, 3.4), sharey=True)
for axis, (title, mask) in zip(axes, panels.items(), strict=True):
    axis.imshow(mask, aspect="auto", cmap="Greys", vmin=0, vmax=1.4, interpolation="nearest")
    axis.set(title=title, xlabel="unit")
axes[0].set_ylabel("time step")
figure.tight_layout()
plt.show()
print("shares of kept units:", [round(float(mask.mean()), 3) for mask in panels.values()])

# %% [markdown]
# These draws have an **address** (seed, number of the call, what for, element) and no state: asking twice gives the same mask, and nobody
# else's random numbers are disturbed. So a run that is resumed from a checkpoint goes on with the masks it would have had, each rank of a
# data-parallel run has its own, and `manual_seed` does what it did before.
#
# ## Evaluation: the mean
#
# In evaluation there is no mask; its mean takes its place, `h = z * old + (1 - z) * new`. For one step that is no approximation.
#
# **Predict:** how many masks are there for 4 units, and does it matter that some are likelier than others?

# %%
torch.manual_seed(0)
z = 0.3
cell = nn.ZoneoutGRUCell(3, 4, zoneout=z, dtype=torch.float64)
x, h = (
    torch.randn(1, 3, dtype=torch.float64),
    torch.randn(1, 4, dtype=torch.float64),
)
mean = np.zeros((1, 4))
masks = list(itertools.product((0, 1), repeat=4))
for bits in masks:
    mask = np.array(bits, dtype=float)
    chance = np.prod(np.where(mask == 1, z, 1 - z))
    mean += chance * cell(x, h, mask).detach().numpy()
cell.eval()
difference = np.abs(cell(x, h).detach().numpy() - mean).max()
print(f"{len(masks)} masks; mean over them against evaluation: off by {difference:.1e}")

# %% [markdown]
# (Over several steps the mean of the final states is not the state of the means, because the steps are not linear. It is what dropout does too.)
#
# A trap: in the paper's section 3.1, and in the flags of its scripts, `z` is the probability to *update*. Here, as in section 3.2, it is the probability to *keep*.
#
# ## How far a gradient reaches
#
# Backwards, a kept unit hands its gradient to the step before, whole and unchanged: ∂h_t/∂h_{t−1} = diag(d) + (1 − d)·J. Plain steps multiply by J every time.
#
# Let a loss look at the last state of a simple recurrent network only, and measure ‖∂L/∂h_t‖ at every earlier step.
# **Predict** the order of the four curves at step 0.

# %%
length, size = 60, 64


def gradient_norms(step):
    """Norm of the loss's gradient at every state, for a network that is advanced by `step`."""
    torch.manual_seed(1)
    inputs = torch.randn(length, 16, 8)
    states = [torch.zeros(16, size, requires_grad=True)]
    for x in inputs:
        states.append(step(x, states[-1]))
    loss = (states[-1] ** 2).sum()
    grads = torch.autograd.grad(loss, states)
    norms = np.array([float((g**2).sum()) ** 0.5 for g in grads])
    return norms / norms[-1]


torch.manual_seed(0)
plain = nn.RNNCell(8, size)
cells = {"zoneout 0.5": 0.5, "zoneout 0.9": 0.9}
curves = {
    "plain": gradient_norms(plain),
    "dropout 0.5 on the state": gradient_norms(lambda x, h: F.dropout(plain(x, h), 0.5)),
}
for label, rate in cells.items():
    zoneout_cell = nn.ZoneoutRNNCell(8, size, zoneout=rate)
    zoneout_cell.load_state_dict(plain.state_dict())  # a plain cell's state fits
    curves[label] = gradient_norms(zoneout_cell)

figure, axis = plt.subplots(figsize=(6.5, 3.4))
for label, norms in curves.items():
    axis.semilogy(norms, label=label)
    print(f"{label:26s} at step 0: {norms[0]:.1e} of what it is at the end")
axis.set(xlabel="time step t", ylabel="‖∂L/∂h_t‖, relative", title="The loss looks at the end only")
axis.legend()
figure.tight_layout()
plt.show()

# %% [markdown]
# Two forces are at work. The plain network forgets by its weights: J shrinks. Dropout on the state leaves only half of the paths but doubles what goes through, so
# that the few survivors carry a large and noisy share. Zoneout opens a path that skips J altogether: at rate 0.9 a unit takes part in six of the sixty steps,
# and the gradient of step 0 is of the same kind as that of the end.
#
# At rate 1 nothing is learnt and nothing is lost: the state and its gradient arrive as they left.

# %%
frozen = nn.ZoneoutLSTM(8, size, zoneout_cell=1.0, zoneout_hidden=1.0)
start = tuple(torch.randn(1, 16, size, requires_grad=True) for _ in range(2))
_, (h, c) = frozen(torch.randn(length, 16, 8), start)
(h * 3.0).sum().backward()
print("state unchanged:", h.tolist() == start[0].tolist(), "  gradient:", start[0].grad[0, 0, :3])

# %% [markdown]
# ## Two versions of one thing
#
# The loop above makes a dozen nodes per step. `nn.ZoneoutLSTM` runs a whole sequence as *one* node: one matrix product with all inputs, then a loop over plain
# arrays, and in backward one product per weight over all steps. Both versions are in `minitorch/ops`: `recurrent_plain.py` to read, `recurrent_kernels.py` to run.

# %%
from minitorch.ops import recurrent_plain, recurrent_sequence
from minitorch.ops.recurrent_schedule import Schedule

net = nn.LSTM(16, 32)
rows, zero = torch.randn(50 * 8, 16), torch.zeros(8, 32)
weights = (*net.all_weights[0], None)
results = {}
for label, run in (
    ("plain ops", recurrent_plain.sequence),
    ("fused", recurrent_sequence.sequence),
):
    net.zero_grad()
    begin = time.perf_counter()
    out, *_ = run("LSTM", rows, (zero, zero), weights, Schedule([8] * 50))
    out.sum().backward()
    elapsed = time.perf_counter() - begin
    results[label] = net.weight_hh_l0.grad.numpy()
    size_of = np.abs(results[label]).sum()
    print(f"{label:10s} {1e3 * elapsed:6.1f} ms, weight gradient {size_of:.2f}")
assert np.allclose(*results.values(), rtol=1e-4, atol=1e-4)

# %% [markdown]
# ## A real text, and too little of it
#
# A character model on five thousand characters of Python's own documentation, so little that an LSTM can learn it by heart. We watch bits per character on text
# it has not seen. The state is carried from part to part, and its history cut (truncated backpropagation through time).
#
# **Predict:** after three epochs, which one is ahead? And after twenty-four?

# %%
from pydoc_data.topics import topics

text = "".join(c for key in sorted(topics) for c in topics[key] if ord(c) < 128)
text = text[105_000:114_000]
alphabet = sorted(set(text))
codes = np.searchsorted(alphabet, list(text))


def in_columns(codes, batch=16):
    """Inputs and targets (T, batch): `batch` parts of the text side by side, read in step."""
    length = (len(codes) - 1) // batch
    pairs = codes[: length * batch], codes[1 : length * batch + 1]
    return [torch.from_numpy(part.reshape(batch, length).T.copy()) for part in pairs]


class CharacterModel(nn.Module):
    """Embedding, one recurrent layer, scores of the next character."""

    def __init__(self, **options):
        super().__init__()
        self.embed = nn.Embedding(len(alphabet), 32)
        self.recurrent = nn.ZoneoutLSTM(32, 64, **options)
        self.scores = nn.Linear(64, len(alphabet))

    def forward(self, x, state=None):
        out, state = self.recurrent(self.embed(x), state)
        return self.scores(out), state


def bits(scores, targets):
    """Bits per character."""
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten()) / math.log(2)


def train(epochs=24, part=50, **options):
    torch.manual_seed(0)
    model = CharacterModel(**options)
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    (inputs, targets), (valid_x, valid_y) = in_columns(codes[:5_000]), in_columns(codes[5_000:])
    seen, unseen = [], []
    for _ in range(epochs):
        model.train()
        state, losses = None, []
        for first in range(0, len(inputs), part):
            scores, state = model(inputs[first : first + part], state)
            state = tuple(s.detach() for s in state)
            loss = bits(scores, targets[first : first + part])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            unseen.append(bits(model(valid_x)[0], valid_y).item())
        seen.append(np.mean(losses))
    return seen, unseen


runs = {
    "plain": train(),
    "zoneout .5/.05": train(**nn.regularizer_options("zoneout", 0.5, 0.05)),
}

# %%
figure, axis = plt.subplots(figsize=(6.5, 3.6))
for (label, (seen, unseen)), colour in zip(runs.items(), ("tab:blue", "tab:orange"), strict=True):
    axis.plot(unseen, color=colour, label=f"{label}, unseen text")
    axis.plot(seen, ":", color=colour, label=f"{label}, training text")
    print(
        f"{label:15s} unseen text: {unseen[2]:.2f} bits after 3 epochs, {unseen[-1]:.2f} after "
        f"{len(unseen)}, best {min(unseen):.2f} at {int(np.argmin(unseen)) + 1}"
    )
axis.set(xlabel="epoch", ylabel="bits per character", ylim=(1, 5.5))
axis.legend(fontsize=8)
figure.tight_layout()
plt.show()

# %% [markdown]
# Look at three things. Early on, zoneout is not ahead: its training is harder (in longer runs it is clearly *behind* for a while). The plain model's curve on unseen text turns upwards once it begins to learn by heart, and
# the gap between its dotted and its solid line says so. And if both are stopped at their best epoch, the difference is smaller than at the end.
#
# So a comparison needs enough epochs, early stopping for both, the same search of rates for both, and several seeds: this run has one seed and a
# text that is too small, and it proves nothing about zoneout. `regularizer_options` also knows `dropout` and `recurrent-dropout`; try them here.
#
# ## Exercises
#
# **1.** The heart of it: keep or take. Kept units must keep their very bits, and infinities may be around.


# %%
def select(old, new, mask): ...  # your turn


lesson_07.select.check(select)

# %% [markdown]
# **2.** The LSTM has two states and two masks. The hidden state's new value is `o * tanh(c_new)`: of the cell before or after its zoneout?
# (The authors' code says before.) `c_new` is the candidate `f * c + i * g`.


# %%
def lstm_states(h, c, c_new, o, d_cell, d_hidden): ...  # your turn: the pair (h, c)


lesson_07.lstm_states.check(lstm_states)

# %% [markdown]
# **3.** Backward: given the gradient of the mixed state, what goes to the old value and what to the new one?


# %%
def split_gradient(grad, mask): ...  # your turn: the pair (gradient of old, gradient of new)


lesson_07.split_gradient.check(split_gradient)

# %% [markdown]
# **Where next?** `minitorch/nn/modules/rnn/zoneout_cells.py` is this lesson as a module; `masks.py` beside it shows the addresses; `regularized.py`
# has the paper's other candidates. In `minitorch/ops/recurrent_common.py`, `Keep` selects on the bits: find out why it never multiplies.
