"""Every op's gradient against central differences, to second order, in float64."""

import numpy as np
import pytest
from generators import CASES, SAMPLES, case_id, strided

import minitorch
from minitorch.autograd import gradcheck, gradgradcheck

FIRST = [(sample, 0) for sample in SAMPLES]


def leaves(arrays):
    return tuple(minitorch.from_numpy(array).requires_grad_() for array in arrays)


@pytest.mark.parametrize("pair", CASES, ids=case_id)
def test_first_and_second_order(pair):
    sample, case = pair
    inputs = leaves(sample.arrays(case))

    def run(*tensors):
        return sample.run(minitorch, *tensors)

    assert gradcheck(run, inputs)
    if sample.second_order:
        assert gradgradcheck(run, inputs)


@pytest.mark.parametrize("pair", FIRST, ids=case_id)
def test_strided_inputs_and_gradients(pair):
    sample, case = pair
    inputs = leaves(strided(array) for array in sample.arrays(case))

    def run(*tensors):
        # Multiplying by a strided tensor makes the gradient arrive strided too.
        out = sample.run(minitorch, *tensors)
        return out.transpose(0, -1) if out.dim() else out

    if sample.name != "view":
        assert gradcheck(run, inputs)


@pytest.mark.parametrize("pair", CASES, ids=case_id)
def test_float32_stays_float32(pair):
    """No op lifts float32 to float64 on the way forward or back."""
    sample, case = pair
    if sample.name == "float_power":
        pytest.skip("computes in float64 by definition")
    inputs = leaves(sample.arrays(case, np.float32))
    out = sample.run(minitorch, *inputs)
    assert out.dtype is minitorch.float32
    seen = []
    nodes, stack = set(), [out.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in nodes:
            nodes.add(node)
            node.register_hook(lambda grads, _: seen.extend(grads) and None)
            stack.extend(next_node for next_node, _ in node.next_functions)
    out.backward(minitorch.ones_like(out))
    assert all(grad is None or grad.dtype is minitorch.float32 for grad in seen)
    for x in inputs:
        assert x.grad is None or x.grad.dtype is minitorch.float32
