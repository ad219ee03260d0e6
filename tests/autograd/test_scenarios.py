"""Views, in-place writes, hooks, modes, functions and errors: the same answers as PyTorch."""

import json
import sys
from pathlib import Path

import pytest
from answers import answer, same

import minitorch

sys.path.insert(0, str(Path(__file__).parent))
from scenarios import SCENARIOS

RECORDED = json.loads(
    (Path(__file__).parents[1] / "golden" / "autograd.json").read_text(), parse_constant=float
)


# 0 ** -1 and log(0) are silent, as in PyTorch.
@pytest.mark.filterwarnings("ignore::RuntimeWarning:minitorch")
@pytest.mark.parametrize("name", SCENARIOS)
def test_same_answer_as_pytorch(name):
    same(answer(SCENARIOS[name], minitorch), RECORDED[name], name)
