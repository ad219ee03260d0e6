"""A tiny transformer encoder with a causal mask, parameter groups and a warm-up schedule."""

import math

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, symbols=20, width=16, heads=4):
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        position = torch.arange(0, 32, dtype=torch.float32).unsqueeze(1)
        rate = torch.exp(torch.arange(0, width, 2).float() * (-math.log(10000.0) / width))
        table = torch.zeros(32, width)
        table[:, 0::2] = torch.sin(position * rate)
        table[:, 1::2] = torch.cos(position * rate)
        self.register_buffer("table", table)
        self.layer = nn.TransformerEncoderLayer(
            width, heads, dim_feedforward=32, dropout=0.0, batch_first=True
        )
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, symbols)

    def forward(self, tokens):
        length = tokens.size(1)
        mask = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
        x = self.embedding(tokens) * math.sqrt(16) + self.table[:length]
        return self.out(self.norm(self.layer(x, src_mask=mask)))


torch.manual_seed(7)
model = Encoder()
tokens = torch.randint(0, 20, (6, 12))
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=0.01
)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 3))
for _ in range(4):
    logits = model(tokens[:, :-1])
    loss = nn.CrossEntropyLoss()(logits.transpose(1, 2), tokens[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    print(f"{loss.item():.5f} lr {schedule.get_last_lr()}")
print(sorted(name for name, _ in model.named_buffers()), len(list(model.named_parameters())))
