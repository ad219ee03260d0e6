"""Exercises of the lessons: each is a function to write and a check that says what is wrong with it.

In a lesson, an exercise cell holds a function whose body is ``...`` and a call of its check::

    def tanh_rule(grad, result):
        ...                                   # your turn

    lesson_01.tanh_rule.check(tanh_rule)

The check prints one line: not started, right, or the first thing that differs, with a hint. It never
stops the notebook, so a lesson runs from top to bottom whether or not its exercises are done. The
tests of the project hand each check its solution (which must pass) and common mistakes (which
must not): see ``tests/tutorials/test_exercises.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["Exercise", "exercise"]


@dataclass
class Exercise:
    """One exercise: a checker, its solution, and mistakes that the checker must catch.

    Attributes
    ----------
    title : str
        What is to be written, in one line.
    checker : callable
        Takes the student's function; raises ``AssertionError`` with a teaching message.
    hint : str
        Printed beside a failure.
    solution : callable
        A right answer.
    mistakes : list of callable
        Wrong answers, each of which the checker must refuse.
    """

    title: str
    checker: Callable[[Callable], None]
    hint: str = ""
    solution: Callable | None = None
    mistakes: list[Callable] = field(default_factory=list)

    def check(self, answer: Callable) -> bool:
        """Check `answer`, print the verdict, and return whether it is right."""
        try:
            self.checker(answer)
        except _NotStarted:
            print(
                f"[ ] {self.title}: not started, or None is returned. Replace the `...`, then run again."
            )
            return False
        except AssertionError as wrong:
            print(f"[✗] {self.title}: {wrong}\n    hint: {self.hint}")
            return False
        except Exception as error:  # the student's own code may raise anything
            print(f"[✗] {self.title}: {type(error).__name__}: {error}\n    hint: {self.hint}")
            return False
        print(f"[✓] {self.title}")
        return True

    def solve(self, function: Callable) -> Callable:
        """Decorator: `function` is the right answer."""
        self.solution = function
        return function

    def mistake(self, function: Callable) -> Callable:
        """Decorator: `function` is a wrong answer that the check must refuse."""
        self.mistakes.append(function)
        return function


class _NotStarted(Exception):
    """The answer returned nothing: its body is still ``...``."""


def exercise(title: str, hint: str = "") -> Callable[[Callable[[Callable], None]], Exercise]:
    """Make an `Exercise` of a checker function."""
    return lambda checker: Exercise(title, checker, hint)


def answered(value):
    """Return `value`; tell the check that the exercise was not started where it is None."""
    if value is None or value is Ellipsis:
        raise _NotStarted
    return value
