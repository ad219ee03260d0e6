"""_get_ddp_logging_data, the step's clocks, and the events of the trace."""

from __future__ import annotations

from distributed.ddp_cases import DDP, run, same_on_all

import minitorch as torch
from minitorch import nn, profiler


def layers():
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(64, 64, bias=False) for _ in range(4)))


def train(r, steps=3, **options):
    ddp = DDP(layers(), bucket_cap_mb=0.01, **options)
    for _ in range(steps):
        ddp.zero_grad()
        ddp(torch.ones(2, 64)).sum().backward()
    return ddp


def test_construction_facts():
    def rank(r):
        data = train(r, steps=0)._get_ddp_logging_data()
        assert "rebuilt_bucket_sizes" not in data
        keys = "world_size module_name num_parameter_tensors total_parameter_size_bytes dtypes"
        keys += " bucket_cap_bytes"
        return (
            [data[k] for k in keys.split()],
            data["bucket_sizes"],
            data["iteration"],
            data["has_rebuilt_buckets"],
        )

    assert same_on_all(rank) == (
        [2, "Sequential", 4, 4 * 64 * 64 * 4, "float32", int(0.01 * 2**20)],
        "65536",
        0,
        0,
    )


def test_layout_after_the_rebuild():
    def rank(r):
        data = train(r)._get_ddp_logging_data()
        return (
            data["iteration"],
            data["rebuilt_bucket_sizes"],
            data["rebuilt_per_bucket_param_indices"],
            data["prev_iteration_grad_ready_order_indices"],
            data["num_buckets_reduced"],
            data["comm_hook"],
            data["has_error"],
        )

    sizes = ", ".join(["16384"] * 4)
    assert same_on_all(rank) == (
        3,
        sizes,
        "3, 2, 1, 0",
        "3, 2, 1, 0",
        4,
        "builtin_hook: ALLREDUCE",
        0,
    )


def test_clocks_are_in_order_and_add_up():
    def rank(r):
        ddp = train(r)
        step = ddp.reducer._core.last_step()
        data = ddp._get_ddp_logging_data()
        return step, data

    for step, data in run(rank, 2, link="200Mbit/s,100us"):
        moments = ["forward_start", "forward_end", "backward_start", "compute_end", "handed_back"]
        assert [step[m] for m in moments] == sorted(step[m] for m in moments)
        launches = [b["launched"] for b in step["buckets"]]
        assert launches == sorted(launches)
        for bucket in step["buckets"]:
            assert (
                0 < bucket["ready"] <= bucket["launched"] <= bucket["started"] <= bucket["finished"]
            )
            assert bucket["bytes"] == 16384
        communication = data["backward_comm_time"]
        hidden = data["backward_compute_comm_overlap_time"]
        assert communication > 0
        assert 0 <= hidden <= min(communication, data["backward_compute_time"])
        # What is left after backward's computation is what is waited for: it cannot be waited for
        # longer than until everything is handed back.
        assert 0 < data["backward_comm_exposed_time"] <= step["handed_back"] - step["compute_end"]
        assert data["forward_compute_time"] == step["forward_end"] - step["forward_start"]


def test_trace_has_every_arrow_of_the_path():
    expected = []
    for bucket, layer in enumerate([3, 2, 1, 0]):
        expected += [f"gradient ready: {layer}.weight", f"bucket {bucket} ready"]

    def rank(r):
        ddp = train(r)
        with profiler.trace() as recording:
            ddp(torch.ones(2, 64)).sum().backward()
        mine = [e for e in recording.timeline.events if e.rank == r]
        ready = [e.name for e in mine if e.name in expected]
        buckets = {
            e.args["bucket"]: e.begin for e in mine if e.category == "ready" and "bucket" in e.args
        }
        waits = {e.args["bucket"]: e for e in mine if e.category == "wait" and "bucket" in e.args}
        wire = {
            e.args["bucket"]: e for e in mine if e.track == "communication" and "bucket" in e.args
        }
        for bucket in range(4):
            assert buckets[bucket] <= wire[bucket].begin <= wire[bucket].end <= waits[bucket].end
        return ready

    assert same_on_all(rank) == expected
