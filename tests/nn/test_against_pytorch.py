"""Outputs, gradients, texts and errors equal those recorded from PyTorch."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from nn import cases, seeded

import minitorch
import minitorch.nn

GOLDEN = Path(__file__).parent.parent / "golden"
TEXTS = json.loads((GOLDEN / "nn_texts.json").read_text())


def _recorded(topic: str) -> dict[str, dict[str, np.ndarray]]:
    by_case: dict[str, dict[str, np.ndarray]] = {}
    with np.load(GOLDEN / f"nn_{topic}.npz") as answers:
        for key in answers.files:
            case, _, what = key.rpartition("/")
            by_case.setdefault(case, {})[what] = answers[key]
    return by_case


ANSWERS = {"functions": _recorded("functions"), "modules": _recorded("modules")}


def _compare(case: cases.Case, expected: dict[str, np.ndarray]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cases.evaluate(case, minitorch)
    assert found.keys() == expected.keys()
    # PyTorch rounds some constants of these two to float32.
    rtol = 5e-8 if case.name.startswith(("hardsigmoid", "celu")) else 1e-9
    for key, value in expected.items():
        np.testing.assert_allclose(
            found[key], value, rtol=rtol, atol=1e-11, err_msg=f"{case.module} {case.call}: {key}"
        )
        assert found[key].dtype == value.dtype, key


@pytest.mark.parametrize("case", cases.FUNCTIONS, ids=lambda case: case.name)
def test_function(case: cases.Case) -> None:
    _compare(case, ANSWERS["functions"][case.name])


@pytest.mark.parametrize("case", cases.MODULES, ids=lambda case: case.name)
def test_module(case: cases.Case) -> None:
    _compare(case, ANSWERS["modules"][case.name])


@pytest.fixture(scope="module")
def drawn() -> dict[str, np.ndarray]:
    return seeded.draw_all(minitorch)


def test_seeded_initial_values(drawn: dict[str, np.ndarray]) -> None:
    with np.load(GOLDEN / "nn_seeded.npz") as answers:
        assert set(drawn) == set(answers.files)
        for key in answers.files:
            np.testing.assert_allclose(drawn[key], answers[key], rtol=2e-6, atol=1e-6, err_msg=key)


@pytest.mark.parametrize("expression", seeded.REPRS)
def test_text_and_keys(expression: str) -> None:
    layer = eval(expression, {"nn": minitorch.nn, "torch": minitorch})
    assert repr(layer) == TEXTS["repr"][expression]
    assert list(layer.state_dict()) == TEXTS["keys"][expression]


@pytest.mark.parametrize("line", seeded.ERRORS)
def test_error(line: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind, text = seeded.message(line, minitorch)
    expected_kind, expected = TEXTS["errors"][line]
    assert (kind, text) == (expected_kind, expected)
