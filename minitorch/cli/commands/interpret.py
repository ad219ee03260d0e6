"""Explain one prediction of a saved model: which words or pixels made it, and how they join.

    minitorch interpret --model runs/sentiment/model.pt --text "not very good, but I loved it"
    minitorch interpret --model runs/images/model.pt --image 12 --block 2

The model's file is what `interpret.save_model` or a trainer's --save wrote; it holds no code. The
tree of groups is printed, and drawn as a picture (PNG, with Matplotlib) and as an interactive page
(HTML) beside each other.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minitorch.cli.errors import CommandError

if TYPE_CHECKING:
    from minitorch.interpret import SavedModel, Tree

HELP = "explain one prediction of a saved model"

COMPARED = ("cd", "occlusion", "build_up", "integrated_gradients")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--model", required=True, metavar="FILE", help="what a trainer's --save wrote")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--text", help="a sentence, for a model that reads words")
    text = "number of a held-out image of the model's data set, for a model that sees images"
    what.add_argument("--image", type=int, metavar="N", help=text)
    add("--data", metavar="NAME", help="another data set to take the image from")
    add("--target", metavar="CLASS", help="class to explain (default: the predicted one)")
    add("--method", default="cd", metavar="NAME", help="the score of a group (default: cd)")
    text = "candidates above it join in each round (default: 90 for words, 95 for images)"
    add("--percentile", type=float, metavar="P", help=text)
    text = "side of a square of pixels, or number of words, that stay together (default: 1)"
    add("--block", type=int, default=1, metavar="N", help=text)
    text = "files to write: PREFIX.png and PREFIX.html, or `none` (default: interpretation)"
    add("--save", default="interpretation", metavar="PREFIX", help=text)
    text = "draw the same by " + ", ".join(COMPARED) + " as well, into PREFIX-methods.png"
    add("--compare", action="store_true", help=text)
    add("--theme", choices=["light", "dark"], default="light", help="of the pictures")


def run(arguments: argparse.Namespace) -> int:
    """Explain one prediction."""
    from minitorch import interpret

    try:
        saved = interpret.load_model(arguments.model)
        sample, image, names, notes = _sample(saved, arguments)
        target = _target(saved, arguments.target)

        def grow(method: str) -> Tree:
            return interpret.agglomerate(
                saved.model,
                sample,
                target,
                method=method,
                block=arguments.block,
                percentile=arguments.percentile,
                names=names,
            )

        tree = grow(arguments.method)
        methods = COMPARED if arguments.compare else ()
        others = {name: grow(name) for name in methods}
    except (OSError, ValueError, TypeError, IndexError, NotImplementedError) as error:
        raise CommandError(str(error)) from error
    _print(saved, tree, image, notes)
    if arguments.save.lower() != "none":
        _draw(saved, tree, others, image, arguments)
    return 0


def _sample(saved: SavedModel, arguments: argparse.Namespace) -> tuple[Any, Any, Any, list[str]]:
    """Return the input, the image if it is one, the units' names, and what is to be said."""
    from minitorch import datasets

    if arguments.text is not None:
        if saved.vocabulary is None:
            raise CommandError(f"{arguments.model} reads no texts; give --image N")
        words = datasets.words_of(arguments.text)
        unknown = sorted({word for word in words if word not in saved.vocabulary})
        notes = [f"not in its vocabulary: {', '.join(unknown)}"] if unknown else []
        step = max(arguments.block, 1)
        names = [" ".join(words[at : at + step]) for at in range(0, len(words), step)]
        return saved.vocabulary.encode(arguments.text), None, names, notes
    if saved.vocabulary is not None:
        raise CommandError(f'{arguments.model} reads texts; give --text "..."')
    name = arguments.data or saved.data
    if name is None:
        raise CommandError(f"{arguments.model} does not say what it was trained on; give --data")
    images: Any
    labels: Any
    images, labels = datasets.load(name).test.tensors
    if not 0 <= arguments.image < len(labels):
        raise CommandError(f"--image {arguments.image}: {name} has images 0 to {len(labels) - 1}")
    label = int(labels[arguments.image].item())
    chosen = images[arguments.image : arguments.image + 1]
    known = saved.classes[label] if label < len(saved.classes) else str(label)
    return chosen, chosen, None, [f"its label is {known}"]


def _target(saved: SavedModel, text: str | None) -> int | None:
    if text is None:
        return None
    if text in saved.classes:
        return saved.classes.index(text)
    if text.isdecimal() and int(text) < len(saved.classes):
        return int(text)
    raise CommandError(f"--target {text!r}: the classes are {', '.join(saved.classes)}")


def _print(saved: SavedModel, tree: Tree, image: Any, notes: list[str]) -> None:
    import numpy as np
    from rich.console import Console

    from minitorch.interpret import pictures

    console = Console(highlight=False)
    odds = np.exp(tree.logits - tree.logits.max())
    predicted = int(tree.logits.argmax())
    chance = odds[predicted] / odds.sum()
    text = f"predicted: {saved.classes[predicted]} ({chance:.1%})"
    console.print("; ".join([text, *notes]), markup=False)
    if tree.target is not None:
        against = "against it"
        if tree.options.get("contrast"):
            against = f"for {saved.classes[1 - tree.target]}"
        text = f"scores:    + speaks for {saved.classes[tree.target]}, - {against}"
        console.print(text, markup=False)
    console.print()
    seen = None if console.color_system is None else image  # its pixels are nothing but colours
    console.print(pictures.terminal(tree, seen, width=console.width))
    console.print()


def _draw(
    saved: SavedModel, tree: Tree, others: dict[str, Tree], image: Any, arguments: Any
) -> None:
    from minitorch.interpret import pictures

    prefix, theme = arguments.save, arguments.theme
    title = arguments.text if arguments.text is not None else f"image {arguments.image}"
    try:
        pictures.html_page(
            tree, image, classes=saved.classes, title=title, path=Path(f"{prefix}.html")
        )
        print(f"page:    {prefix}.html")
        if importlib.util.find_spec("matplotlib") is None:
            print("picture: not drawn, that takes Matplotlib (pip install matplotlib)")
            return
        if image is None:
            figure = pictures.sentence_tree(tree, theme=theme)
        else:
            figure = pictures.image_panels(tree, image, classes=saved.classes, theme=theme)
        figure.savefig(f"{prefix}.png", dpi=120)
        print(f"picture: {prefix}.png")
        if others:
            figure = pictures.comparison(others, image, theme=theme)
            figure.savefig(f"{prefix}-methods.png", dpi=120)
            print(f"methods: {prefix}-methods.png")
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from error
