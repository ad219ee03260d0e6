"""The optimizer's base: groups, state, hooks, and errors as PyTorch words them."""

import copy
import pickle

import numpy as np
import pytest

import minitorch
from minitorch.optim import SGD, Adagrad, Adam, AdamW, Optimizer, RMSprop
from minitorch.optim import optimizer as base

ALL = [SGD, Adam, AdamW, Adagrad, RMSprop]


def param(*values, dtype=minitorch.float32):
    return minitorch.tensor(values or [1.0, 2.0], dtype=dtype, requires_grad=True)


def with_grad(p):
    p.grad = minitorch.ones_like(p)
    return p


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: SGD(param()), TypeError, "should be an iterable of Tensors or dicts, but got"),
        (lambda: SGD([]), ValueError, "optimizer got an empty parameter list"),
        (lambda: SGD([3.0]), TypeError, "but one of the params is float"),
        (lambda: SGD([param() * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: SGD([{"params": {param()}}]), TypeError, "ordering of tensors in sets"),
        (lambda: SGD([{"params": [param()]}, "x"]), TypeError, "param_group must be a dict"),
        (lambda: SGD([("a", param()), param()]), ValueError, "Some param names are missing"),
        (lambda: SGD([param()], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: SGD([param()], lr=minitorch.ones(2)), ValueError, "Tensor lr must be 1-element"),
        (lambda: SGD([param()], momentum=-1), ValueError, "Invalid momentum value: -1"),
        (lambda: SGD([param()], nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda: SGD([param()], foreach=True, fused=True), RuntimeError, "cannot be `True`"),
        (lambda: SGD([param()], differentiable=True), RuntimeError, "outside the graph"),
        (lambda: Adam([param()], betas=(1, 0.9)), ValueError, "beta parameter at index 0: 1"),
        (lambda: Adam([param()], betas=(0.9, 1.0)), ValueError, "beta parameter at index 1: 1.0"),
        (lambda: Adam([param()], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: Adam([param()], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda: Adam([param()], capturable=True), RuntimeError, "capturable"),
        (lambda: RMSprop([param()], alpha=-1), ValueError, "Invalid alpha value: -1"),
        (lambda: Adagrad([param()], lr_decay=-1), ValueError, "Invalid lr_decay value: -1"),
    ],
)
def test_construction_errors(make, error, words):
    with pytest.raises(error) as caught:
        make()
    assert words in str(caught.value)


def test_required_options():
    class Needs(Optimizer):
        def __init__(self, params):
            super().__init__(params, {"rate": base.required})

    with pytest.raises(ValueError, match="required optimization parameter rate"):
        Needs([param()])
    assert Needs([{"params": [param()], "rate": 1}]).param_groups[0]["rate"] == 1
    with pytest.raises(NotImplementedError, match="Needs does not implement step"):
        Needs([{"params": [param()], "rate": 1}]).step()


def test_groups():
    p, q = param(), param()
    optimizer = SGD([p], lr=0.5)
    with pytest.raises(ValueError, match="appear in more than one parameter group"):
        optimizer.add_param_group({"params": [q, p]})
    assert len(optimizer.param_groups) == 1
    given = {"params": q, "lr": 0.1}
    optimizer.add_param_group(given)
    assert given == {"params": q, "lr": 0.1}
    assert [g["lr"] for g in optimizer.param_groups] == [0.5, 0.1]
    with pytest.warns(UserWarning, match="duplicate parameters"):
        SGD([p, p])


def test_named_parameters():
    optimizer = SGD([("w", param()), ("b", param())], lr=0.1)
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["w", "b"]
    with pytest.raises(ValueError, match="with/without names"):
        optimizer.add_param_group({"params": [param()]})


def test_parameters_without_gradient_are_left_alone():
    for kind in ALL:
        p, q = with_grad(param()), param()
        optimizer = kind([p, q], lr=0.1)
        optimizer.step()
        assert q.tolist() == [1.0, 2.0]
        assert p.tolist() != [1.0, 2.0]


def test_step_changes_the_tensor_in_place_and_moves_its_version():
    for kind in ALL:
        p = with_grad(param())
        array, before = p._array, p._version
        kind([p], lr=0.1).step()
        assert p._array is array
        assert p._version == before + 1


def test_a_graph_that_saved_the_old_value_refuses_to_run():
    p = with_grad(param())
    loss = (p * p).sum()
    SGD([p], lr=0.1).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_layouts_of_parameter_and_gradient():
    # Transposed parameter, transposed gradient, gradient view: all equal the plain case.
    start = np.arange(12, dtype=np.float32).reshape(3, 4) / 7
    grad = np.cos(start)
    for kind in ALL:
        results = []
        for layout in ("plain", "param", "grad"):
            array = start.T.copy().T if layout == "param" else start.copy()
            p = minitorch.from_numpy(array).requires_grad_()
            p.grad = minitorch.from_numpy(grad.T.copy().T if layout == "grad" else grad.copy())
            optimizer = kind([p], lr=0.1)
            optimizer.step()
            optimizer.step()
            results.append(p.detach().numpy().copy())
        np.testing.assert_array_equal(results[0], results[1])
        np.testing.assert_array_equal(results[0], results[2])


@pytest.mark.parametrize("dtype", [minitorch.float16, minitorch.bfloat16])
def test_low_precision_parameters(dtype):
    for kind in ALL:
        p, wide = with_grad(param(dtype=dtype)), with_grad(param())
        for each in (p, wide):
            kind([each], lr=0.1).step()
        assert p.dtype == dtype
        np.testing.assert_allclose(p.float().tolist(), wide.tolist(), rtol=1e-2)


def test_empty_parameter():
    p = minitorch.ones(0, 3, requires_grad=True)
    p.grad = minitorch.ones(0, 3)
    for kind in ALL:
        kind([p], lr=0.1).step()


def test_zero_grad():
    p = with_grad(param())
    optimizer = SGD([p], lr=0.1)
    grad = p.grad
    optimizer.zero_grad(set_to_none=False)
    assert p.grad is grad
    assert p.grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert p.grad is None


def test_closure_runs_with_gradients_and_its_loss_is_returned():
    p = param()
    optimizer = SGD([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with minitorch.no_grad():
        assert optimizer.step(closure).item() == 5.0
    np.testing.assert_allclose(p.tolist(), [0.8, 1.6], rtol=1e-6)


def test_tensor_learning_rate():
    p = with_grad(param())
    lr = minitorch.tensor(0.5)
    optimizer = SGD([p], lr=lr)
    minitorch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    assert p.tolist() == [0.5, 1.5]
    assert optimizer.param_groups[0]["lr"] is lr


def test_step_hooks():
    p = with_grad(param())
    optimizer = SGD([p], lr=0.1)
    seen = []
    handles = [
        optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append(("pre", o, args))),
        optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append(("post", o, args))),
        base.register_optimizer_step_pre_hook(lambda o, a, k: seen.append(("global pre",))),
        base.register_optimizer_step_post_hook(lambda o, a, k: seen.append(("global post",))),
    ]
    optimizer.step()
    assert [entry[0] for entry in seen] == ["global pre", "pre", "post", "global post"]
    assert seen[1][1] is optimizer
    assert seen[1][2] == (optimizer,)
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(seen) == 4
    with (
        optimizer.register_step_pre_hook(lambda o, a, k: 3),
        pytest.raises(RuntimeError, match="must return None or a tuple"),
    ):
        optimizer.step()


def test_pre_step_checks_refuse_before_anything_changes():
    p = with_grad(param())
    optimizer = Adam([p], lr=0.1)

    def unfinished(o):
        raise RuntimeError("reduction unfinished")

    base._pre_step_checks.append(unfinished)
    try:
        with pytest.raises(RuntimeError, match="reduction unfinished"):
            optimizer.step()
    finally:
        base._pre_step_checks.remove(unfinished)
    assert p.tolist() == [1.0, 2.0]
    assert not optimizer.state
    optimizer.step()


def test_a_subclass_step_that_calls_its_parent_runs_hooks_once():
    class Twice(SGD):
        def step(self, closure=None):
            super().step()
            return super().step(closure)

    p = with_grad(param())
    optimizer = Twice([p], lr=0.1)
    calls = []
    optimizer.register_step_post_hook(lambda *_: calls.append(1))
    optimizer.step()
    assert calls == [1]
    np.testing.assert_allclose(p.tolist(), [0.8, 1.8], rtol=1e-6)


# -- state_dict -----------------------------------------------------------------------------------


def test_state_dict_layout_is_pytorchs():
    optimizer = Adam([{"params": [with_grad(param())]}, {"params": [with_grad(param())]}])
    optimizer.step()
    saved = optimizer.state_dict()
    assert list(saved) == ["state", "param_groups"]
    assert list(saved["state"]) == [0, 1]
    assert list(saved["state"][0]) == ["step", "exp_avg", "exp_avg_sq"]
    assert saved["state"][0]["step"].dtype == minitorch.float32
    assert saved["state"][0]["step"].shape == ()
    assert [g["params"] for g in saved["param_groups"]] == [[0], [1]]
    assert list(saved["param_groups"][0]) == [
        "lr",
        "betas",
        "eps",
        "weight_decay",
        "amsgrad",
        "maximize",
        "foreach",
        "capturable",
        "differentiable",
        "fused",
        "decoupled_weight_decay",
        "params",
    ]


@pytest.mark.parametrize("kind", ALL)
def test_restored_optimizer_goes_on_alike(kind):
    options = {"momentum": 0.9} if kind is SGD else {}
    p, q = with_grad(param()), param()
    optimizer = kind([p], lr=0.1, **options)
    optimizer.step()
    other = kind([q], lr=0.7, **options)
    other.load_state_dict(optimizer.state_dict())
    with minitorch.no_grad():
        q.copy_(p)
    q.grad = p.grad.clone()
    for _ in range(3):
        optimizer.step()
        other.step()
    assert q.tolist() == p.tolist()
    # Copies: one optimizer's steps do not reach the other's state.
    for mine, theirs in zip(optimizer.state[p].values(), other.state[q].values(), strict=True):
        assert not np.shares_memory(mine.numpy(), theirs.numpy())


def test_state_takes_the_parameters_dtype_but_step_keeps_its_own():
    p, q = with_grad(param()), param(dtype=minitorch.float64)
    optimizer = Adam([p])
    optimizer.step()
    other = Adam([q])
    other.load_state_dict(optimizer.state_dict())
    assert other.state[q]["exp_avg"].dtype == minitorch.float64
    assert other.state[q]["step"].dtype == minitorch.float32


def test_state_that_does_not_fit_changes_nothing():
    optimizer = SGD([param()], lr=0.1)
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optimizer.load_state_dict({"state": {}, "param_groups": []})
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]})
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_state_dict_hooks():
    optimizer = SGD([param()], lr=0.1)
    order = []
    optimizer.register_state_dict_pre_hook(lambda o: order.append("pre"))
    optimizer.register_state_dict_post_hook(lambda o, s: {**s, "extra": 1})
    optimizer.register_load_state_dict_pre_hook(lambda o, s: order.append("load 2"))
    optimizer.register_load_state_dict_pre_hook(lambda o, s: order.append("load 1"), prepend=True)
    optimizer.register_load_state_dict_post_hook(lambda o: order.append("loaded"))
    saved = optimizer.state_dict()
    assert saved["extra"] == 1
    optimizer.load_state_dict(saved)
    assert order == ["pre", "load 1", "load 2", "loaded"]


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda o: pickle.loads(pickle.dumps(o))])
def test_copies_step_by_themselves(twin):
    p = with_grad(param())
    optimizer = Adam([p], lr=0.1)
    optimizer.step()
    other = twin(optimizer)
    (q,) = other.param_groups[0]["params"]
    assert q is not p
    assert q in other.state
    q.grad = p.grad.clone()
    other.register_step_post_hook(lambda *_: None)
    optimizer.step()
    other.step()
    assert q.tolist() == p.tolist()


def test_repr():
    assert repr(SGD([param()], lr=0.1)) == (
        "SGD (\nParameter Group 0\n    dampening: 0\n    differentiable: False\n    foreach: None\n"
        "    fused: None\n    lr: 0.1\n    maximize: False\n    momentum: 0\n    nesterov: False\n"
        "    weight_decay: 0\n)"
    )
