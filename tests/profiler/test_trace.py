"""Recording real runs: what is in the file, and that everything is put back afterwards."""

import json

import pytest
from profiler.timelines import check_schema

import minitorch as torch
import minitorch.distributed as dist
from minitorch import nn, profiler
from minitorch.nn.parallel import DistributedDataParallel
from minitorch.profiler import instrument
from minitorch.profiler.recorder import current
from minitorch.utils.data import DataLoader, TensorDataset

STEPS, LAYERS = 3, 3


def originals():
    return [
        getattr(owner, name)
        for owner, name in (
            (nn.Module, "__call__"),
            (torch.optim.SGD, "step"),
            (DataLoader, "__iter__"),
            (torch.autograd, "backward"),
        )
    ]


def train(rank, path, fail_on=None):
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Linear(16, 16) for _ in range(LAYERS)))
    ddp = DistributedDataParallel(model, bucket_cap_mb=0.001)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    data = DataLoader(TensorDataset(torch.ones(STEPS * 4, 16)), batch_size=4)
    with profiler.trace(path, metadata={"note": "x"}) as recording:
        for (batch,) in data:
            optimizer.zero_grad()
            with profiler.record_function("mine"):
                loss = ddp(batch).sum()
            loss.backward()
            if rank == fail_on:
                raise ValueError("in the middle")
            optimizer.step()
    return recording.timeline


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_all_ranks_in_one_file(tmp_path, ranks):
    before = originals()
    path = tmp_path / "timeline.json"
    timelines = dist.run_local(train, ranks, args=(path,))
    assert originals() == before
    flows = check_schema(json.loads(path.read_text()))
    timeline = profiler.load(path)
    assert timeline.ranks == list(range(ranks))
    assert timeline.metadata["world_size"] == ranks
    assert timeline.metadata["note"] == "x"
    assert len(timelines[0].events) == len(timeline.events)
    summary = profiler.summarize(path)
    for rank in range(ranks):
        names = [event.name for event in timeline.of(rank=rank)]
        for name, times in (
            ("forward", STEPS),
            ("Linear", STEPS * LAYERS),
            ("mine", STEPS),
            ("backward", STEPS),
            ("optimizer step", STEPS),
            ("gradient ready: 0.weight", STEPS),
            ("bucket 0 ready", STEPS),
            ("wait for bucket 0", STEPS),
            ("bucket 0 handed back", STEPS),
        ):
            assert names.count(name) == times, name
        assert names.count("data wait") == STEPS + 1  # the last one finds the end
        assert [s.collectives for s in summary.steps[rank]] == [1, LAYERS, LAYERS]
        for step in summary.steps[rank]:
            # Each by clocks of its own, and yet they fit.
            assert 0 <= step.hidden + step.exposed <= step.communication
            assert step.bytes == 4 * LAYERS * (16 * 16 + 16)
    assert len(flows) == ranks * (1 + 2 * LAYERS)


def test_backward_lies_around_what_it_causes(tmp_path):
    dist.run_local(train, 2, args=(tmp_path / "t.json",))
    timeline = profiler.load(tmp_path / "t.json")
    for rank in timeline.ranks:
        backwards = timeline.of(rank=rank, category="backward")
        for inner in timeline.of(rank=rank, category="ready") + timeline.of(
            rank=rank, category="wait"
        ):
            assert any(b.begin <= inner.begin <= inner.end <= b.end for b in backwards)


def test_an_exception_writes_what_there_is(tmp_path):
    before = originals()
    path = tmp_path / "timeline.json"
    with pytest.raises(ValueError, match="in the middle"):
        dist.run_local(train, 2, args=(path, 1))
    assert originals() == before
    alone = profiler.load(tmp_path / "timeline.rank1.json")
    assert alone.ranks == [1]
    assert not alone.complete
    assert alone.of(category="backward")
    assert "ended with an exception" in str(profiler.summarize(alone))


def test_alone_without_a_group(tmp_path):
    path = tmp_path / "timeline.json"
    with pytest.raises(KeyError), profiler.trace(path):
        nn.Linear(2, 2)(torch.ones(2)).sum().backward()
        raise KeyError("x")
    timeline = profiler.load(path)
    assert [e.name for e in timeline.of(category="forward")] == ["forward"]
    assert [e.name for e in timeline.of(category="backward")] == ["backward"]
    assert timeline.complete
    assert current() is None


def test_traces_do_not_nest():
    with profiler.trace(), pytest.raises(RuntimeError, match="recording already"):
        profiler.trace().__enter__()
    assert current() is None
    assert instrument._users == 0


def test_a_path_that_cannot_be_written_is_an_error_but_not_a_mess(tmp_path):
    (tmp_path / "file").write_text("")
    before = originals()
    with pytest.raises(OSError, match="file"), profiler.trace(tmp_path / "file" / "t.json"):
        pass
    assert originals() == before
    assert current() is None


def test_record_function_decorates_and_recurses():
    @profiler.record_function("countdown")
    def countdown(n):
        return 0 if n == 0 else countdown(n - 1)

    assert countdown(2) == 0  # nothing records: nothing happens
    with profiler.trace() as recording:
        countdown(2)
        with pytest.raises(ZeroDivisionError), profiler.record_function("fails", "with words"):
            1 / 0  # noqa: B018
    names = [e.name for e in recording.timeline.events]
    assert names == ["countdown"] * 3 + ["fails"]
    assert recording.timeline.events[-1].args == {"args": "with words"}


def test_other_threads_are_not_recorded():
    import threading

    def elsewhere():
        nn.Linear(2, 2)(torch.ones(2))

    with profiler.trace() as recording:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert recording.timeline.events == []


def test_the_picture(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    dist.run_local(train, 2, args=(tmp_path / "t.json",))
    for step in (-1, 0, None):
        figure = profiler.draw_timeline(tmp_path / "t.json", step=step)
        figure.canvas.draw()
        assert [t.get_text() for t in figure.axes[0].get_yticklabels()][:2] == [
            "rank 0  compute",
            "wire",
        ]
        plt.close(figure)
    with pytest.raises(IndexError, match="step 7 of 3"):
        profiler.draw_timeline(tmp_path / "t.json", step=7)
