"""The sequential images' trainer from end to end, over ranks as threads and on small data."""

import json

import numpy as np
import pytest
from profiler.timelines import check_schema
from trainer_programs import output_of_two_processes, run_trainer

import minitorch as torch
import minitorch.distributed as dist
from minitorch.utils.data import TensorDataset

PER_CLASS = 20


@pytest.fixture(autouse=True)
def digits(tmp_path, monkeypatch):
    """Put 20 easy "digits" of each class where the loader of mnist-subset looks first.

    A class is a brightness; the first pixel counts within the class, so that each is known again.
    """
    rows = []
    for label in range(10):
        for number in range(PER_CLASS):
            image = np.full((28, 28), 25 * label)
            image[0, 0] = number
            rows.append(",".join(map(str, [*image.reshape(-1), label])))
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "mnist_5k.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.setenv("MINITORCH_DATA", str(folder))
    monkeypatch.chdir(tmp_path)


NO_FILES = ("--checkpoint", "none", "--trace", "none", "--curve", "none", "--history", "none")
SMALL = ("--rows", 7, "--hidden", 8, "--batch-size", 12, "--epochs", 3, "--lr", 0.02)


def run(*arguments):
    import sequential_images

    return run_trainer(sequential_images, *arguments)


def test_two_ranks_learn_and_say_so(tmp_path, capsys):
    summary = run("--threads", 2, *SMALL, "--batch-size", 10, "--epochs", 6, "--order", "lines")
    out = capsys.readouterr().out
    folder = tmp_path / "runs/sequential-images"
    history = json.loads((folder / "history.json").read_text())
    assert history["test"] < 0.8, "chance is 0.9"
    assert history["valid"] == min(row["valid"] for row in history["epochs"])
    assert history["settings"]["order"] is None
    assert summary.values["seen"] == 40
    for text in ("epoch  6 of 6", "test errors", "hidden under backward", "49 pixels"):
        assert text in out
    assert out.count("epoch  1 of 6") == 1, "one rank prints"
    assert (folder / "checkpoint.pt").exists()
    check_schema(json.loads((folder / "timeline.trace.json").read_text()))


@pytest.mark.parametrize(
    ("method", "ranks", "end"),
    [("none", 3, "--epochs"), ("zoneout", 2, "--stop-after"), ("recurrent-dropout", 1, "--epochs")],
)
def test_a_resumed_run_equals_one_that_was_not_interrupted(method, ranks, end, tmp_path):
    """Interrupted with ``--stop-after``, or a shorter run that goes on with more ``--epochs``."""
    start = ("--threads", ranks, *SMALL, "--regularizer", method, *NO_FILES, "--checkpoint")
    whole = run(*start, tmp_path / "a.pt")
    run(*start, tmp_path / "b.pt", end, 2)
    rest = run(*start, tmp_path / "b.pt", "--resume")
    expected, got = whole.values["parameters"], rest.values["parameters"]
    assert all(map(np.array_equal, expected, got)), "not the same bits"
    for name in ("valid", "test", "test_loss", "best_epoch"):
        assert whole.values["record"][name] == rest.values["record"][name]


def test_the_number_of_ranks_does_not_change_the_result():
    # RMSProp divides by what it has seen of the gradient: at a high rate it amplifies rounding.
    options = (*SMALL, "--lr", 0.001, *NO_FILES)
    alone, two = run(*options), run("--threads", 2, *options)
    for a, b in zip(alone.values["parameters"], two.values["parameters"], strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5)


def test_parts_are_balanced_and_disjoint():
    import sequential_images

    parts = sequential_images.load_sequences("mnist-subset", 28, None, None)
    assert [len(part) for part in parts[:3]] == [140, 20, 40]
    numbers = []
    for part, per_class in zip(parts[:3], (14, 2, 4), strict=True):
        sequences, labels = (tensor.numpy() for tensor in part.tensors)
        assert sequences.shape[1:] == (784, 1)
        assert np.bincount(labels).tolist() == [per_class] * 10
        first = np.rint((sequences[:, 0, 0] * 0.3081 + 0.1307) * 255).astype(int)
        numbers.append({(label, number) for label, number in zip(labels, first, strict=True)})
    assert len(set.union(*numbers)) == 10 * PER_CLASS, "no image is in two parts"
    small = sequential_images.load_sequences("mnist-subset", 7, None, 20)
    assert [len(part) for part in small[:3]] == [20, 20, 20]
    assert np.bincount(small.train.tensors[1].numpy()).tolist() == [2] * 10


def test_pixels_are_averaged_and_permuted():
    import sequential_images

    rng = np.random.default_rng(0)
    images = rng.standard_normal((3, 1, 28, 28)).astype(np.float32)
    data = TensorDataset(torch.from_numpy(images), torch.arange(3))
    order = rng.permutation(196)
    out = sequential_images.as_sequences(data, np.array([2, 0]), 14, order)
    sequences, labels = (tensor.numpy() for tensor in out.tensors)
    assert labels.tolist() == [2, 0]
    for t in (0, 17, 195):
        row, column = divmod(order[t], 14)
        block = images[2, 0, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
        assert sequences[0, t, 0] == pytest.approx(block.mean(), abs=1e-6)


def test_the_order_is_a_permutation_that_its_seed_decides():
    import sequential_images

    def pixels(seed):
        part = sequential_images.load_sequences("mnist-subset", 14, seed, None).train
        return part.tensors[0].numpy()[13, :, 0]

    lines, one, other = pixels(None), pixels(1), pixels(2)
    # Image 13 has one odd pixel, averaged into the first of 196.
    assert np.flatnonzero(lines != lines[-1]).tolist() == [0]
    places = [np.flatnonzero(p != lines[-1]) for p in (one, other)]
    assert [len(p) for p in places] == [1, 1], "every pixel once: not drawn with replacement"
    assert places[0] != places[1]
    assert np.array_equal(pixels(1), one)


@pytest.mark.parametrize(("samples", "ranks"), [(7, 3), (2, 4), (8, 2), (1, 1)])
def test_evaluation_counts_every_sample_once(samples, ranks):
    import sequential_images

    scores = torch.eye(10)[torch.arange(samples) % 10]
    labels = torch.arange(samples) % 10
    labels[::2] = 9
    data = TensorDataset(scores, labels)
    results = dist.run_local(
        lambda rank: sequential_images.evaluate(torch.nn.Flatten(), data, batch=2), ranks
    )
    wrong = int((np.arange(samples) % 10 != labels.numpy()).sum())
    assert len(set(results)) == 1
    assert results[0][1:] == (wrong / samples, samples)


def test_the_forget_gate_starts_open():
    import sequential_images

    model = sequential_images.SequenceClassifier(8, 10, num_layers=2)
    for layer in range(2):
        bias = getattr(model.lstm, f"bias_ih_l{layer}").detach().numpy()
        assert (bias[8:16] == 1).all()
        assert not (bias[:8] == 1).any()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--rows", 5], "--rows 5 does not divide the images' 28 rows"),
        (["--rate", 0.5], "there is no regularizer"),
        (["--threads", 3, "--batch-size", 10], "3 ranks cannot share it equally"),
        (["--resume"], "nothing to resume from"),
    ],
)
def test_options_that_make_no_sense_end_before_training(arguments, complaint):
    with pytest.raises(SystemExit, match=complaint):
        run(*SMALL, *NO_FILES, *arguments)


def test_early_stopping():
    record = run(*SMALL, "--epochs", 40, "--lr", 5.0, "--patience", 2, *NO_FILES).values["record"]
    assert len(record["epochs"]) == record["best_epoch"] + 2 < 40


@pytest.mark.mpi
def test_between_processes(tmp_path):
    """Two processes under mpirun: the same weights as two threads, masks included."""
    options = [*map(str, SMALL), "--regularizer", "zoneout", *NO_FILES]
    options[options.index("--checkpoint") + 1] = str(tmp_path / "c.pt")
    output_of_two_processes("sequential_images.py", *options)
    options[options.index("--checkpoint") + 1] = "none"
    threads = run("--threads", 2, *options)
    saved = torch.load(tmp_path / "c.pt")["states"]["model"]
    names = [name for name in saved if not name.endswith("_extra_state")]
    for got, name in zip(threads.values["parameters"], names, strict=True):
        np.testing.assert_array_equal(got, saved[name].numpy())
