"""Sparse gradients: the COO tensor, what backward leaves in ``.grad``, and SGD on it."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import minitorch as torch
from minitorch import nn
from minitorch.nn import functional as F


def example():
    """[[0, 0, 7], [3, 0, 0]] with the 7 in two parts."""
    return torch.sparse_coo_tensor([[0, 1, 0], [2, 0, 2]], [3.0, 3.0, 4.0], (2, 3))


class TestTensor:
    def test_what_it_says(self):
        t = example()
        assert t.is_sparse
        assert not torch.ones(1).is_sparse
        assert (t.shape, t.dim(), t.numel(), t.dtype) == ((2, 3), 2, 6, torch.float32)
        assert (t._nnz(), t.sparse_dim(), t.dense_dim()) == (3, 2, 0)
        assert not t.is_coalesced()
        assert "layout=torch.sparse_coo" in repr(t)

    def test_coalesce_sorts_and_sums(self):
        t = example()
        with pytest.raises(RuntimeError, match="Cannot get indices on an uncoalesced tensor"):
            t.indices()
        with pytest.raises(RuntimeError, match="Cannot get values on an uncoalesced tensor"):
            t.values()
        once = t.coalesce()
        assert once.indices().tolist() == [[0, 1], [2, 0]]
        assert once.values().tolist() == [7.0, 3.0]
        assert once.coalesce() is once
        assert t.to_dense().tolist() == once.to_dense().tolist() == [[0, 0, 7], [3, 0, 0]]

    def test_rows(self):
        t = torch.sparse_coo_tensor([[1, 1]], [[1.0, 2.0], [10.0, 20.0]])
        assert t.shape == (2, 2)
        assert t.dense_dim() == 1
        assert t.to_dense().tolist() == [[0, 0], [11, 22]]

    def test_empty(self):
        t = torch.sparse_coo_tensor(
            np.empty((1, 0), np.int64), np.empty((0, 2), np.float32), (3, 2)
        )
        assert t.coalesce()._nnz() == 0
        assert t.to_dense().tolist() == [[0, 0]] * 3

    def test_arithmetic(self):
        t = example()
        dense = t.to_dense()
        assert ((t + t).to_dense() == 2 * dense).all()
        assert ((t + dense) == 2 * dense).all()
        assert ((dense + t) == 2 * dense).all()
        for scaled in (t * 2, 2 * t, t / 0.5, -t * -2, t.clone().mul_(2), t.clone().div_(0.5)):
            assert (scaled.to_dense() == 2 * dense).all()
        with pytest.raises(RuntimeError, match="same size"):
            t + torch.sparse_coo_tensor([[0]], [1.0], (3,))

    def test_half_precision_is_summed_in_single(self):
        """1 + 256 * 2**-11 rounds to 1 at each step in float16; the sum is 1.125."""
        values = np.array([1.0] + [2**-11] * 256, np.float16)
        t = torch.sparse_coo_tensor(np.zeros((1, 257), np.int64), values, (1,))
        assert t.to_dense().tolist() == [1.125]

    def test_what_it_cannot_do_says_to_dense(self):
        with pytest.raises(NotImplementedError, match=r"to_dense\(\)"):
            example().exp()
        with pytest.raises(NotImplementedError, match=r"to_dense\(\)"):
            example().requires_grad_()

    @pytest.mark.parametrize("again", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
    def test_copies(self, again):
        t = example()
        twin = again(t)
        t.zero_()
        assert twin.to_dense().tolist() == [[0, 0, 7], [3, 0, 0]]
        assert t._nnz() == 0

    @pytest.mark.parametrize(
        ("indices", "values", "size", "text"),
        [
            ([0, 1], [1.0, 2.0], None, "sparse_dim x nnz"),
            ([[0, 1]], [1.0], None, "must have same nnz"),
            ([[0, 3]], [1.0, 2.0], (3,), "for dim 0, size is 3 but found index 3"),
            ([[-1]], [1.0], (3,), "found index -1"),
            ([[0]], [1.0], (3, 2), "does not fit"),
        ],
    )
    def test_bad_parts(self, indices, values, size, text):
        with pytest.raises(RuntimeError, match=text):
            torch.sparse_coo_tensor(indices, values, size)


def pair(**options):
    """The same table with sparse and with dense gradients."""
    torch.manual_seed(0)
    table = torch.randn(6, 3)
    return [
        nn.Embedding(6, 3, sparse=sparse, _weight=table.clone(), **options)
        for sparse in (True, False)
    ]


INDEX = torch.tensor([[4, 1, 4], [0, 1, 2]])


class TestBackward:
    @pytest.mark.parametrize(
        "options", [{}, {"padding_idx": 1}, {"scale_grad_by_freq": True}], ids=str
    )
    def test_equals_the_dense_gradient(self, options):
        sparse, dense = pair(**options)
        for layer in (sparse, dense):
            for _ in range(2):  # the second is added
                layer(INDEX).sin().sum().backward()
        gradient = sparse.weight.grad
        assert gradient.is_sparse
        assert 1 not in gradient.coalesce().indices().tolist()[0] or "padding_idx" not in options
        np.testing.assert_allclose(
            gradient.to_dense().numpy(), dense.weight.grad.numpy(), rtol=1e-6
        )

    def test_memory_is_that_of_the_rows(self):
        layer = nn.Embedding(10**6, 1, sparse=True)
        layer(torch.tensor([3])).sum().backward()
        assert layer.weight.grad._values().shape == (1, 1)

    @pytest.mark.parametrize("first", ["sparse", "dense"])
    def test_mixed_uses_of_one_weight_are_dense(self, first):
        layer = pair()[0]
        parts = [lambda: layer(INDEX).sum(), lambda: (layer.weight * 2).sum()]
        for part in parts if first == "sparse" else parts[::-1]:
            part().backward()
        together = layer.weight.grad
        layer.weight.grad = None
        sum(part() for part in parts).backward()
        for gradient in (together, layer.weight.grad):
            assert not gradient.is_sparse
            assert gradient[:, 0].tolist() == [3.0, 4.0, 3.0, 2.0, 4.0, 2.0]

    def test_hooks_and_autograd_grad_see_it(self):
        layer = pair()[0]
        seen = []
        layer.weight.register_hook(lambda g: seen.append(g.is_sparse) or g * 2)
        layer(INDEX).sum().backward()
        assert seen == [True]
        assert layer.weight.grad.to_dense()[4, 0].item() == 4.0
        (gradient,) = torch.autograd.grad(layer(INDEX).sum(), [layer.weight])
        assert gradient.is_sparse

    def test_a_computed_weight_gets_a_dense_gradient(self):
        weight = torch.ones(6, 3, requires_grad=True)
        F.embedding(INDEX, weight * 2, sparse=True).sum().backward()
        assert weight.grad[:, 0].tolist() == [2.0, 4.0, 2.0, 0.0, 4.0, 0.0]

    def test_can_be_assigned_and_is_checked(self):
        layer = pair()[0]
        layer.weight.grad = torch.sparse_coo_tensor([[0]], [[1.0, 1.0, 1.0]], (6, 3))
        with pytest.raises(RuntimeError, match="of size '\\[5, 3\\]'"):
            layer.weight.grad = torch.sparse_coo_tensor([[0]], [[1.0, 1.0, 1.0]], (5, 3))


class TestOptimizers:
    @pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"maximize": True}], ids=str)
    def test_sgd_equals_dense(self, options):
        layers = pair()
        for layer in layers:
            optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, **options)
            for _ in range(3):
                optimizer.zero_grad()
                layer(INDEX).sin().sum().backward()
                optimizer.step()
        sparse, dense = (layer.weight.detach().numpy() for layer in layers)
        np.testing.assert_allclose(sparse, dense, rtol=1e-6, atol=1e-7)

    def test_weight_decay_is_refused(self):
        layer = pair()[0]
        layer(INDEX).sum().backward()
        with pytest.raises(RuntimeError, match=r"weight_decay.*not compatible with sparse"):
            torch.optim.SGD(layer.parameters(), lr=0.1, weight_decay=0.1).step()

    @pytest.mark.parametrize("kind", ["Adam", "AdamW", "Adagrad", "RMSprop"])
    def test_others_refuse_before_they_touch_anything(self, kind):
        layer = pair()[0]
        before = layer.weight.detach().clone()
        layer(INDEX).sum().backward()
        optimizer = getattr(torch.optim, kind)(layer.parameters(), lr=0.1)
        with pytest.raises(RuntimeError, match=f"{kind} does not support sparse gradients"):
            optimizer.step()
        assert (layer.weight == before).all()

    def test_zero_grad(self):
        layer = pair()[0]
        layer(INDEX).sum().backward()
        layer.zero_grad(set_to_none=False)
        assert layer.weight.grad._nnz() == 0
