"""Values, gradients and result types agree with what PyTorch computed (``tests/golden``)."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from generators import CASES, NO_GRADIENT_IN_PYTORCH, case_id

import minitorch

sys.path.insert(0, str(Path(__file__).parent))
from type_cases import type_answers

GOLDEN = Path(__file__).parents[1] / "golden"
with np.load(GOLDEN / "ops.npz") as archive:
    _ends = np.cumsum(archive["lengths"])
    RECORDED = dict(
        zip(archive["names"].tolist(), np.split(archive["values"], _ends[:-1]), strict=True)
    )
TYPES = json.loads((GOLDEN / "ops_types.json").read_text())


RECORDABLE = [pair for pair in CASES if case_id(pair) not in NO_GRADIENT_IN_PYTORCH]


@pytest.mark.parametrize("pair", RECORDABLE, ids=case_id)
def test_values_and_gradients(pair):
    sample, case = pair
    inputs = [minitorch.from_numpy(x).requires_grad_() for x in sample.arrays(case, np.float32)]
    out = sample.run(minitorch, *inputs)
    count = out.numel()
    weights = minitorch.arange(1.0, count + 1).reshape(out.shape).to(out.dtype) / max(count, 1)
    (out * weights).sum().backward()
    grads = [np.zeros(x.shape, np.float32) if x.grad is None else x.grad.numpy() for x in inputs]
    mine = np.concatenate(
        [out.detach().float().numpy().reshape(-1), *[g.reshape(-1) for g in grads]]
    )
    np.testing.assert_allclose(mine, RECORDED[case_id(pair)], rtol=3e-5, atol=3e-6)


def test_result_types():
    mine = type_answers(minitorch)
    wrong = {key: (mine[key], theirs) for key, theirs in TYPES.items() if mine[key] != theirs}
    assert not wrong
