"""Record what PyTorch makes of the images trainer's recipe.

    python record_trainer.py mnist_5k.csv.gz

Same images, split, model, initial weights (both frameworks draw the same random numbers), order of
samples, optimizer and schedule, on one rank. Writes trainer.json: a short run to compare with, and
the accuracies of the full recipe over three seeds, which the README's figure stands beside.
"""

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def split(path):
    """The last 100 of each class are held out; normalization in float32, as the loader does it."""
    with gzip.open(path) as stream:
        table = np.loadtxt(stream, delimiter=",", dtype=np.int64)
    images, labels = table[:, :-1].reshape(-1, 1, 28, 28).astype(np.float32), table[:, -1]
    images *= np.float32(1.0 / (255.0 * 0.3081))
    images -= np.float32(0.1307 / 0.3081)
    held_out = np.zeros(len(labels), dtype=bool)
    for label in range(10):
        held_out[np.flatnonzero(labels == label)[-100:]] = True
    return [
        TensorDataset(torch.from_numpy(images[part]), torch.from_numpy(labels[part]))
        for part in (~held_out, held_out)
    ]


def thinned(data, limit):
    step = len(data) // limit
    return TensorDataset(*(tensor[::step][:limit] for tensor in data.tensors))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(576, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def mlp():
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 512),
        nn.ReLU(),
        nn.Linear(512, 256),
        nn.ReLU(),
        nn.Linear(256, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def train(make, data, held_out, epochs, seed, batch=64, lr=0.05):
    sampler = DistributedSampler(data, num_replicas=1, rank=0, shuffle=True, seed=seed)
    loader = DataLoader(data, batch_size=batch, sampler=sampler)
    torch.manual_seed(seed)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    losses = []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
    with torch.no_grad():
        scores = model(held_out.tensors[0])
    target = held_out.tensors[1]
    return {
        "losses": losses,
        "held_out_loss": nn.functional.cross_entropy(scores, target).item(),
        "accuracy": (scores.argmax(1) == target).double().mean().item(),
    }


def main():
    torch.set_num_threads(1)
    data, held_out = split(sys.argv[1])
    small = thinned(data, 200), thinned(held_out, 200)
    short = {
        name: train(make, *small, epochs=2, seed=0, batch=50)
        for name, make in (("cnn", cnn), ("mlp", mlp))
    }
    full = {
        name: [train(make, data, held_out, epochs=15, seed=seed)["accuracy"] for seed in range(3)]
        for name, make in (("cnn", cnn), ("mlp", mlp))
    }
    answer = {"torch": torch.__version__, "short": short, "full_accuracy": full}
    path = Path(__file__).with_name("trainer.json")
    path.write_text(json.dumps(answer, indent=1) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
