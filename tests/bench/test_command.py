"""The command line, the registry, the table and the file; no measuring."""

import io
import json

import pytest
from rich.console import Console

from minitorch.bench import BENCHMARKS, Settings, Skipped, benchmark, chosen, main
from minitorch.bench.measure import Figure
from minitorch.bench.peers import WorkerError
from minitorch.bench.report import seconds_text, table

EXPECTED = [
    "autograd",
    "mlp",
    "lstm",
    "lstm-sequence",
    "cnn",
    "ddp-overhead",
    "allreduce",
    "overlap",
    "network",
]


@pytest.fixture
def extra():
    """Register benchmarks for one test."""
    added = []

    def add(name, run):
        benchmark(name, f"about {name}")(run)
        added.append(name)

    main(["--list"])  # registers ours first
    yield add
    for name in added:
        del BENCHMARKS[name]


def test_list(capsys):
    assert main(["--list"]) == 0
    out = capsys.readouterr().out
    for name in EXPECTED:
        assert name in out
    assert set(EXPECTED) <= set(BENCHMARKS)


def test_choosing():
    main(["--list"])
    assert [b.name for b in chosen(["cnn", "mlp"])] == ["cnn", "mlp"]
    with pytest.raises(ValueError, match=r"unknown benchmark 'speed'; there are: "):
        chosen(["speed"])


def test_a_name_is_taken_once(extra):
    extra("twin", lambda settings: iter(()))
    with pytest.raises(ValueError, match="two benchmarks called 'twin'"):
        benchmark("twin", "again")(lambda settings: iter(()))


@pytest.mark.parametrize(
    "arguments", [["speed"], ["--rounds", "0", "cnn"], ["--torch-python", "/nowhere/python", "cnn"]]
)
def test_bad_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_results_go_to_table_and_file(extra, tmp_path, capsys):
    seen = []

    def good(settings: Settings):
        seen.append(settings)
        yield Figure("good", "x", 1e-3, 2e-3, "peer", 0.5, 0.4, 0.6, 1.0, True, "a note")

    def nowhere(settings: Settings):
        raise Skipped("needs root")
        yield

    extra("good", good)
    extra("nowhere", nowhere)
    path = tmp_path / "out" / "figures.json"
    assert main(["good", "nowhere", "--quick", "--json", str(path)]) == 0
    out = capsys.readouterr().out
    assert "met" in out
    assert "nowhere skipped: needs root" in out
    content = json.loads(path.read_text())
    assert content["figures"][0]["met"] is True
    assert content["skipped"] == {"nowhere": "needs root"}
    assert content["machine"]["cores"]
    assert seen[0].pick(15, 5) == 5


def test_a_miss_and_a_failure_are_in_the_exit_status(extra, capsys):
    def slow(settings):
        yield Figure("slow", "x", 1.0, 1.0, "peer", 2.0, 2.0, 2.0, 1.0)

    def broken(settings):
        yield Figure("broken", "before it broke", 1.0)
        raise WorkerError("it [died]")

    extra("slow", slow)
    extra("broken", broken)
    assert main(["slow"]) == 1
    assert "missed" in capsys.readouterr().out
    assert main(["broken"]) == 1
    out = capsys.readouterr().out
    assert "it [died]" in out
    assert "before it broke" in out


def test_rounds_override():
    assert Settings(rounds=7).pick(15, 5) == 7
    assert Settings().pick(15, 5) == 15


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.5, "2.5 s"), (0.0123, "12.3 ms"), (4.56e-6, "4.56 µs"), (5e-9, "0.005 µs"), (None, "-")],
)
def test_seconds(seconds, text):
    assert seconds_text(seconds) == text


def test_table_says_whether_targets_are_met():
    console = Console(width=140, record=True, file=io.StringIO())
    alone, absolute = Figure("b", "n", 1.0), Figure("b", "m", 1.0, target=2.0)
    faster = Figure("b", "o", 1.0, 2.0, "p", 2.0, 1.9, 2.1, 1.4, False)
    console.print(table([alone, absolute, faster]))
    text = console.export_text()
    assert "not compared (≤ 2)" in text
    assert "met (≥ 1.4)" in text
    assert "2.00 × faster" in text
