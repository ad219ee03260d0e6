"""Train a character language model on Shakespeare, on several ranks.

    mpirun -n 2 python tutorials/trainers/characters.py
    python tutorials/trainers/characters.py --regularizer zoneout --epochs 60 --patience 10

An LSTM reads a text and predicts each next character. The text is laid out in `--batch-size`
columns that are read side by side, `--steps` characters per update; from one update to the next the
state is carried on and its history is cut (truncated backpropagation through time). Every rank has
its share of the columns. `make shakespeare` sets the text up.

The recipe is the one of the zoneout paper's character models, smaller: Adam at 2e-3, gradients
clipped to norm 1, and a random place to start cutting columns in every epoch. Masks of a regularizer
differ from rank to rank, so that with one the number of ranks does change the (random) result.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from typing import Any

import common
import numpy as np

import minitorch as torch
import minitorch.distributed as dist
from minitorch import datasets, nn
from minitorch.random.addressed import addressed_bits, addressed_uniform

EVALUATION_COLUMNS = 32  # whatever the number of ranks, so that it does not change the figures
START, SAMPLE = 1, 2  # what random numbers are for: streams of addressed draws
RATES = {"dropout": (0.25,), "recurrent-dropout": (0.25,), "zoneout": (0.5, 0.05)}


class CharacterModel(nn.Module):
    """Embedding, LSTM, scores of the next character; by default 115,540 parameters."""

    def __init__(self, symbols: int, embedding: int, hidden: int, **options: Any) -> None:
        super().__init__()
        self.embed = nn.Embedding(symbols, embedding)
        self.lstm = nn.ZoneoutLSTM(embedding, hidden, **options)
        self.scores = nn.Linear(hidden, symbols)

    def forward(self, codes: Any, state: Any = None) -> tuple[Any, Any]:
        """Codes (T, B) to scores (T, B, symbols) of what comes next, and the last state."""
        output, state = self.lstm(self.embed(codes), state)
        return self.scores(output), state


def detached(state: Any) -> Any:
    """The same state without its history."""
    return tuple(part.detach() for part in state)


def start_of_columns(seed: int, epoch: int, steps: int) -> int:
    """Where the first column of an epoch begins: windows fall elsewhere every time."""
    return int(addressed_bits(seed, epoch, START, 1)[0] % steps)


def steps_per_epoch(characters: int, columns: int, steps: int) -> int:
    """How many windows of `steps` characters each column has, wherever the columns start."""
    return (characters - steps) // columns // steps


def windows(
    codes: Any, columns: int, mine: slice, steps: int, start: int
) -> Iterator[tuple[Any, Any]]:
    """Inputs and targets (steps, columns) of this rank's columns, one window after the other."""
    length = steps_per_epoch(len(codes), columns, steps) * steps
    inputs, targets = (
        codes[first : first + columns * length].reshape(columns, length)[mine].T
        for first in (start, start + 1)
    )
    for at in range(0, length, steps):
        yield inputs[at : at + steps], targets[at : at + steps]


def bits(nats: float) -> float:
    """Nats to bits."""
    return nats / math.log(2)


def evaluate(model: nn.Module, codes: Any, steps: int = 64) -> tuple[float, int]:
    """Return bits per character, and how many were predicted: over *all* ranks, each once.

    The text is cut into `EVALUATION_COLUMNS` pieces, of which rank r reads r, r + W, r + 2W, ...
    The first character of a piece follows from nothing but the piece's predecessor. Where pieces
    are not of one length, targets are filled up with what cross entropy ignores. The bare module is
    called, as the masks' mean replaces them in evaluation and ranks need not meet.

    Cost: one all-reduce of 16 bytes.
    """
    predicted = len(codes) - 1
    columns = min(EVALUATION_COLUMNS, predicted)
    length = -(-predicted // columns)
    inputs = np.zeros(columns * length, np.int64)
    targets = np.full(columns * length, -100, np.int64)
    inputs[:predicted], targets[:predicted] = codes[:-1].numpy(), codes[1:].numpy()
    mine = slice(dist.get_rank(), None, dist.get_world_size())
    inputs, targets = (a.reshape(columns, length)[mine].T.copy() for a in (inputs, targets))
    nats, state = 0.0, None
    training = model.training
    model.eval()
    with torch.no_grad():
        for at in range(0, length if inputs.size else 0, steps):
            scores, state = model(torch.from_numpy(inputs[at : at + steps]), state)
            target = torch.from_numpy(targets[at : at + steps]).flatten()
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), target, reduction="sum")
            nats += loss.item()
    model.train(training)
    nats, count = common.sum_over_ranks(nats, (targets >= 0).sum())
    return bits(nats / count), int(count)


def sample(
    model: nn.Module, text: datasets.Text, prompt: str, length: int, temperature: float, seed: int
) -> str:
    """Let the model write `length` characters after `prompt`.

    At temperature 1 it draws from what it has learned; below, it prefers the likely ones; towards
    zero it always takes the likeliest.
    """
    draws = addressed_uniform(seed, 0, SAMPLE, length, dtype=np.float64)
    codes, written, state = text.encode(prompt), [], None
    training = model.training
    model.eval()
    with torch.no_grad():
        for draw in draws:
            scores, state = model(codes.reshape(-1, 1), state)
            logits = scores[-1, 0].numpy().astype(np.float64) / temperature
            weights = np.cumsum(np.exp(logits - logits.max()))
            code = int(np.searchsorted(weights, draw * weights[-1], side="right"))
            written.append(code)
            codes = torch.tensor([code])
    model.train(training)
    return prompt + text.decode(torch.tensor(written))


def train_epoch(ddp: Any, batches: Any, optimizer: Any, clip: float, after_step: Any) -> None:
    """One pass over this rank's columns."""
    state = None
    for inputs, targets in batches:
        optimizer.zero_grad()
        scores, state = ddp(inputs, state)
        state = detached(state)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(ddp.parameters(), clip)
        optimizer.step()
        after_step(loss.item(), targets.numel())


def load_text(characters: int) -> datasets.Text:
    """Return the text, or end with what to do."""
    try:
        return datasets.shakespeare().first(characters)
    except (FileNotFoundError, ValueError) as error:
        raise SystemExit(str(error)) from error


def check_prompt(text: datasets.Text, prompt: str) -> None:
    """End with what is wrong, before hours of training and not after."""
    if not prompt:
        raise SystemExit("--prompt: the model needs at least one character to begin with")
    try:
        text.encode(prompt)
    except ValueError as error:
        raise SystemExit(f"--prompt: {error}") from error


def main(rank: int, args: argparse.Namespace) -> common.Summary:
    """Train and evaluate; every rank runs this."""
    began = time.perf_counter()
    share = common.share_of_batch(args)
    settings = common.recurrent_settings(args, "characters steps embedding")
    text = load_text(args.characters)
    steps = steps_per_epoch(len(text.train), args.batch_size, args.steps)
    if steps < 1:
        raise SystemExit(
            f"--characters {args.characters} are too few for {args.batch_size} columns "
            f"(--batch-size) of {args.steps} characters (--steps)"
        )
    check_prompt(text, args.prompt)
    torch.manual_seed(args.seed)
    options = common.recurrent_options(args)
    model = CharacterModel(len(text.alphabet), args.embedding, args.hidden, **options)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    history = common.History("valid", args.patience)
    parts = {"model": model, "optimizer": optimizer, "history": history}
    free = ("epochs", "patience")
    done = common.load_checkpoint(args.checkpoint, settings, free, **parts) if args.resume else 0

    ddp = common.data_parallel(model, args)  # after loading: it sends rank 0's weights to all
    common.rebuild_buckets_now(ddp, text.train[:2].reshape(1, 2))
    mine = slice(rank * share, (rank + 1) * share)

    def one_epoch(epoch: int, after_step: Any) -> None:
        start = start_of_columns(args.seed, epoch, args.steps)
        batches = windows(text.train, args.batch_size, mine, args.steps, start)
        train_epoch(ddp, batches, optimizer, args.clip, after_step)

    def validate() -> dict[str, float]:
        return {"valid": evaluate(model, text.valid, args.steps)[0]}

    with common.Show(rank) as show:
        show.line(
            f"LSTM of {args.hidden} units, regularizer: {common.regularizer_text(args)}, "
            f"{sum(p.numel() for p in model.parameters()):,} parameters, on {len(text.train):,} "
            f"characters; {dist.get_world_size()} x {share} columns of {args.steps} per step"
        )
        if args.resume:
            show.line(f"{done} epochs are done, says {common.where(args.checkpoint)}")
        rate = common.run_epochs(
            show, args, settings, parts, done, steps, one_epoch, validate, (bits(1), "bits")
        )
    summary = summarize(args, ddp, history, text, rate)
    common.write_json(args.history, summary.values["record"] | {"settings": settings})
    summary.rows.append(("time", f"{time.perf_counter() - began:.1f} s"))
    if args.sample and rank == 0:
        written = sample(model, text, args.prompt, args.sample, args.temperature, args.seed)
        summary.values["sample"] = written
        show.line(f"\nIt writes, at temperature {args.temperature:g}:\n\n{written}\n")
    summary.show(show, f"LSTM on {args.characters:,} characters of Shakespeare")
    return summary


def summarize(
    args: argparse.Namespace, ddp: Any, history: common.History, text: Any, rate: float
) -> common.Summary:
    """Evaluate the best weights on the test text and put the table together; all ranks call."""
    last = [p.detach().numpy().copy() for p in ddp.parameters()]
    ddp.module.load_state_dict(history.best_weights)
    test, seen = evaluate(ddp.module, text.test, args.steps)
    (per_second,) = common.sum_over_ranks(rate)
    curves = {name: history.curve(name) for name in ("train", "valid")}
    picture = common.draw_curves(args.curve, curves, "bits per character", history.best_epoch)
    advice = "--regularizer zoneout --epochs 60, beside the same without: a short run misleads"
    if args.regularizer != "none" and args.epochs >= 60:
        advice = "make reproduce-zoneout: several seeds, tuned rates, a table"
    return common.Summary(
        rows=[
            ("validation", f"{history.best:.4f} bits per character, in epoch {history.best_epoch}"),
            ("test", f"{test:.4f} bits per character, perplexity {2**test:.3f}"),
            ("  of", f"{seen:,} characters, each counted once"),
            ("validation by epoch", common.sparkline(curves["valid"])),
            ("throughput", f"{per_second:.0f} characters/s over {dist.get_world_size()} rank(s)"),
            *common.communication_rows(ddp),
            ("checkpoint", common.where(args.checkpoint)),
            ("learning curve", picture),
            ("figures", common.where(args.history)),
            ("timeline, for ui.perfetto.dev", common.where(args.trace)),
        ],
        values={
            "parameters": last,
            "seen": seen,
            "record": history.record("characters", test=test),
        },
        next_step=advice,
    )


def arguments() -> argparse.ArgumentParser:
    """Return the command line."""
    runs = "runs/characters"
    out = common.parser(
        "Train a character language model on several ranks (mpirun -n N, or --threads N).",
        epochs=12,
        batch_size=16,
        lr=0.002,
        bucket_cap_mb=0.05,
        runs=runs,
    )
    common.add_recurrent_arguments(out, hidden=128, clip=1.0, rates=RATES, runs=runs)
    add = out.add_argument_group("text").add_argument
    count = {"type": common.positive_int, "metavar": "N"}
    add("--characters", default=200_000, help="train on the first N; 4,045,790 are all", **count)
    add("--steps", default=64, help="characters per column and update", **count)
    add("--embedding", default=64, help="numbers per character of the alphabet", **count)
    text = "write so many characters at the end; 0 writes none"
    add("--sample", type=int, default=400, metavar="N", help=text)
    add("--prompt", default="\n", metavar="TEXT", help="what the sample begins with")
    text = "1 draws as learned, less prefers the likely"
    add("--temperature", type=common.positive_float, default=0.7, help=text)
    return out


if __name__ == "__main__":
    command = arguments()
    common.launch(main, command.parse_args(), command)
