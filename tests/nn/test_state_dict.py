"""Saving and loading a module's state."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

import minitorch
from minitorch import nn as layers


def _net() -> layers.Sequential:
    return layers.Sequential(layers.Linear(2, 3), layers.BatchNorm1d(3))


def test_round_trip() -> None:
    first, second = _net(), _net()
    result = second.load_state_dict(first.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    missing, unexpected = result
    assert not missing
    assert not unexpected
    for key, value in first.state_dict().items():
        assert np.array_equal(second.state_dict()[key].numpy(), value.numpy())


def test_state_shares_memory_and_is_detached() -> None:
    net = _net()
    state = net.state_dict()
    assert isinstance(state, OrderedDict)
    assert not state["0.weight"].requires_grad
    assert np.shares_memory(state["0.weight"].numpy(), net[0].weight.detach().numpy())
    assert net.state_dict(keep_vars=True)["0.weight"] is net[0].weight
    assert list(net[0].state_dict(prefix="a.")) == ["a.weight", "a.bias"]
    assert state._metadata["1"] == {"version": 2}


def test_strictness() -> None:
    net = _net()
    state = net.state_dict()
    state["odd"] = state.pop("0.bias")
    with pytest.raises(RuntimeError) as raised:
        net.load_state_dict(state)
    assert str(raised.value) == (
        "Error(s) in loading state_dict for Sequential:\n"
        '\tMissing key(s) in state_dict: "0.bias". \n'
        '\tUnexpected key(s) in state_dict: "odd". '
    )
    missing, unexpected = net.load_state_dict(state, strict=False)
    assert (missing, unexpected) == (["0.bias"], ["odd"])


def test_failed_load_changes_nothing() -> None:
    net = _net()
    before = {key: value.numpy().copy() for key, value in net.state_dict().items()}
    wrong = {key: value + 1 for key, value in net.state_dict().items()}
    wrong["1.weight"] = minitorch.ones(4)
    for strict in (True, False):
        with pytest.raises(RuntimeError, match=r"size mismatch for 1\.weight: copying a"):
            net.load_state_dict(wrong, strict=strict)
    for key, value in net.state_dict().items():
        assert np.array_equal(value.numpy(), before[key]), key


def test_assign_takes_the_tensors_over() -> None:
    net = _net()
    weight = net[0].weight
    state = {key: value.double() for key, value in net.state_dict().items()}
    net.load_state_dict(state)
    assert net[0].weight is weight
    assert weight.dtype == minitorch.float32
    net.load_state_dict(state, assign=True)
    assert net[0].weight is not weight
    assert net[0].weight.dtype == minitorch.float64
    assert isinstance(net[0].weight, layers.Parameter)
    assert np.shares_memory(net[0].weight.detach().numpy(), state["0.weight"].numpy())


def test_loading_is_seen_by_the_graph() -> None:
    net = layers.Linear(2, 2)
    x = minitorch.ones(1, 2).requires_grad_()
    loss = net(x).sum()
    net.load_state_dict(net.state_dict())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_old_batch_norm_state() -> None:
    net = layers.BatchNorm1d(2)
    state = dict(net.state_dict())
    del state["num_batches_tracked"]
    assert net.load_state_dict(state).missing_keys == []


def test_extra_state() -> None:
    class Counting(layers.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = 0

        def get_extra_state(self):
            return {"count": self.count}

        def set_extra_state(self, state) -> None:
            self.count = state["count"]

    net = layers.Sequential(Counting())
    net[0].count = 5
    state = net.state_dict()
    assert list(state) == ["0._extra_state"]
    other = layers.Sequential(Counting())
    other.load_state_dict(state)
    assert other[0].count == 5
    with pytest.raises(RuntimeError, match="Missing key"):
        other.load_state_dict({})


def test_hooks() -> None:
    net, log = layers.Sequential(layers.Linear(1, 1)), []
    net.register_state_dict_pre_hook(lambda m, prefix, keep: log.append(("pre", prefix)))
    net.register_state_dict_post_hook(
        lambda m, state, prefix, meta: state.update(added=minitorch.ones(1))
    )
    net[0].register_load_state_dict_pre_hook(
        lambda m, state, prefix, *rest: state.update({f"{prefix}bias": minitorch.full((1,), 7.0)})
    )
    net.register_load_state_dict_post_hook(lambda m, keys: keys.unexpected_keys.remove("added"))
    state = net.state_dict()
    assert log == [("pre", "")]
    assert "added" in state
    net.load_state_dict(state)
    assert net[0].bias.item() == 7.0


def test_scalar_parameter_takes_a_vector_of_one() -> None:
    class Scalar(layers.Module):
        def __init__(self) -> None:
            super().__init__()
            self.value = layers.Parameter(minitorch.tensor(1.0))

    net = Scalar()
    net.load_state_dict({"value": minitorch.tensor([3.0])})
    assert net.value.item() == 3.0
