"""The loader: batches, worker threads, errors, and nothing left behind."""

import gc
import subprocess
import sys
import threading
import time
import traceback
import warnings

import numpy as np
import pytest

import minitorch
from minitorch.utils import data as d

TEN = d.TensorDataset(minitorch.arange(10), minitorch.arange(20).reshape(10, 2) / 2)


class Squares(d.Dataset):
    def __init__(self, n=10):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return i * i


class Stream(d.IterableDataset):
    """Splits 0 .. n-1 among the workers."""

    def __init__(self, n=10):
        self.n = n

    def __iter__(self):
        info = d.get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(start, self.n, step))


def values(loader):
    return [batch.tolist() for batch in loader]


def workers_alive():
    return [t for t in threading.enumerate() if t.name.startswith("DataLoader worker")]


@pytest.fixture(autouse=True)
def no_worker_survives():
    yield
    gc.collect()
    for thread in workers_alive():
        thread.join(5)
    assert workers_alive() == []


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_do_not_depend_on_the_number_of_workers(workers):
    for options in ({"batch_size": 3}, {"batch_size": 4, "drop_last": True}, {"shuffle": True}):
        minitorch.manual_seed(1)
        expected = values(d.DataLoader(Squares(), **options))
        minitorch.manual_seed(1)
        assert values(d.DataLoader(Squares(), num_workers=workers, **options)) == expected


@pytest.mark.parametrize("workers", [0, 2])
def test_gathering_tensors_equals_collating_samples(workers):
    slow = d.DataLoader(TEN, batch_size=3, collate_fn=lambda batch: d.default_collate(batch))
    fast = d.DataLoader(TEN, batch_size=3, num_workers=workers)
    for a, b in zip(slow, fast, strict=True):
        assert type(a) is type(b) is list
        for x, y in zip(a, b, strict=True):
            assert x.dtype == y.dtype
            assert minitorch.equal(x, y)
    first = next(iter(fast))[1]
    first.zero_()  # a batch is a copy
    assert TEN.tensors[1][1, 1].item() == 1.5


def test_gathering_rejects_what_indexing_rejects():
    with pytest.raises(IndexError):
        next(iter(d.DataLoader(TEN, batch_sampler=[[0, 10]])))
    assert next(iter(d.DataLoader(TEN, batch_sampler=[[-1, 0]])))[0].tolist() == [9, 0]


def test_without_batching():
    loader = d.DataLoader(TEN, batch_size=None)
    assert len(loader) == 10
    assert next(iter(loader))[1].tolist() == [0.0, 0.5]
    assert list(d.DataLoader(Squares(3), batch_size=None, num_workers=1)) == [0, 1, 4]


def test_length_and_getitems():
    class Whole(Squares):
        def __getitems__(self, indices):
            return [-i for i in indices]

    assert len(d.DataLoader(Squares(), batch_size=3)) == 4
    assert len(d.DataLoader(Squares(), batch_size=3, drop_last=True)) == 3
    assert len(iter(d.DataLoader(Squares(), batch_size=3))) == 4
    assert values(d.DataLoader(Whole(4), batch_size=2)) == [[0, -1], [-2, -3]]


# -- iterable data sets ---------------------------------------------------------------------------


def test_iterable():
    assert values(d.DataLoader(Stream(), batch_size=4)) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    dropped = d.DataLoader(Stream(), batch_size=4, drop_last=True)
    assert values(dropped) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert list(d.DataLoader(Stream(3), batch_size=None)) == [0, 1, 2]
    with pytest.raises(TypeError, match="has no len"):
        len(d.DataLoader(Stream()))


def test_iterable_with_workers_takes_turns():
    # Worker 0 streams 0 2 4 6 8, worker 1 streams 1 3 5 7 9.
    loader = d.DataLoader(Stream(), batch_size=2, num_workers=2)
    assert values(loader) == [[0, 2], [1, 3], [4, 6], [5, 7], [8], [9]]
    uneven = d.DataLoader(Stream(5), batch_size=1, num_workers=4)
    assert sorted(value for batch in values(uneven) for value in batch) == list(range(5))


def test_iterable_that_promised_less_warns():
    class Liar(Stream):
        def __len__(self):
            return 3

    loader = d.DataLoader(Liar(5))
    assert len(loader) == 3
    with pytest.warns(UserWarning, match="was reported to be 3"):
        list(loader)


def test_each_worker_has_its_own_copy():
    def claim(worker):
        info = d.get_worker_info()
        info.dataset.start = 10 * worker

    class FromStart(d.IterableDataset):
        start = None

        def __iter__(self):
            return iter(range(self.start, self.start + 2))

    dataset = FromStart()
    loader = d.DataLoader(dataset, batch_size=2, num_workers=3, worker_init_fn=claim)
    assert values(loader) == [[0, 1], [10, 11], [20, 21]]
    assert dataset.start is None
    assert d.get_worker_info() is None


# -- randomness in workers ------------------------------------------------------------------------


class Noisy(Squares):
    def __getitem__(self, i):
        return minitorch.rand(()).item()


def test_worker_draws_are_reproducible_and_apart_from_the_main_stream():
    minitorch.manual_seed(3)
    first = values(d.DataLoader(Noisy(), batch_size=2, num_workers=2))
    after = minitorch.rand(1)
    minitorch.manual_seed(3)
    second = values(d.DataLoader(Noisy(), batch_size=2, num_workers=2))
    assert first == second
    assert len({v for batch in first for v in batch}) == 10
    # The main stream moved by the base seed and nothing else.
    minitorch.manual_seed(3)
    minitorch.empty((), dtype=minitorch.int64).random_()
    assert minitorch.equal(minitorch.rand(1), after)


def test_worker_seed_is_pytorchs():
    seeds = {}

    def note(worker):
        seeds[worker] = (d.get_worker_info().seed, minitorch.initial_seed())

    minitorch.manual_seed(3)
    base = minitorch.empty((), dtype=minitorch.int64).random_().item()
    minitorch.manual_seed(3)
    list(d.DataLoader(Squares(), num_workers=2, worker_init_fn=note))
    assert seeds == {0: (base, base), 1: (base + 1, base + 1)}


def test_workers_inherit_the_default_dtype_but_not_the_grad_mode():
    class Modes(Squares):
        def __getitem__(self, i):
            return [minitorch.ones(1).dtype == minitorch.float64, minitorch.is_grad_enabled()]

    minitorch.set_default_dtype(minitorch.float64)
    try:
        with minitorch.no_grad():
            default, grad = next(iter(d.DataLoader(Modes(1), num_workers=1)))
    finally:
        minitorch.set_default_dtype(minitorch.float32)
    assert default.tolist() == grad.tolist() == [True]


# -- failures -------------------------------------------------------------------------------------


class Broken(Squares):
    def __getitem__(self, i):
        if i == 3:
            raise LookupError("sample 3 is broken")
        return i


def test_worker_exception_keeps_its_traceback_and_iteration_goes_on():
    loader = iter(d.DataLoader(Broken(6), num_workers=2))
    assert [next(loader).item() for _ in range(3)] == [0, 1, 2]
    with pytest.raises(LookupError, match="sample 3 is broken") as caught:
        next(loader)
    frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "__getitem__" in frames
    assert "DataLoader worker thread 1" in "".join(caught.value.__notes__)
    assert [batch.item() for batch in loader] == [4, 5]


def test_failing_worker_init():
    def fail(worker):
        raise OSError("no such disk")

    with pytest.raises(OSError, match="no such disk"):
        next(iter(d.DataLoader(Squares(), num_workers=1, worker_init_fn=fail)))


def test_timeout_names_itself():
    release = threading.Event()

    class Slow(Squares):
        def __getitem__(self, i):
            release.wait(10)
            return i

    loader = iter(d.DataLoader(Slow(), num_workers=1, timeout=0.05))
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.05 seconds"):
        next(loader)
    release.set()


def test_abandoned_iteration_ends_its_workers():
    loader = d.DataLoader(Squares(1000), batch_size=2, num_workers=3)
    for batch in loader:
        if batch[0] == 4:
            break
    iterator = iter(loader)
    next(iterator)
    assert workers_alive()
    del iterator, batch
    gc.collect()
    deadline = time.monotonic() + 5
    while workers_alive() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert workers_alive() == []


def test_finished_iteration_has_no_workers_left():
    list(d.DataLoader(Squares(), num_workers=4))
    assert workers_alive() == []


def test_prefetching_is_bounded():
    fetched = []

    class Counting(Squares):
        def __getitem__(self, i):
            fetched.append(i)
            return i

    iterator = iter(d.DataLoader(Counting(100), num_workers=2, prefetch_factor=3))
    next(iterator)
    deadline = time.monotonic() + 5
    while len(fetched) < 7 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert len(fetched) == 7  # one handed out, 2 * 3 under way
    del iterator


def test_persistent_workers_are_set_up_once():
    set_up = []
    loader = d.DataLoader(
        Stream(6),
        batch_size=2,
        num_workers=2,
        persistent_workers=True,
        worker_init_fn=set_up.append,
    )
    expected = [[0, 2], [1, 3], [4], [5]]
    assert values(loader) == expected
    next(iter(loader))  # abandoned half-way
    assert values(loader) == expected
    assert sorted(set_up) == [0, 1]
    del loader


# -- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"timeout": -1}, "timeout option should be non-negative"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified"),
        ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
        ({"sampler": [1], "shuffle": True}, "sampler option is mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 3}, "batch_sampler option is mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, "batch_size=None option disables"),
        ({"batch_size": 0}, "batch_size should be a positive integer value"),
        ({"multiprocessing_context": "fork"}, "workers are threads"),
    ],
)
def test_option_errors(options, words):
    with pytest.raises(ValueError) as caught:
        d.DataLoader(TEN, **options)
    assert words in str(caught.value)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}])
def test_iterable_option_errors(options):
    with pytest.raises(ValueError, match="expected unspecified"):
        d.DataLoader(Stream(), **options)


def test_fixed_attributes_and_pinning():
    loader = d.DataLoader(TEN, pin_memory=True)
    with pytest.raises(ValueError, match="batch_size attribute should not be set"):
        loader.batch_size = 3
    with pytest.warns(UserWarning, match="no accelerator is found"):
        next(iter(loader))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        next(iter(d.DataLoader(TEN)))


def test_numpy_samples():
    class Arrays(Squares):
        def __getitem__(self, i):
            return np.full(2, i, dtype=np.float32), i % 2

    x, y = next(iter(d.DataLoader(Arrays(), batch_size=2, num_workers=1)))
    assert x.dtype == minitorch.float32
    assert y.tolist() == [0, 1]


def test_ctrl_c_ends_a_program_whose_workers_are_stuck():
    program = (
        "import time, signal, os, threading\n"
        "from minitorch.utils.data import DataLoader, Dataset\n"
        "class Stuck(Dataset):\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, i): time.sleep(600)\n"
        "threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "next(iter(DataLoader(Stuck(), num_workers=2)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "KeyboardInterrupt" in done.stderr
