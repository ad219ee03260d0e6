"""Every exercise accepts its solution, refuses its mistakes, and notices an empty answer."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

import pytest

TUTORIALS = Path(__file__).parents[2] / "tutorials"
sys.path.insert(0, str(TUTORIALS))

import exercises  # noqa: E402

EXERCISES = [
    pytest.param(value, id=f"{module.name}-{name}")
    for module in pkgutil.iter_modules(exercises.__path__)
    for name, value in vars(importlib.import_module(f"exercises.{module.name}")).items()
    if isinstance(value, exercises.Exercise)
]


def test_there_are_exercises_in_every_lesson():
    lessons = {path.name[:2] for path in TUTORIALS.glob("[0-9][0-9]_*.py")}
    checked = {
        name.removeprefix("lesson_") for _, name, _ in pkgutil.iter_modules(exercises.__path__)
    }
    assert lessons == checked


@pytest.mark.parametrize("exercise", EXERCISES)
def test_solution_passes(exercise, capsys):
    assert exercise.check(exercise.solution), capsys.readouterr().out


@pytest.mark.parametrize("exercise", EXERCISES)
def test_mistakes_are_refused(exercise, capsys):
    assert exercise.mistakes
    for mistake in exercise.mistakes:
        assert not exercise.check(mistake)
        assert "[✗]" in capsys.readouterr().out


@pytest.mark.parametrize("exercise", EXERCISES)
def test_empty_answer_is_reported_as_not_started(exercise, capsys):
    assert not exercise.check(lambda *args: ...)
    assert "not started" in capsys.readouterr().out
