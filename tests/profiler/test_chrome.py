"""The trace file: schema, nesting, arrows, and the way back."""

import json

import pytest
from profiler.timelines import check_schema, event, step

from minitorch.profiler import Event, Timeline, load
from minitorch.profiler.chrome import arrows, to_chrome, write
from minitorch.profiler.events import lanes


def test_schema_of_two_ranks():
    content = to_chrome(Timeline(step(0) + step(30) + step(1, rank=1)))
    flows = check_schema(content)
    assert len(flows) == 6  # two buckets in each of three steps
    processes = [e["args"]["name"] for e in content["traceEvents"] if e["name"] == "process_name"]
    assert processes == ["rank 0", "rank 1"]
    threads = {e["args"]["name"] for e in content["traceEvents"] if e["name"] == "thread_name"}
    assert threads == {
        "compute",
        "communication",
        "communication (2)",
    }  # two all-reduces were in flight at once
    json.dumps(content)


def test_arrows_need_both_ends():
    ready = event("bucket ready", "ready", 1, 1, bucket=0)
    stale = event("bucket ready", "ready", 0, 0, bucket=0)
    reduce = event("all_reduce", "communication", 2, 3, track="communication", bucket=0)
    assert arrows([ready]) == []
    assert arrows([reduce]) == []
    assert arrows([stale, ready, reduce]) == [(ready, reduce)]


def test_lanes():
    a, b, c, d = (event("x", "x", *span) for span in ((0, 10), (2, 4), (5, 12), (12, 13)))
    assert lanes([d, c, b, a]) == [[a, b, d], [c]]


def test_written_and_read_again(tmp_path):
    timeline = Timeline(step(0), {"link": "1Gbit/s"}, complete=True)
    path = tmp_path / "deep" / "timeline.json"
    write(timeline, path)
    back = load(path)
    assert sorted(back.events, key=repr) == sorted(timeline.events, key=repr)
    assert back.metadata == {"link": "1Gbit/s"}
    assert back.complete
    assert list(path.parent.iterdir()) == [path]  # no temporary file is left


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "timeline.json"
    write(Timeline(step(0)), path)
    before = path.read_text()
    with pytest.raises(TypeError):
        write(Timeline([Event(0, "compute", "x", "x", 0, 1, {"bad": object()})]), path)
    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "content", ["", "[]", '{"traceEvents": []}', '{"traceEvents": [{}], "minitorch": {}}', "\x00"]
)
def test_a_foreign_file_is_refused(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="not a timeline written by"):
        load(path)
