"""Schedules: warnings and errors (what they compute is in test_optim_trajectories.py)."""

import warnings

import pytest

import minitorch
from minitorch.optim import SGD, Adagrad
from minitorch.optim import lr_scheduler as s


def optimizer(lr=0.1):
    return SGD([minitorch.ones(2, requires_grad=True)], lr=lr)


def test_wrong_order_warns_once_and_right_order_does_not():
    o = optimizer()
    schedule = s.StepLR(o, 1)
    with pytest.warns(UserWarning, match="Detected call of `lr_scheduler.step\\(\\)` before"):
        schedule.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()
        o = optimizer()
        schedule = s.StepLR(o, 1)
        o.step()
        schedule.step()


def test_steps_before_the_schedule_exists_do_not_count():
    o = optimizer()
    o.step()
    schedule = s.StepLR(o, 1)
    with pytest.warns(UserWarning, match="Detected call"):
        schedule.step()


def test_get_lr_outside_of_step_warns():
    with pytest.warns(UserWarning, match="please use `get_last_lr\\(\\)`"):
        s.StepLR(optimizer(), 1).get_lr()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: s.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda: s.StepLR(optimizer(), 1, last_epoch=3), KeyError, "initial_lr"),
        (
            lambda: s.LambdaLR(optimizer(), [abs] * 2),
            ValueError,
            "Expected 1 lr_lambdas, but got 2",
        ),
        (lambda: s.OneCycleLR(optimizer(), 1.0), ValueError, "You must define either total_steps"),
        (lambda: s.OneCycleLR(optimizer(), 1.0, 10, pct_start=2), ValueError, "pct_start"),
        (lambda: s.OneCycleLR(optimizer(), [1.0, 2.0], 10), ValueError, "expected 1 values"),
        (lambda: s.CosineAnnealingWarmRestarts(optimizer(), 0), ValueError, "positive integer T_0"),
        (lambda: s.ConstantLR(optimizer(), 2), ValueError, "between 0 and 1"),
        (lambda: s.LinearLR(optimizer(), 0), ValueError, "Starting multiplicative factor"),
        (lambda: s.LinearLR(optimizer(), end_factor=2), ValueError, "Ending multiplicative factor"),
        (
            lambda: s.ReduceLROnPlateau(optimizer(), factor=1.0),
            ValueError,
            "Factor should be < 1.0",
        ),
        (lambda: s.ReduceLROnPlateau(optimizer(), mode="x"), ValueError, "mode x is unknown!"),
        (lambda: s.ReduceLROnPlateau(optimizer(), min_lr=[1, 2]), ValueError, "expected 1 min_lrs"),
        (lambda: s.ChainedScheduler([]), ValueError, "got no scheduler"),
        (
            lambda: s.SequentialLR(optimizer(), [s.ConstantLR(optimizer())], []),
            ValueError,
            "belong to the same optimizer",
        ),
    ],
)
def test_construction_errors(make, error, words):
    with pytest.raises(error) as caught:
        make()
    assert words in str(caught.value)


def test_sequence_needs_one_milestone_less():
    o = optimizer()
    with pytest.raises(ValueError, match="one more than the number of milestone points"):
        s.SequentialLR(o, [s.ConstantLR(o)], [2])
    with pytest.raises(ValueError, match="does not support `ReduceLROnPlateau`"):
        s.SequentialLR(o, [s.ReduceLROnPlateau(o)], [])


def test_onecycle_ends():
    o = optimizer()
    schedule = s.OneCycleLR(o, 1.0, total_steps=2)
    o.step()
    schedule.step()
    schedule.step()
    with pytest.raises(ValueError, match="Tried to step 3 times"):
        schedule.step()


def test_onecycle_needs_momentum_to_cycle():
    o = Adagrad([minitorch.ones(2, requires_grad=True)])
    with pytest.raises(ValueError, match="must support momentum"):
        s.OneCycleLR(o, 1.0, 10)
    s.OneCycleLR(o, 1.0, 10, cycle_momentum=False)


def test_plateau_notices_a_new_group():
    o = optimizer()
    schedule = s.ReduceLROnPlateau(o, patience=0, min_lr=[0.0])
    o.add_param_group({"params": minitorch.ones(2, requires_grad=True)})
    schedule.step(1.0)
    with pytest.raises(RuntimeError, match="number of param groups"):
        schedule.step(1.0)
