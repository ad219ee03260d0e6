"""A plain training script: dataset, loader, model, optimizer, scheduler, evaluation."""

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(10, 32)
        self.bn = nn.BatchNorm1d(32)
        self.fc2 = nn.Linear(32, 3)
        self.dropout = nn.Dropout(0.0)

    def forward(self, x):
        x = F.relu(self.bn(self.fc1(x)))
        return F.log_softmax(self.fc2(self.dropout(x)), dim=1)


def main():
    torch.manual_seed(1)
    x = torch.randn(300, 10)
    y = (x[:, :3] + 0.5 * x[:, 3:6]).argmax(dim=1)
    train_set, test_set = random_split(TensorDataset(x, y), [240, 60])
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True, drop_last=True)
    test_loader = DataLoader(test_set, batch_size=60)
    model = Net()
    print(model)
    print("parameters:", sum(p.numel() for p in model.parameters() if p.requires_grad))
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    for epoch in range(4):
        model.train()
        total = 0.0
        for data, target in train_loader:
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        scheduler.step()
        model.eval()
        correct = 0
        with torch.no_grad():
            for data, target in test_loader:
                pred = model(data).argmax(dim=1, keepdim=True)
                correct += pred.eq(target.view_as(pred)).sum().item()
        print(
            f"epoch {epoch} loss {total / len(train_loader):.5f} norm {norm:.4f} "
            f"lr {scheduler.get_last_lr()[0]:.4f} correct {correct}"
        )


if __name__ == "__main__":
    main()
