"""What is saved comes back: values, types, sharing."""

import collections
import io
import json
import math
import os
import runpy
import stat
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import minitorch
from minitorch import nn

GOLDEN = Path(__file__).parents[1] / "golden"


def round_trip(obj, **options):
    buffer = io.BytesIO()
    minitorch.save(obj, buffer)
    buffer.seek(0)
    return minitorch.load(buffer, **options)


def test_plain_values():
    value = {
        "numbers": [1, -(10**30), 0.1, True, None, 1 + 2j],
        "text": ("é\0", b"\xff\x00", bytearray(b"x")),
        3: {1, 2},
        (1, "k"): frozenset({3}),
        None: range(1, 9, 2),
        "slice": slice(None, 3),
        "dots": ...,
        "ordered": collections.OrderedDict(b=1, a=2),
        "count": collections.Counter("aab"),
        "kinds": [minitorch.float32, minitorch.bfloat16, minitorch.device("cpu")],
        "size": minitorch.Size([2, 3]),
        "scalar": np.float32(0.1),
    }
    found = round_trip(value)
    assert found == value
    assert list(found) == list(value)
    for key in ("ordered", "count", "size", "scalar"):
        assert type(found[key]) is type(value[key])
    assert found["numbers"][3] is True
    odd = round_trip([math.nan, math.inf, -0.0])
    assert math.isnan(odd[0])
    assert odd[1] == math.inf
    assert math.copysign(1, odd[2]) == -1


@pytest.mark.parametrize(
    "name",
    [
        "float64",
        "float32",
        "float16",
        "bfloat16",
        "int64",
        "int32",
        "int16",
        "int8",
        "uint8",
        "bool",
    ],
)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_tensors_of_every_type(name, shape):
    dtype = getattr(minitorch, name)
    x = (minitorch.arange(int(np.prod(shape))).reshape(shape) % 3).to(dtype)
    found = round_trip(x)
    assert found.dtype == dtype
    assert found.shape == x.shape
    assert found.tolist() == x.tolist()
    found.zero_()  # writable, and a copy
    if x.numel() > 1:
        assert x.tolist() != found.tolist()


def test_parameters_and_requires_grad():
    w = nn.Parameter(minitorch.ones(2))
    frozen = nn.Parameter(minitorch.ones(2), requires_grad=False)
    x = minitorch.ones(2, requires_grad=True)
    found = round_trip([w, frozen, x, x * 2, x.detach()])
    assert [type(t) for t in found[:2]] == [nn.Parameter, nn.Parameter]
    assert [t.requires_grad for t in found] == [True, False, True, True, False]
    assert all(t.is_leaf for t in found)


def test_arrays():
    found = round_trip({"a": np.arange(6).reshape(2, 3), "s": np.array(["x", "yz"])})
    np.testing.assert_array_equal(found["a"], np.arange(6).reshape(2, 3))
    assert found["s"].tolist() == ["x", "yz"]


# -- sharing --------------------------------------------------------------------------------------


def test_same_tensor_stays_the_same_and_views_stay_views():
    base = minitorch.arange(12).to(minitorch.float32).reshape(3, 4)
    tied = nn.Parameter(minitorch.ones(2))
    found = round_trip(
        {"base": base, "column": base[:, 1], "turned": base.t(), "a": tied, "b": tied}
    )
    assert found["a"] is found["b"]
    found["base"][0, 1] = 100
    assert found["column"].tolist() == [100, 5, 9]
    assert found["turned"][1, 0].item() == 100
    assert found["turned"].stride() == (1, 4)


def test_tied_weights_of_a_module_stay_tied():
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    model[1].weight = model[0].weight
    found = round_trip(model.state_dict())
    found["0.weight"].zero_()
    assert found["1.weight"].tolist() == [[0.0] * 3] * 3


def test_unrelated_neighbours_in_memory_are_not_saved():
    big = minitorch.zeros(1000, 1000)
    for view in (big[3], big[:, 3], big[::100, ::100]):
        buffer = io.BytesIO()
        minitorch.save(view, buffer)
        assert len(buffer.getvalue()) < 10_000
    # Two disjoint rows: two storages, no gap in between.
    buffer = io.BytesIO()
    minitorch.save([big[0], big[999]], buffer)
    assert len(buffer.getvalue()) < 20_000


def test_expanded_and_flipped():
    row = minitorch.arange(3)
    found = round_trip([row.expand(4, 3), minitorch.from_numpy(np.arange(4)).flip(0)])
    assert found[0].tolist() == [[0, 1, 2]] * 4
    assert found[1].tolist() == [3, 2, 1, 0]
    reverse = minitorch.tensor([1, 2, 3])
    reverse._array = np.arange(6)[::-2]
    assert round_trip(reverse).tolist() == [5, 3, 1]


# -- what training saves --------------------------------------------------------------------------


def test_checkpoint_of_a_training_run():
    minitorch.manual_seed(0)

    def fresh():
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        optimizer = minitorch.optim.AdamW(model.parameters(), lr=0.1)
        return model, optimizer, minitorch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4])

    def steps(model, optimizer, schedule, count):
        losses = []
        for _ in range(count):
            optimizer.zero_grad()
            loss = model(minitorch.randn(3, 4)).square().mean()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        return losses

    run = fresh()
    steps(*run, 3)
    saved = round_trip([*(part.state_dict() for part in run), minitorch.get_rng_state()])
    expected = steps(*run, 3)
    other = fresh()
    for part, state in zip(other, saved, strict=False):
        part.load_state_dict(state)
    minitorch.set_rng_state(saved[3])
    assert steps(*other, 3) == expected
    assert type(saved[0]) is collections.OrderedDict


def test_generators():
    g = minitorch.Generator().manual_seed(3)
    found = round_trip(g)
    assert minitorch.equal(minitorch.rand(3, generator=found), minitorch.rand(3, generator=g))


def test_pytorchs_own_checkpoint():
    path = GOLDEN / "pytorch_checkpoint.pt"
    found = minitorch.load(path)
    minitorch.manual_seed(0)
    expected = runpy.run_path(str(GOLDEN / "record_checkpoint.py"))["contents"](minitorch)
    assert list(found) == list(expected)
    for name in ("base", "column", "turned", "half", "bfloat16", "int", "bool", "rng"):
        assert found[name].dtype == expected[name].dtype
        assert found[name].tolist() == expected[name].tolist()
    assert type(found["weight"]) is nn.Parameter
    np.testing.assert_allclose(found["weight"].tolist(), expected["weight"].tolist(), rtol=1e-6)
    for name, value in expected["model"].items():
        np.testing.assert_allclose(found["model"][name].tolist(), value.tolist(), rtol=1e-6)
    assert found["sizes"] == expected["sizes"]
    found["base"][0, 1] = 100
    assert found["column"][0].item() == 100
    model = nn.Linear(2, 2)
    model.load_state_dict(found["model"])
    optimizer = minitorch.optim.Adam([nn.Parameter(minitorch.zeros(2, 3))], lr=9.0)
    optimizer.load_state_dict(found["optimizer"])
    assert optimizer.param_groups[0]["lr"] == 0.1


# -- the file -------------------------------------------------------------------------------------


def test_members_are_readable_by_numpy_and_json(tmp_path):
    path = tmp_path / "x.pt"
    minitorch.save({"w": minitorch.ones(2, 3)}, path)
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("minitorch.json"))
        assert header["format"] == "minitorch"
        np.testing.assert_array_equal(np.load(archive.open("data/0.npy")), np.ones((2, 3)))


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "x.pt"
    minitorch.save(1, path)

    class Poison:
        def __reduce__(self):
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        minitorch.save([Poison()], path)
    assert minitorch.load(path) == 1
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("no space")))
    with pytest.raises(OSError, match="no space"):
        minitorch.save(2, path)
    assert minitorch.load(path) == 1
    assert os.listdir(tmp_path) == ["x.pt"]


def test_permissions_links_and_missing_folders(tmp_path):
    path = tmp_path / "x.pt"
    old = os.umask(0o027)
    try:
        minitorch.save(1, path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o600)
    link = tmp_path / "latest.pt"
    link.symlink_to("x.pt")
    minitorch.save(2, link)
    assert link.is_symlink()
    assert minitorch.load(path) == 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist"):
        minitorch.save(1, tmp_path / "no" / "x.pt")
    with pytest.raises(FileNotFoundError):
        minitorch.load(tmp_path / "none.pt")


def test_open_files(tmp_path):
    path = tmp_path / "x.pt"
    with open(path, "wb") as stream:
        minitorch.save([1, 2], stream)
    with open(path, "rb") as stream:
        assert minitorch.load(stream) == [1, 2]
    assert minitorch.load(str(path), map_location="cpu", mmap=True) == [1, 2]
    assert minitorch.load(path, map_location={"cuda:0": "cpu"}) == [1, 2]
    with pytest.raises(RuntimeError, match="only device of minitorch is cpu"):
        minitorch.load(path, map_location="cuda")


def test_threads_read_arrays_one_after_the_other(monkeypatch):
    """Python 3.11 fails now and then where two threads parse an array's header at once."""
    read_array, inside, most = np.lib.format.read_array, [], []

    def watched(*args, **kwargs):
        inside.append(1)
        time.sleep(0.002)
        most.append(len(inside))
        inside.pop()
        return read_array(*args, **kwargs)

    monkeypatch.setattr(np.lib.format, "read_array", watched)
    buffer = io.BytesIO()
    minitorch.save([minitorch.ones(n) for n in range(1, 6)], buffer)

    def load(_):
        return len(minitorch.load(io.BytesIO(buffer.getvalue())))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(load, range(4))) == [5] * 4
    assert len(most) == 20
    assert max(most) == 1
