"""The comparison's plan, its pool of programs and its tables."""

import dataclasses
import json
import statistics
import sys
from pathlib import Path

import pytest
from rich.console import Console

pytestmark = pytest.mark.usefixtures("programs")

# A "trainer" that writes its results, once told to by a file beside them, and counts its starts.
PROGRAM = """
import json, sys
from pathlib import Path
argv = [a for a in sys.argv[1:] if a != "--resume"]
args = dict(zip(argv[::2], argv[1::2]))
history = Path(args["--history"])
with open(history.parent / "starts.txt", "a") as log:
    log.write(history.stem + "\\n")
print("epoch  1 of 2", flush=True)
if (history.parent / f"fail-{history.stem}").exists():
    sys.exit("out of luck")
rates = [float(args[f]) for f in ("--rate", "--hidden-rate") if f in args]
score = 1.0 + sum(rates) + 0.01 * int(args["--seed"])
row = {"train": score, "valid": score, "cpu_seconds": 1.0}
settings = {"regularizer": args["--regularizer"], "rates": rates, "seed": int(args["--seed"]),
            "epochs": int(args["--epochs"]), "width": int(args["--width"])}
Path(args["--checkpoint"]).write_text("unfinished")
history.write_text(json.dumps({"settings": settings, "best_epoch": 1, "valid": score,
                               "test": score + 0.5, "epochs": [row, row]}))
"""


@pytest.fixture
def study(tmp_path):
    """One task with the program above, two seeds."""
    from study import plan

    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    candidates = {
        "none": ((),),
        "recurrent-dropout": ((0.5,), (0.25,)),
        "zoneout": ((0.5, 0.1), (0.2, 0.1)),
    }
    task = plan.Task("toy", script, 2, {"width": 3}, candidates, "Toy", "points")

    class Toy(plan.Study):
        pass

    return Toy((task,), 2)


def quiet():
    return Console(quiet=True)


def finish(folder, runs):
    """Write what the program above would."""
    folder.mkdir(exist_ok=True)
    for run in runs:
        score = 1.0 + sum(run.rates) + 0.01 * run.seed
        row = {"train": score, "valid": score, "cpu_seconds": 1.0}
        content = {"settings": run.settings(), "best_epoch": 1, "epochs": [row, row]}
        content |= {"valid": score, "test": score + 0.5}
        (folder / f"{run.name}.json").write_text(json.dumps(content))


def finish_all(study, folder):
    """Both rounds of every task."""
    from study import pool

    for task in study.tasks:
        first = study.first(task)
        finish(folder, first)
        finish(folder, study.second(task, pool.load_results(folder, first)))


def test_the_plan_in_full():
    from study import plan

    full, quick = plan.study(), plan.study(quick=True)
    for study in (full, quick):
        assert study.seeds >= 3
        for task in study.tasks:
            tuned = [task.candidates[m] for m in plan.METHODS if m != "none"]
            assert len({len(rates) for rates in tuned}) == 1, "the same budget for each"
            assert len(study.first(task)) == 9
        assert study.size()[0] == 2 * 13 + 3
    characters = full.tasks[0]
    assert characters.epochs >= 60, "a shorter run shows zoneout as worse"
    assert characters.options["characters"] >= 200_000
    assert quick.size()[1] < full.size()[1] / 5
    names = [run.name for task in full.tasks for run in full.first(task)]
    assert len(set(names)) == len(names)
    assert "characters-zoneout-0.5-0.05-seed0" in names


def test_every_run_of_the_plan_is_a_command_that_its_trainer_understands():
    from importlib import import_module

    from study import plan

    for study in (plan.study(), plan.study(quick=True)):
        runs = [*study.gradients, *(run for task in study.tasks for run in study.first(task))]
        for run in runs:
            trainer = import_module(run.script.stem)
            words = run.command(Path("folder"))
            args = trainer.arguments().parse_args(words[2:])
            names = "rows order" if "rows" in run.options else "characters steps embedding"
            import common

            settings = common.recurrent_settings(args, f"{names} " + " ".join(run.options))
            assert {k: settings[k] for k in run.settings()} == run.settings()
            assert args.resume


def test_runs_are_done_once_and_failures_keep_what_is_finished(study, tmp_path):
    from study import pool

    (task,) = study.tasks
    first = study.first(task)
    folder = tmp_path / "runs"
    folder.mkdir()
    unlucky = folder / f"fail-{first[2].name}"
    unlucky.touch()
    with pytest.raises(SystemExit, match=r"(?s)rate|recurrent-dropout-0.25.*out of luck"):
        pool.run_all(folder, first, 1, quiet())
    assert set(pool.load_results(folder, first)) == {run.name for run in first[:2]}
    unlucky.unlink()
    pool.run_all(folder, first, 2, quiet())
    pool.run_all(folder, first, 2, quiet())
    starts = (folder / "starts.txt").read_text().split()
    assert sorted(starts) == sorted([first[2].name, *(run.name for run in first)])
    assert not list(folder.glob("*.pt")), "checkpoints of finished runs are removed"


def test_the_best_rates_get_the_other_seeds_and_the_table_has_their_means(study, tmp_path):
    import zoneout
    from study import tables

    (task,) = study.tasks
    folder = tmp_path / "runs"
    before = tables.collect(study, folder)
    assert before["tasks"]["toy"]["finished"] == 0
    assert "Only 0 of 8 runs" in tables.markdown(before, {})
    finish(folder, study.first(task)[:2])
    partial = tables.collect(study, folder)
    report = tables.markdown(partial, {})
    assert "Only 2 of 8 runs" in report
    assert "1.000 (one seed)" in report
    partial["tasks"] = tables.complete_only(partial["tasks"])
    assert "one seed" not in tables.markdown(partial, {})
    zoneout.run_study(study, folder, 2, quiet())
    results = tables.collect(study, folder)
    assert tables.is_complete(results["tasks"]["toy"])
    assert tables.complete_only(results["tasks"]) == results["tasks"]
    methods = results["tasks"]["toy"]["methods"]
    assert methods["recurrent-dropout"]["rates"] == [0.25]
    assert methods["zoneout"]["rates"] == [0.2, 0.1]
    assert [run["seed"] for run in methods["zoneout"]["runs"]] == [0, 1]
    report = tables.markdown(results, {"curves": "a.png"})
    deviation = statistics.stdev([0.0, 0.01])
    assert f"| zoneout | 0.2/0.1 | 1.305 ± {deviation:.3f} | 1.805 ± {deviation:.3f} |" in report
    assert "zoneout: better than none with 0 of 2 seeds, mean difference +0.300" in report
    assert "recurrent-dropout 0.5: 1.500, 0.25: 1.250" in report
    assert "too short" not in report
    assert "(a.png)" in report
    assert "too short to conclude from" in tables.markdown(results | {"quick": True}, {})


def test_results_of_another_plan_are_refused(study, tmp_path):
    from study import pool

    (task,) = study.tasks
    run = task.run("none", (), 0)
    finish(tmp_path / "runs", [run])
    other = dataclasses.replace(run, options={"width": 4})
    with pytest.raises(SystemExit, match="width is 3 and should be 4"):
        pool.load_results(tmp_path / "runs", [other])


def test_report_pictures_and_stored_results(study, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    import zoneout
    from study import tables

    folder = tmp_path / "runs"
    finish_all(study, folder)
    results = tables.collect(study, folder)
    norms = {"rates": [], "hidden": [0.1, 0.2], "cell": [0.1, 0.0]}
    results["gradients"] = {"none": norms, "zoneout": norms}
    zoneout.write_report(results, folder, False, Console())
    report = (folder / "report.md").read_text()
    for name in ("zoneout_curves.png", "zoneout_gradients.png"):
        assert (folder / name).read_bytes()[:4] == b"\x89PNG"
        assert name in report
    (folder / "report.md").unlink()
    zoneout.main(["--stored", str(folder / "results.json")])
    assert (folder / "report.md").read_text() == report
    assert "better than none" in capsys.readouterr().out


def test_a_page_keeps_what_is_around_the_results(tmp_path):
    from study import tables

    page = tmp_path / "page.md"
    page.write_text("a\n<!-- results: begin -->\nold\n<!-- results: end -->\nz\n")
    for text in ("one", "two"):
        tables.write_into(page, text)
    assert page.read_text() == ("a\n<!-- results: begin -->\n\ntwo\n<!-- results: end -->\nz\n")
    page.write_text("no marks")
    with pytest.raises(ValueError, match="once each"):
        tables.write_into(page, "text")


def test_the_documentation_gets_complete_tasks_and_can_be_drawn_again(study, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    import zoneout
    from study import tables

    monkeypatch.setattr(zoneout, "DOCS", tmp_path)
    (tmp_path / "zoneout.md").write_text("<!-- results: begin --><!-- results: end -->")
    finish_all(study, tmp_path / "runs")
    results = tables.collect(study, tmp_path / "runs")
    results["tasks"]["other"] = results["tasks"]["toy"] | {"title": "Other", "finished": 5}
    zoneout.write_report(results, tmp_path, True, quiet())
    page = (tmp_path / "zoneout.md").read_text()
    assert page.count("| zoneout | 0.2/0.1 |") == 1
    assert "Only 5 of 8 runs are finished" in page
    assert (tmp_path / "images/zoneout_curves.png").exists()
    zoneout.main(["--stored", str(tmp_path / "zoneout.json"), "--docs"])
    assert (tmp_path / "zoneout.md").read_text() == page


def test_quick_or_unfinished_results_do_not_get_into_the_documentation(tmp_path):
    import zoneout

    for options, words in (
        (["--quick"], "too short"),
        ([], "characters: 0 of 13 runs are finished"),
    ):
        with pytest.raises(SystemExit, match=words):
            zoneout.main([*options, "--report", "--docs", "--runs", str(tmp_path / "none")])


def test_how_many_at_a_time(capsys):
    import zoneout

    with pytest.raises(SystemExit):
        zoneout.main(["--parallel", "0"])
    assert "must be at least 1" in capsys.readouterr().err


def test_missing_data_end_the_run_before_it_begins(tmp_path, monkeypatch):
    import zoneout

    monkeypatch.setenv("MINITORCH_DATA", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(SystemExit, match="make shakespeare"):
        zoneout.main(["--quick", "--runs", str(tmp_path / "runs")])
    assert not (tmp_path / "runs").exists()
