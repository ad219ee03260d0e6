"""An explanation leaves the model and its input as they were, whoever else is at work."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import minitorch
from minitorch import interpret, nn
from minitorch.interpret import registry
from minitorch.interpret.borrowed import evaluating, in_this_thread


@pytest.fixture(autouse=True)
def _rules_are_restored():
    rules = dict(registry._module_rules)
    yield
    registry._module_rules.clear()
    registry._module_rules.update(rules)


def _state(model):
    modes = [
        (each.training, len(each._forward_hooks), len(each._forward_pre_hooks))
        for each in model.modules()
    ]
    return modes, [each.requires_grad for each in model.parameters()]


class _Failing(nn.Module):
    """Fails after its layers have run."""

    def __init__(self):
        super().__init__()
        self.lstm, self.norm = nn.LSTM(4, 3), nn.BatchNorm1d(3).eval()
        self.frozen = nn.Parameter(minitorch.ones(3), requires_grad=False)

    def forward(self, x):
        self.norm(self.lstm(x)[0][-1]) * self.frozen
        raise KeyError("nothing here")


def test_a_model_that_fails_is_left_as_it_was():
    model = _Failing()
    interpret.register_rule(nn.LSTM)(lambda call, *inputs: interpret.WHOLE)  # gives it hooks
    before = _state(model)
    for grad_mode in (True, False):
        with minitorch.set_grad_enabled(grad_mode):
            with pytest.raises(KeyError):
                interpret.cd(model, minitorch.ones(2, 2, 4), 1)
            assert minitorch.is_grad_enabled() is grad_mode
        assert _state(model) == before


@pytest.mark.parametrize("mask", [[1, 0, 1, 0], 1, 0])
def test_a_model_may_write_into_its_input(mask):
    """The decomposition starts from what the input was."""
    minitorch.manual_seed(0)
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 2)).double()
    x = minitorch.randn(3, 4, dtype=minitorch.float64)
    original = x.numpy().copy()
    relevant, irrelevant = interpret.cd(model, x, mask)
    assert_array_equal(x.numpy(), original)
    wanted = interpret.cd(nn.Sequential(nn.ReLU(), model[1]), x, mask)
    assert_allclose((relevant, irrelevant), wanted, atol=1e-15)
    ids = minitorch.tensor(np.array([[1, 2]]))
    interpret.cd(lambda ids: model[1](nn.Embedding(4, 4).double()(ids.add_(1))), ids, [1, 0])
    assert ids.tolist() == [[1, 2]]


def test_two_explanations_of_one_model_at_once():
    """Whoever is done first does not switch dropout on for the other; the last one restores."""
    model = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5)).train()
    with evaluating(model):
        with evaluating(model):
            assert not model[1].training
        assert not model[1].training
    assert model[1].training

    first, second = evaluating(model), evaluating(model)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not any(each.training for each in model.modules())
    second.__exit__(None, None, None)
    assert all(each.training for each in model.modules())


def test_threads_share_a_model():
    minitorch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 2)).train()
    model[0].weight.requires_grad_(False)
    interpret.register_rule(nn.Tanh)(interpret.smooth(minitorch.tanh))  # a module: with hooks
    x, before = minitorch.randn(1, 4), _state(model)
    wanted = interpret.cd(model, x, [1, 0, 0, 0])
    found, failed = [], []

    def work():
        try:
            found.extend(interpret.cd(model, x, [1, 0, 0, 0]) for _ in range(15))
        except Exception as error:
            failed.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not failed
    assert len(found) == 60
    for each in found:
        assert_array_equal(each, wanted)
    assert _state(model) == before


def test_a_hook_of_another_thread_is_silent():
    seen = []
    hook = in_this_thread(seen.append)
    hook("mine")
    other = threading.Thread(target=hook, args=("theirs",))
    other.start()
    other.join()
    assert seen == ["mine"]
