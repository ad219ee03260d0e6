"""Generators: states, copies, threads."""

import copy
import pickle
import threading

import numpy as np
import pytest

import minitorch
from minitorch.random import default_state, inherit_default_state


def test_state_round_trip_keeps_the_second_normal():
    g = minitorch.Generator().manual_seed(4)
    minitorch.randn(3, generator=g)
    state = g.get_state()
    first = minitorch.randn(5, generator=g)
    g.set_state(state)
    assert minitorch.equal(minitorch.randn(5, generator=g), first)


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_continue_independently(twin):
    g = minitorch.Generator().manual_seed(4)
    minitorch.randn(3, generator=g)
    other = twin(g)
    assert minitorch.equal(minitorch.rand(3, generator=g), minitorch.rand(3, generator=other))
    minitorch.rand(1, generator=g)
    assert not minitorch.equal(minitorch.rand(3, generator=g), minitorch.rand(3, generator=other))


def test_default_generator_pickles_as_a_plain_one():
    minitorch.manual_seed(3)
    other = pickle.loads(pickle.dumps(minitorch.default_generator))
    assert type(other) is minitorch.Generator
    assert minitorch.equal(minitorch.rand(3, generator=other), minitorch.rand(3))


def test_seeds():
    g = minitorch.Generator()
    assert g.initial_seed() == 67280421310721
    assert g.manual_seed(-1) is g
    assert g.initial_seed() == 2**64 - 1
    assert g.seed() == g.initial_seed()
    assert g.manual_seed(np.int64(3)).initial_seed() == 3
    assert minitorch.manual_seed(9) is minitorch.default_generator
    assert minitorch.initial_seed() == 9
    assert minitorch.seed() == minitorch.initial_seed()
    with pytest.raises(RuntimeError, match="manual_seed expected a long, but got float"):
        g.manual_seed(1.5)
    with pytest.raises(ValueError, match="Overflow"):
        g.manual_seed(2**64)
    assert g.initial_seed() == 3


def test_bad_states_change_nothing():
    g = minitorch.Generator().manual_seed(1)
    state = g.get_state()
    with pytest.raises(RuntimeError, match="size 5056 but found the input RNG state size to be 3"):
        g.set_state(minitorch.zeros(3, dtype=minitorch.uint8))
    with pytest.raises(TypeError, match="ByteTensor"):
        g.set_state(minitorch.zeros(3))
    with pytest.raises(RuntimeError, match="not a valid mt19937 state"):
        g.set_state(minitorch.zeros(5056, dtype=minitorch.uint8))
    assert minitorch.equal(g.get_state(), state)


def test_other_devices_are_refused():
    assert minitorch.Generator("cpu").device == minitorch.device("cpu")
    with pytest.raises(RuntimeError, match="only device is cpu"):
        minitorch.Generator("cuda")


def test_fork_restores_when_the_body_raises():
    minitorch.manual_seed(2)
    with pytest.raises(KeyError), minitorch.random.fork_rng():
        minitorch.randn(7)
        raise KeyError
    found = minitorch.rand(3)
    minitorch.manual_seed(2)
    assert minitorch.equal(found, minitorch.rand(3))
    with minitorch.random.fork_rng(enabled=False):
        minitorch.rand(1)
    minitorch.manual_seed(2)
    assert not minitorch.equal(found, minitorch.rand(4)[1:])


def _in_thread(function):
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def test_each_thread_has_its_own_default_stream():
    minitorch.manual_seed(5)
    expected = minitorch.rand(4)
    minitorch.manual_seed(5)

    def other():
        fresh = minitorch.initial_seed()
        minitorch.manual_seed(5)
        return fresh, minitorch.rand(4), minitorch.default_generator.initial_seed()

    fresh, drawn, seed = _in_thread(other)
    assert fresh != 5
    assert seed == 5
    assert minitorch.equal(drawn, expected)
    # What the other thread drew did not move this thread's stream.
    assert minitorch.equal(minitorch.rand(4), expected)


def test_a_thread_can_continue_another_ones_stream():
    minitorch.manual_seed(5)
    minitorch.randn(1)
    state = default_state()
    expected = minitorch.randn(4)

    def other():
        inherit_default_state(state)
        return minitorch.randn(4)

    assert minitorch.equal(_in_thread(other), expected)
