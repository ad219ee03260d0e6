"""The other methods, by closed forms; and the paper's comparisons."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from interpret.acd_models import TextModel
from numpy.testing import assert_allclose

import minitorch
from minitorch import interpret, nn


class Polynomial(nn.Module):
    """``(x0 x1 + x2^2, x0 - 2 x3)`` of a row of four features."""

    def forward(self, x):
        first = x[:, 0] * x[:, 1] + x[:, 2] * x[:, 2]
        return minitorch.stack([first, x[:, 0] - 2 * x[:, 3]], 1)


X = np.array([[2.0, 3.0, -1.5, 0.5]])


def _scores(method, **options):
    x = minitorch.tensor(X)
    return interpret.attribute(Polynomial(), x, 0, method=method, **options).all_scores


def test_occlusion_and_build_up():
    # Without x0 or x1 the product is gone; alone it never appears.
    assert_allclose(_scores("occlusion")[:, 0], [6, 6, 2.25, 0])
    assert_allclose(_scores("occlusion")[:, 1], [2, 0, 0, -1])
    assert_allclose(_scores("build_up")[:, 0], [0, 0, 2.25, 0])
    baseline = np.array([[1.0, 1.0, 0.0, 0.0]])
    assert_allclose(_scores("occlusion", baseline=baseline)[:, 0], [3, 4, 2.25, 0])


def test_gradient_times_input():
    assert_allclose(_scores("gradient_x_input")[:, 0], [6, 6, 4.5, 0])
    assert_allclose(_scores("gradient_x_input", baseline=1.0)[:, 0], [3, 4, 7.5, 0])


def test_integrated_gradients():
    # Along the straight way x0 x1 gives each factor half, x2^2 all to x2.
    for steps in (2, 50):
        assert_allclose(_scores("integrated_gradients", steps=steps)[:, 0], [3, 3, 2.25, 0])
    # The plain mean over points with both ends, in closed form for a linear gradient.
    mean = _scores("integrated_gradients", steps=5, quadrature="mean")
    assert_allclose(mean[:, 0], [3, 3, 2.25, 0])
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()
    x = minitorch.tensor(X)
    for output in ("logit", "probability"):
        found = interpret.attribute(
            model, x, 1, method="integrated_gradients", steps=60, output=output
        )
        values = model(x), model(x * 0)
        if output == "probability":
            values = tuple(nn.Softmax(1)(value) for value in values)
        difference = (values[0] - values[1])[0, 1].item()
        assert_allclose(found.scores.sum(), difference, rtol=1e-8)
        assert abs(found.convergence_delta) < 1e-8
    rough = interpret.attribute(model, x, 1, method="integrated_gradients", steps=1)
    assert abs(rough.convergence_delta) > 1e-6


def _exact_shapley(value, n):
    total = np.zeros((n, 2))
    for order in itertools.permutations(range(n)):
        there = np.zeros(n, bool)
        for unit in order:
            before = value(there)
            there[unit] = True
            total[unit] += value(there) - before
    return total / math.factorial(n)


def test_shapley_values():
    def value(there):
        return Polynomial()(minitorch.tensor(X * there)).numpy()[0]

    exact = _exact_shapley(value, 4)
    assert_allclose(exact[:, 0], [3, 3, 2.25, 0])
    # One order and its reverse are exact where no more than two units interact.
    assert_allclose(_scores("shapley", samples=1), exact, atol=1e-12)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).double()
    x = minitorch.tensor(X)
    exact = _exact_shapley(lambda t: model(minitorch.tensor(X * t)).detach().numpy()[0], 4)
    found = interpret.attribute(model, x, 0, method="shapley", samples=400).all_scores
    assert_allclose(found, exact, atol=0.05)
    difference = (model(x) - model(x * 0)).detach().numpy()[0]
    assert_allclose(found.sum(axis=0), difference, rtol=1e-12)
    state = minitorch.get_rng_state()
    again = interpret.attribute(model, x, 0, method="shapley", samples=4, seed=5).all_scores
    assert (minitorch.get_rng_state() == state).all()
    assert (
        again == interpret.attribute(model, x, 0, method="shapley", samples=4, seed=5).all_scores
    ).all()


def test_additive_methods_inside_a_group():
    x = minitorch.tensor(X)
    tree = interpret.agglomerate(Polynomial(), x, 0, method="integrated_gradients")
    for group in tree:
        members = list(group.members)
        assert_allclose(
            group.scores, sum(tree[unit].scores for unit in members), rtol=1e-12, atol=1e-12
        )


def test_gradients_of_token_ids_go_through_the_embedding():
    minitorch.manual_seed(0)
    model = TextModel().double()
    ids = minitorch.tensor([3, 7, 0, 9, 7])[:, None]
    vectors = model.embed(ids).detach().requires_grad_()
    logits = model.hidden_to_label(model.lstm(vectors)[0][-1])
    (slope,) = minitorch.autograd.grad(logits[0, 1], [vectors])
    expected = (slope * vectors).sum((1, 2)).detach().numpy()
    found = interpret.attribute(model, ids, 1, method="gradient_x_input")
    assert_allclose(found.scores, expected, rtol=1e-12)
    assert_allclose(found.logits, logits.detach().numpy()[0])
    for baseline in (None, 4):
        found = interpret.attribute(
            model, ids, 1, method="integrated_gradients", steps=80, baseline=baseline
        )
        assert abs(found.convergence_delta) < 1e-9
    start = model(minitorch.full((5, 1), 4)).detach().numpy()[0, 1]
    assert_allclose(found.scores.sum(), logits.detach().numpy()[0, 1] - start, rtol=1e-8)
    with pytest.raises(TypeError, match="need a Module"):
        interpret.attribute(lambda ids: model(ids), ids, 1, method="gradient_x_input")


def test_models_without_an_axis_for_batches():
    """A model of one row, without a batch: copies go through it one by one."""

    class Single(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.last = nn.Embedding(6, 3), nn.Linear(3, 2)

        def forward(self, ids):
            return self.last(self.embed(ids).tanh().mean(0))

    model, ids = Single().double(), minitorch.tensor([1, 5, 2, 2])
    for method in interpret.METHODS:
        found = interpret.attribute(model, ids, 0, method=method)
        assert found.scores.shape == (4,)
        assert_allclose(found.scores[2], found.scores[3], rtol=1e-9, atol=0.05)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("integrated_gradients", {"steps": 0}, "steps"),
        ("integrated_gradients", {"quadrature": "simpson"}, "quadrature"),
        ("integrated_gradients", {"output": "loss"}, "output"),
        ("shapley", {"samples": 0}, "samples"),
        ("cd", {"target": 5}, "target 5"),
    ],
)
def test_options(method, options, message):
    options = {"target": 0, **options}
    with pytest.raises(ValueError, match=message):
        interpret.attribute(Polynomial(), minitorch.tensor(X), method=method, **options)


# -- comparisons ---------------------------------------------------------------------------------


def test_rank_correlation():
    assert interpret.rank_correlation([1, 2, 3, 4], [10, 20, 30, 45]) == pytest.approx(1)
    assert interpret.rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    # Ties share their mean rank: (1, 2.5, 2.5, 4) against (1, 2, 3, 4).
    assert interpret.rank_correlation([1, 2, 2, 4], [1, 2, 3, 4]) == pytest.approx(4.5 / 22.5**0.5)
    assert math.isnan(interpret.rank_correlation([1, 1], [1, 2]))
    with pytest.raises(ValueError, match="2 scores against 3"):
        interpret.rank_correlation([1, 2], [1, 2, 3])


def test_word_scores_of_a_bag_of_words_are_its_coefficients():
    class Bag(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(9, 2)

        def forward(self, ids):
            return self.table(ids).sum(1)

    minitorch.manual_seed(0)
    model = Bag().double()
    texts = [minitorch.tensor(np.random.default_rng(n).integers(0, 9, (1, 6))) for n in range(8)]
    weights = model.table.weight.detach().numpy()[:, 1]
    for method in ("cd", "occlusion", "gradient_x_input"):
        baseline = {} if method != "occlusion" else {"baseline": 0}
        found = interpret.coefficient_correlation(
            model, texts, weights, 1, method=method, **baseline
        )
        assert found == pytest.approx(1)
    few = interpret.coefficient_correlation(model, texts, {1: 0.5}, 1)
    assert math.isnan(few)


def test_agreement_of_the_top_class():
    minitorch.manual_seed(0)
    model = TextModel(classes=3).double()
    trees = [
        interpret.agglomerate(
            model, minitorch.tensor(np.random.default_rng(n).integers(0, 12, (7, 1)))
        )
        for n in range(5)
    ]
    shares = interpret.top_class_agreement(trees, bins=4)
    assert shares.shape == (4,)
    seen = shares[~np.isnan(shares)]
    assert ((seen >= 0) & (seen <= 1)).all()
    # The root's score is the prediction, so at least the roots agree.
    assert shares[-1] > 0
    with pytest.raises(ValueError, match="bins"):
        interpret.top_class_agreement(trees, bins=0)


def test_attacks_and_robustness():
    minitorch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)).double()
    x = minitorch.tensor(X)
    label = model(x).argmax().item()
    for attack in (interpret.fgsm, interpret.gradient_attack):
        moved = attack(model, x, largest=20.0, steps=400)
        assert model(moved).argmax().item() != label
        step = (moved - x).numpy()
        if attack is interpret.fgsm:
            assert_allclose(np.abs(step), np.abs(step).max())
        # The smallest of the steps tried: one less does not do.
        shorter = x + minitorch.tensor(step * (1 - 1 / (400 * np.abs(step).max() / 20 + 1e-9)))
        assert attack is not interpret.fgsm or model(shorter).argmax().item() == label
        for method in ("cd", "gradient_x_input"):
            found = interpret.robustness(model, x, moved, method=method)
            assert -1 <= found <= 1
    assert interpret.robustness(model, x, x) == pytest.approx(1)
    assert interpret.fgsm(model, x, largest=1e-9) is None
    kept = interpret.fgsm(model, x, 50.0, 400, bounds=(-3.0, 3.0))
    assert kept is None or np.abs(kept.numpy()).max() <= 3
    with pytest.raises(ValueError, match="steps and largest"):
        interpret.fgsm(model, x, largest=0)
