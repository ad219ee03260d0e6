# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 9 · Why did it say that? From the gradient to a tree of phrases
#
# A network reads "the film is not bad" and answers: positive. Which words made it say so? The gradient has an answer for every word, and it
# is no use here, because no *word* made it. *Contextual decomposition* (Murdoch, Liu, Yu, 2018) scores any group of words, and *agglomeration* (Singh,
# Murdoch, Yu, 2019) finds the groups that matter and hangs them into a tree: together, ACD.
#
# **After this lesson you can**
# - say why one number per word cannot explain a negation,
# - decompose a small network by hand: linear layer, bias, ReLU, product,
# - tell an interaction from a sum, in a network that you have trained,
# - grow the tree of a sentence and of an image, round by round,
# - say what such a tree does not tell.

# %%
import matplotlib.pyplot as plt
import numpy as np
from exercises import lesson_09
from rich.console import Console

import minitorch as torch
from minitorch import interpret, nn
from minitorch.datasets import Vocabulary, words_of
from minitorch.interpret import pictures
from minitorch.interpret.sentence_classifier import padded

console = Console(width=100, highlight=False)

# %% [markdown]
# ## Where the gradient fails
#
# The smallest negation there is: two inputs, `good` and `not`, each 0 or 1. "good" is worth 1, "not good" −1, and "not" alone nothing. Two
# rectifiers can compute that: relu(good − not) − relu(good + not − 1).

# %%
W1 = torch.tensor([[1.0, -1.0], [1.0, 1.0]], dtype=torch.float64)
b1 = torch.tensor([0.0, -1.0], dtype=torch.float64)
W2 = torch.tensor([[1.0, -1.0]], dtype=torch.float64)


def tiny(x):
    return (x @ W1.T + b1).relu() @ W2.T


for good, negated in ((1, 0), (0, 1), (1, 1)):
    x = torch.tensor([[good, negated]], dtype=torch.float64)
    print(f"good = {good}, not = {negated}: {tiny(x).item():+.0f}")

# %% [markdown]
# **Predict:** in "not good", what does gradient × input say about the word "good": for, or against?

# %%
both = torch.ones(1, 2, dtype=torch.float64)
for method in ("gradient_x_input", "integrated_gradients", "occlusion", "shapley"):
    scores = interpret.attribute(tiny, both, 0, method=method).scores
    print(f"{method:21s} good {scores[0]:+.2f}   not {scores[1]:+.2f}   sum {scores.sum():+.2f}")

# %% [markdown]
# Against! It has to be so: at "not good" the output *falls* as there is more "good". The gradient looks at an infinitely small change around a sentence that is
# already negated, and its sum is not even the prediction. Integrated gradients and Shapley values add up; but whatever they do, they have *two* numbers to say
# *three* things: "good" is good, "not" alone is nothing, and **together** they are bad. What is missing is a score for a group.
#
# ## Decomposing by hand
#
# Choose a group, here {good}. Split the input into a *relevant* part β (the group's) and an *irrelevant* part γ (the rest), and carry both through the network side
# by side, so that at every point **β + γ is what the network computes**. A linear map is easy, except for its bias: whose is it? The paper's answer is to share it in proportion to what each side brought,
#
# $$ \beta' = W\beta + p\,b, \qquad \gamma' = W\gamma + (1-p)\,b, \qquad p = \frac{|W\beta|}{|W\beta| + |W\gamma|}. $$


# %%
def linear(rel, irr, weight, bias):
    rel, irr = rel @ weight.T, irr @ weight.T
    total = rel.abs() + irr.abs()
    share = torch.where(total > 0, rel.abs() / torch.where(total > 0, total, 1.0), 0.0)
    return rel + share * bias, irr + (1 - share) * bias


# %% [markdown]
# A unit that gets nothing from either side has only its bias to pass on: that is nobody's merit, so irrelevant. (The published code halves it.)
#
# The ReLU mixes the parts. The ACD paper's rule: relevant is what the relevant part would have made *alone*; the rest, **interaction included**, is irrelevant.


# %%
def relu(rel, irr):
    alone = rel.relu()
    return alone, (rel + irr).relu() - alone


def by_hand(x, mask):
    rel, irr = mask * x, (1 - mask) * x
    rel, irr = linear(rel, irr, W1, b1)
    rel, irr = relu(rel, irr)
    return rel @ W2.T, irr @ W2.T


groups = {"good": [1.0, 0.0], "not": [0.0, 1.0], "not good": [1.0, 1.0]}
for name, mask in groups.items():
    rel, irr = by_hand(both, torch.tensor([mask], dtype=torch.float64))
    checked = interpret.cd(tiny, both, mask)
    assert np.allclose([rel.item(), irr.item()], [part.item() for part in checked], atol=1e-12)
    print(
        f"{name:9s} relevant {rel.item():+.2f}   irrelevant {irr.item():+.2f}   sum {rel.item() + irr.item():+.2f}"
    )

# %% [markdown]
# There are the three things. "good" speaks for, "not" against, and the two together give −1, which is not the sum of 0.5 and −0.5. The difference is their
# **interaction**. `interpret.cd` did the same: it records the ops of one forward pass and applies a rule to each, in order. An op without a rule is an error that names it, never a silent step.
#
# ## Two more rules: products and smooth functions
#
# A gate multiplies: $(\beta_1 + \gamma_1)(\beta_2 + \gamma_2)$. Relevant is β₁β₂, what the group does by itself. A smooth function has no "alone" that is as natural as the ReLU's zero, and gets
# the average over both orders of arrival: $\beta' = \frac12[f(\beta) - f(0) + f(\beta + \gamma) - f(\gamma)]$, a Shapley value for two players (for f(0) = 0).
#
# **Predict:** the same negation, written as a product: good · (1 − 2 not). What does "good" get?


# %%
def gated(x):
    return x[:, :1] * (1 - 2 * x[:, 1:])


for name, mask in groups.items():
    rel, irr = interpret.cd(gated, both, mask)
    print(f"{name:9s} relevant {rel.item():+.2f}   irrelevant {irr.item():+.2f}")

# %% [markdown]
# Nothing! The factor (1 − 2 not) belongs to "not", and its 1, a bias, went where something came from. So all of it is interaction. The same *function* as before, on these inputs, and other
# scores: a decomposition explains a **network**, with the way it computes, and its rules are choices. Keep that in mind for the end.
#
# ## A network that reads
#
# Now for words. The sentences are made up: clauses with an opinion, one in ten negated, two in five followed by "but" and an opposite clause that counts. An LSTM reads them; a few seconds of training.

# %%
POSITIVE = ["good", "great", "lovely", "funny"]
NEGATIVE = ["bad", "dull", "awful", "boring"]
SUBJECTS = ("the film is", "it is", "the plot is", "the cast is", "i found it")


def sentences(count, seed):
    """Texts and labels; every draw follows from the seed."""
    rng = np.random.default_rng(seed)

    def clause():
        favourable = bool(rng.integers(2))
        word = str(rng.choice(POSITIVE if favourable else NEGATIVE))
        words = [*["very"] * (rng.random() < 0.3), word]
        negated = rng.random() < 0.1
        return [str(rng.choice(SUBJECTS)), *["not"] * negated, *words], favourable != negated

    made = []
    for _ in range(count):
        words, favourable = clause()
        if rng.random() < 0.4:
            other, verdict = clause()
            while verdict == favourable:
                other, verdict = clause()
            words, favourable = [*words, "but", *other], verdict
        made.append((" ".join(words), int(favourable)))
    return made


train, held_out = sentences(600, seed=0), sentences(300, seed=1)
vocabulary = Vocabulary.of(text for text, _ in train)


def fit(epochs=15, size=16, batch=50, seed=1):
    torch.manual_seed(seed)
    model = interpret.SentenceClassifier(len(vocabulary), 2, embedding=size, hidden=size)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    order = np.random.default_rng(seed)
    for _ in range(epochs):
        shuffled = order.permutation(len(train))
        for start in range(0, len(train), batch):
            part = [train[i] for i in shuffled[start : start + batch]]
            words, lengths = padded([vocabulary.numbers(text) for text, _ in part])
            labels = torch.tensor([label for _, label in part])
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(words, lengths), labels).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
    return model.eval()


reader = fit()
words, lengths = padded([vocabulary.numbers(text) for text, _ in held_out])
guesses = reader(words, lengths).argmax(dim=1).numpy()
accuracy = (guesses == [label for _, label in held_out]).mean()
print(f"{train[3][0]!r} is {'positive' if train[3][1] else 'negative'}")
print(f"accuracy on 300 other sentences: {accuracy:.1%}")
assert accuracy > 0.97

# %% [markdown]
# **Predict:** "the film is not bad". The network says positive. Does "bad" speak for that, or against? And "not"? What is the score of "not bad"?

# %%
TEXT = "the film is not bad"


def margin(logits):
    """With two classes: how much more for positive than for negative."""
    return logits[..., 1] - logits[..., 0]


def scores_of(text, spans):
    """Contextual decomposition of many spans (start, stop) of a text, in one pass."""
    places = np.arange(len(words_of(text)))
    masks = np.array([(start <= places) & (places < stop) for start, stop in spans])
    relevant, _ = interpret.cd(reader, vocabulary.encode(text), masks[:, :, None])
    return margin(relevant[:, 0])


def word_scores(text, method):
    encoded = vocabulary.encode(text)
    return interpret.attribute(reader, encoded, 1, method=method, contrast=True).scores


tokens = words_of(TEXT)
figure, axes = plt.subplots(1, 3, figsize=(11, 2.8))
for axis, method in zip(axes, ("gradient_x_input", "occlusion", "cd"), strict=True):
    values = word_scores(TEXT, method)
    axis.barh(tokens, values, color=["#2b6cb0" if v > 0 else "#c1440e" for v in values])
    axis.axvline(0, color="k", lw=0.8)
    axis.set(title=method, xlabel="for positive")
    axis.invert_yaxis()
figure.tight_layout()
plt.show()
for method in ("gradient_x_input", "occlusion", "cd"):
    values = word_scores(TEXT, method)
    print(f"{method:17s}", "  ".join(f"{w} {v:+.2f}" for w, v in zip(tokens, values, strict=True)))

negation, opinion, phrase, whole = scores_of(TEXT, [(3, 4), (4, 5), (3, 5), (0, 5)])
print(f"\nnot {negation:+.2f}, bad {opinion:+.2f}, 'not bad' {phrase:+.2f}, all words {whole:+.2f}")
relevant, rest = interpret.cd(reader, vocabulary.encode(TEXT), [[0], [0], [0], [1], [1]])
logits = reader(vocabulary.encode(TEXT)).detach().numpy()
print(f"relevant + irrelevant − logits: at most {np.abs(relevant + rest - logits).max():.0e}")
assert opinion < 0 < phrase
print("'not' in front of 'good':", round(float(word_scores("the film is not good", "cd")[3]), 2))

# %% [markdown]
# The gradient says that "bad" speaks *for* the film: at this point more of it would mean more of "not bad". Decomposition keeps the three things apart: "bad" against, "not bad" for, and the difference is interaction. "not" has no fixed
# sign: it depends on the word that it turns around. (Occlusion looks at the sentence *without* the word, so the whole interaction is charged to "not", and again to "bad".)
#
# ## How much is interaction?
#
# The same for all 300 sentences: every phrase of two or three words against the sum of its words. On the diagonal the network just adds.
#
# **Predict:** which phrases are off the diagonal?

# %%
points, negated = [], []
examples = {}
for text, _ in held_out:
    tokens = words_of(text)
    spans = [(a, b) for n in (1, 2, 3) for a in range(len(tokens) - n + 1) for b in [a + n]]
    found = dict(zip(spans, scores_of(text, spans), strict=True))
    for (start, stop), score in found.items():
        if stop - start > 1:
            parts = sum(found[at, at + 1] for at in range(start, stop))
            points.append((parts, score))
            # A negation and the opinion that it acts on.
            inside = tokens[start] == "not" and tokens[stop - 1] in POSITIVE + NEGATIVE
            negated.append(inside)
            if inside:
                examples.setdefault(" ".join(tokens[start:stop]), []).append((parts, score))
points, negated = np.array(points), np.array(negated)

figure, axis = plt.subplots(figsize=(5, 4.4))
axis.scatter(*points[~negated].T, s=6, alpha=0.3, color="#7aa6d8", label="other phrases")
axis.scatter(*points[negated].T, s=14, color="#c1440e", label="not + opinion")
axis.axline((0, 0), slope=1, color="k", lw=0.8)
axis.axhline(0, color="grey", lw=0.5)
axis.axvline(0, color="grey", lw=0.5)
axis.set(xlabel="sum of the words' scores", ylabel="the phrase's score")
axis.legend(fontsize=8)
figure.tight_layout()
plt.show()
for name in ("not bad", "not boring", "not good", "not very good"):
    if name in examples:
        parts, score = np.mean(examples[name], axis=0)
        print(f"{name:14s} words {parts:+.2f}, phrase {score:+.2f}")
flips = (np.sign(points[:, 0]) != np.sign(points[:, 1])) & (np.abs(points) > 0.1).all(axis=1)
print(f"sign of the phrase is not that of the sum: {flips[negated].mean():.0%} of the negations,")
print(f"   {flips[~negated].mean():.0%} of the other phrases")

# %% [markdown]
# Two kinds are off the diagonal. "is great" is worth more than its words, as the network reads an opinion together with its place: that is an interaction, but both lie on the same side. Of the negations, a third are in the *other* quadrants, where the phrase says the opposite of what its words add up to; hardly anything else is there.
# (Not every negation has to. Where "not" is already against, as in front of "good", addition can be enough for a negative sign; so that "not good" is negative does not show by itself that negation was understood.)
#
# ## Growing the tree
#
# A sentence of ten words has 55 spans. Which to show? Agglomeration starts from single words and picks the best **candidates** in each round. The priority of a word is its own score, or, beside a group, what joining would add: score(group ∪ word) − score(group). What is picked and adjacent is a group; percentile 80 means that a fifth of the candidates is picked.
#
# **Predict:** "the cast is awful but the film is not boring". Which words are picked first? When does "awful" join, and what does it change?

# %%
LONG = "the cast is awful but the film is not boring"
tokens = words_of(LONG)
encoded = vocabulary.encode(LONG)
tree = interpret.agglomerate(reader, encoded, 1, names=tokens, percentile=80)  # 1: positive
print(tree)
before = np.zeros(len(tokens), bool)
for number, step in enumerate(tree.steps[:-1]):
    found = [
        f"'{' '.join(np.array(tokens)[step.labels == name])}' {margin(scores):+.2f}"
        for name, scores in step.scores.items()
    ]
    joined = ", ".join(tokens[at] for at in np.flatnonzero(step.picked & ~before))
    groups = ", ".join(found) if number else "none yet"
    print(f"round {number}: groups {groups}\n   picked: {joined}")
    before = step.picked

# %% [markdown]
# One round by hand: every neighbour of a group, and what it would add. Candidates compete by absolute value, since a strong word *against* the class explains as much as one for it.

# %%
step = max((s for s in tree.steps[1:] if not s.picked.all()), key=lambda s: len(s.scores))
offers = {}
for name in step.scores:
    inside = np.flatnonzero(step.labels == name)
    start, stop = int(inside[0]), int(inside[-1]) + 1
    for at in (start - 1, stop):
        if 0 <= at < len(tokens):
            union = (min(start, at), max(stop, at + 1))
            together, alone = scores_of(LONG, [union, (start, stop)])
            gain = together - alone
            offers.setdefault(at, []).append(gain)
            group = " ".join(tokens[start:stop])
            print(f"{group!r} with {tokens[at]!r}: {together:+.2f} − {alone:+.2f} = {gain:+.2f}")
for at, gains in offers.items():
    assert np.isclose(max(gains, key=abs), step.priorities[at], atol=1e-4)

# %% [markdown]
# The record becomes a tree. Single words are at the bottom, the whole sentence at the top; blue speaks for the class and red against it.

# %%
figure = pictures.sentence_tree(tree)
console.print(pictures.terminal(tree))
figure

# %% [markdown]
# Read it from below: "not boring" is where it starts, then it grows to the left, and when it arrives at "awful" the score hardly moves. This network has learnt that what stands before "but" does not count, and the tree shows it.
#
# (In a terminal you see rows of text, in a notebook the picture as well. `pictures.html_page(tree, path="tree.html")` writes a page where you can point at groups.)
#
# ## Images
#
# Pixels are units with four neighbours instead of two; the rest is the same. Three kinds of pictures: a horizontal line, a vertical line, a cross of both. Is a cross to its lines what "not bad" is to its words?

# %%
NAMES = ("horizontal", "vertical", "cross")


def drawings(count, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=count)
    images = rng.uniform(0, 0.15, (count, 1, 10, 10))
    for image, label in zip(images, labels, strict=True):
        row, column = rng.integers(3, 7, 2)
        if label != 1:
            image[0, row, column - 3 : column + 4] = 1
        if label != 0:
            image[0, row - 3 : row + 4, column] = 1
    return torch.tensor(images.astype(np.float32)), torch.tensor(labels)


torch.manual_seed(0)
seer = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 12, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(12 * 25, 3),
)
optimizer = torch.optim.Adam(seer.parameters(), lr=0.005)
images, labels = drawings(300, seed=0)
for _ in range(8):
    for start in range(0, 300, 30):
        batch = slice(start, start + 30)
        optimizer.zero_grad()
        nn.functional.cross_entropy(seer(images[batch]), labels[batch]).backward()
        optimizer.step()
seer.eval()
images, labels = drawings(100, seed=1)
accuracy = (seer(images).argmax(dim=1) == labels).float().mean().item()
print(f"accuracy on 100 other pictures: {accuracy:.0%}")
assert accuracy > 0.95

# %% [markdown]
# **Predict:** in the picture of a cross, which class does the horizontal line speak for, taken alone? Do the scores of both lines add up to that of the cross?

# %%
which = int(np.flatnonzero(labels.numpy() == 2)[0])
cross = images[which : which + 1]
tree = interpret.agglomerate(seer, cross, 2, percentile=90)
figure = pictures.image_panels(tree, cross, classes=NAMES)
line = cross[0, 0].numpy() > 0.5
row, column = line.sum(axis=1).argmax(), line.sum(axis=0).argmax()
parts = {"horizontal line": np.zeros((10, 10)), "vertical line": np.zeros((10, 10))}
parts["horizontal line"][row, column - 3 : column + 4] = 1
parts["vertical line"][row - 3 : row + 4, column] = 1
parts["both"] = np.maximum(*parts.values())
for name, mask in parts.items():
    relevant, _ = interpret.cd(seer, cross, mask)
    told = "   ".join(f"{c} {v:+5.1f}" for c, v in zip(NAMES, relevant[0], strict=True))
    print(f"{name:16s} {told}")
figure

# %% [markdown]
# Compare the last row with the sum of the two before it: there is hardly an interaction. This network collects evidence (a horizontal line is, above all, evidence against "vertical") and adds it up; a tree that grows in all directions at once says the same. The network of sentences could not do that, and did not.
#
# ## What a tree does not tell
#
# **It explains the network, not the world.** The word "never" was in no training sentence. The network does not know it, and the tree says faithfully that "good" made the answer positive. The explanation is right; the answer is not.

# %%
UNKNOWN = "the film is never good"
tree = interpret.agglomerate(reader, vocabulary.encode(UNKNOWN), 1, names=words_of(UNKNOWN))
console.print(pictures.terminal(tree))

# %% [markdown]
# **A phrase has no score of its own.** What it gets depends on the sentence around it, through gates and states.

# %%
for text in ("not bad", "the film is not bad", "it is great but the plot is not bad"):
    count = len(words_of(text))
    (score,) = scores_of(text, [(count - 2, count)])
    print(f"'not bad' in {text!r}: {score:+.2f}")

# %% [markdown]
# **Rules are choices.** Within an LSTM, who gets the product of two biases? The paper says the irrelevant part; its code, the word that is read. Both add up.

# %%
for choice in ("words", "irrelevant"):
    relevant, _ = interpret.cd(
        reader, vocabulary.encode(TEXT), [[0], [0], [0], [1], [1]], lstm_bias=choice
    )
    print(f"lstm_bias={choice!r}: 'not bad' {margin(relevant)[0]:+.2f}")

# %% [markdown]
# **It is greedy**, so a group that is not in the tree may still matter: ask for it with `interpret.cd`. And a score is **not a prediction about an experiment**: it does not say what the network would answer if the words were taken away. Occlusion says that, of a sentence nobody wrote.
#
# ## Exercises
#
# **1.** The linear rule for NumPy arrays: `rel` and `irr` have shape (units in,), `weight` (units out, units in), `bias` (units out,). Where neither part contributes the bias is irrelevant. Return both parts.


# %%
def linear_rule(rel, irr, weight, bias): ...  # your turn


lesson_09.linear_rule.check(linear_rule)

# %% [markdown]
# **2.** The two-way split of any function `f` with f(0) = 0: the mean of what β changes if it comes first, and if it comes last.


# %%
def two_way_rule(rel, irr, f): ...  # your turn


lesson_09.two_way_rule.check(two_way_rule)

# %% [markdown]
# **3.** The candidates of a round. `groups` is a list of spans (start, stop), `count` the number of words, and `score(start, stop)` scores a span. Return a dictionary: for every (group, neighbour) the priority of that neighbour, a word's number.


# %%
def candidates_of(groups, count, score): ...  # your turn


lesson_09.candidates_of.check(candidates_of)

# %% [markdown]
# **Where next?** `minitorch/interpret/rules/` has a rule for every op, each a few lines; `grow.py` the rounds. `docs/interpretation.md` lists the rules and whose they are. `tutorials/trainers/sentiment.py` trains on real sentences, where things are less clear; then
# `minitorch interpret --model runs/sentiment/model.pt --text "not very good, but I loved it"`.
