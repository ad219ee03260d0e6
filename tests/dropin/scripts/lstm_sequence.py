"""A recurrent model written as a loop over cells, and with nn.LSTM; gradient clipping."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, symbols=12, size=16):
        super().__init__()
        self.embedding = nn.Embedding(symbols, size)
        self.cell = nn.LSTMCell(size, size)
        self.rnn = nn.GRU(size, size, batch_first=True)
        self.head = nn.Linear(size, symbols)

    def forward(self, tokens):
        x = self.embedding(tokens)
        h = x.new_zeros(x.size(0), x.size(2))
        c = torch.zeros_like(h)
        outputs = []
        for t in range(x.size(1)):
            h, c = self.cell(x[:, t], (h, c))
            outputs.append(h)
        y, last = self.rnn(torch.stack(outputs, dim=1))
        return self.head(y), last


torch.manual_seed(5)
tokens = torch.randint(0, 12, (4, 9))
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(4):
    logits, last = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.reshape(-1, 12), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
    optimizer.step()
    print(f"{loss.item():.5f} {last.shape} {last.abs().mean().item():.5f}")
