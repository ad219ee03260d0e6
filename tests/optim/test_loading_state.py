"""A state dict that does not fit is refused by name, before anything changes."""

import copy

import pytest

import minitorch
from minitorch import nn, optim


def stepped(kind, shape=(2, 3), **options):
    p = nn.Parameter(minitorch.ones(*shape))
    optimizer = kind([("layer.weight", p)], lr=0.1, **options)
    for _ in range(2):
        p.grad = minitorch.full(shape, 0.5)
        optimizer.step()
    return p, optimizer


KINDS = [
    (optim.SGD, {"momentum": 0.9}, "momentum_buffer"),
    (optim.Adam, {"amsgrad": True}, "exp_avg"),
    (optim.AdamW, {}, "exp_avg"),
    (optim.Adagrad, {}, "sum"),
    (optim.RMSprop, {"momentum": 0.9, "centered": True}, "square_avg"),
]


@pytest.mark.parametrize(("kind", "options", "key"), KINDS, ids=[k[0].__name__ for k in KINDS])
def test_state_of_another_shape(kind, options, key):
    _, saved = stepped(kind, (3, 2), **options)
    p, optimizer = stepped(kind, (2, 3), **options)
    before = copy.deepcopy(optimizer.state_dict())
    message = (
        rf"'{key}' of shape \[3, 2\] for parameter 0 \('layer.weight'\), whose shape is \[2, 3\]"
    )
    with pytest.raises(ValueError, match=message):
        optimizer.load_state_dict(saved.state_dict())
    assert_equal(optimizer.state_dict(), before)
    p.grad = minitorch.ones(2, 3)
    optimizer.step()  # still works with the state it had


def assert_equal(a, b):
    assert a["param_groups"] == b["param_groups"]
    for key, value in b["state"][0].items():
        mine = a["state"][0][key]
        assert mine is value or minitorch.equal(mine, value)


@pytest.mark.parametrize(("kind", "options", "key"), KINDS, ids=[k[0].__name__ for k in KINDS])
def test_state_that_fits_is_loaded(kind, options, key):
    _, saved = stepped(kind, **options)
    p = nn.Parameter(minitorch.ones(2, 3))
    optimizer = kind([("layer.weight", p)], lr=0.5, **options)
    optimizer.load_state_dict(saved.state_dict())
    assert optimizer.param_groups[0]["lr"] == 0.1
    assert minitorch.equal(optimizer.state[p][key], next(iter(saved.state.values()))[key])


def test_state_of_another_optimizer():
    _, sgd = stepped(optim.SGD, momentum=0.9)
    p, adam = stepped(optim.Adam)
    with pytest.raises(ValueError, match="no 'betas' in parameter group 0"):
        adam.load_state_dict(sgd.state_dict())
    assert adam.param_groups[0]["betas"] == (0.9, 0.999)
    assert "exp_avg" in adam.state[p]


def test_state_that_is_no_dict():
    p, adam = stepped(optim.Adam)
    broken = adam.state_dict()
    broken["state"] = {0: 3}
    with pytest.raises(ValueError, match=r"int instead of a dict as the state of parameter 0"):
        adam.load_state_dict(broken)
    assert "exp_avg" in adam.state[p]


def test_flags_that_came_later_may_be_missing():
    _, adam = stepped(optim.Adam)
    old = adam.state_dict()
    for name in ("amsgrad", "maximize", "decoupled_weight_decay"):
        del old["param_groups"][0][name]
    adam.load_state_dict(old)
    assert adam.param_groups[0]["amsgrad"] is False
