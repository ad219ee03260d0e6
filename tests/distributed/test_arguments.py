"""What is refused, in PyTorch's words, before anything is sent."""

from __future__ import annotations

import re

import pytest

import minitorch as torch
import minitorch.distributed as dist


def refused(error, words, call):
    with pytest.raises(error, match=re.escape(words)):
        call()


def test_arguments_are_checked_before_anything_is_sent():
    def program(rank):
        one, two = torch.zeros(1), torch.zeros(2)
        peer = 1 - rank
        not_tensor = "Invalid function argument. Expected parameter `tensor` of type torch.Tensor"
        refused(TypeError, not_tensor, lambda: dist.all_reduce([1.0]))
        refused(TypeError, not_tensor, lambda: dist.broadcast(1.0, 0))
        refused(TypeError, not_tensor, lambda: dist.isend("x", peer))
        refused(
            TypeError,
            "Expected parameter `tensor_list` of type List[torch.Tensor]",
            lambda: dist.all_gather(two, one),
        )
        refused(TypeError, "`tensor_list`", lambda: dist.all_gather([one, 3], one))
        refused(TypeError, "op must be one of", lambda: dist.all_reduce(one, op="sum"))
        refused(TypeError, "Invalid process group", lambda: dist.all_reduce(one, group="world"))

        different = "Invalid usage of tensors with different dtypes"
        refused(ValueError, different, lambda: dist.all_gather([one.double(), one.double()], one))
        refused(ValueError, different, lambda: dist.gather(one, [one.double(), one], dst=rank))
        refused(ValueError, different, lambda: dist.reduce_scatter(one, [one.double()] * 2))
        refused(ValueError, different, lambda: dist.all_to_all_single(two.double(), two))

        refused(
            RuntimeError, "same as size of the process group", lambda: dist.all_gather([one], one)
        )
        refused(
            RuntimeError, "invalid tensor size at index 1", lambda: dist.all_gather([one, two], one)
        )
        refused(
            RuntimeError,
            "world_size times",
            lambda: dist.all_gather_into_tensor(torch.zeros(5), two),
        )
        refused(RuntimeError, "must be world size", lambda: dist.reduce_scatter(one, [one]))
        refused(
            RuntimeError,
            "output size times world size",
            lambda: dist.reduce_scatter_tensor(two, torch.zeros(5)),
        )
        refused(
            RuntimeError,
            "divide equally",
            lambda: dist.all_to_all_single(torch.zeros(3), torch.zeros(3)),
        )
        refused(
            RuntimeError,
            "Split sizes doesn't match total dim 0 size",
            lambda: dist.all_to_all_single(torch.zeros(3), torch.zeros(3), [1, 1], [1, 1]),
        )

        refused(RuntimeError, "invalid root rank: 7", lambda: dist.broadcast(one, 7))
        refused(RuntimeError, "invalid root rank: -1", lambda: dist.reduce(one, -1))
        refused(ValueError, "Must specify global_rank or group_rank", lambda: dist.broadcast(one))
        refused(ValueError, "Can't specify both", lambda: dist.broadcast(one, 0, group_src=0))
        refused(
            ValueError,
            "Group rank 5 is not part of group",
            lambda: dist.broadcast(one, group_src=5),
        )
        refused(ValueError, "Group rank 5", lambda: dist.get_global_rank(dist.group.WORLD, 5))
        refused(ValueError, "Global rank 5", lambda: dist.get_group_rank(dist.group.WORLD, 5))

        must, must_not = "must be specified on", "must NOT be specified on"
        refused(
            ValueError,
            f"Argument ``gather_list`` {must} destination rank.",
            lambda: dist.gather(one, dst=rank),
        )
        refused(
            ValueError,
            f"``gather_list`` {must_not} non-destination",
            lambda: dist.gather(one, [one, one], dst=peer),
        )
        refused(
            ValueError,
            f"Argument ``scatter_list`` {must} source rank.",
            lambda: dist.scatter(one, src=rank),
        )
        refused(
            ValueError,
            f"``scatter_list`` {must_not} non-source",
            lambda: dist.scatter(one, [one, one], src=peer),
        )

        refused(
            ValueError,
            "Invalid destination rank: destination rank should not be the same as the rank of "
            "the current process.",
            lambda: dist.send(one, rank),
        )
        refused(ValueError, "Invalid source rank", lambda: dist.recv(one, rank))
        refused(ValueError, "Invalid destination rank: 7", lambda: dist.send(one, 7))
        refused(
            RuntimeError,
            "input tensor has to be contiguous",
            lambda: dist.send(torch.zeros(4)[::2], peer),
        )
        refused(ValueError, "nonnegative", lambda: dist.send(one, peer, tag=-1))
        refused(ValueError, "Expected ``op``", lambda: dist.P2POp(dist.send, one, peer))

        refused(RuntimeError, "clone() the tensor", lambda: dist.all_reduce(one.expand(3)))
        refused(
            RuntimeError,
            "result type Float can't be cast to the desired output type Int",
            lambda: dist.all_reduce(torch.ones(2, dtype=torch.int32), op=dist.ReduceOp.AVG),
        )
        # Nothing of all this was half-done: the ranks still agree.
        dist.all_reduce(one)
        dist.barrier()

    dist.run_local(program, 2, timeout=30)


@pytest.mark.parametrize(
    ("text", "rate", "latency"),
    [
        ("1Gbit/s,50us", 125e6, 50e-6),
        ("100Mbit/s", 12.5e6, 0.0),
        ("8 kbit/s, 2 ms", 1e3, 2e-3),
        ("2.5GB/s,1s", 2.5e9, 1.0),
        ("64KiB/s", 65536.0, 0.0),
        ("10us", float("inf"), 10e-6),
        ("1e3MB/s", 1e9, 0.0),
        ("8Mb/s", 1e6, 0.0),
        ("25Gbps,5us", 25e9 / 8, 5e-6),
    ],
)
def test_links_are_read(text, rate, latency):
    link = dist.parse_link(text)
    assert link.bytes_per_second == pytest.approx(rate)
    assert link.latency == pytest.approx(latency)
    assert "emulated" in str(link)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot read ''"),
        ("1Gbit", "cannot read '1Gbit'"),
        ("50", "cannot read '50'"),
        ("1Gbit/s,2Gbit/s", "two rates"),
        ("1us,2us", "two latencies"),
        ("0MB/s", "must be positive"),
        ("-1us", "cannot read"),
        ("1Xbit/s", "cannot read"),
        ("1iB/s", "cannot read"),
    ],
)
def test_bad_links_are_explained(text, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        dist.parse_link(text)
