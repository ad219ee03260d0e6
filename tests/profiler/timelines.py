"""A timeline whose sums are known by hand, and what every trace file must satisfy."""

from minitorch.profiler import Event

MS = 1_000_000


def event(name, category, begin, end, track="compute", rank=0, **args):
    return Event(rank, track, name, category, int(begin * MS), int(end * MS), args)


def step(offset, rank=0):
    """A step of 30 ms: two buckets, the first wholly hidden, the second half; 4 ms of both at once
    on the wire.
    """
    at = lambda begin, end: (offset + begin, offset + end)
    return [
        event("data wait", "data", *at(0, 1), rank=rank),
        event("forward", "forward", *at(1, 5), rank=rank),
        event("Linear", "forward", *at(2, 4), rank=rank),  # inside: must not count twice
        event("backward", "backward", *at(5, 25), rank=rank),
        event("bucket ready", "ready", *at(10, 10), rank=rank, bucket=0),
        event("bucket ready", "ready", *at(14, 14), rank=rank, bucket=1),
        event("wait for buckets", "wait", *at(20, 24), rank=rank),
        event(
            "all_reduce",
            "communication",
            *at(10, 18),
            track="communication",
            rank=rank,
            bucket=0,
            bytes=1000,
        ),
        event(
            "all_reduce",
            "communication",
            *at(14, 24),
            track="communication",
            rank=rank,
            bucket=1,
            bytes=500,
        ),
        event("optimizer step", "optimizer", *at(25, 28), rank=rank),
    ]


def check_schema(content):
    """What a viewer relies on; also used on files of real runs."""
    named = {
        (e["pid"], e["tid"])
        for e in content["traceEvents"]
        if e["ph"] == "M" and e["name"] == "thread_name"
    }
    flows = {}
    open_spans = {}
    drawn = [e for e in content["traceEvents"] if e["ph"] in "Xi"]
    for e in content["traceEvents"]:
        assert e["ph"] in "MXisf"
        assert isinstance(e["pid"], int)
        assert isinstance(e["tid"], int)
        assert isinstance(e["name"], str)
        if e["ph"] == "X":
            assert e["dur"] > 0
        if e["ph"] in "sf":
            flows.setdefault(e["id"], {})[e["ph"]] = e
        if e["ph"] != "M":
            assert e["ts"] >= 0
            assert (e["pid"], e["tid"]) in named
    for e in sorted((e for e in drawn if e["ph"] == "X"), key=lambda e: (e["ts"], -e["dur"])):
        stack = open_spans.setdefault((e["pid"], e["tid"]), [])
        while stack and stack[-1] <= e["ts"] + 1e-6:
            stack.pop()
        assert not stack or e["ts"] + e["dur"] <= stack[-1] + 1e-3, (
            f"{e['name']} half overlaps another event of its track"
        )
        stack.append(e["ts"] + e["dur"])
    for pair in flows.values():
        assert set(pair) == {"s", "f"}, "an arrow without a head or a tail"
        assert pair["s"]["pid"] == pair["f"]["pid"]
        assert pair["s"]["ts"] <= pair["f"]["ts"]
        assert pair["f"]["bp"] == "e"
    return flows
