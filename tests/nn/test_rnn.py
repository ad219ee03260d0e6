"""Recurrent networks against PyTorch: all combinations of options, texts and errors.

Recorded by tests/golden/record_rnn.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from nn import rnn_cases as cases

import minitorch
from minitorch import nn

GOLDEN = Path(__file__).parents[1] / "golden"
SINGLE = np.load(GOLDEN / "rnn_float32.npz")
DOUBLE = np.load(GOLDEN / "rnn_float64.npz")
TEXTS = json.loads((GOLDEN / "rnn_texts.json").read_text())


def _flat(found: dict[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([array.ravel() for array in found.values()])


@pytest.mark.parametrize("kind", cases.KINDS)
@pytest.mark.parametrize("layout", cases.LAYOUTS)
def test_a_state_of_pytorch_gives_its_outputs(kind: str, layout: str) -> None:
    chosen = [case for case in cases.CASES if (case.kind, case.layout) == (kind, layout)]
    assert len(chosen) == 16
    for case in chosen:
        for width in ("float32", "float64"):
            found = _flat(cases.evaluate(case, minitorch, width, gradients=False))
            assert found.dtype == width
            np.testing.assert_allclose(
                found, SINGLE[case.name], rtol=1e-6, atol=1e-6, err_msg=case.name
            )


@pytest.mark.parametrize("case", cases.FULL, ids=lambda case: case.name)
def test_gradients_are_those_of_pytorch(case: cases.Case) -> None:
    found = _flat(cases.evaluate(case, minitorch, "float64", gradients=True))
    np.testing.assert_allclose(found, DOUBLE[case.name], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("expression", cases.REPRS)
def test_names_and_text(expression: str) -> None:
    module = eval(expression, {"nn": nn})
    assert repr(module) == TEXTS["repr"][expression]
    assert list(module.state_dict()) == TEXTS["keys"][expression]


@pytest.mark.parametrize("expression", cases.ERRORS)
def test_errors(expression: str) -> None:
    assert cases.message(expression, minitorch) == TEXTS["errors"][expression]


def test_dropout_with_one_layer_is_warned_about() -> None:
    with pytest.warns(UserWarning, match="dropout option adds dropout after all but last"):
        nn.LSTM(3, 4, dropout=0.5)


def test_dropout_between_layers_only_and_only_in_training() -> None:
    minitorch.manual_seed(0)
    net, x = nn.GRU(3, 4, 2, dropout=0.5), minitorch.ones(5, 2, 3)
    assert net(x)[0].tolist() != net(x)[0].tolist()
    net.eval()
    assert net(x)[0].tolist() == net(x)[0].tolist()
    # Everything dropped: the second layer sees zeros, its outputs are all the same per sample.
    net.train()
    net.dropout = 1.0
    out, last = net(x)
    assert last[0].abs().sum() > 0
    second = nn.GRU(4, 4)
    second.load_state_dict({k: net.state_dict()[k[:-1] + "1"] for k in second.state_dict()})
    assert out.tolist() == second(minitorch.zeros(5, 2, 4))[0].tolist()


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_a_layer_is_a_loop_over_its_cell(kind: str) -> None:
    minitorch.manual_seed(1)
    net = getattr(nn, kind)(3, 5, dtype=minitorch.float64)
    cell = getattr(nn, kind + "Cell")(3, 5, dtype=minitorch.float64)
    cell.load_state_dict({k.removesuffix("_l0"): v for k, v in net.state_dict().items()})
    x = minitorch.randn(7, 2, 3, dtype=minitorch.float64, requires_grad=True)
    out, _ = net(x)
    state, outputs = None, []
    for step in x:
        state = cell(step, state)
        outputs.append(state[0] if kind == "LSTM" else state)
    loop = minitorch.stack(outputs)
    np.testing.assert_allclose(out.detach().numpy(), loop.detach().numpy(), rtol=0, atol=1e-14)
    grads = [minitorch.autograd.grad((y * y).sum(), x)[0].numpy() for y in (out, loop)]
    np.testing.assert_allclose(*grads, rtol=0, atol=1e-13)


def test_flattening_and_weights() -> None:
    net = nn.LSTM(3, 4, 2, bidirectional=True, proj_size=2)
    net.flatten_parameters()
    assert [len(weights) for weights in net.all_weights] == [5] * 4
    assert net.all_weights[1][0] is net.weight_ih_l0_reverse


@pytest.mark.parametrize("dtype", [minitorch.float16, minitorch.bfloat16])
def test_sixteen_bit_types_compute_in_float32(dtype: minitorch.dtype) -> None:
    minitorch.manual_seed(2)
    net, x = nn.LSTM(3, 4).to(dtype), minitorch.randn(6, 2, 3).to(dtype)
    out, (h, c) = net(x)
    assert out.dtype == h.dtype == c.dtype == dtype
    wide = nn.LSTM(3, 4)
    wide.load_state_dict({k: v.float() for k, v in net.state_dict().items()})
    np.testing.assert_array_equal(
        out.float().detach().numpy(), wide(x.float())[0].to(dtype).float().detach().numpy()
    )
    out.sum().backward()
    assert net.weight_hh_l0.grad.dtype == dtype


def test_autocast_runs_layers_and_cells_in_the_low_type() -> None:
    with minitorch.autocast("cpu"):
        assert nn.GRU(3, 4)(minitorch.ones(2, 1, 3))[0].dtype == minitorch.bfloat16
        assert nn.GRUCell(3, 4)(minitorch.ones(1, 3)).dtype == minitorch.bfloat16


@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_batches_of_none_and_one(kind: str, batch: int) -> None:
    net = getattr(nn, kind)(3, 4, 2, bidirectional=True)
    x = minitorch.ones(1, batch, 3, requires_grad=True)
    out, state = net(x)
    assert tuple(out.shape) == (1, batch, 8)
    (out.sum() + sum(s.sum() for s in (state if kind == "LSTM" else (state,)))).backward()
    assert x.grad.shape == x.shape
    assert net.weight_hh_l1_reverse.grad.shape == (net.weight_hh_l1.shape)
