"""The arguments of trainers whose network is recurrent, and the network's options from them."""

from __future__ import annotations

import argparse
from typing import Any

from minitorch import nn

from .arguments import path_or_none, positive_float, positive_int


def add_recurrent_arguments(
    command: argparse.ArgumentParser,
    *,
    hidden: int,
    clip: float,
    rates: dict[str, tuple[float, ...]],
    runs: str,
) -> None:
    """Add them. `rates` are the defaults: of dropouts one rate, of zoneout cell's and hidden's."""
    add = command.add_argument_group("recurrent network").add_argument
    add("--hidden", type=positive_int, default=hidden, metavar="N", help="units of the LSTM")
    add("--layers", type=positive_int, default=1, metavar="N", help="LSTMs on top of each other")
    text = "largest norm of the gradient; a longer one is scaled down"
    add("--clip", type=positive_float, default=clip, metavar="NORM", help=text)
    text = "what keeps the LSTM from learning by heart"
    add("--regularizer", choices=nn.modules.rnn.REGULARIZERS, default="none", help=text)
    shown = ", ".join(f"{name} {' and '.join(map(str, r))}" for name, r in rates.items())
    text = "its probability, of the cell's units for zoneout; where it is not given: " + shown
    add("--rate", type=probability, metavar="P", help=text)
    text = "zoneout's probability for the hidden state's units"
    add("--hidden-rate", type=probability, metavar="P", help=text)
    command.set_defaults(default_rates=rates)

    add = command.add_argument_group("when to stop, and what to keep").add_argument
    text = "end after so many epochs without a better validation figure"
    add("--patience", type=positive_int, metavar="EPOCHS", help=text)
    file = {"type": path_or_none, "metavar": "FILE"}
    add("--curve", default=f"{runs}/curve.png", help="learning curve, or `none`", **file)
    text = "all figures of the run as JSON, or `none`"
    add("--history", default=f"{runs}/history.json", help=text, **file)


def probability(text: str) -> float:
    """For argparse."""
    value = float(text)
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"must be between 0 and 1, got {text}")
    return value


def regularizer_rates(args: argparse.Namespace) -> tuple[float, ...]:
    """The rates as given, or the trainer's defaults.

    Raises
    ------
    SystemExit
        A rate was given that the regularizer does not have.
    """
    name = args.regularizer
    if name == "none" and args.rate is not None:
        raise SystemExit("--rate: there is no regularizer to apply it; choose one: --regularizer")
    if name != "zoneout" and args.hidden_rate is not None:
        raise SystemExit(f"--hidden-rate belongs to --regularizer zoneout, which is {name!r} here")
    rates = args.default_rates.get(name, ())
    if args.rate is not None:
        rates = (args.rate, *rates[1:])
    if args.hidden_rate is not None:
        rates = (rates[0], args.hidden_rate)
    return rates


def recurrent_options(args: argparse.Namespace) -> dict[str, Any]:
    """Options of :class:`minitorch.nn.ZoneoutLSTM` for the command line."""
    options = nn.modules.rnn.regularizer_options(args.regularizer, *regularizer_rates(args))
    return options | {"num_layers": args.layers}


def regularizer_text(args: argparse.Namespace) -> str:
    """Describe it in a few words."""
    return " ".join([args.regularizer, "/".join(f"{r:g}" for r in regularizer_rates(args))]).strip()


def recurrent_settings(args: argparse.Namespace, names: str) -> dict[str, Any]:
    """Return all that the result depends on, `names` and what recurrent trainers have in common.

    A checkpoint of other settings is refused.
    """
    shared = "epochs batch_size lr clip seed algorithm hidden layers regularizer patience"
    settings = {name: getattr(args, name) for name in f"{names} {shared}".split()}
    return settings | {"rates": list(regularizer_rates(args))}
