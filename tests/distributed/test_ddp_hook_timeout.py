"""A communication hook whose Future nobody completes: an error at the group's timeout, naming hook
and bucket, on all ranks.
"""

from __future__ import annotations

import time

import pytest
from distributed.ddp_cases import DDP, TwoOutputs, a, run

import minitorch as torch
import minitorch.distributed as dist


def forgetful(state, bucket):
    """Completes every Future but that of bucket 1 on the ranks in ``state``."""
    future = torch.futures.Future()
    if bucket.index() != 1 or dist.get_rank() not in state:
        future.set_result(bucket.buffer())
    return future


def chained(state, bucket):
    """The same, behind a continuation."""
    return forgetful(state, bucket).then(lambda f: f.value())


def collected(state, bucket):
    """The same, inside a collection."""
    both = [forgetful(state, bucket), forgetful((), bucket)]
    return torch.futures.collect_all(both).then(lambda f: f.value()[0].value())


@pytest.mark.filterwarnings("ignore:find_unused_parameters=True was specified")
@pytest.mark.parametrize("hook", [forgetful, chained, collected])
@pytest.mark.parametrize("forgetting", [(0, 1), (1,)], ids=["everywhere", "on rank 1"])
def test_raises_on_all_ranks(hook, forgetting):
    def rank(r):
        ddp = DDP(TwoOutputs(), bucket_cap_mb=0, find_unused_parameters=True)
        ddp.register_comm_hook(forgetting, hook)
        with pytest.raises(RuntimeError) as caught:
            out_p, _ = ddp(a(r))
            out_p.sum().backward()
            time.sleep(0.6)  # so that this rank's own time limit is later
            dist.barrier()  # where a rank whose own hook was good is told
        return str(caught.value)

    for r, text in enumerate(run(rank, 2, timeout=1.0)):
        assert f"Communication hook {hook.__qualname__} on rank" in text
        assert "GradBucket(index=1, parameters=['p'])" in text
        assert "was not completed within the group's timeout of 1 s" in text
        if r not in forgetting:
            assert "on rank 1" in text


def test_a_longer_wait_elsewhere_is_not_shortened():
    """The limit holds inside the hook's wait only."""
    from minitorch.distributed.futures import _patience, patience

    before = _patience.seconds
    with pytest.raises(ValueError, match="inside"), patience(0.1):
        assert _patience.seconds == 0.1
        raise ValueError("inside")
    assert _patience.seconds == before
