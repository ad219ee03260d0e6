"""The comparison's gradients through time, and the smallest real runs of its programs."""

import numpy as np
import pytest

import minitorch as torch

pytestmark = pytest.mark.usefixtures("programs")


def test_a_frozen_state_hands_its_gradient_on_unchanged():
    """With zoneout at 1, ∂h_T/∂h_t is the identity: all norms are equal, those of cells zero."""
    import gradients
    import sequential_images

    torch.manual_seed(0)
    options = {"zoneout_cell": 1.0, "zoneout_hidden": 1.0}
    model = sequential_images.SequenceClassifier(6, 3, **options).double()
    sequences = torch.randn(4, 5, 1, dtype=torch.float64)
    hiddens, cells, loss = gradients.states_and_loss(model, sequences, torch.tensor([0, 1, 2, 0]))
    norms = gradients.gradient_norms(hiddens + cells, loss)
    assert (norms[:5] == norms[4]).all()
    assert norms[4] > 0
    assert (norms[5:] == 0).all()


def test_gradient_norms_against_finite_differences():
    import gradients
    import sequential_images

    torch.manual_seed(0)
    model = sequential_images.SequenceClassifier(3, 2).double()
    sequences = torch.randn(1, 4, 1, dtype=torch.float64)
    target = torch.tensor([1])
    hiddens, cells, loss = gradients.states_and_loss(model, sequences, target)
    norms = gradients.gradient_norms(hiddens + cells, loss)

    def loss_from(step, hidden):
        """Go on from step `step` with another hidden state."""
        rest = sequences.transpose(0, 1)[step + 1 :]
        state = (torch.from_numpy(hidden), cells[step].detach())
        last = model.lstm(rest, state)[1][0] if len(rest) else state[0]
        return torch.nn.functional.cross_entropy(model.scores(last[0]), target).item()

    for step in (0, 2, 3):
        start, slopes = hiddens[step].detach().numpy(), []
        for unit in range(3):
            shift = np.zeros_like(start)
            shift[..., unit] = 1e-6
            slopes.append((loss_from(step, start + shift) - loss_from(step, start - shift)) / 2e-6)
        assert norms[step] == pytest.approx(np.linalg.norm(slopes), rel=1e-6)


def test_the_smallest_real_runs(tmp_path, monkeypatch):
    """Both trainers and the gradients leave results that the comparison accepts."""
    from importlib import import_module

    import common
    from study import plan, pool

    (tmp_path / "play_gut.txt").write_text("to be or not to be\n" * 100)
    lines = [",".join(map(str, [25 * k] * 784 + [k])) for k in range(10) for _ in range(20)]
    (tmp_path / "mnist_5k.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("MINITORCH_DATA", str(tmp_path))
    small = {"characters": 1500, "steps": 10, "hidden": 4, "embedding": 4, "batch_size": 10}
    images = {"rows": 7, "hidden": 4}
    scripts = [plan.TRAINERS / f"{name}.py" for name in ("characters", "sequential_images")]
    scripts.append(plan.study().gradients[0].script)
    tasks = ("characters", "sequential-images", "gradients")
    runs = [
        plan.Run(task, "zoneout", (0.5, 0.05), 0, 1, script, options)
        for task, script, options in zip(tasks, scripts, (small, images, images), strict=True)
    ]
    for run in runs:
        trainer = import_module(run.script.stem)
        command = trainer.arguments()
        common.launch(trainer.main, command.parse_args(run.command(tmp_path)[2:]), command)
    results = pool.load_results(tmp_path, runs)
    for run in runs[:2]:
        assert results[run.name]["epochs"][0]["valid"] > 0
        assert results[run.name]["test"] > 0
    norms = np.array(results[runs[2].name]["hidden"])
    assert norms.shape == (49,)
    assert (norms > 0).all()
