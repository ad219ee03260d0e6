"""Who goes into which bucket. The first four cases and their values are PyTorch's own."""

from __future__ import annotations

import pytest

import minitorch as torch
from minitorch.distributed._ddp.bucketing import compute_bucket_assignment_by_size

NO_LIMIT = 2**64 - 1


def tensors(*shapes, dtype=torch.float32):
    return [torch.empty(n, dtype=dtype) for n in shapes]


def mixed(*pairs):
    return [torch.empty(n, dtype=dtype) for n, dtype in pairs]


F, D = torch.float32, torch.float64


def test_single_limit_single_dtype():
    assert compute_bucket_assignment_by_size(tensors(100, 200, 100, 50), [400]) == (
        [[0], [1], [2], [3]],
        [400] * 4,
    )


def test_single_limit_multi_dtype():
    pieces = mixed((50, F), (25, D), (50, F), (25, D), (50, F), (25, D))
    assert compute_bucket_assignment_by_size(pieces, [400]) == (
        [[0, 2], [1, 3], [4], [5]],
        [400] * 4,
    )


def test_multi_limit_single_dtype():
    assert compute_bucket_assignment_by_size(tensors(10, 10, 10, 10), [40, 80]) == (
        [[0], [1, 2], [3]],
        [40, 80, 80],
    )


def test_multi_limit_multi_dtype():
    pieces = mixed((50, F), (25, D), (50, F), (25, D), (50, F), (25, D))
    assert compute_bucket_assignment_by_size(pieces, [200, 400]) == (
        [[0], [1], [2, 4], [3, 5]],
        [200, 200, 400, 400],
    )


def test_a_bucket_overshoots_and_never_splits_a_parameter():
    # 99 elements leave the bucket 4 bytes short of its limit; the next parameter goes in whole.
    assert compute_bucket_assignment_by_size(tensors(99, 1000, 1), [400])[0] == [[0, 1], [2]]


def test_limit_zero_gives_every_parameter_its_own_bucket():
    assert compute_bucket_assignment_by_size(tensors(3, 0, 5), [0])[0] == [[0], [1], [2]]


def test_sparse_gradients_travel_alone():
    indices, limits = compute_bucket_assignment_by_size(
        tensors(10, 10, 10), [400], [False, True, False]
    )
    assert (indices, limits) == ([[0, 2], [1]], [400, NO_LIMIT])


def test_ready_order_is_reported_and_kept():
    indices, _ = compute_bucket_assignment_by_size(
        tensors(10, 10, 10), [80], tensor_indices=[2, 0, 1]
    )
    assert indices == [[2, 0], [1]]


def test_in_ready_order_the_bucket_that_completes_first_comes_first():
    # float, double, float: the double bucket is complete before the float one.
    pieces = mixed((4, F), (4, D), (4, F))
    assert compute_bucket_assignment_by_size(pieces, [400], tensor_indices=[2, 1, 0])[0] == [
        [1],
        [2, 0],
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [1]), "no parameter"),
        ((tensors(1), []), "no size limit"),
        ((tensors(1, 2), [1], (), [0]), "an order of 1"),
        ((tensors(1, 2), [1], [True]), "expect_sparse_gradient"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        compute_bucket_assignment_by_size(*arguments)
