"""The images trainer from end to end, over ranks as threads and on small data."""

import json

import numpy as np
import pytest
from profiler.timelines import check_schema
from trainer_programs import ROOT, output_of_two_processes, run_trainer, usage_error

import minitorch as torch
import minitorch.distributed as dist
from minitorch import datasets, profiler
from minitorch.utils.data import TensorDataset

RECORDED = json.loads((ROOT / "tests" / "golden" / "trainer.json").read_text())


@pytest.fixture
def digits(tmp_path, monkeypatch):
    """Put 20 easy "digits" of each class where the loader of mnist-subset looks first."""
    rng = np.random.default_rng(0)
    rows = []
    for label in range(10):
        for _ in range(20):
            image = rng.integers(0, 60, (28, 28))
            image[2 * label : 2 * label + 6, 4:24] = 255
            rows.append(",".join(map(str, [*image.reshape(-1), label])))
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "mnist_5k.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.setenv("MINITORCH_DATA", str(folder))


def run(*arguments):
    import images

    return run_trainer(images, *arguments)


def files(folder):
    return "--checkpoint", folder / "c.pt", "--trace", folder / "t.trace.json"


NO_FILES = ("--checkpoint", "none", "--trace", "none")
SMALL = ("--epochs", 3, "--batch-size", 12, "--model", "mlp")


def test_two_ranks_learn_and_say_so(digits, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)  # short paths, whatever the width of the table
    summary = run("--threads", 2, "--epochs", 3, "--batch-size", 20, *files(tmp_path))
    out = capsys.readouterr().out
    assert summary.values["accuracy"] > 0.5  # chance is 0.1
    assert summary.values["seen"] == 40
    for text in (
        "epoch  3 of 3",
        "held-out accuracy",
        "hidden under backward",
        "c.pt",
        "t.trace.json",
    ):
        assert text in out
    assert "\x1b" not in out, "no terminal, no escape codes"
    assert out.count("epoch  1 of 3") == 1, "one rank prints"
    assert (tmp_path / "c.pt").exists()


def test_the_timeline_of_a_run(digits, tmp_path):
    run("--threads", 2, "--epochs", 1, "--batch-size", 40, *files(tmp_path))
    path = tmp_path / "t.trace.json"
    flows = check_schema(json.loads(path.read_text()))
    timeline = profiler.load(path)
    assert timeline.ranks == [0, 1]
    assert timeline.complete
    summary = profiler.summarize(timeline)
    for rank in timeline.ranks:
        steps = summary.steps[rank]
        assert len(steps) == 4
        assert all(step.collectives >= 4 for step in steps), "the default bucket size makes four"
        for category in ("forward", "backward", "optimizer", "data", "ready", "wait"):
            assert timeline.of(rank=rank, category=category), category
    assert len(flows) == sum(s.collectives for rank in timeline.ranks for s in summary.steps[rank])


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_a_resumed_run_equals_one_that_was_not_interrupted(digits, tmp_path, ranks):
    start = ("--threads", ranks, *SMALL, "--trace", "none", "--checkpoint")
    whole = run(*start, tmp_path / "a.pt")
    part = run(*start, tmp_path / "b.pt", "--stop-after", 1)
    rest = run(*start, tmp_path / "b.pt", "--resume")
    expected, got = whole.values["parameters"], rest.values["parameters"]
    assert not all(map(np.array_equal, expected, part.values["parameters"]))
    assert all(map(np.array_equal, expected, got)), "not the same bits"
    assert whole.values["loss"] == rest.values["loss"]


def test_resuming_what_is_finished_evaluates(digits, tmp_path):
    first = run(*SMALL, *files(tmp_path))
    again = run(*SMALL, *files(tmp_path), "--resume")
    assert again.values["accuracy"] == first.values["accuracy"]


def test_the_number_of_ranks_does_not_change_the_result(digits):
    alone, two = run(*SMALL, *NO_FILES), run("--threads", 2, *SMALL, *NO_FILES)
    for a, b in zip(alone.values["parameters"], two.values["parameters"], strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5)


@pytest.mark.parametrize("model", ["cnn", "mlp"])
def test_as_pytorch_does(model):
    """Same data, weights, order and schedule as in the recording: the same held-out figures."""
    try:
        datasets.mnist_subset()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    summary = run("--model", model, "--limit", 200, "--epochs", 2, "--batch-size", 50, *NO_FILES)
    recorded = RECORDED["short"][model]
    last_epoch = np.mean(recorded["losses"][4:])
    assert summary.values["training_loss"] == pytest.approx(last_epoch, abs=1e-3)
    assert summary.values["loss"] == pytest.approx(recorded["held_out_loss"], abs=1e-3)
    assert summary.values["accuracy"] == pytest.approx(recorded["accuracy"], abs=0.011)


@pytest.mark.parametrize(("samples", "ranks"), [(7, 3), (2, 4), (8, 2)])
def test_evaluation_counts_every_sample_once(samples, ranks):
    import images

    # A model whose score is the image itself; every other label is right.
    scores = torch.eye(10)[torch.arange(samples) % 10]
    labels = torch.arange(samples) % 10
    labels[::2] = 9
    data = TensorDataset(scores, labels)

    def on_rank(rank):
        return images.evaluate(torch.nn.Flatten(), data, batch=2)

    results = dist.run_local(on_rank, ranks)
    correct = int((np.arange(samples) % 10 == labels.numpy()).sum())
    assert len(set(results)) == 1
    assert results[0][1:] == (correct / samples, samples)


def test_the_checkpoint_of_another_model_is_refused(digits, tmp_path):
    run("--epochs", 1, "--model", "mlp", *files(tmp_path))
    before = (tmp_path / "c.pt").read_bytes()
    with pytest.raises(SystemExit, match="model was 'mlp' and is 'cnn' now"):
        run("--epochs", 1, "--model", "cnn", *files(tmp_path), "--resume")
    with pytest.raises(SystemExit, match="epochs was 1 and is 2 now"):
        run("--epochs", 2, "--model", "mlp", *files(tmp_path), "--resume")
    assert (tmp_path / "c.pt").read_bytes() == before


def test_what_is_no_checkpoint_is_refused(digits, tmp_path):
    (tmp_path / "c.pt").write_bytes(b"no checkpoint")
    with pytest.raises(SystemExit, match="cannot be read as a checkpoint"):
        run("--epochs", 1, *files(tmp_path), "--resume")
    torch.save({"a": 1}, tmp_path / "c.pt")
    with pytest.raises(SystemExit, match="not a checkpoint of a trainer"):
        run("--epochs", 1, *files(tmp_path), "--resume")
    with pytest.raises(SystemExit, match="nothing to resume from"):
        run("--epochs", 1, *NO_FILES, "--resume")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--epochs", "0"], "must be at least 1"),
        (["--lr", "-1"], "must be positive"),
        (["--bucket-cap-mb", "nan"], "must be positive"),
        (["--link", "fast"], "a link is RATE,LATENCY"),
        (["--algorithm", "telepathy"], "'telepathy' is not registered; there is: ddp"),
        (["--data", "imagenet"], "invalid choice"),
        (["--threads", "many"], "invalid"),
    ],
)
def test_bad_arguments(arguments, complaint, capsys):
    assert complaint.lower() in usage_error(run, arguments, capsys).lower()


def test_threads_under_mpirun_are_refused(monkeypatch, capsys):
    monkeypatch.setenv("PMI_RANK", "0")
    assert "PMI_RANK=0" in usage_error(run, ["--threads", "2"], capsys)


def test_a_batch_that_cannot_be_shared_is_refused(digits):
    with pytest.raises(SystemExit, match="3 ranks cannot share it equally"):
        run("--threads", 3, "--batch-size", 20, *NO_FILES)


def test_missing_data_say_what_to_install(monkeypatch):
    monkeypatch.setenv("MINITORCH_DATA", "/nowhere")
    with pytest.raises(SystemExit, match="fashion-mnist"):
        run("--data", "fashion-mnist", *NO_FILES)


def test_the_benchmark_measures_this_model():
    import images

    from minitorch.bench.workers.workloads import small_cnn

    shapes = [[p.shape for p in model.parameters()] for model in (images.cnn(), small_cnn(torch))]
    assert shapes[0] == shapes[1]


@pytest.mark.mpi
def test_between_processes(digits, tmp_path):
    """Two processes under mpirun: the same result as two threads, and one timeline."""
    options = ["--epochs", "2", "--batch-size", "20", "--model", "mlp", *map(str, files(tmp_path))]
    printed = output_of_two_processes("images.py", *options)
    assert printed.count("epoch  2 of 2") == 1
    timeline = profiler.load(tmp_path / "t.trace.json")
    check_schema(json.loads((tmp_path / "t.trace.json").read_text()))
    assert timeline.ranks == [0, 1]
    assert profiler.summarize(timeline).collectives() >= 4
    options[options.index("--checkpoint") + 1] = "none"
    threads = run("--threads", 2, *options)
    saved = torch.load(tmp_path / "c.pt")["states"]["model"]
    for got, expected in zip(threads.values["parameters"], saved.values(), strict=True):
        np.testing.assert_array_equal(got, expected.numpy())
