"""Calls as scripts write them, and as they should not: values, gradients and errors are PyTorch's.

An error has to have PyTorch's type and much of its wording.
"""

import difflib
import json
import sys
from pathlib import Path

import pytest
from answers import same

import minitorch

sys.path.insert(0, str(Path(__file__).parent))
from expressions import NAMES, TABLES, evaluate

RECORDED = json.loads(
    (Path(__file__).parents[1] / "golden" / "expressions.json").read_text(), parse_constant=float
)


def is_error(answer):
    return isinstance(answer, dict) and "error" in answer


def difference(mine, theirs):
    """Return what is wrong with our answer, or None."""
    if not (is_error(mine) and is_error(theirs)):
        try:
            same(mine, theirs)
        except AssertionError as error:
            return str(error)
        return None
    alike = difflib.SequenceMatcher(None, mine["message"], theirs["message"]).ratio()
    if mine["error"] == theirs["error"] and alike > 0.55:
        return None
    return f"{mine} is not {theirs}"


@pytest.mark.parametrize("table", TABLES)
def test_same_as_pytorch(table):
    """One test per table: a thousand expressions take a second, a thousand tests take ten."""
    expressions = [expression for name, expression in NAMES if name == table]
    assert expressions == list(RECORDED[table])
    found = {
        expression: difference(evaluate(table, expression, minitorch), RECORDED[table][expression])
        for expression in expressions
    }
    wrong = [f"{expression}\n    {what}" for expression, what in found.items() if what]
    assert not wrong, f"{len(wrong)} of {len(expressions)} differ:\n" + "\n".join(wrong)
