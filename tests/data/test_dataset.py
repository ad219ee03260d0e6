"""Data sets, samplers' arguments, and collation."""

import collections

import numpy as np
import pytest

import minitorch
from minitorch.utils import data as d

TEN = d.TensorDataset(minitorch.arange(10))


class Numbers(d.IterableDataset):
    def __iter__(self):
        return iter(range(5))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: d.TensorDataset(minitorch.ones(2), minitorch.ones(3)), AssertionError, "Size"),
        (lambda: d.ConcatDataset([]), AssertionError, "should not be an empty iterable"),
        (lambda: d.ConcatDataset([Numbers()]), AssertionError, "does not support Iterable"),
        (lambda: d.ConcatDataset([TEN, TEN])[20], IndexError, "out of range"),
        (lambda: d.ConcatDataset([TEN])[-11], ValueError, "absolute value of index"),
        (lambda: d.StackDataset(), ValueError, "At least one dataset"),
        (lambda: d.StackDataset(TEN, a=TEN), ValueError, "both types are given"),
        (lambda: d.StackDataset(TEN, [1]), ValueError, "Size mismatch between datasets"),
        (lambda: d.random_split(TEN, [3, 3]), ValueError, "Sum of input lengths"),
        (lambda: d.random_split(TEN, [0.5, -0.1, 0.6]), ValueError, "Fraction at index 1"),
        (lambda: d.Dataset()[0], NotImplementedError, "should implement __getitem__"),
        (lambda: d.RandomSampler(TEN, num_samples=0), ValueError, "num_samples=0"),
        (lambda: d.RandomSampler([]), ValueError, "num_samples=0"),
        (lambda: d.RandomSampler(TEN, replacement=3), TypeError, "replacement=3"),
        (lambda: d.BatchSampler([1], 0, False), ValueError, "batch_size=0"),
        (lambda: d.BatchSampler([1], 1, 3), ValueError, "drop_last=3"),
        (lambda: d.WeightedRandomSampler([1.0], -1), ValueError, "num_samples=-1"),
        (lambda: d.WeightedRandomSampler([[1.0]], 1), ValueError, "weights have shape (1, 1)"),
        (
            lambda: list(d.WeightedRandomSampler([1.0, 2.0], 3, False)),
            RuntimeError,
            "without replacement",
        ),
        (lambda: d.default_collate([object()]), TypeError, "found <class 'object'>"),
        (lambda: d.default_collate([[1, 2], [1]]), RuntimeError, "should be of equal size"),
        (lambda: d.default_collate([np.array(["a"])]), TypeError, "found <U1"),
        (
            lambda: d.default_collate([minitorch.ones(2), minitorch.ones(3)]),
            RuntimeError,
            "got [2] at entry 0 and [3] at entry 1",
        ),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_composed_sets():
    both = TEN + d.Subset(TEN, [7, 5])
    assert len(both) == 12
    assert [both[i][0].item() for i in (0, 9, 10, 11, -1)] == [0, 9, 7, 5, 5]
    assert list(Numbers() + Numbers()) == [*range(5), *range(5)]
    assert d.StackDataset([1, 2], [3, 4])[1] == (2, 4)
    assert d.StackDataset(a=[1, 2], b=[3, 4])[0] == {"a": 1, "b": 3}
    nested = d.Subset(d.Subset(TEN, [9, 8, 7]), [2, 0])
    assert [nested[i][0].item() for i in range(2)] == [7, 9]
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        d.random_split([1], [0.5, 0.5])


def test_default_collate():
    Pair = collections.namedtuple("Pair", "x y")
    batch = d.default_collate(
        [
            {"a": 1, "b": (1.5, "x", b"z"), "c": [True], "p": Pair(np.float32(1), np.ones(2))},
            {"a": 2, "b": (2.5, "y", b"w"), "c": [False], "p": Pair(np.float32(2), np.zeros(2))},
        ]
    )
    assert batch["a"].dtype == minitorch.int64
    assert batch["b"][0].dtype == minitorch.float64
    assert batch["b"][0].tolist() == [1.5, 2.5]
    assert type(batch["b"]) is list
    assert list(batch["b"][1]) == ["x", "y"]
    assert batch["c"][0].tolist() == [True, False]
    assert type(batch["p"]).__name__ == "Pair"
    assert batch["p"].x.dtype == minitorch.float32
    assert batch["p"].y.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    ordered = d.default_collate([collections.OrderedDict(a=1), collections.OrderedDict(a=2)])
    assert type(ordered) is collections.OrderedDict


def test_collating_tensors_that_require_grad_is_recorded():
    x = minitorch.ones(2, requires_grad=True)
    d.default_collate([x, x * 3]).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_default_convert():
    found = d.default_convert({"a": np.ones(1), "b": [1, "x", 2.0], "c": (np.float32(1),)})
    assert found["a"].dtype == minitorch.float64
    assert found["b"] == [1, "x", 2.0]
    assert found["c"][0].item() == 1.0


def test_subset_lists_and_shared_indices():
    subset = d.Subset(TEN, np.array([4, 2, 0]))
    loader = d.DataLoader(subset, batch_size=2)
    assert [batch[0].tolist() for batch in loader] == [[4, 2], [0]]
