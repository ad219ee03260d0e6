"""Worker: agglomerates a text and a digit. `python agglomeration.py reference|minitorch`.

The sizes are those of the published code's examples: a sentence of 15 words through an LSTM (300
inputs, 128 units), and a 28 x 28 image through LeNet's little sister, pixel by pixel. Weights are
random, the same for both sides.

The reference is PyPI `acd` 0.0.2 on PyTorch; three of its habits are mended here:
`np.int`, the device that defaults to "cuda", and the gradients that nobody asked it to record.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from protocol import channel, serve, timed  # type: ignore[import-not-found]

WORDS, VOCABULARY, EMBEDDED, HIDDEN = 15, 1000, 300, 128
TEXT = {"percentile": 99.5, "num_iters": 25}
IMAGE = {"percentile": 99.0, "num_iters": 5}


def arrays(text: bool) -> dict[str, np.ndarray]:
    """Return the weights, by their names in both models."""
    draw = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]]
    if text:
        shapes = {
            "embed.weight": (VOCABULARY, EMBEDDED),
            "lstm.weight_ih_l0": (4 * HIDDEN, EMBEDDED),
            "lstm.weight_hh_l0": (4 * HIDDEN, HIDDEN),
            "lstm.bias_ih_l0": (4 * HIDDEN,),
            "lstm.bias_hh_l0": (4 * HIDDEN,),
            "hidden_to_label.weight": (2, HIDDEN),
            "hidden_to_label.bias": (2,),
        }
    else:
        shapes = {
            "conv1.weight": (10, 1, 5, 5),
            "conv1.bias": (10,),
            "conv2.weight": (20, 10, 5, 5),
            "conv2.bias": (20,),
            "fc1.weight": (50, 320),
            "fc1.bias": (50,),
            "fc2.weight": (10, 50),
            "fc2.bias": (10,),
        }
    return {
        name: (draw.standard_normal(shape) / math.sqrt(max(math.prod(shape[1:]), 4))).astype(
            np.float32
        )
        for name, shape in shapes.items()
    }


def models(torch: Any) -> tuple[Any, Any]:
    """Return the classes of both models; they read the same under both frameworks."""
    nn: Any = torch.nn
    F = nn.functional

    class Text(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden_dim = HIDDEN
            self.embed = nn.Embedding(VOCABULARY, EMBEDDED)
            self.lstm = nn.LSTM(EMBEDDED, HIDDEN)
            self.hidden_to_label = nn.Linear(HIDDEN, 2)

        def forward(self, ids: Any) -> Any:
            out, _ = self.lstm(self.embed(ids))
            return self.hidden_to_label(out[-1])

    class Digit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(1, 10, 5)
            self.conv2 = nn.Conv2d(10, 20, 5)
            self.conv2_drop = nn.Dropout2d()  # the reference counts on its place in the list
            self.fc1 = nn.Linear(320, 50)
            self.fc2 = nn.Linear(50, 10)

        def forward(self, x: Any) -> Any:
            x = F.relu(F.max_pool2d(self.conv1(x), 2))
            x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2)).reshape(-1, 320)
            return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)

    return Text, Digit


def digit() -> np.ndarray:
    """Return a noisy stroke, like a seven; pixels of one value would make ties."""
    image = np.random.default_rng(2).uniform(0, 0.2, (28, 28)).astype(np.float32)
    image[6:9, 6:21] += 0.8
    for row in range(9, 23):
        column = 20 - (row - 9) // 2
        image[row, column - 2 : column + 1] += 0.8
    return image


def workloads(side: str) -> dict[str, Callable[[], Any]]:
    """Return what is measured, for one side; each returns the groups' labels of every round."""
    torch: Any = importlib.import_module("minitorch" if side == "minitorch" else "torch")
    torch.set_num_threads(1)
    Text, Digit = models(torch)
    text, image = Text(), Digit()
    for model, named in ((text, arrays(True)), (image, arrays(False))):
        model.load_state_dict({name: torch.tensor(value) for name, value in named.items()})
        model.eval()
    ids = np.random.default_rng(1).integers(1, VOCABULARY, WORDS)
    if side == "minitorch":
        return _ours(torch, text, image, ids)
    return _reference(torch, text, image, ids)


def _ours(torch: Any, text: Any, image: Any, ids: np.ndarray) -> dict[str, Callable[[], Any]]:
    from minitorch import interpret

    column, pixels = torch.tensor(ids)[:, None], torch.tensor(digit())[None, None]

    def run(model: Any, input: Any, **options: Any) -> list:
        tree = interpret.agglomerate(model, input, 0, mode="reference", **options)
        return [step.labels.tolist() for step in tree.steps[1:]]

    return {
        "text": lambda: run(text, column, **TEXT),
        "image": lambda: run(image, pixels, **IMAGE),
    }


def _reference(torch: Any, text: Any, image: Any, ids: np.ndarray) -> dict[str, Callable[[], Any]]:
    np.int = int  # type: ignore[attr-defined]
    from acd.agglomeration import agg_1d, agg_2d
    from acd.scores import score_funcs

    arguments = score_funcs.get_scores_2d.__defaults__
    score_funcs.get_scores_2d.__defaults__ = (*arguments[:-1], "cpu")
    pixels = torch.tensor(digit())[None, None]

    def run_text() -> list:
        batch = SimpleNamespace(text=torch.tensor(ids)[:, None])
        with torch.no_grad():
            lists = agg_1d.agglomerate(
                text, batch, TEXT["percentile"], "cd", 1, 0, TEXT["num_iters"], device="cpu"
            )
        return [labels.tolist() for labels in lists["comps_list"][1:]]

    def run_image() -> list:
        with torch.no_grad():
            lists = agg_2d.agglomerate(
                image,
                None,
                IMAGE["percentile"],
                "cd",
                1,
                digit(),
                0,
                IMAGE["num_iters"],
                im_torch=pixels,
                model_type="mnist",
                device="cpu",
            )
        return [np.asarray(labels, int).ravel().tolist() for labels in lists["comps_list"][1:]]

    return {"text": run_text, "image": run_image}


if __name__ == "__main__":
    out = channel()
    measured = workloads(sys.argv[1])
    serve(
        {
            "run": lambda workload, number: timed(measured[workload], number),
            "groups": lambda workload: measured[workload](),
        },
        out,
    )
