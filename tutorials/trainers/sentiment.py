"""Train a sentiment classifier on sentences from film reviews, on several ranks.

    mpirun -n 2 python tutorials/trainers/sentiment.py
    python tutorials/trainers/sentiment.py --threads 2 --epochs 2

An LSTM reads a sentence word by word; its last state says whether the sentence is favourable. Beside
it stands what one should compare with: a logistic regression on the bag of words, which knows no
order at all. The model is written to a file for the command `minitorch interpret`, and what it has
learnt about words, negation and contrast is counted over the held-out sentences (`--report`).

The recipe is a usual one: Adam, gradients clipped to norm 1, dropout; the weights are those of the
last epoch. Sizes, dropout and the number of epochs were chosen with `--validation`, which holds out
a tenth of the training sentences; the test sentences had no part in it.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from typing import Any

import common
import numpy as np
import sentiment_report

import minitorch as torch
import minitorch.distributed as dist
from minitorch import datasets, interpret, nn, profiler
from minitorch.interpret.sentence_classifier import SentenceClassifier, padded
from minitorch.random.addressed import addressed_bits
from minitorch.utils.data import DataLoader
from minitorch.utils.data.distributed import DistributedSampler

TRACED_STEPS = 40  # a timeline of more is a large file that shows nothing new
CLIP = 1.0
DROPOUT = 1  # what random numbers are for: a stream of addressed draws

Sample = tuple[list[int], int]  # the numbers of a sentence's words, and its label


def load_data(limit: int | None, validation: bool) -> datasets.Sentences:
    """Return the sentences; with `limit`, so many of each part, half of them favourable.

    With `validation` every tenth training sentence is held out, and the test data are not looked at.
    """
    try:
        found = datasets.movie_sentences()
    except (FileNotFoundError, ValueError) as error:
        raise SystemExit(str(error)) from error
    if validation:
        rest = [sample for at, sample in enumerate(found.train) if at % 10]
        found = found._replace(train=rest, test=found.train[::10])
    if limit is None:
        return found
    train, test = (
        [part[at * len(part) // limit] for at in range(limit)] if limit < len(part) else part
        for part in found[:2]
    )
    return found._replace(train=train, test=test)


def numbered(vocabulary: datasets.Vocabulary, part: list[tuple[str, int]]) -> list[Sample]:
    """Texts as word numbers."""
    return [(vocabulary.numbers(text), label) for text, label in part]


def together(samples: list[Sample]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A batch: words (T, B), the ends of the shorter ones filled up; lengths (B,); labels (B,)."""
    words, lengths = padded([text for text, _ in samples])
    return words, lengths, torch.tensor([label for _, label in samples])


def evaluate(model: nn.Module, samples: list[Sample], batch: int = 250) -> tuple[float, float, int]:
    """Return mean loss, accuracy and the number of samples over *all* ranks.

    Rank r takes samples r, r + W, r + 2W, ...: no padding, so that each is seen exactly once.

    Cost: one all-reduce of 24 bytes.
    """
    # Of similar length, so that little of a batch is filling.
    mine = sorted(samples[dist.get_rank() :: dist.get_world_size()], key=lambda s: len(s[0]))
    loss = correct = 0.0
    training = model.training
    model.eval()
    with torch.no_grad():
        for start in range(0, len(mine), batch):
            words, lengths, labels = together(mine[start : start + batch])
            scores = model(words, lengths)
            loss += nn.functional.cross_entropy(scores, labels, reduction="sum").item()
            correct += (scores.argmax(dim=1) == labels).sum().item()
    model.train(training)
    loss, correct, seen = common.sum_over_ranks(loss, correct, len(mine))
    return loss / seen, correct / seen, int(seen)


def train_epoch(ddp: Any, loader: DataLoader, optimizer: Any, after_step: Any) -> None:
    """One pass over this rank's share of the sentences."""
    for words, lengths, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(ddp(words, lengths), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(ddp.parameters(), CLIP)
        optimizer.step()
        after_step(loss.item(), len(labels))


def main(rank: int, args: argparse.Namespace) -> common.Summary:
    """Train and evaluate; every rank runs this."""
    began = time.perf_counter()
    share = common.share_of_batch(args)
    data = load_data(args.limit, args.validation)
    vocabulary = datasets.Vocabulary.of((text for text, _ in data.train), args.at_least)
    train, held_out = numbered(vocabulary, data.train), numbered(vocabulary, data.test)
    sampler = DistributedSampler(train, shuffle=True, seed=args.seed)
    loader = DataLoader(train, batch_size=share, sampler=sampler, collate_fn=together)

    torch.manual_seed(args.seed)
    model = SentenceClassifier(
        len(vocabulary), len(data.classes), args.embedding, args.hidden, args.dropout
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    names = "limit validation epochs batch_size lr seed algorithm embedding hidden dropout at_least"
    settings = {name: getattr(args, name) for name in names.split()}
    state = {"model": model, "optimizer": optimizer}
    free = ("epochs",)
    done = common.load_checkpoint(args.checkpoint, settings, free, **state) if args.resume else 0

    ddp = common.data_parallel(model, args)  # after loading: it sends rank 0's weights to all
    common.rebuild_buckets_now(ddp, together(train[:2])[0])

    loss, rate, steps = profiler.Average(), profiler.Throughput(), 0
    last = min(args.epochs, args.stop_after or args.epochs)
    with common.Show(rank) as show, contextlib.ExitStack() as recording:
        show.line(
            f"LSTM of {args.hidden} units, {sum(p.numel() for p in model.parameters()):,} "
            f"parameters, on {len(train):,} sentences of {len(vocabulary):,} words, "
            f"{len(held_out):,} held out; {dist.get_world_size()} x {share} sentences per step"
        )
        if args.resume:
            show.line(f"{done} epochs are done, says {common.where(args.checkpoint)}")
        show.steps(args.epochs * len(loader), done * len(loader))
        if args.trace is not None:
            recording.enter_context(profiler.trace(args.trace, metadata=settings))

        def after_step(batch_loss: float, sentences: int) -> None:
            nonlocal steps
            steps += 1
            loss.update(batch_loss, sentences)
            rate.update(sentences)
            show.step(lambda: f"loss {loss.value:.3f}")
            if steps == TRACED_STEPS:
                rate.stop()
                recording.close()
                rate.start()

        evaluation = evaluate(model, held_out) if done >= last else (0.0, 0.0, 0)
        for epoch in range(done, last):
            sampler.set_epoch(epoch)
            # Dropout draws by epoch and rank: no two ranks alike, and a resumed run as the first.
            torch.manual_seed(int(addressed_bits(args.seed, epoch, (DROPOUT, rank), 1)[0]))
            loss.reset()
            rate.start()
            train_epoch(ddp, loader, optimizer, after_step)
            rate.stop()
            evaluation = evaluate(model, held_out)
            common.save_checkpoint(args.checkpoint, settings, epoch + 1, **state)
            show.line(
                f"epoch {epoch + 1:>2} of {args.epochs}  loss {loss.value:.4f}  held-out loss "
                f"{evaluation[0]:.4f}  accuracy {evaluation[1]:.2%}"
            )
        recording.close()
        (per_second,) = common.sum_over_ranks(rate.per_second)
        summary = summarize(args, ddp, evaluation, per_second)
        summary.values["training_loss"] = loss.value  # of this rank, in the last epoch
        if rank == 0:
            finish(args, show, summary, model, vocabulary, data)
        summary.rows.append(("time", f"{time.perf_counter() - began:.1f} s"))
        summary.show(show, "LSTM on sentences from film reviews")
    return summary


def finish(
    args: argparse.Namespace,
    show: common.Show,
    summary: common.Summary,
    model: nn.Module,
    vocabulary: datasets.Vocabulary,
    data: datasets.Sentences,
) -> None:
    """What rank 0 does alone: the model's file, the comparison, the report."""
    if common.model_file(args) is not None:
        interpret.save_model(
            common.model_file(args),
            model,
            data.classes,
            vocabulary=vocabulary,
            data="movie-sentences",
        )
    if args.baseline or args.report:
        baseline = sentiment_report.bag_of_words_baseline(vocabulary, data)
        text = f"{baseline.accuracy:.2%} with a logistic regression on the bag of words"
        summary.rows.insert(2, ("  to compare", text))
        summary.values["baseline_accuracy"] = baseline.accuracy
        if args.report:
            found = sentiment_report.count_interactions(model, vocabulary, data.test)
            found.correlation = sentiment_report.correlation_with(
                baseline, model, vocabulary, data.test
            )
            summary.values["report"] = found
            for line in found.lines():
                show.line(line)


def summarize(
    args: argparse.Namespace, ddp: Any, evaluation: tuple[float, float, int], rate: float
) -> common.Summary:
    """Put the final table together; all ranks must call."""
    loss, accuracy, seen = evaluation
    error = np.sqrt(accuracy * (1 - accuracy) / max(seen, 1))
    advice = "--report: what it has learnt about negation and contrast, counted"
    if common.model_file(args) is not None:
        advice = (
            f"minitorch interpret --model {common.where(common.model_file(args))} "
            f'--text "not very good, but I loved it"'
        )
    return common.Summary(
        rows=[
            ("held-out loss", f"{loss:.4f}"),
            (
                "held-out accuracy",
                f"{accuracy:.2%} (standard error {error:.2%}) of {seen} sentences",
            ),
            ("throughput", f"{rate:.0f} sentences/s over {dist.get_world_size()} rank(s)"),
            *common.communication_rows(ddp),
            ("checkpoint", common.where(args.checkpoint)),
            ("model, for minitorch interpret", common.where(common.model_file(args))),
            ("timeline, for ui.perfetto.dev", common.where(args.trace)),
        ],
        values={
            "loss": loss,
            "accuracy": accuracy,
            "seen": seen,
            "parameters": [p.detach().numpy().copy() for p in ddp.parameters()],
        },
        next_step=advice,
    )


def arguments() -> argparse.ArgumentParser:
    """Return the command line."""
    runs = "runs/sentiment"
    out = common.parser(
        "Train a sentiment classifier on several ranks (mpirun -n N, or --threads N).",
        epochs=12,
        batch_size=32,
        lr=0.002,
        bucket_cap_mb=0.015,
        runs=runs,
    )
    add = out.add_argument_group("text and model").add_argument
    count = {"type": common.positive_int, "metavar": "N"}
    add("--limit", help="use only N sentences of each part", **count)
    text = "hold out a tenth of the training sentences, to choose settings without the test set"
    add("--validation", action="store_true", help=text)
    text = "the vocabulary: words that occur so often in the training sentences"
    add("--at-least", default=2, help=text, **count)
    add("--embedding", default=32, help="numbers per word", **count)
    add("--hidden", default=32, help="units of the LSTM", **count)
    add("--dropout", type=common.probability, default=0.5, metavar="P", help="in training")
    common.add_save(out)
    add = out.add_argument_group("at the end").add_argument
    text = "fit a logistic regression on the bag of words, to compare"
    add("--baseline", action=argparse.BooleanOptionalAction, default=True, help=text)
    text = "count what interactions of words the model has learnt"
    add("--report", action=argparse.BooleanOptionalAction, default=False, help=text)
    return out


if __name__ == "__main__":
    command = arguments()
    common.launch(main, command.parse_args(), command)
