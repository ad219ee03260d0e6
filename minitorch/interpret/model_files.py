"""Models in files that hold no code: a description of the layers, and the weights.

`minitorch interpret` has to build a model before it can load its weights. What a file may name is a
layer in the table below, a chain of such layers, or a :class:`SentenceClassifier`; nothing in it is
executed, and it is read with ``weights_only=True``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import minitorch
from minitorch import nn
from minitorch.datasets.sentences import Vocabulary
from minitorch.interpret.sentence_classifier import SentenceClassifier

__all__ = ["SavedModel", "build", "describe", "load_model", "save_model"]

FORMAT = "minitorch interpretable model, 1"

# What makes a layer: its constructor's arguments, which it keeps under the same names.
_RECURRENT = (
    *("input_size", "hidden_size", "num_layers"),
    *("bias", "batch_first", "dropout", "bidirectional"),
)
_CONVOLUTION = (
    *("in_channels", "out_channels", "kernel_size"),
    *("stride", "padding", "dilation", "groups", "bias"),
)
_BATCH_NORM = ("num_features", "eps", "momentum", "affine", "track_running_stats")
LAYERS: dict[str, tuple[str, ...]] = {
    "AdaptiveAvgPool2d": ("output_size",),
    "AvgPool2d": ("kernel_size", "stride", "padding"),
    "BatchNorm1d": _BATCH_NORM,
    "BatchNorm2d": _BATCH_NORM,
    "Conv1d": _CONVOLUTION,
    "Conv2d": _CONVOLUTION,
    "Dropout": ("p",),
    "Embedding": ("num_embeddings", "embedding_dim", "padding_idx"),
    "Flatten": ("start_dim", "end_dim"),
    "GELU": ("approximate",),
    "Identity": (),
    "LSTM": _RECURRENT,
    "LayerNorm": ("normalized_shape", "eps", "elementwise_affine"),
    "LeakyReLU": ("negative_slope",),
    "Linear": ("in_features", "out_features", "bias"),
    "MaxPool2d": ("kernel_size", "stride", "padding"),
    "ReLU": (),
    "Sigmoid": (),
    "Softplus": ("beta", "threshold"),
    "Tanh": (),
}


@dataclass(frozen=True)
class SavedModel:
    """What a file holds.

    Attributes
    ----------
    model : Module
        In evaluation mode.
    classes : tuple of str
        What the outputs mean.
    vocabulary : Vocabulary or None
        Of a model that reads texts.
    data : str or None
        The data set it was trained on, by the name that ``minitorch.datasets`` has for it.
    """

    model: nn.Module
    classes: tuple[str, ...]
    vocabulary: Vocabulary | None = None
    data: str | None = None


def describe(model: nn.Module) -> list[Any]:
    """Return a model's description: nested lists of names and arguments.

    Raises
    ------
    TypeError
        If a layer is not in the table of this module, or it does not follow from its arguments.

    Examples
    --------
    >>> describe(nn.Sequential(nn.Linear(4, 3), nn.ReLU()))[1][0]
    ['Linear', {'in_features': 4, 'out_features': 3, 'bias': True}]
    """
    description = _describe(model)
    rebuilt = build(description)
    same = repr(rebuilt) == repr(model) and {
        name: tuple(value.shape) for name, value in rebuilt.state_dict().items()
    } == {name: tuple(value.shape) for name, value in model.state_dict().items()}
    if not same:
        raise TypeError(
            f"this model cannot be described by its layers' arguments: rebuilt from them it is\n"
            f"{rebuilt}\nand not\n{model}"
        )
    return description


def _describe(model: nn.Module) -> list[Any]:
    kind = type(model)
    if kind is nn.Sequential:
        return ["Sequential", [_describe(child) for child in model.children()]]
    if kind is SentenceClassifier:
        return ["SentenceClassifier", dict(model.options)]
    if kind.__name__ not in LAYERS or getattr(nn, kind.__name__, None) is not kind:
        known = ", ".join(["Sequential", "SentenceClassifier", *LAYERS])
        raise TypeError(
            f"a model file cannot hold a {kind.__name__}; what it can hold: {known}. Save its "
            f"state_dict() instead, and interpret it from Python"
        )
    arguments = {}
    for name in LAYERS[kind.__name__]:
        value = getattr(model, name)
        if name == "bias" and not isinstance(value, bool):
            value = value is not None
        arguments[name] = list(value) if isinstance(value, tuple) else value
    return [kind.__name__, arguments]


def build(description: Any) -> nn.Module:
    """Make the model of a description, with fresh weights.

    Raises
    ------
    ValueError
        If it is not a description, or names a layer that is not in the table.
    """
    if not isinstance(description, list) or len(description) != 2:
        raise ValueError(f"not a description of a model: {description!r}")
    name, arguments = description
    if name == "Sequential" and isinstance(arguments, list):
        return nn.Sequential(*(build(each) for each in arguments))
    if not isinstance(arguments, dict):
        raise ValueError(f"not the arguments of a layer: {arguments!r}")
    arguments = {
        key: tuple(value) if isinstance(value, list) else value for key, value in arguments.items()
    }
    try:
        if name == "SentenceClassifier":
            return SentenceClassifier(**arguments)
        if name in LAYERS and set(arguments) <= set(LAYERS[name]):
            layer: nn.Module = getattr(nn, name)(**arguments)
            return layer
    except TypeError as error:
        raise ValueError(f"{name}: {error}") from error
    raise ValueError(f"a model file cannot name {name!r} with {sorted(arguments)}")


def save_model(
    path: str | os.PathLike[str],
    model: nn.Module,
    classes: Sequence[str],
    *,
    vocabulary: Vocabulary | None = None,
    data: str | None = None,
) -> None:
    """Write a model with all that is needed to interpret its predictions.

    Parameters
    ----------
    path : path
        Its folder is made if need be.
    model : Module
        A SentenceClassifier, or a chain of layers from this module's table.
    classes, vocabulary, data
        See :class:`SavedModel`.

    Raises
    ------
    TypeError
        If the model cannot be described; nothing is written then.
    """
    content = {
        "format": FORMAT,
        "model": describe(model),
        "weights": dict(model.state_dict()),
        "classes": list(classes),
        "words": None if vocabulary is None else vocabulary.words,
        "data": data,
    }
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    minitorch.save(content, path)


def load_model(path: str | os.PathLike[str]) -> SavedModel:
    """Read what :func:`save_model` wrote.

    Raises
    ------
    FileNotFoundError
        If there is no file.
    ValueError
        If it is not such a file.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {os.fspath(path)}")
    try:
        content = minitorch.load(path, weights_only=True)
    except Exception as error:
        raise ValueError(f"{os.fspath(path)} cannot be read: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        hint = ""
        if isinstance(content, dict) and "states" in content:
            hint = (
                "; it is a trainer's checkpoint: the trainer writes a model.pt beside it (--save)"
            )
        raise ValueError(f"{os.fspath(path)} was not written by interpret.save_model{hint}")
    model = build(content["model"])
    model.load_state_dict(content["weights"])
    words = content["words"]
    return SavedModel(
        model.eval(),
        tuple(content["classes"]),
        None if words is None else Vocabulary(words),
        content["data"],
    )
