"""Samplers, splits and loaders visit in PyTorch's recorded order."""

import json
import runpy
from pathlib import Path

import pytest

import minitorch
import minitorch.utils.data.distributed

RECORD = runpy.run_path(str(Path(__file__).parents[1] / "golden" / "record_data.py"))
ANSWERS = json.loads(RECORD["ANSWERS"].read_text())


@pytest.mark.parametrize("name", RECORD["cases"](minitorch))
def test_agrees_with_pytorch(name):
    found = RECORD["play"](minitorch, name)[name]
    assert json.loads(json.dumps(found)) == ANSWERS[name]


def test_distributed_shares_cover_everything_once():
    # Closed form: every index once per epoch when W divides n, else the front repeats.
    sampler = minitorch.utils.data.DistributedSampler
    for n, ranks in [(12, 4), (10, 4), (3, 5), (1, 3)]:
        shares = [list(sampler(range(n), ranks, r, seed=2)) for r in range(ranks)]
        assert len({len(share) for share in shares}) == 1
        visited = [i for group in zip(*shares, strict=True) for i in group]
        assert sorted(visited[:n]) == list(range(n))
        assert visited[n:] == (visited[:n] * ranks)[: len(visited) - n]


def test_distributed_sampler_of_nothing_and_bad_ranks():
    sampler = minitorch.utils.data.DistributedSampler
    assert list(sampler([], 2, 0)) == []
    with pytest.raises(
        ValueError, match=r"Invalid rank 2, rank should be in the interval \[0, 1\]"
    ):
        sampler(range(4), 2, 2)


def test_distributed_sampler_leaves_the_default_stream_alone():
    minitorch.manual_seed(0)
    expected = minitorch.rand(2)
    minitorch.manual_seed(0)
    list(minitorch.utils.data.DistributedSampler(range(10), 2, 0))
    assert minitorch.equal(minitorch.rand(2), expected)
