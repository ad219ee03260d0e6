"""Starting, asking and ending the worker processes of a benchmark."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["WORKERS", "Worker", "WorkerError", "worker_environment"]

WORKERS = Path(__file__).parent / "workers"


class WorkerError(RuntimeError):
    """A worker did not start, did not answer, or answered with an error."""


def worker_environment(threads: int = 1, ours: bool = True, **extra: str) -> dict[str, str]:
    """Return an environment in which every BLAS uses `threads` threads.

    With `ours` this minitorch can be imported in it; another interpreter must not look into this
    one's packages.
    """
    counts = (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "BLIS_NUM_THREADS",
    )
    environment = os.environ | dict.fromkeys(counts, str(threads)) | {"PYTHONUNBUFFERED": "1"}
    if ours:
        root = str(Path(__file__).parents[2])
        environment["PYTHONPATH"] = os.pathsep.join(
            p for p in (root, os.environ.get("PYTHONPATH", "")) if p
        )
    return environment | extra


class Worker:
    """A process that speaks `workers/protocol.py`. A context manager: the process ends with it.

    Parameters
    ----------
    command : sequence of str
    env : dict, optional
        Default: one BLAS thread, otherwise this process's environment.
    patience : float
        Seconds that a start or an answer may take.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: dict[str, str] | None = None,
        patience: float = 120.0,
        name: str = "worker",
    ) -> None:
        self.name, self.patience = name, patience
        self._buffer = b""
        # A file, not a pipe: nobody reads along, and a full pipe would stop the worker.
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed in close()
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                env=worker_environment() if env is None else env,
                start_new_session=True,  # killing it takes along what it has started
            )
        except OSError as error:
            self._stderr.close()
            raise WorkerError(f"{name} did not start: {error}") from error
        try:
            self._answer()  # "ready"
        except BaseException:
            self.close()
            raise

    @classmethod
    def script(
        cls, script: str, *arguments: str, python: str = sys.executable, **options: Any
    ) -> Worker:
        """Start one of the files in `workers/`."""
        options.setdefault("env", worker_environment(ours=python == sys.executable))
        return cls(
            [python, str(WORKERS / script), *arguments],
            name=f"{script} {' '.join(arguments)}".strip(),
            **options,
        )

    def send(self, do: str, **arguments: Any) -> None:
        """Ask without waiting; `receive` has the answer."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write((json.dumps({"do": do, **arguments}) + "\n").encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise WorkerError(f"{self.name} has ended: {self._last_words()}") from None

    def receive(self) -> Any:
        """Wait for the answer to the last `send`."""
        return self._answer()

    def ask(self, do: str, **arguments: Any) -> Any:
        """Ask and wait."""
        self.send(do, **arguments)
        return self._answer()

    def _answer(self) -> Any:
        answer = json.loads(self._line())
        if "error" in answer:
            raise WorkerError(
                f"{self.name}: {answer['error']}\n{answer.get('traceback', '')}".rstrip()
            )
        return answer["result"]

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        deadline = time.monotonic() + self.patience
        while b"\n" not in self._buffer:
            readable, _, _ = select.select(
                [descriptor], [], [], max(0.0, deadline - time.monotonic())
            )
            if not readable:
                raise WorkerError(
                    f"{self.name} did not answer within {self.patience:.0f} s: {self._last_words()}"
                )
            chunk = os.read(descriptor, 65536)
            if not chunk:
                raise WorkerError(f"{self.name} has ended: {self._last_words()}")
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line

    def _last_words(self) -> str:
        # pread: the worker writes through the same file offset, which must not be moved.
        descriptor = self._stderr.fileno()
        size = os.fstat(descriptor).st_size
        text = os.pread(descriptor, 2000, max(0, size - 2000))
        return text.decode(errors="replace").strip() or "(it said nothing)"

    def close(self) -> None:
        """End the process: kindly, then not."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass  # it was gone already
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, 9)
            self._process.wait()
        self._stderr.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
