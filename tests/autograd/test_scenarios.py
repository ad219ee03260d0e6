"""Views, in-place writes, hooks, modes, functions and errors: the same answers as PyTorch."""

import json
import math
import sys
from pathlib import Path

import pytest

import minitorch

sys.path.insert(0, str(Path(__file__).parent))
from scenarios import SCENARIOS, answer

RECORDED = json.loads(
    (Path(__file__).parents[1] / "golden" / "autograd.json").read_text(), parse_constant=float
)


def same(mine, theirs, path=""):
    """Compare answers; numbers to float32 precision."""
    if isinstance(theirs, float) and isinstance(mine, (int, float)):
        close = math.isclose(mine, theirs, rel_tol=2e-5, abs_tol=1e-6)
        assert close or (math.isnan(mine) and math.isnan(theirs)) or mine == theirs, (
            f"{path}: {mine} is not {theirs}"
        )
    elif isinstance(theirs, list):
        assert isinstance(mine, list), f"{path}: {mine} is not {theirs}"
        assert len(mine) == len(theirs), f"{path}: {mine} is not {theirs}"
        for i, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            same(a, b, f"{path}[{i}]")
    elif isinstance(theirs, dict):
        assert isinstance(mine, dict), f"{path}: {mine} is not {theirs}"
        assert mine.keys() == theirs.keys(), f"{path}: {mine} is not {theirs}"
        for key in theirs:
            same(mine[key], theirs[key], f"{path}.{key}")
    else:
        assert mine == theirs, f"{path}: {mine!r} is not {theirs!r}"


# 0 ** -1 and log(0) are silent, as in PyTorch.
@pytest.mark.filterwarnings("ignore::RuntimeWarning:minitorch")
@pytest.mark.parametrize("name", SCENARIOS)
def test_same_answer_as_pytorch(name):
    same(answer(SCENARIOS[name], minitorch), RECORDED[name], name)
