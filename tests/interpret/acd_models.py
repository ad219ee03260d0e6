"""The networks that the recorded ACD values belong to, and how to load them.

The values (`tests/golden/acd_*`) were computed with the published code (PyPI `acd` 0.0.2 and
jamie-murdoch/ContextualDecomposition, mended where they do not run) and by independent
re-implementations that agree to 1e-15; all in float64.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import minitorch
from minitorch import nn

GOLDEN = Path(__file__).parents[1] / "golden"


def arrays(name: str) -> dict[str, np.ndarray]:
    """Return the arrays of a recorded file."""
    with np.load(GOLDEN / f"{name}.npz") as data:
        return {key: data[key] for key in data.files}


def record(name: str) -> dict[str, Any]:
    """Return a recorded JSON file."""
    return json.loads((GOLDEN / f"{name}.json").read_text())


def loaded(model: nn.Module, data: dict[str, np.ndarray], prefix: str = "p_") -> nn.Module:
    """Put recorded parameters into a model; returns it in float64 and evaluation mode."""
    model.double()
    state = model.state_dict()
    for name in state:
        key = prefix + name.replace(".", "_")
        if key in data:
            state[name] = minitorch.tensor(data[key])
    model.load_state_dict(state)
    return model.eval()


def mlp(data: dict[str, np.ndarray]) -> nn.Module:
    """6-8-5-3 with ReLUs."""
    layers = [nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 5), nn.ReLU(), nn.Linear(5, 3)]
    return loaded(nn.Sequential(*layers), data)


def cnn(data: dict[str, np.ndarray]) -> nn.Module:
    """Two convolutions, both poolings, batch norm, dropout."""
    return loaded(
        nn.Sequential(
            nn.Conv2d(2, 3, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(3, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Dropout(),
            nn.AvgPool2d(3),
            nn.Flatten(),
            nn.Linear(4, 3),
        ),
        data,
    )


def small_cnn(data: dict[str, np.ndarray]) -> nn.Module:
    """The network of the recorded image agglomerations: 12 x 12, four classes."""
    return loaded(
        nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 4, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(36, 4),
        ),
        data,
    )


class TextModel(nn.Module):
    """Embedding, recurrence, linear; ids are ``(T, B)``, logits of the last state."""

    def __init__(
        self,
        recurrence: type[nn.Module] = nn.LSTM,
        words: int = 12,
        classes: int = 2,
        **options: Any,
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, 5)
        self.lstm = recurrence(5, 6, **options)
        width = 6 * (2 if options.get("bidirectional") else 1)
        self.hidden_to_label = nn.Linear(width, classes)

    def forward(self, ids: Any) -> Any:
        out, _ = self.lstm(self.embed(ids))
        return self.hidden_to_label(out[-1])


def text_model(data: dict[str, np.ndarray]) -> nn.Module:
    """The LSTM of the recorded text scores."""
    return loaded(TextModel(), data)


def spans(pairs: np.ndarray, length: int) -> np.ndarray:
    """Return masks ``(spans, length, 1)`` over positions for inclusive (start, stop) pairs."""
    places = np.arange(length)
    chosen = (pairs[:, :1] <= places) & (places <= pairs[:, 1:])
    return chosen[:, :, None]
