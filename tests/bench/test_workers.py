"""Workers: answers, errors, silence, and that nothing is left behind."""

import json
import os
import subprocess
import sys

import pytest

from minitorch.bench.peers import WORKERS, Worker, WorkerError, worker_environment

PROGRAM = f"""
import os, sys, time
sys.path.insert(0, {str(WORKERS)!r})
from protocol import channel, serve
out = channel()
print("noise on standard output")
def explode(): raise ValueError("on purpose")
def die():
    print("last words", file=sys.stderr, flush=True)
    os._exit(3)
serve({{"add": lambda a, b: a + b, "explode": explode, "die": die,
       "sleep": lambda seconds: time.sleep(seconds),
       "threads": lambda: os.environ["OMP_NUM_THREADS"]}}, out)
"""


@pytest.fixture
def worker():
    with Worker([sys.executable, "-c", PROGRAM], patience=10) as running:
        yield running


def test_ask(worker):
    assert worker.ask("add", a=1, b=2) == 3
    worker.send("add", a=5, b=5)
    assert worker.receive() == 10
    assert worker.ask("threads") == "1"


def test_an_error_is_told_and_the_worker_lives(worker):
    with pytest.raises(WorkerError, match="ValueError: on purpose"):
        worker.ask("explode")
    assert worker.ask("add", a=0, b=0) == 0


def test_a_death_is_told_with_the_last_words(worker):
    with pytest.raises(WorkerError, match=r"has ended: [\s\S]*last words"):
        worker.ask("die")


def test_silence_ends(worker):
    worker.patience = 0.1
    with pytest.raises(WorkerError, match="did not answer within"):
        worker.ask("sleep", seconds=2)


def test_a_command_that_does_not_exist():
    with pytest.raises(WorkerError, match="did not start"):
        Worker(["/nowhere/at/all"])


def test_a_program_that_does_not_speak():
    with pytest.raises(WorkerError, match="has ended"):
        Worker([sys.executable, "-c", "pass"], patience=10)


def test_the_process_is_gone_afterwards():
    with Worker([sys.executable, "-c", PROGRAM], patience=10) as running:
        process = running._process
    assert process.returncode is not None


def test_another_interpreter_does_not_see_our_packages(monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert "PYTHONPATH" not in worker_environment(ours=False)
    assert worker_environment()["PYTHONPATH"]
    assert worker_environment(2)["OPENBLAS_NUM_THREADS"] == "2"


def test_a_full_duplex_stream():
    """Both ends of the network yardstick, on the loopback device."""
    port = 40000 + os.getpid() % 20000
    ends = []
    try:
        for role in ("listen", "connect"):
            command = [sys.executable, str(WORKERS / "tcp.py"), role, "127.0.0.1", str(port)]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            ends.append(subprocess.Popen(command, **pipes))
        for end in ends:
            assert json.loads(end.stdout.readline()) == {"result": "ready"}
        for end in ends:
            end.stdin.write('{"do": "exchange", "size": 1000000}\n')
            end.stdin.flush()
        for end in ends:
            assert json.loads(end.stdout.readline())["result"] > 0
    finally:
        for end in ends:
            end.stdin.close()
            end.stdout.close()
            end.wait(timeout=10)
