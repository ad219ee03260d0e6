# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 1 · Autograd in a page
#
# A training step asks one question: *if I nudge this weight, how does the loss move?* Reverse-mode
# automatic differentiation answers it for all weights at once, for about the price of one more forward.
#
# **After this lesson you can**
# - write a working autograd in forty lines,
# - say why it must visit operations in an order where every consumer comes before its producer,
#   and what goes wrong, and how badly, when it does not,
# - find the same three ideas in `minitorch/autograd.py`, the engine that everything else here runs on.
#
# You need NumPy and ten lines of calculus (the chain rule). No MPI.

# %%
import sys

import matplotlib.pyplot as plt
import numpy as np
from exercises import lesson_01

import minitorch as torch

# %% [markdown]
# ## A value that remembers where it came from
#
# Every operation does two things: it computes a result, and it leaves a note saying how to pass a gradient
# from the result back to its inputs. The note is a function. That is the whole trick.


# %%
class Value:
    """A number, the values it was made from, and how to hand its gradient to them."""

    def __init__(self, data, parents=(), pass_back=None):
        self.data = np.asarray(data, dtype=np.float64)
        self.grad = np.zeros_like(self.data)
        self.parents = parents
        self.pass_back = pass_back  # gradient of the result -> one gradient per parent

    def __add__(self, other):
        return Value(self.data + other.data, (self, other), lambda g: (g, g))

    def __mul__(self, other):
        a, b = self.data, other.data
        return Value(a * b, (self, other), lambda g: (g * b, g * a))


# %% [markdown]
# The chain rule says: a value's gradient is the **sum** over everything that used it. A first idea: push
# gradients along every edge as soon as they arrive.


# %%
def backward_by_walking(value, grad, visits):
    """Follow every path from the result to the inputs."""
    visits[0] += 1
    value.grad = value.grad + grad
    if value.pass_back:
        for parent, g in zip(value.parents, value.pass_back(grad), strict=True):
            backward_by_walking(parent, g, visits)


x = Value(3.0)
y = x * x + x
backward_by_walking(y, 1.0, visits := [0])
print("dy/dx =", x.grad, "  (by hand: 2x + 1 = 7)   visits:", visits[0])

# %% [markdown]
# Right. Now let each result be used twice by the next operation: `x = x + x`, again and again.
#
# **Predict** before you run the next cell: with 20 such additions the graph has 21 values.
# How many visits does the walk make?

# %%
depths = range(1, 17)
visits_by_walking = []
for depth in depths:
    x = y = Value(1.0)
    for _ in range(depth):
        y = y + y
    backward_by_walking(y, 1.0, visits := [0])
    assert x.grad == 2.0**depth  # the answer is right, the price is not
    visits_by_walking.append(visits[0])

print("20 additions would take", 2**21 - 1, "visits")

# %% [markdown]
# The walk follows *paths*, and the number of paths doubles at every step. A gradient may only be
# passed on when it is **complete**: when everything that used the value has added its share. So the order
# must put every user before what it used, which is what *topological order* means; then each value is visited once.


# %%
def topological_order(result):
    """Values such that each comes before its parents. Without recursion: graphs get deep."""
    order, seen, stack = [], set(), [(result, False)]
    while stack:
        value, parents_done = stack.pop()
        if parents_done:
            order.append(value)
        elif id(value) not in seen:
            seen.add(id(value))
            stack.append((value, True))
            stack.extend((parent, False) for parent in value.parents)
    return order[::-1]


def backward_in_order(result):
    result.grad = np.ones_like(result.data)
    order = topological_order(result)
    for value in order:
        if value.pass_back:
            for parent, g in zip(value.parents, value.pass_back(value.grad), strict=True):
                parent.grad = parent.grad + g
    return len(order)


visits_in_order = []
for depth in depths:
    x = y = Value(1.0)
    for _ in range(depth):
        y = y + y
    visits_in_order.append(backward_in_order(y))
    assert x.grad == 2.0**depth

figure, axis = plt.subplots(figsize=(6, 3.2))
axis.semilogy(depths, visits_by_walking, "o-", label="along every path")
axis.semilogy(depths, visits_in_order, "s-", label="in topological order")
axis.set(xlabel="additions", ylabel="visits (log scale)", title="Same gradient, two prices")
axis.legend()
figure.tight_layout()
plt.show()

# %% [markdown]
# ## The trick that real engines use
#
# Sorting needs a pass over the graph before the first gradient moves. PyTorch, and `minitorch` after it, do
# without: every operation gets a **sequence number** when it runs. Whoever used a value ran later, so
# *newest first* is a topological order that costs nothing to find. PyTorch keeps the operations that have received a gradient in a
# heap and takes the newest; our engine, which is single-threaded, sorts the reachable ones by age once. The order is the same.
#
# **Predict:** below, `a` is used by two operations. Which of the three nodes runs last in backward?

# %%
a = torch.tensor([1.0, 2.0], requires_grad=True)
b = a.exp()  # first
c = b * a  # second
loss = (c + b).sum()  # third and fourth

ran = []
for node in [b.grad_fn, c.grad_fn, loss.grad_fn]:
    node.register_hook(lambda _inputs, _outputs, node=node: ran.append(node.name()))
loss.backward()
print("order:", " → ".join(ran))
print(
    "a.grad:",
    a.grad.numpy(),
    " by hand (exp(a)·(2 + a)):",
    np.exp([1.0, 2.0]) * np.array([3.0, 4.0]),
)

# %% [markdown]
# `exp` ran last although its gradient from `c + b` was there early: it waited for the share that comes through `c`.
#
# Here is the graph itself, drawn from `grad_fn` and `next_functions`, each node at the height of its
# position in time. Backward reads the picture from top to bottom.


# %%
def draw_graph(result, axis):
    """Nodes by depth from the result; an arrow is a gradient on its way."""
    depth, queue, edges = {result.grad_fn: 0}, [result.grad_fn], []
    while queue:
        node = queue.pop(0)
        for parent, _ in node.next_functions:
            if parent is not None:
                edges.append((node, parent))
                if depth.get(parent, -1) < depth[node] + 1:
                    depth[parent] = depth[node] + 1
                    queue.append(parent)
    rows = {}
    for node, level in depth.items():
        rows.setdefault(level, []).append(node)
    place = {
        n: (i - (len(r) - 1) / 2, -level) for level, r in rows.items() for i, n in enumerate(r)
    }
    for start, end in set(edges):
        axis.annotate(
            "",
            place[end],
            place[start],
            arrowprops={
                "arrowstyle": "->",
                "shrinkA": 16,
                "shrinkB": 16,
                "connectionstyle": "arc3,rad=0.15",
            },
        )
    for node, (column, row) in place.items():
        leaf = node.name().endswith("AccumulateGrad")
        axis.text(
            column,
            row,
            node.name(),
            ha="center",
            va="center",
            fontsize=9,
            bbox={
                "boxstyle": "round",
                "facecolor": "#ffe8c2" if leaf else "#d6e6f7",
                "edgecolor": "#555",
            },
        )
    axis.set_xlim(min(p[0] for p in place.values()) - 1, max(p[0] for p in place.values()) + 1)
    axis.set_ylim(min(p[1] for p in place.values()) - 0.5, 0.5)
    axis.axis("off")


loss = (a.exp() * a + a.exp()).sum()
figure, axis = plt.subplots(figsize=(6.5, 4.2))
draw_graph(loss, axis)
axis.set_title("What backward will walk, from the loss (top) to the leaf (bottom)")
figure.tight_layout()
plt.show()

# %% [markdown]
# The last stop, `AccumulateGrad`, adds what arrives to `a.grad`. Remember it: the hook that data-parallel
# training hangs itself onto fires right there (lesson 2).
#
# ## Deep graphs
#
# Our `topological_order` used a list as its stack, not recursion. **Predict:** what would the recursive walk do with
# 10,000 operations in a row?

# %%


def long_chain():
    x = y = Value(1.0)
    for _ in range(10_000):
        y = y + Value(0.0)
    return x, y


x, y = long_chain()
try:
    backward_by_walking(y, 1.0, [0])
except RecursionError:
    print(f"recursion gives up at Python's limit of {sys.getrecursionlimit()} frames")
x, y = long_chain()
print("in order:", backward_in_order(y), "visits, dy/dx =", x.grad)

x = torch.ones(3, requires_grad=True)
y = x
for _ in range(10_000):
    y = y + 1.0
y.sum().backward()
print("minitorch:", x.grad.numpy())

# %% [markdown]
# ## What the note remembers must not change
#
# `a * b` needs the *old* `a` and `b` in backward. If somebody overwrites `a` in between, the gradient would be silently
# wrong. So every tensor counts its in-place changes, the node remembers the count, and compares.

# %%
w = torch.ones(3, requires_grad=True)
h = w * 2.0
loss = (h * h).sum()
h.add_(1.0)
try:
    loss.backward()
except RuntimeError as error:
    print(error)

# %% [markdown]
# ## Exercises
#
# **1.** Give `Value` a hyperbolic tangent. With `t = tanh(x)`: dt/dx = 1 − t². The rule gets the result's gradient
# and the result.


# %%
def tanh_rule(grad, result): ...  # your turn


lesson_01.tanh_rule.check(tanh_rule)

# %% [markdown]
# **2.** Broadcasting: `matrix + row` uses every element of `row` once per row of the matrix. What comes back to `row`?
# Write the function that brings a gradient back to the shape of the input it belongs to.


# %%
def unbroadcast(grad, shape): ...  # your turn: sum over what was stretched


lesson_01.unbroadcast.check(unbroadcast)

# %% [markdown]
# **3.** Newest first. Given `(sequence_number, inputs)` for each node by name, write the order in which backward visits
# what can be reached from `start`, without sorting the whole graph first (a heap, as in PyTorch: `import heapq`).


# %%
def newest_first(nodes, start): ...  # your turn: a list of names


lesson_01.newest_first.check(newest_first)

# %% [markdown]
# **Where next?** Open `minitorch/autograd` and look for the sort by age (`engine.py`), the write check (`graph.py`) and `AccumulateGrad`. Then lesson 2:
# what happens when four copies of this engine run at once, each on its own data.
