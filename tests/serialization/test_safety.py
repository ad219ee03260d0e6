"""Loading executes nothing, and broken files are told apart from good ones."""

import argparse
import io
import json
import pickle
import zipfile

import numpy as np
import pytest

import minitorch


def saved(obj):
    buffer = io.BytesIO()
    minitorch.save(obj, buffer)
    return buffer.getvalue()


def load(data, **options):
    return minitorch.load(io.BytesIO(data), **options)


EXPLODED = []


class Bomb:
    """Calls a function when unpickled."""

    def __reduce__(self):
        return _explode, (1,)


def test_unknown_objects_need_weights_only_false():
    data = saved({"args": argparse.Namespace(lr=0.1)})
    with pytest.raises(pickle.UnpicklingError) as caught:
        load(data)
    for word in ("Weights only load failed", "obj['args'] is a argparse.Namespace", "trust"):
        assert word in str(caught.value)
    assert load(data, weights_only=False)["args"].lr == 0.1


def _explode(value):
    EXPLODED.append(value)


def test_a_bomb_does_not_go_off():
    for data in (saved([Bomb()]), _pytorch_archive(pickle.dumps(Bomb()))):
        with pytest.raises(pickle.UnpicklingError):
            load(data)
    with pytest.raises(RuntimeError, match="looks like a pickle"):
        load(pickle.dumps(Bomb()))
    assert EXPLODED == []
    load(saved([Bomb()]), weights_only=False)
    assert EXPLODED == [1]


def _pytorch_archive(structure):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("archive/data.pkl", structure)
        archive.writestr("archive/version", "3\n")
    return buffer.getvalue()


def test_foreign_classes_are_refused_by_name():
    data = _pytorch_archive(pickle.dumps(argparse.Namespace(a=1)))
    with pytest.raises(pickle.UnpicklingError, match=r"argparse\.Namespace.*state_dict"):
        load(data)


@pytest.mark.parametrize(
    "structure",
    [
        {"tensor": {"dtype": "float32", "shape": [9], "storage": 0, "requires_grad": False}},
        {
            "tensor": {
                "dtype": "float32",
                "shape": [2],
                "storage": 0,
                "offset": 0,
                "strides": [10**6],
                "requires_grad": False,
            }
        },
        {"tensor": {"dtype": "float32", "shape": [2], "storage": 5, "requires_grad": False}},
        {"eval": "1+1"},
        {"ndarray": {"dtype": "O", "shape": [2], "storage": 0}},
    ],
)
def test_prepared_structures_are_refused(structure):
    # Among them a stride that would reach far outside of the storage.
    source = zipfile.ZipFile(io.BytesIO(saved(minitorch.ones(2))))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        header = json.loads(source.read("minitorch.json"))
        header["root"] = structure
        archive.writestr("minitorch.json", json.dumps(header))
        archive.writestr("data/0.npy", source.read("data/0.npy"))
    with pytest.raises(RuntimeError, match="truncated or corrupt"):
        load(buffer.getvalue())


def test_arrays_of_objects_inside_are_refused():
    source = zipfile.ZipFile(io.BytesIO(saved(minitorch.ones(2))))
    member = io.BytesIO()
    np.save(member, np.array([Bomb()], dtype=object), allow_pickle=True)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("minitorch.json", source.read("minitorch.json"))
        archive.writestr("data/0.npy", member.getvalue())
    with pytest.raises(RuntimeError, match="Object arrays cannot be loaded"):
        load(buffer.getvalue())


def test_every_truncation_and_flipped_bytes_are_noticed():
    data = saved({"w": minitorch.arange(100).to(minitorch.float32), "n": [1, 2, 3]})
    for length in range(0, len(data), 37):
        with pytest.raises(RuntimeError):
            load(data[:length])
    start = data.index(b"NUMPY") + 200
    for place in range(start, start + 200, 40):
        broken = bytearray(data)
        broken[place] ^= 0xFF
        with pytest.raises(RuntimeError, match="truncated or corrupt"):
            load(bytes(broken))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "it is empty"),
        (b"hello world", "does not start like a zip archive"),
        (b"\x93NUMPY\x01\x00", "use numpy.load"),
        (b"\x80\x02ccollections\n", "looks like a pickle"),
    ],
)
def test_files_that_are_no_checkpoint(data, words):
    with pytest.raises(RuntimeError, match="is not a checkpoint") as caught:
        load(data)
    assert words in str(caught.value)


def test_another_zip_and_a_newer_format():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("readme.txt", "hi")
    with pytest.raises(RuntimeError, match=r"neither minitorch.json nor PyTorch's data.pkl"):
        load(buffer.getvalue())
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("minitorch.json", json.dumps({"format": "minitorch", "version": 99}))
    with pytest.raises(RuntimeError, match="written by a newer minitorch"):
        load(buffer.getvalue())


def test_cycles_fall_back_to_pickle():
    loop = [1]
    loop.append(loop)
    data = saved(loop)
    with pytest.raises(pickle.UnpicklingError, match="contains itself"):
        load(data)
    found = load(data, weights_only=False)
    assert found[1] is found


def test_whole_module_needs_trust():
    model = minitorch.nn.Linear(2, 2)
    data = saved(model)
    with pytest.raises(pickle.UnpicklingError, match="Linear"):
        load(data)
    found = load(data, weights_only=False)
    assert found.weight.tolist() == model.weight.tolist()
