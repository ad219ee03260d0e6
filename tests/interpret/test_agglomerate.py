"""Trees: nested groups up to one root, for words, pixels, blocks and segments, by every method."""

from __future__ import annotations

import numpy as np
import pytest
from interpret import acd_models
from interpret.acd_models import TextModel
from numpy.testing import assert_allclose

import minitorch
from minitorch import interpret, nn
from minitorch.interpret.grow import steady_labels
from minitorch.interpret.scorers import CDScorer
from minitorch.interpret.tree import TreeBuilder


def _is_a_hierarchy(tree):
    """Every group is the union of its children, every group but the root has one parent."""
    assert tree.root.members == tuple(range(tree.num_units))
    assert [group.id for group in tree] == list(range(len(tree)))
    parents = tree.parents()
    assert parents[-1] is None
    assert all(parent is not None for parent in parents[:-1])
    for group in tree:
        if group.id < tree.num_units:
            assert (group.members, group.children, group.level) == ((group.id,), (), 0)
            continue
        members = [unit for child in group.children for unit in tree[child].members]
        assert tuple(sorted(members)) == group.members
        assert len(group.children) > 1
        assert group.level == 1 + max(tree[child].level for child in group.children)
        assert all(tree[child].order < group.order for child in group.children)
        assert all(child < group.id for child in group.children)
    assert sum(len(row) for row in tree.rows()) == len(tree)
    assert tree.alive(tree.root.order) == [tree.root]


def _text(length=9, **options):
    minitorch.manual_seed(1)
    ids = np.random.default_rng(length).integers(0, 12, (length, 1))
    return TextModel(**options).double(), minitorch.tensor(ids)


def _image():
    data = acd_models.arrays("acd_agg2d_model")
    return acd_models.small_cnn(data), minitorch.tensor(data["im"])[None, None]


METHODS = list(interpret.METHODS)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("mode", ["paper", "reference"])
def test_a_text_by_every_method(method, mode):
    model, ids = _text()
    tree = interpret.agglomerate(model, ids, method=method, mode=mode)
    _is_a_hierarchy(tree)
    assert tree.method == method
    logits = model(ids).detach().numpy()[0]
    assert_allclose(tree.logits, logits, rtol=1e-12)
    assert tree.target == logits.argmax()
    for group in tree:
        assert group.score == group.scores[tree.target] - group.scores[1 - tree.target]
    if mode == "paper" and method in ("cd", "build_up"):
        assert_allclose(tree.root.scores, logits, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_an_image_by_every_method(method):
    model, image = _image()
    tree = interpret.agglomerate(model, image, 1, method=method, block=3)
    _is_a_hierarchy(tree)
    assert tree.num_units == 16
    assert tree.target == 1
    assert tree.layout.shape == (12, 12)
    assert tree.mask(tree.root).all()
    assert tree.mask(5).sum() == 9
    assert all(group.score == group.scores[1] for group in tree)


@pytest.mark.parametrize("block", [1, 2, 5, 12, 20])
def test_blocks_of_pixels(block):
    model, image = _image()
    tree = interpret.agglomerate(model, image, 0, block=block, num_iters=2)
    _is_a_hierarchy(tree)
    assert tree.num_units == (-(-12 // block)) ** 2
    assert_allclose(tree.root.scores, tree.logits, rtol=1e-11)


def test_given_segments():
    model, image = _image()
    rows, columns = np.mgrid[:12, :12]
    labels = np.where(rows < 4, 10, np.where(columns < 6, 20, np.where(rows < 8, 30, 40)))
    tree = interpret.agglomerate(model, image, 0, units=labels)
    _is_a_hierarchy(tree)
    assert tree.num_units == 4
    units = interpret.segments(labels)
    assert units.edges.tolist() == [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]


@pytest.mark.parametrize("length", [1, 2, 3, 7])
def test_short_texts(length):
    model, ids = _text(length)
    for mode in ("paper", "reference"):
        tree = interpret.agglomerate(model, ids, mode=mode)
        _is_a_hierarchy(tree)
        assert tree.num_units == length


def test_top_k_and_percentile():
    model, ids = _text()
    for most in (1, 3, 20):
        tree = interpret.agglomerate(model, ids, top_k=most)
        _is_a_hierarchy(tree)
        sizes = [int(step.picked.sum()) for step in tree.steps]
        assert max(np.diff([0, *sizes])) <= most
    all_at_once = interpret.agglomerate(model, ids, percentile=0)
    assert len(all_at_once) == all_at_once.num_units + 1


def test_batches_of_rows_and_time():
    """Ids as a row or a column, and sequences of vectors."""
    model, ids = _text()
    column = interpret.agglomerate(model, ids)

    class Row(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, row):
            return self.model(row.transpose(0, 1))

    row = interpret.agglomerate(Row(), ids.transpose(0, 1))
    assert [group.members for group in row] == [group.members for group in column]
    assert_allclose([group.score for group in row], [group.score for group in column], rtol=1e-11)

    class Vectors(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.last = model.lstm, model.hidden_to_label

        def forward(self, x):
            return self.last(self.lstm(x)[0][-1])

    time = interpret.agglomerate(Vectors(), model.embed(ids).detach())
    assert [group.members for group in time] == [group.members for group in column]
    assert time.layout.shape == (9, 1, 1)


def test_more_than_two_classes_score_the_target():
    model, ids = _text(classes=4)
    tree = interpret.agglomerate(model, ids, 2)
    assert all(group.score == group.scores[2] for group in tree)
    with pytest.raises(ValueError, match="two classes"):
        interpret.agglomerate(model, ids, contrast=True)


def test_scores_are_those_of_cd():
    model, ids = _text()
    tree = interpret.agglomerate(model, ids, 0)
    for group in tree:
        relevant, _ = interpret.cd(model, ids, tree.mask(group))
        assert_allclose(group.scores, relevant[0], rtol=1e-11, atol=1e-13)


def test_a_round_is_one_call(monkeypatch):
    """All candidates of a round go through the network together."""
    calls = []
    score = CDScorer.__call__
    monkeypatch.setattr(
        CDScorer, "__call__", lambda self, groups: calls.append(len(groups)) or score(self, groups)
    )
    model, image = _image()
    tree = interpret.agglomerate(model, image, 0, block=2)
    joins = sum(1 for group in tree if group.order > 6)
    assert len(calls) <= 1 + 6 + joins
    assert calls[0] == 36 + 1


def test_the_agglomeration_follows_the_paper():
    """By hand: unit scores 3, 1, -2, 0.5, no interaction; one pick per round."""
    model = nn.Linear(4, 3, bias=False).double()
    model.weight.data.copy_(minitorch.tensor([[3.0, 1.0, -2.0, 0.5], [0.0] * 4, [0.0] * 4]))
    x = minitorch.ones(1, 4).double()
    tree = interpret.agglomerate(model, x, 0, top_k=1, names=["a", "b", "c", "d"])
    grown = [(tree.text(group), group.score) for group in tree if group.size > 1]
    # |3| first, then |-2| (beside nobody), then 1, which joins both, then 0.5.
    assert grown == [("a b c", 2.0), ("a b c d", 2.5)]
    signed = interpret.agglomerate(model, x, 0, top_k=1, absolute=False)
    assert [group.members for group in signed if group.size > 1] == [(0, 1), (0, 1, 2, 3)]
    assert tree.text((tree.find([0]) or tree.root).id) == "a"


def test_errors():
    model, ids = _text()
    for options, message in (
        ({"method": "lime"}, "unknown method 'lime'"),
        ({"mode": "fast"}, "mode must be"),
        ({"percentile": 101}, "percentile"),
        ({"top_k": 0}, "top_k"),
        ({"top_k": 1.5}, "top_k must be a whole number"),
        ({"num_iters": -1}, "num_iters"),
        ({"target": 2}, "target 2"),
        ({"names": ["a"]}, "1 names for 9 units"),
        ({"units": "letters"}, "units must be"),
        ({"block": 0}, "block must be"),
        ({"units": np.zeros((2, 2), int)}, "do not broadcast"),
    ):
        with pytest.raises(ValueError, match=message):
            interpret.agglomerate(model, ids, **options)
    with pytest.raises(ValueError, match="one text at a time"):
        interpret.agglomerate(model, minitorch.tensor(np.zeros((4, 2), int)))
    with pytest.raises(ValueError, match="knows words and square blocks"):
        interpret.agglomerate(*_image(), units=np.arange(144).reshape(12, 12), mode="reference")
    with pytest.raises(TypeError, match="'cd' has no option 'samples'; it has: bias, lstm_bias"):
        interpret.agglomerate(model, ids, samples=3)
    with pytest.raises(TypeError, match=r"number of a class, not 1\.0"):
        interpret.agglomerate(model, ids, 1.0)


@pytest.mark.parametrize("options", [{}, {"top_k": 1}, {"mode": "reference"}])
@pytest.mark.parametrize("method", ["cd", "occlusion", "shapley"])
def test_scores_that_cannot_be_ranked(method, options):
    """A nan in the weights is named; in the row of another class it does no harm."""
    model, x = nn.Linear(6, 3), minitorch.ones(1, 6)
    model.weight.data[0, 2] = float("nan")
    with pytest.raises(ValueError, match="scores that are not finite"):
        interpret.agglomerate(model, x, 0, method=method, **options)
    _is_a_hierarchy(interpret.agglomerate(model, x, 1, method=method, **options))


# -- the tree itself -----------------------------------------------------------------------------


def test_trees_survive_a_file(tmp_path):
    model, ids = _text()
    tree = interpret.agglomerate(model, ids, names=list("abcdefghi"))
    tree.save(tmp_path / "tree.json")
    again = interpret.Tree.load(tmp_path / "tree.json")
    _is_a_hierarchy(again)
    assert again.to_dict() == tree.to_dict()
    assert again.text(again.root) == "a b c d e f g h i"
    assert repr(again) == repr(tree)


def test_builders_find_children_and_refuse_overlap():
    builder = TreeBuilder(np.arange(10.0).reshape(5, 2), lambda scores: scores[1])
    builder.add([3, 1], np.zeros(2), 1)
    builder.add([1, 3], np.ones(2), 2)  # there already
    builder.add([0, 1, 3], np.zeros(2), 2)
    assert [group.children for group in builder.groups[5:]] == [(1, 3), (0, 5)]
    assert [group.level for group in builder.groups[5:]] == [1, 2]
    assert [group.members for group in builder.tops()] == [(0, 1, 3), (2,), (4,)]
    with pytest.raises(ValueError, match="cuts through"):
        builder.add([0, 2], np.zeros(2), 3)


def test_components_and_neighbours():
    units = interpret.grid(5, 7, 1)
    rng = np.random.default_rng(0)
    for _ in range(20):
        picked = rng.random(35) < 0.4
        labels = units.components(picked)
        assert ((labels > 0) == picked).all()
        # By flooding: the slow way.
        image, seen, count = picked.reshape(5, 7), {}, 0
        for start in zip(*np.nonzero(image), strict=True):
            if start in seen:
                continue
            count += 1
            stack = [start]
            while stack:
                r, c = stack.pop()
                inside = 0 <= r < 5 and 0 <= c < 7
                if not inside or not image[r, c] or (r, c) in seen:
                    continue
                seen[r, c] = count
                stack += [(r + i, c + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
        assert {place: labels.reshape(5, 7)[place] for place in seen} == seen
    corner = np.zeros(35, bool)
    corner[[0, 1, 7]] = True
    assert units.around(corner).tolist() == [2, 8, 14]


def test_labels_stay_with_their_components():
    old = np.array([1, 0, 2, 0, 0, 3])
    assert steady_labels(old, np.array([1, 1, 1, 0, 2, 3])).tolist() == [1, 1, 1, 0, 2, 3]
    assert steady_labels(old, np.array([1, 0, 2, 3, 0, 4])).tolist() == [1, 0, 2, 4, 0, 3]
    with pytest.raises(ValueError, match="more than 3 labels"):
        steady_labels(old, np.array([1, 0, 2, 3, 0, 4]), 3)
