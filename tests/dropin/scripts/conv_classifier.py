"""A small CNN with Adam, checkpointing to disk and resuming from it."""

import os
import tempfile

import torch
from torch import nn


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, stride=2, bias=False),
        nn.BatchNorm2d(16),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 4),
    )


def steps(model, optimizer, images, labels, count):
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    for _ in range(count):
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        print(f"{loss.item():.5f}")


torch.manual_seed(3)
images = torch.rand(24, 1, 16, 16)
labels = torch.randint(0, 4, (24,))
model = make_model()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
steps(model, optimizer, images, labels, 3)

path = os.path.join(tempfile.mkdtemp(), "checkpoint.pt")
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
again = make_model()
checkpoint = torch.load(path)
print(again.load_state_dict(checkpoint["model"]))
optimizer = torch.optim.AdamW(again.parameters(), lr=3e-3)
optimizer.load_state_dict(checkpoint["optimizer"])
steps(again, optimizer, images, labels, 3)

again.eval()
with torch.inference_mode():
    probabilities = again(images[:2]).softmax(dim=-1)
print(torch.topk(probabilities, 2).indices.tolist(), f"{probabilities.sum().item():.4f}")
for name, tensor in again.state_dict().items():
    print(name, tuple(tensor.shape), tensor.dtype)
