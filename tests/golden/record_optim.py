"""Record trajectories of PyTorch's optimizers and learning rate schedules, for tests/optim.

Run with a PyTorch at hand:  python tests/golden/record_optim.py
The cases take the library as an argument, so that the tests play the same code on minitorch.
Gradients are a fixed function of the parameters, computed in NumPy, so that the trajectories depend
on the update rules alone. optim.npz holds float32 and float64 trajectories; schedules.json the
rates.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

TRAJECTORIES = Path(__file__).with_name("optim.npz")
SCHEDULES = Path(__file__).with_name("schedules.json")
STEPS = 12

#: Name -> (class, options).
OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "sgd": ("SGD", {"lr": 0.1}),
    "sgd_decay": ("SGD", {"lr": 0.1, "weight_decay": 0.05}),
    "sgd_momentum": ("SGD", {"lr": 0.05, "momentum": 0.9}),
    "sgd_dampening": ("SGD", {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    "sgd_nesterov": ("SGD", {"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "sgd_maximize": ("SGD", {"lr": 0.01, "momentum": 0.5, "weight_decay": 0.1, "maximize": True}),
    "adam": ("Adam", {"lr": 0.05}),
    "adam_options": ("Adam", {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.1}),
    "adam_amsgrad": ("Adam", {"lr": 0.05, "amsgrad": True, "weight_decay": 0.1}),
    "adam_maximize": ("Adam", {"lr": 0.05, "maximize": True, "weight_decay": 0.1}),
    "adamw": ("AdamW", {"lr": 0.05}),
    "adamw_amsgrad": ("AdamW", {"lr": 0.05, "amsgrad": True, "weight_decay": 0.2}),
    "adamw_maximize": ("AdamW", {"lr": 0.05, "maximize": True}),
    "adagrad": ("Adagrad", {"lr": 0.1}),
    "adagrad_options": (
        "Adagrad",
        {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5},
    ),
    "rmsprop": ("RMSprop", {"lr": 0.05}),
    "rmsprop_options": (
        "RMSprop",
        {"lr": 0.05, "alpha": 0.9, "centered": True, "momentum": 0.9, "weight_decay": 0.1},
    ),
}


def _start(t: Any, dtype: str) -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = [(5, 4), (4,), (2, 3, 2), ()]
    arrays = [np.asarray(rng.normal(size=shape), dtype=dtype) for shape in shapes]
    return [t.from_numpy(array).requires_grad_() for array in arrays]


def _gradient(array: np.ndarray, step: int) -> np.ndarray:
    return np.asarray(np.sin(3 * array + step) + 0.5 * array, dtype=array.dtype)


def trajectory(t: Any, name: str, dtype: str) -> np.ndarray:
    """All parameters after each step, (STEPS, values); two groups, one parameter skipped once."""
    kind, options = OPTIMIZERS[name]
    params = _start(t, dtype)
    groups = [{"params": params[:2]}, {"params": params[2:], "lr": options["lr"] / 2}]
    optimizer = getattr(t.optim, kind)(groups, **options)
    rows = []
    for step in range(STEPS):
        for index, param in enumerate(params):
            if (step, index) == (3, 1):
                param.grad = None
                continue
            param.grad = t.from_numpy(_gradient(param.detach().numpy(), step))
        optimizer.step()
        rows.append(np.concatenate([p.detach().numpy().reshape(-1) for p in params]))
    return np.stack(rows)


def _schedules(s: Any) -> dict[str, Any]:
    """Name -> function from optimizer to schedule."""

    def sequence(o: Any) -> Any:
        parts = [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9), s.StepLR(o, 2, 0.5)]
        return s.SequentialLR(o, parts, [2, 7])

    def warmup(o: Any) -> Any:
        return s.SequentialLR(o, [s.LinearLR(o, 0.1, 1.0, 4), s.CosineAnnealingLR(o, 10)], [4])

    return {
        "lambda": lambda o: s.LambdaLR(o, lambda epoch: 0.95**epoch),
        "lambda_groups": lambda o: s.LambdaLR(o, [lambda e: 1 / (e + 1), lambda e: 0.9**e]),
        "multiplicative": lambda o: s.MultiplicativeLR(o, lambda epoch: 0.95),
        "step": lambda o: s.StepLR(o, 3),
        "multistep": lambda o: s.MultiStepLR(o, [2, 5, 5, 9], gamma=0.5),
        "constant": lambda o: s.ConstantLR(o, 0.5, 4),
        "linear": lambda o: s.LinearLR(o, 0.25, 0.8, 6),
        "exponential": lambda o: s.ExponentialLR(o, 0.9),
        "polynomial": lambda o: s.PolynomialLR(o, 8, 2.0),
        "cosine": lambda o: s.CosineAnnealingLR(o, 5, eta_min=0.01),
        "restarts": lambda o: s.CosineAnnealingWarmRestarts(o, 3, 2, eta_min=0.001),
        "restarts_even": lambda o: s.CosineAnnealingWarmRestarts(o, 4),
        "onecycle": lambda o: s.OneCycleLR(o, 1.0, total_steps=20),
        "onecycle_three": lambda o: s.OneCycleLR(
            o, [1.0, 2.0], epochs=4, steps_per_epoch=5, anneal_strategy="linear", three_phase=True
        ),
        "sequence": sequence,
        "warmup": warmup,
        "chained": lambda o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)]),
    }


def _optimizer(t: Any, kind: str = "SGD") -> Any:
    params = [t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)]
    groups = [{"params": [params[0]]}, {"params": [params[1]], "lr": 0.02}]
    return getattr(t.optim, kind)(groups, lr=0.1)


def _momenta(optimizer: Any) -> list[float]:
    return [g["betas"][0] if "betas" in g else g["momentum"] for g in optimizer.param_groups]


def rates(t: Any, name: str, kind: str = "SGD") -> list[list[float]]:
    """Both groups' rates and momenta at the start and after each of 19 steps."""
    optimizer = _optimizer(t, kind)
    schedule = _schedules(t.optim.lr_scheduler)[name](optimizer)
    rows = []
    for step in range(20):
        rows.append([*(g["lr"] for g in optimizer.param_groups), *_momenta(optimizer)])
        if step < 19:
            optimizer.step()
            schedule.step()
    return rows


def plateau(t: Any, **options: Any) -> list[float]:
    """The first group's rate along a metric that stalls, worsens and improves."""
    optimizer = _optimizer(t)
    schedule = t.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)
    metrics = [1.0, 0.9, 0.9, 0.91, 0.89995, 0.95, 1.0, 0.5, 0.5, 0.5, 0.5, 0.6, 0.6, 0.6, 0.4, 0.4]
    rows = []
    for metric in metrics:
        optimizer.step()
        schedule.step(metric)
        rows.append(optimizer.param_groups[0]["lr"])
    return rows


PLATEAUS: dict[str, dict[str, Any]] = {
    "plateau": {"patience": 1},
    "plateau_abs": {"patience": 2, "threshold_mode": "abs", "threshold": 0.05, "cooldown": 2},
    "plateau_max": {"patience": 1, "mode": "max", "factor": 0.5, "min_lr": 0.01},
}


def schedule_names(t: Any) -> list[str]:
    """The names that :func:`rates` knows."""
    return list(_schedules(t.optim.lr_scheduler))


def all_rates(t: Any) -> dict[str, Any]:
    """Every schedule's answers."""
    answers: dict[str, Any] = {name: rates(t, name) for name in schedule_names(t)}
    answers["onecycle_adam"] = rates(t, "onecycle", "Adam")
    answers.update({name: plateau(t, **options) for name, options in PLATEAUS.items()})
    return answers


if __name__ == "__main__":
    import torch

    runs = {
        f"{name}/{dtype}": trajectory(torch, name, dtype)
        for name in OPTIMIZERS
        for dtype in ("float32", "float64")
    }
    np.savez_compressed(TRAJECTORIES, **runs)
    SCHEDULES.write_text(json.dumps(all_rates(torch), indent=1) + "\n")
    for path in (TRAJECTORIES, SCHEDULES):
        print(f"{path}: {path.stat().st_size} bytes, torch {torch.__version__}")
