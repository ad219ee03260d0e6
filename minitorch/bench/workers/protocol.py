"""How a benchmark talks to its workers: a line of JSON in, a line of JSON out.

A worker is a process of its own, with its own interpreter if need be, so that two frameworks (or
two MPIs) never share a process, and each gets the thread settings it is measured with. It does
nothing between requests: while one side is measured, the other sleeps in `readline`.

Imports nothing but the standard library: PyTorch's interpreter runs this file too.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any, TextIO

Handler = Callable[..., Any]


def channel() -> TextIO:
    """Take standard output for answers; whatever else prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return answers


def answer(handlers: dict[str, Handler], request: dict[str, Any]) -> dict[str, Any]:
    """Run what is asked for; an exception becomes part of the answer."""
    arguments = dict(request)
    name = arguments.pop("do")
    try:
        return {"result": handlers[name](**arguments)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}


def serve(handlers: dict[str, Handler], answers: TextIO) -> None:
    """Answer requests until standard input ends."""
    print(json.dumps({"result": "ready"}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(handlers, json.loads(line))), file=answers, flush=True)


def timed(function: Callable[[], Any], number: int) -> float:
    """Seconds per call, over `number` calls."""
    begin = time.perf_counter()
    for _ in range(number):
        function()
    return (time.perf_counter() - begin) / number
